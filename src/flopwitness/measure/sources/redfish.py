"""Power over Redfish: what a chassis draws, as its service's JSON documents say it.

Four kinds of documents hold it: `Power` (old), `EnvironmentMetrics` and `Sensor` (new), and the telemetry
service's `MetricReport`. A file holds one document, a list, or many after each other, bare or inside a
wrapper that adds a time or a host. A service may report a total and its parts side by side, so several
figures of one chassis are kept apart by their names, and nothing is added.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from flopwitness.foundation.encoding import JsonValue, decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import JOULE_PER_KWH
from flopwitness.measure.samples import Channel, Trace
from flopwitness.measure.sources.clock_text import ClockStamp, parse_clock_number, parse_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.held_readings import Figure, HeldReadings
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.redfish_names import (
    Named,
    name_members,
    name_metric,
    name_place,
    name_sensor,
)
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.text_encoding import decode_blocks, decode_head
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["FORMATS", "decode_redfish"]

_EXPECTED: Final = "a Redfish Power, EnvironmentMetrics, Sensor or MetricReport document with a power"
_SIGNS: Final = re.compile(
    rb'"PowerConsumedWatts"|"AverageConsumedWatts"|"PowerWatts"\s*:\s*\{|"EnergykWh"\s*:\s*\{'
    rb'|"MetricValues"\s*:\s*\[|"ReadingUnits"\s*:\s*"W"'
)
_NEXT: Final = re.compile(r"\n(?=[{\[])")
_GAP: Final = re.compile(r"[\s,]*")
_TIME_KEYS: Final = ("timestamp", "time", "datetime", "date", "ts", "collected_at", "readingtime")
_HOST_KEYS: Final = ("host", "hostname", "node", "bmc", "server")
_MOST_BROKEN: Final = 1_000
_DEEPEST: Final = 20
_LONGEST_NAME: Final = 100
_MINUTE_S: Final = 60.0
_LATEST: Final = 5e18


def decode_redfish(source: Source) -> Trace:
    """The readings of every document, by chassis.

    Documents without a time are numbered, unless others have one.

    Raises:
        DecodeError: No document with a power is in it, or it is larger than may be read at once.

    Source:
        DMTF DSP8010 (Redfish schemas): Power.PowerControl, EnvironmentMetrics, Sensor, MetricReport.
    """
    text = b"".join(decode_blocks([source.whole()])).decode("utf-8", "replace")
    recording = Recording(source, times=Times.COUNTED)
    reader = _Documents(source, recording)
    for line, value in _split(text, recording, where=source.where):
        reader.take(value, _Context(host=source.device, line=line), depth=0)
    return reader.trace()


def _split(text: str, recording: Recording, *, where: str) -> Iterator[tuple[int, JsonValue]]:
    """Each JSON value of the text with the line that it begins on; what is none is skipped and located.

    Raises:
        DecodeError: Too much of it is none: each attempt may read all the rest.
    """
    place, line, n_broken = _past_gap(text, 0), 1, 0
    line += text.count("\n", 0, place)
    while place < len(text):
        read = _read_value(text, place)
        if read is None:
            n_broken += text[place] in "{["
            if n_broken > _MOST_BROKEN:
                raise DecodeError("too much that is no JSON", where=f"{where}:{line}", expected=_EXPECTED)
            recording.skip(line, expected="one JSON value", found=text[place : place + 200].encode("utf-8"))
            following = _NEXT.search(text, place + 1)
            end = len(text) if following is None else following.end()
        else:
            value, end = read
            yield line, value
        following_place = _past_gap(text, end)
        line += text.count("\n", place, following_place)
        place = following_place


def _read_value(text: str, place: int) -> tuple[JsonValue, int] | None:
    """The strict JSON object or list that begins here, and where it ends; None where there is none."""
    if text[place] not in "{[":
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text, place)
        return decode_json(text[place:end].encode("utf-8")), end
    except (ValueError, RecursionError, DecodeError):
        return None


def _past_gap(text: str, place: int) -> int:
    found = _GAP.match(text, place)
    return place if found is None else found.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What a document's wrappers say of it."""

    host: str
    line: int
    stamp: ClockStamp | None = None


