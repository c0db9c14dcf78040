"""MLPerf's power logs: one node's readings, or the one estimate for a switch.

The readings come back as they stand. Times may repeat or step back, the stop mark often carries the
start's time and stands last, and a conversion factor may be declared beside the readings: all of that is
kept and judged later. A reading that is no power is missing at its time, never zero.
"""

import math
import re
from array import array
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from flopwitness.foundation.encoding import JsonValue
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Mark, Scope, Series, Skipped, Trace
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.mllog import (
    MARKER,
    MOST_PER_LOG,
    TIMED_BY_SERIES,
    ExtentTally,
    MllogEvent,
    decode_mllog,
)
from flopwitness.measure.sources.result_log import ResultLogReader
from flopwitness.measure.sources.skips import SkipTally, excerpt
from flopwitness.measure.sources.source import Source

__all__ = ["FORMATS", "decode_power_log", "scope_from_name"]

_READING, _SWITCH_ESTIMATE = TIMED_BY_SERIES
_CONVERSION: Final = "conversion_eff"
_MARKS: Final = ("power_measurement_start", "power_measurement_stop")
_SIGNS: Final = tuple(f'"{name}"'.encode() for name in (*TIMED_BY_SERIES, _MARKS[0]))
_LONGEST_NAME: Final = 200
_SIDE: Final = re.compile(r"power[_-](ac|dc)(?![a-z])", re.IGNORECASE)


def decode_power_log(source: Source) -> Trace:
    """The readings, marks and conversion factor of one power log.

    MLPerf's own summary multiplies readings by the conversion factor; here the factor travels beside them.

    Args:
        source: The log. One whose readings name several hosts gives `device/host` for each. They cover
            what its path says, else what the user says, else the node; switch estimates always the switch.

    Returns:
        One series [W] per node in the order of the log, then one per switch, marked as an estimate. The
        extent holds the times of events that are none of a power log's own. Where the log holds a run's
        events too, their marks, windows, extent and declaration; what is skipped is counted once.

    Raises:
        DecodeError: No reading and no switch estimate is in it.

    Source:
        MLCommons Training v4.0 rules, power; mlperf_logging/result_summarizer, for the factor.
    """
    where = source.where
    power, run = _PowerLogReader(where), ResultLogReader(where)
    for event in decode_mllog(run.watch(source.each_line()), where=where):
        power.take(event)
        run.take(event)
    scope = scope_from_name(where) or source.options.scope or Scope.NODE
    readings = power.trace(device=source.device, scope=scope)
    if not run.has_run:
        return readings
    events = run.trace()
    return replace(
        readings,
        marks=(*readings.marks, *events.marks),
        windows=events.windows,
        extent=events.extent,
        declaration=events.declaration,
    )


def scope_from_name(name: str) -> Scope | None:
    """The side of the power supply that a path's innermost `power_ac` or `power_dc` names; None without."""
    for part in reversed(re.split(r"[/\\!]", name)):
        side = _SIDE.search(part)
        if side:
            return Scope.NODE_AC if side[1].lower() == "ac" else Scope.NODE_DC
    return None


class _Readings:
    """Times and values of one device as they come."""

    def __init__(self) -> None:
        self.utc_ns = array("q")
        self.power_w = array("d")

    def series(self, device: str, scope: Scope, *, conversion: float) -> Series:
        return Series(
            device=device,
            channel=Channel.POWER_W,
            scope=scope,
            utc_ns=np.array(self.utc_ns, dtype=np.int64),
            value=np.array(self.power_w, dtype=np.float64),
            conversion=conversion,
            is_estimate=scope is Scope.SWITCH,
        )


