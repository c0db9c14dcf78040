"""Time series of one run on a Jetson, each channel with its own times: JSON with three lists of pairs.

    {"power_mw": [[0.0, 998.4], ...], "gpu_pct": [[0.5, 0.0], ...], "dram_bytes_s": [[0.14, 90680.8], ...],
     "t_launch": 60.0, "t_start": 65.5, "t_end": 590.4}

Seconds count from the start of the recording. The power is that of the rail VDD_CPU_GPU_CV, and the memory
traffic is as the activity monitor of the memory controller counts it: it grows with the bytes moved, by a
factor that only a copy of known size can show.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

from flopwitness.foundation.encoding import JsonValue, decode_json
from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.jetson import GPU_LOAD, Quantity, rail_power
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.wording import plural

__all__ = ["FORMATS", "decode_jetson_series"]

_SIGN: Final = re.compile(rb'"(?:power_mw|gpu_pct|dram_bytes_s)"\s*:\s*\[\s*\[')
_MARKS: Final = ("t_launch", "t_start", "t_end")
_LONGEST_S: Final = 1e9  # some 30 years
_ONLY_LINE: Final = 1
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class _Channel:
    quantity: Quantity
    divisor: float = 1.0


_CHANNELS: Final = {
    "power_mw": _Channel(rail_power("VDD_CPU_GPU_CV"), 1_000.0),
    "gpu_pct": _Channel(GPU_LOAD),
    "dram_bytes_s": _Channel(Quantity(Channel.MEMORY_TRAFFIC_BYTE_PER_S, Scope.MODULE)),
}


def decode_jetson_series(source: Source) -> Trace:
    """The series of one run, with times relative to the earliest of all; the run is its window.

    A pair that is none, and a mark that is no time, are skipped and counted; other names are passed over.

    Raises:
        DecodeError: Not strict JSON, or no reading is in it.

    Source:
        williamfowler/verification-games, recordings of the Orin Nano.
    """
    record = decode_json(source.whole(), where=source.where)
    reader = _Reader(source)
    if isinstance(record, dict):
        for name, channel in _CHANNELS.items():
            reader.take_series(name, record.get(name, []), channel)
        reader.take_run(record)
    return reader.trace()


def _is_jetson_series(head: bytes, name: str) -> bool:
    del name
    return head.lstrip().startswith(b"{") and _SIGN.search(head) is not None


class _Reader:
    """One file as it is read."""

    def __init__(self, source: Source) -> None:
        self._where = source.where
        self._device = source.device
        self._recording = Recording(source, times=Times.RELATIVE)

    def take_series(self, name: str, pairs: JsonValue, channel: _Channel) -> None:
        if not isinstance(pairs, list):
            self._skip(name, "a list of [time, value] pairs", pairs)
            return
        readings: list[tuple[int, float]] = []
        for index, pair in enumerate(pairs):
            time, value = pair if isinstance(pair, list) and len(pair) == _PAIR else (None, None)
            time_ns, number = _nanoseconds(time), _number(value)
            if time_ns is None or (number is None and value is not None):
                self._skip(f"{name}[{index}]", "a pair of numbers, time and value", pair)
            else:
                readings.append((time_ns, math.nan if number is None else number / channel.divisor))
        if readings:
            what = channel.quantity
            column = self._recording.column(self._device, what.channel, what.scope, part=what.part)
            column.extend(*zip(*readings, strict=True))
            self._recording.check_size()
            if what.channel is Channel.MEMORY_TRAFFIC_BYTE_PER_S:
                self._tell_traffic(len(readings))

    def take_run(self, record: dict[str, JsonValue]) -> None:
        """The marks, and the run between the last two."""
        times = {name: _nanoseconds(record[name]) for name in _MARKS if record.get(name) is not None}
        for name, time_ns in times.items():
            if time_ns is None:
                self._skip(name, "a time in seconds", record[name])
            else:
                self._recording.mark(name, time_ns, line=_ONLY_LINE)
        start_ns, stop_ns = times.get("t_start"), times.get("t_end")
        if start_ns is not None and (stop_ns is not None or "t_end" not in times):
            self._recording.window(start_ns, stop_ns)

    def trace(self) -> Trace:
        if not self._recording.n_readings:
            raise DecodeError(
                "time series without a reading",
                where=f"{self._where}:{_ONLY_LINE}",
                expected=f"[time, value] pairs under one of {', '.join(_CHANNELS)}",
                found="none",
            )
        return self._recording.trace()

    def _tell_traffic(self, n_readings: int) -> None:
        self._recording.tell(
            Finding(
                code="memory-traffic-uncalibrated",
                severity=Severity.NOTE,
                message=(
                    "memory traffic is as the activity monitor counts it: compare it with counts of the same "
                    "monitor only, or find the factor to bytes by a copy of known size"
                ),
                where=self._where,
                count=n_readings,
            )
        )

    def _skip(self, place: str, expected: str, found: JsonValue) -> None:
        self._recording.skip(_ONLY_LINE, expected=f"{expected}, at {place}", found=_shown(found))


def _shown(value: JsonValue) -> bytes:
    if isinstance(value, list | dict):
        return f"{type(value).__name__} of {plural(len(value), 'value')}".encode()
    return repr(value).encode("utf-8", "backslashreplace")


def _number(value: JsonValue) -> float | None:
    """The number; infinite where it is beyond a double, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _nanoseconds(value: JsonValue) -> int | None:
    """A time in seconds from the recording's start as nanoseconds; None where it is none."""
    number_s = _number(value)
    if number_s is None or not abs(number_s) <= _LONGEST_S:
        return None
    return round(number_s * NANOSECOND_PER_SECOND)


FORMATS: Final = (Format(name="jetson-series", is_it=_is_jetson_series, decode=decode_jetson_series),)
