"""What the readers of Jetson logs share: which rail is what, dates without a zone, and unread memory load.

A Jetson meters its supply at several places, some inside others. Only a few rails are the whole input of
something; every other one is a rail and nothing more. Nothing is added up: on boards without a meter at
their input (AGX Xavier, AGX Orin) there is no reading of the whole module, and none is made up.
"""

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.recording import Column, Recording
from flopwitness.measure.sources.source import Source
from flopwitness.measure.wording import plural

__all__ = [
    "CPU_CORES_ON",
    "CPU_LOAD",
    "GPU_LOAD",
    "GPU_TEMPERATURE",
    "LARGEST_BOARD_SERIES",
    "MEMORY_LOAD",
    "NO_TEMPERATURE_C",
    "STAMP",
    "Quantity",
    "SampleTable",
    "StampReader",
    "rail_power",
    "tell_unread_memory",
]

LARGEST_BOARD_SERIES: Final = 128  # no board has as many rails, clocks and loads together
NO_TEMPERATURE_C: Final = -256.0
"""What a thermal zone reads while its part of the chip is switched off.

Source:
    rbonghi/jetson_stats, `temperature.py`: a zone at -256 degrees counts as offline.
"""
STAMP: Final = re.compile(
    rb"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}-[0-9]{2}-[0-9]{4})[ T]"
    rb"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?=[ \t]|$)"
)
"""A date and time without a zone: `05-14-2025 09:00:00` as tegrastats writes it, or ISO 8601."""
_INPUTS: Final = {
    "VDD_IN": Scope.MODULE,
    "POM_5V_IN": Scope.MODULE,
    "VIN": Scope.NODE_DC,
    "VDD_MUX": Scope.NODE_DC,
}
"""Rails that everything on a board hangs on.

Source:
    NVIDIA Jetson Linux Developer Guide, power monitors: VDD_IN is the total power of the module on TX2,
    Xavier NX, Orin NX and Orin Nano; POM_5V_IN that of Nano. VDD_MUX is the input of the TX1 and TX2
    carrier board. On Thor, VIN is metered on the carrier board, in front of module and carrier alike.
    VIN_SYS_5V0 and SYS5V feed only a part of the module, memory among it.
"""
_FIRST_YEAR, _LAST_YEAR = 1970, 2099  # outside of these a clock was never set
_SECONDS: Final = {b"%02d" % second: second * NANOSECOND_PER_SECOND for second in range(60)}
_MOST_KEPT_MINUTES: Final = 1_024
_UNREAD_LOAD_PCT: Final = 50.0
_UNREAD_READINGS: Final = 10


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a reading is of; one series of the board's."""

    channel: Channel
    scope: Scope
    part: str = ""


GPU_LOAD: Final = Quantity(Channel.UTILISATION_PCT, Scope.GPU)
GPU_TEMPERATURE: Final = Quantity(Channel.TEMPERATURE_C, Scope.GPU)
MEMORY_LOAD: Final = Quantity(Channel.MEMORY_UTILISATION_PCT, Scope.MODULE)
CPU_LOAD: Final = Quantity(Channel.CPU_UTILISATION_PCT, Scope.CPU)
CPU_CORES_ON: Final = Quantity(Channel.CPU_CORES_ON, Scope.CPU)


def rail_power(name: str) -> Quantity:
    """The power of a rail: of all that hangs on it where that is a whole board or module, else its own."""
    scope = _INPUTS.get(name)
    return Quantity(Channel.POWER_W, Scope.RAIL, name) if scope is None else Quantity(Channel.POWER_W, scope)


class _Minutes(dict[bytes, int]):
    """Minutes by their text, as nanoseconds since 1970: samples of one minute share it."""

    def __missing__(self, text: bytes) -> int:
        minute_ns = _minute_ns(text)
        if len(self) >= _MOST_KEPT_MINUTES:
            self.clear()
        self[text] = minute_ns
        return minute_ns