class _PowerLogReader:
    """What has been read of one log so far."""

    def __init__(self, where: str) -> None:
        """Begin with nothing read."""
        self._where = where
        self._nodes: dict[str, _Readings] = {}
        self._switches: dict[str, _Readings] = {}
        self._marks: list[Mark] = []
        self._conversion: float | None = None
        self._skips = SkipTally()
        self._other_events = 0
        self._times = ExtentTally()

    def take(self, event: MllogEvent | Skipped) -> None:
        """Read one event."""
        if isinstance(event, Skipped):
            self._skips.add_all((event,), count=1)
        elif event.key == _READING:
            self._take_reading(event, self._nodes, name=_name(event.metadata, "host"))
        elif event.key == _SWITCH_ESTIMATE:
            self._take_reading(event, self._switches, name=_name(event.metadata, "switch_id"))
        elif event.key == _CONVERSION:
            self._take_conversion(event)
        elif event.key in _MARKS:
            self._take_mark(event)
        else:
            self._other_events += 1
            self._times.add(event)

    def trace(self, *, device: str, scope: Scope) -> Trace:
        """The readings; see `decode_power_log`.

        Raises:
            DecodeError: No reading and no switch estimate was read.
        """
        if not self._nodes and not self._switches:
            raise DecodeError(
                "a power log without a reading",
                where=f"{self._where}:1",
                expected=f"a `{_READING}` or `{_SWITCH_ESTIMATE}` event",
                found=self._what_there_is(),
            )
        conversion = 1.0 if self._conversion is None else self._conversion
        is_one = len(self._nodes) == 1
        names = {host: f"{device}/{host}" if host and not is_one else device for host in self._nodes}
        series = [
            readings.series(names[host], scope, conversion=conversion)
            for host, readings in self._nodes.items()
        ]
        series += [
            readings.series(switch or device, Scope.SWITCH, conversion=conversion)
            for switch, readings in self._switches.items()
        ]
        return Trace(
            series=tuple(series),
            marks=tuple(self._marks),
            extent=self._times.extent,
            skipped=self._skips.first,
            n_skipped=self._skips.count,
        )

    def _take_reading(self, event: MllogEvent, devices: dict[str, _Readings], *, name: str) -> None:
        if name not in devices and len(devices) >= MOST_PER_LOG:
            self._skip(event, expected=f"at most {MOST_PER_LOG} devices in one log")
            return
        readings = devices.setdefault(name, _Readings())
        power_w = _power_w(event.value)
        if math.isnan(power_w):
            self._skip(event, expected="a finite power in W, not negative")
        readings.utc_ns.append(event.time_ns)
        readings.power_w.append(power_w)

    def _take_conversion(self, event: MllogEvent) -> None:
        factor = _power_w(event.value)
        if not factor > 0:
            self._skip(event, expected="a factor above 0")
            return
        if self._conversion not in (None, factor):
            self._skip(event, expected=f"the factor {self._conversion}, as before")
        self._conversion = factor

    def _take_mark(self, event: MllogEvent) -> None:
        if len(self._marks) >= MOST_PER_LOG:
            self._skip(event, expected=f"at most {MOST_PER_LOG} marks in one log")
            return
        self._marks.append(Mark(name=event.key, utc_ns=event.time_ns, where=f"{self._where}:{event.line}"))

    def _skip(self, event: MllogEvent, *, expected: str) -> None:
        found = excerpt(f"{event.key} {event.value!r}".encode("utf-8", "backslashreplace"))
        self._skips.add(f"{self._where}:{event.line}", expected=expected, found=found)

    def _what_there_is(self) -> str:
        n_events = self._other_events + len(self._marks)
        if not n_events and not self._skips.count:
            return "no :::MLLOG line"
        found = f"{n_events} other events and {self._skips.count} unreadable lines"
        if not self._skips.count:
            return found
        first = self._skips.first[0]
        return f"{found}; the first, at {first.where}, should hold {first.expected}"


def _power_w(value: JsonValue) -> float:
    """The power [W], or NaN where the value is none: text, true, null, negative or beyond a double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        power_w = float(value)
    except OverflowError:
        return math.nan
    return power_w if math.isfinite(power_w) and power_w >= 0 else math.nan


def _name(metadata: Mapping[str, JsonValue], key: str) -> str:
    name = metadata.get(key)
    return name if isinstance(name, str) and len(name) <= _LONGEST_NAME else ""


def _is_power(head: bytes, name: str) -> bool:
    del name
    return MARKER in head and any(sign in head for sign in _SIGNS)


FORMATS: Final = (Format(name="mlperf-power", is_it=_is_power, decode=decode_power_log),)
