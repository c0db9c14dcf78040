"""Replies of a Prometheus server: `query_range` and `query` of its HTTP API, as JSON.

Times are seconds with up to three decimals, and values are text. They are read as they are written: a
binary fraction would move a time by up to 240 ns and spoil the comparison with the server's own blocks.
A reply to an expression, such as `rate(...)` or `sum(...)`, has lost the metric's name; nothing in it says
any more what its numbers are, so it is refused.

Source:
    Prometheus, "HTTP API", expression queries.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import msgspec

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.metric_readings import (
    MetricReadings,
    Samples,
    parse_sample_value,
    place_seconds,
)
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_blocks, decode_head
from flopwitness.measure.sources.values import Unreadable

__all__ = ["FORMATS"]

_LOOKED_AT_BYTES: Final = 64 << 10
_STATUS: Final = re.compile(rb'"status"\s*:\s*"(?:success|error)"')
_SERIES: Final = re.compile(rb'"metric"\s*:\s*\{')
_KINDS: Final = ("matrix", "vector")
_NAME: Final = "__name__"
_UNNAMED: Final = "the metrics themselves, with their __name__: no rate(), sum() or other expression"


class _Result(msgspec.Struct):
    """One series of a reply; its samples wait, so that only one series at a time is spelled out."""

    metric: dict[str, str]
    values: msgspec.Raw = msgspec.Raw(b"[]")
    value: msgspec.Raw = msgspec.Raw(b"")


class _Data(msgspec.Struct):
    resultType: str  # noqa: N815 (the server's word)
    result: msgspec.Raw


class _Reply(msgspec.Struct):
    status: str
    data: _Data | None = None
    errorType: str = ""  # noqa: N815
    error: str = ""


_Samples = list[tuple[Decimal, str]]


class _Reader:
    """What has been read so far."""

    def __init__(self, source: Source) -> None:
        self._where = source.where
        self._recording = Recording(source, times=Times.UTC)
        self._readings = MetricReadings(source, self._recording)
        self._n_series = self._n_unnamed = 0

    def take(self, result: _Result) -> None:
        self._n_series += 1
        labels = dict(result.metric)
        name = labels.pop(_NAME, "")
        if not name:
            self._n_unnamed += 1
            self._skip(expected=_UNNAMED, found=repr(labels).encode("utf-8", "replace"))
            return
        samples = self._readings.find(name, labels)
        if samples is None:
            return
        raw = bytes(result.value)
        for record in _spell_out(b"[" + raw + b"]" if raw else bytes(result.values)):
            self._add(samples, record)
        self._readings.check_size()

    def trace(self) -> Trace:
        if self._n_unnamed and self._n_unnamed == self._n_series:
            raise DecodeError(
                "a reply without a metric's name",
                where=f"{self._where}:1",
                expected=_UNNAMED,
                found=f"{self._n_unnamed} series without one",
            )
        self._readings.settle()
        return self._recording.trace()

    def _add(self, samples: Samples, record: tuple[Decimal, str] | bytes) -> None:
        if isinstance(record, bytes):
            self._skip(expected='[seconds, "value"]', found=record)
            return
        time_s, text = record
        try:
            value = parse_sample_value(text.encode("utf-8", "replace"))
            time_ns = place_seconds(time_s)
        except Unreadable:
            self._skip(expected='[seconds, "value"]', found=f"[{time_s}, {text[:40]!r}]".encode())
            return
        samples.times.append(time_ns)
        samples.values.append(value)

    def _skip(self, *, expected: str, found: bytes) -> None:
        """Replies are one line; the number of the series says more than a line's."""
        self._recording.skip(1, expected=f"{expected} (series {self._n_series})", found=found)


def _spell_out(raw: bytes) -> Iterator[tuple[Decimal, str] | bytes]:
    """The samples of one series; what is none comes back as it stands."""
    try:
        yield from msgspec.json.decode(raw, type=_Samples)
    except (msgspec.DecodeError, RecursionError):
        yield from _spell_out_each(raw)


def _spell_out_each(raw: bytes) -> Iterator[tuple[Decimal, str] | bytes]:
    try:
        records = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        yield raw
        return
    for record in records:
        try:
            yield msgspec.json.decode(record, type=tuple[Decimal, str])
        except (msgspec.DecodeError, RecursionError):
            yield bytes(record)


def _is_reply(head: bytes, name: str) -> bool:
    """Whether a file begins as a reply with series, whatever the order of its keys, or as a refusal."""
    del name
    text = decode_head(head[:_LOOKED_AT_BYTES])
    if not text.lstrip().startswith(b"{"):
        return False
    is_reply = _STATUS.search(text) is not None and (b'"resultType"' in text or b'"errorType"' in text)
    return is_reply or (b'"result"' in text and _SERIES.search(text) is not None)


def _find_results(data: bytes, where: str) -> list[_Result]:
    """The series of a reply, their samples not yet spelled out.

    Raises:
        msgspec.DecodeError: It is no reply.
        DecodeError: It is the server's refusal, or a result of another kind.
    """
    reply = msgspec.json.decode(data, type=_Reply)
    if reply.status != "success":
        raise DecodeError(
            "the server refused the query",
            where=where,
            expected="a reply with a result",
            found=f"{reply.errorType[:40]}: {reply.error[:160]}",
        )
    if reply.data is None or reply.data.resultType not in _KINDS:
        raise DecodeError(
            "a result without series",
            where=where,
            expected=f"a resultType of {' or '.join(_KINDS)}",
            found=repr(reply.data.resultType[:40]) if reply.data is not None else "no data",
        )
    return msgspec.json.decode(reply.data.result, type=list[_Result])


def _decode_reply(source: Source, /) -> Trace:
    """The readings of all series of a reply.

    Raises:
        DecodeError: No reply, a refusal by the server, a result that is no series of metrics, or none of a
            known one.
    """
    data = b"".join(decode_blocks([source.whole()]))
    where = f"{source.where}:1"
    try:
        results = _find_results(data, where)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DecodeError(
            "no reply of Prometheus",
            where=where,
            expected='{"status": "success", "data": {"resultType": ..., "result": [...]}}',
            found=str(error)[:160],
        ) from None
    reader = _Reader(source)
    for result in results:
        reader.take(result)
    return reader.trace()


FORMATS: Final = (Format(name="prometheus-reply", is_it=_is_reply, decode=_decode_reply),)