class _Documents:
    """What the documents of one file have told so far."""

    def __init__(self, source: Source, recording: Recording) -> None:
        self._source = source
        self._recording = recording
        self._held = HeldReadings(source.where)

    def trace(self) -> Trace:
        if not self._held.count:
            raise DecodeError(
                "no power in Redfish documents",
                where=f"{self._source.where}:1",
                expected=_EXPECTED,
                found="JSON without one",
            )
        self._held.fill(self._recording)
        return self._recording.trace()

    def take(self, value: JsonValue, context: _Context, *, depth: int) -> None:
        """Every document within the value, whatever it is wrapped in."""
        if depth > _DEEPEST:
            return
        if isinstance(value, list):
            for item in value:
                self.take(item, context, depth=depth + 1)
        elif isinstance(value, dict):
            context = _narrow(context, value)
            if not self._take_document(value, context):
                for item in value.values():
                    self.take(item, context, depth=depth + 1)

    def _take_document(self, document: Mapping[str, JsonValue], context: _Context) -> bool:
        """Whether the object is one of the documents."""
        if isinstance(document.get("PowerControl"), list):
            self._take_power(document, context)
        elif isinstance(document.get("MetricValues"), list):
            self._take_report(document["MetricValues"], context)
        elif any(isinstance(document.get(key), dict) for key in ("PowerWatts", "EnergykWh", "EnergyJoules")):
            self._take_environment(document, context)
        elif "Reading" in document and isinstance(document.get("ReadingUnits"), str):
            self._take_sensor(document, context)
        else:
            return False
        return True

    def _take_power(self, document: Mapping[str, JsonValue], context: _Context) -> None:
        """An old `Power` document: its members may be a total and its parts."""
        members = [member for member in document["PowerControl"] if isinstance(member, dict)]
        place = name_place(_text(document, "@odata.id") or next((_text(m, "@odata.id") for m in members), ""))
        for member, named in zip(members, name_members(place, members), strict=True):
            if "PowerConsumedWatts" in member:
                self._add(Channel.POWER_W, named, member["PowerConsumedWatts"], context)
            metrics, limit = member.get("PowerMetrics"), member.get("PowerLimit")
            if isinstance(metrics, dict) and "AverageConsumedWatts" in metrics:
                minutes = _number(metrics.get("IntervalInMin"))
                averaged_s = minutes * _MINUTE_S if minutes is not None and minutes > 0 else None
                value = metrics["AverageConsumedWatts"]
                self._add(Channel.POWER_AVERAGE_W, named, value, context, averaged_s=averaged_s)
            if isinstance(limit, dict) and limit.get("LimitInWatts") is not None:
                self._add(Channel.POWER_LIMIT_W, named, limit["LimitInWatts"], context)

    def _take_environment(self, document: Mapping[str, JsonValue], context: _Context) -> None:
        """A new `EnvironmentMetrics` document, of a chassis or of a processor."""
        place = name_place(_text(document, "@odata.id"))
        for key, field, channel, scale in (
            ("PowerWatts", "Reading", Channel.POWER_W, 1.0),
            ("EnergykWh", "Reading", Channel.ENERGY_COUNTER_J, float(JOULE_PER_KWH)),
            ("EnergyJoules", "Reading", Channel.ENERGY_COUNTER_J, 1.0),
            ("PowerLimitWatts", "SetPoint", Channel.POWER_LIMIT_W, 1.0),
        ):
            held = document.get(key)
            if not isinstance(held, dict) or field not in held:
                continue
            if key == "EnergykWh" and isinstance(document.get("EnergyJoules"), dict):
                continue  # the same counter, finer
            if channel is Channel.POWER_LIMIT_W and held[field] is None:
                continue
            self._add(channel, place, held[field], context, scale=scale)

    def _take_sensor(self, document: Mapping[str, JsonValue], context: _Context) -> None:
        named = name_sensor(document)
        if named is not None:
            channel, place, scale = named
            self._add(channel, place, document["Reading"], context, scale=scale)

    def _take_report(self, values: list[JsonValue], context: _Context) -> None:
        """A telemetry report: many metrics, of which those of power and energy are taken."""
        for item in values:
            if not isinstance(item, dict):
                continue
            named = name_metric(_text(item, "MetricId"), _text(item, "MetricProperty"))
            if named is None:
                continue
            channel, place, scale = named
            averaged_s = None if channel is Channel.POWER_AVERAGE_W else 0.0
            value, own = item.get("MetricValue"), _narrow(context, item)
            self._add(channel, place, value, own, scale=scale, averaged_s=averaged_s)

    def _add(
        self,
        channel: Channel,
        place: Named,
        value: JsonValue,
        context: _Context,
        *,
        scale: float = 1.0,
        averaged_s: float | None = 0.0,
    ) -> None:
        number = _number(value)
        if number is None:
            found = str(value)[:200].encode("utf-8", "replace")
            self._recording.skip(context.line, expected=f"a number as {channel}", found=found)
            return
        device = f"{context.host}/{place.name}" if place.name else context.host
        self._held.add(
            Figure(device, channel, place.scope, place.part),
            number * scale,
            stamp=context.stamp,
            line=context.line,
            averaged_s=averaged_s,
        )


def _narrow(context: _Context, value: Mapping[str, JsonValue]) -> _Context:
    """The context with what this object adds: a time, and a host's name."""
    stamp, host = context.stamp, context.host
    for key, item in value.items():
        if key.lower() in _TIME_KEYS:
            stamp = _stamp(item) or stamp
        elif key.lower() in _HOST_KEYS and isinstance(item, str) and item:
            host = item[:_LONGEST_NAME]
    return replace(context, stamp=stamp, host=host)


def _stamp(value: JsonValue) -> ClockStamp | None:
    """A time as text, or as a number of seconds, or thousandths and so on, since 1970."""
    if isinstance(value, str):
        return parse_stamp(value.encode("utf-8", "replace"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LATEST:
        return None
    stamp = parse_clock_number(repr(value).encode("ascii"))
    return stamp if stamp is not None and stamp.times is Times.UTC else None


def _number(value: JsonValue) -> float | None:
    """A number; NaN where there is none or a marker for one, None where there is something else."""
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return parse_number(str(value).encode("utf-8", "replace"))
    except (Unreadable, ValueError):  # an int may have more digits than Python writes
        return None


def _text(value: Mapping[str, JsonValue], key: str) -> str:
    text = value.get(key)
    return text[:1_000] if isinstance(text, str) else ""


def _is_redfish(head: bytes, name: str) -> bool:
    del name
    begin = decode_head(head[: 1 << 20]).lstrip()
    return begin[:1] in (b"{", b"[") and _SIGNS.search(begin) is not None


FORMATS: Final = (Format(name="redfish-power", is_it=_is_redfish, decode=decode_redfish),)