class StampReader:
    """Dates that match `STAMP`, as nanoseconds since 1970 by their own calendar."""

    def __init__(self) -> None:
        self._minutes = _Minutes()

    def read(self, stamp: bytes) -> int | None:
        """The time; None where no calendar has it, or no clock that was ever set."""
        fraction_ns = int(stamp[20:].ljust(9, b"0")) if len(stamp) > 19 else 0  # noqa: PLR2004
        try:
            return self._minutes[stamp[:16]] + _SECONDS[stamp[17:19]] + fraction_ns
        except (KeyError, ValueError):
            return None

    def read_all(self, lines: Sequence[bytes]) -> NDArray[np.int64] | None:
        """The times of lines that begin with dates in whole seconds; None where one of them is none."""
        minutes = self._minutes
        try:
            times = [minutes[line[:16]] + _SECONDS[line[17:19]] for line in lines]
        except (KeyError, ValueError):
            return None
        return np.array(times, dtype=np.int64)


def _minute_ns(text: bytes) -> int:
    first, second, third = (int(number) for number in text[:10].split(b"-"))
    year, month, day = (first, second, third) if text[4:5] == b"-" else (third, first, second)
    hour, minute = int(text[11:13]), int(text[14:16])
    if not _FIRST_YEAR <= year <= _LAST_YEAR or hour > 23 or minute > 59:  # noqa: PLR2004
        raise ValueError(text)
    days = date(year, month, day).toordinal() - date(1970, 1, 1).toordinal()
    return ((days * 24 + hour) * 60 + minute) * 60 * NANOSECOND_PER_SECOND


class SampleTable:
    """One board's samples as rows: every series has every sample's time, and NaN where it was not read."""

    def __init__(self, source: Source, recording: Recording) -> None:
        self._where = source.where
        self._device = source.device
        self._recording = recording
        self._times = array("q")
        self._columns: dict[Quantity, Column] = {}

    def __len__(self) -> int:
        """How many samples."""
        return len(self._times)

    def values(self, quantity: Quantity) -> NDArray[np.float64]:
        """What was read so far, shape (n,): a view, which must be gone before the next samples come."""
        column = self._columns.get(quantity)
        return np.zeros(0) if column is None else np.frombuffer(column.values, dtype=np.float64)

    def add(self, times: NDArray[np.int64], values: Mapping[Quantity, NDArray[np.float64]]) -> None:
        """Further samples.

        Raises:
            DecodeError: More series than a board has.
        """
        for quantity in values:
            if quantity not in self._columns:
                self._columns[quantity] = self._new_column(quantity)
        nothing = np.full(times.shape, np.nan)
        for quantity, column in self._columns.items():
            column.extend(times, values.get(quantity, nothing))
        self._times.frombytes(times.tobytes())

    def _new_column(self, quantity: Quantity) -> Column:
        if len(self._columns) >= LARGEST_BOARD_SERIES:
            raise DecodeError(
                "too many rails, clocks and loads for one board",
                where=self._where,
                expected=f"at most {LARGEST_BOARD_SERIES}",
            )
        column = self._recording.column(self._device, quantity.channel, quantity.scope, part=quantity.part)
        column.extend(np.array(self._times, dtype=np.int64), np.full(len(self._times), np.nan))
        return column


def tell_unread_memory(table: SampleTable, recording: Recording, *, where: str) -> None:
    """Tell where memory traffic was not measured, and take loads of nothing but 0 % for unread.

    Without privileges, and on some releases with them, the load of the memory controller stays at 0 % while
    the GPU works. Taken as zero bytes moved it would push all energy into arithmetic.

    Side effects:
        Such loads become missing in the table.
    """
    load_pct, busy_pct = table.values(MEMORY_LOAD), table.values(GPU_LOAD)
    if not (load_pct > 0).any() and (busy_pct[: load_pct.size] >= _UNREAD_LOAD_PCT).sum() >= _UNREAD_READINGS:
        load_pct[load_pct == 0] = np.nan
    n_unread = len(table) - int(np.isfinite(load_pct).sum())
    if not n_unread:
        return
    recording.tell(
        Finding(
            code="memory-traffic-unread",
            severity=Severity.NOTE,
            message=(
                f"memory traffic not measured on {n_unread:,} of {plural(len(table), 'line')}: the memory "
                "controller's load is absent, without a clock, or 0 % throughout beside a busy GPU; missing, "
                "not zero"
            ),
            where=where,
            count=n_unread,
        )
    )
