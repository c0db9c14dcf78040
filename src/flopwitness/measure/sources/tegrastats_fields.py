"""What stands in one line of tegrastats, by its words and not by its place.

Every JetPack moved, renamed or dropped fields, so a line is searched for the fields that are wanted, and
whatever else stands there is passed over. A field is known by its name and its whole form: a load has its
`%`, a rail its second number, a list of cores its closing bracket, so that a line that was cut gives no
number that was cut.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.jetson import (
    CPU_CORES_ON,
    CPU_LOAD,
    GPU_LOAD,
    GPU_TEMPERATURE,
    MEMORY_LOAD,
    NO_TEMPERATURE_C,
    STAMP,
    Quantity,
    rail_power,
)

__all__ = ["Fields", "Shape", "Slot", "find_fields"]

_FIELD: Final = re.compile(
    rb"""(?<![A-Za-z0-9_])(?:
      RAM\ (?P<ram>[0-9]+)/[0-9]+(?P<unit>[kMG])B
    | (?i:CPU)\ \[(?P<cores>[0-9a-z%@,]*)\]
    | (?P<memory>EMC(?:_FREQ)?\ (?:(?P<load>[0-9]+)%)?(?:@(?P<mhz>[0-9]+))?)(?=\s|$)
    | (?P<gpu>GR3D(?:_FREQ)?\ (?:(?P<gpu_load>[0-9]+)%)?
        (?:@(?:\[(?P<clocks>[0-9]+(?:,[0-9]+)*)\]|(?P<clock>[0-9]+)))?)(?=\s|$)
    | (?i:GPU)@(?P<celsius>-?[0-9]+(?:\.[0-9]+)?)C
    | (?P<rail>[A-Z][A-Z0-9_]{0,39})\ (?P<mw>-?[0-9]+)(?:mW)?(?:/-?[0-9]+(?:mW)?){1,2}(?=\s|$)
    )""",
    re.VERBOSE,
)
_CORE: Final = re.compile(rb"(?P<load>[0-9]+)%(?:@[0-9]+)?|off")
_NUMBER: Final = re.compile(rb"[0-9]+")
_START: Final = re.compile(rb"(?<!I)RAM [0-9]+/[0-9]+[kMG]B \(lfb")
_MOST_CORES: Final = 256
_MOST_CLOCKS: Final = 16
_LEAST_KINDS: Final = 2
_NOT_CONNECTED: Final = b"NC"
_KINDS: Final = ("ram", "cores", "memory", "gpu", "celsius", "rail")
_MEMORY_USED: Final = Quantity(Channel.MEMORY_USED_BYTE, Scope.MODULE)
_MEMORY_CLOCK: Final = Quantity(Channel.MEMORY_CLOCK_HZ, Scope.MODULE)
_MHZ: Final = 1e6
_BYTES: Final = {b"k": 2.0**10, b"M": 2.0**20, b"G": 2.0**30}


@dataclass(frozen=True, slots=True)
class Slot:
    """A number of a line: what it is of, and how it becomes a reading in the unit of its channel.

    Attributes:
        quantity: What it is of; `CPU_LOAD` for the load of one core.
        up: It is multiplied with this.
        down: And divided by this.
        blank: The number that stands for no reading; None where every number is one.
    """

    quantity: Quantity
    up: float = 1.0
    down: float = 1.0
    blank: float | None = None


_CORE_LOAD: Final = Slot(CPU_LOAD)
_EMC_LOAD: Final = Slot(MEMORY_LOAD)
_EMC_LOAD_ALONE: Final = Slot(MEMORY_LOAD, blank=0.0)  # without a clock, 0 % is what an unread sensor shows
_EMC_CLOCK: Final = Slot(_MEMORY_CLOCK, up=_MHZ)
_LOAD: Final = Slot(GPU_LOAD)
_GPU_CLOCKS: Final = tuple(
    Slot(Quantity(Channel.CLOCK_HZ, Scope.GPU, f"gpc{index}"), up=_MHZ) for index in range(_MOST_CLOCKS)
)
_TEMPERATURE: Final = Slot(GPU_TEMPERATURE, blank=NO_TEMPERATURE_C)
_USED: Final = {unit: Slot(_MEMORY_USED, up=size) for unit, size in _BYTES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the numbers of lines of one kind are.

    Attributes:
        slots: One for each number, in the order of the line.
        unread: What the line names and gives no number for.
        has_cores: Whether it lists its cores.
    """

    slots: tuple[Slot, ...]
    unread: tuple[Quantity, ...]
    has_cores: bool

    def settle(self, numbers: NDArray[np.float64]) -> dict[Quantity, NDArray[np.float64]]:
        """The readings of n lines, each (n,), from their numbers, (n, slots); cores become their mean.

        Side effects:
            Changes `numbers`.
        """
        with np.errstate(over="ignore"):
            numbers[numbers == [np.nan if slot.blank is None else slot.blank for slot in self.slots]] = np.nan
            numbers *= [slot.up for slot in self.slots]
            numbers /= [slot.down for slot in self.slots]
        missing = np.full(len(numbers), np.nan)
        readings = dict.fromkeys(self.unread, missing)
        for index, slot in enumerate(self.slots):
            if slot is not _CORE_LOAD:
                readings[slot.quantity] = numbers[:, index]
        if self.has_cores:
            is_core = np.array([slot is _CORE_LOAD for slot in self.slots], dtype=np.bool_)
            n_on = int(is_core.sum())
            readings[CPU_LOAD] = numbers[:, is_core].sum(axis=1) / n_on if n_on else missing
            readings[CPU_CORES_ON] = np.full(len(numbers), float(n_on))
        return readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What stands in one line.

    Attributes:
        stamp_bytes: How long its date is, which stands in front; 0 where it has none.
        shape: What its numbers are.
        spans: Where each of them stands: first byte, and the one after the last.
    """

    stamp_bytes: int
    shape: Shape
    spans: tuple[tuple[int, int], ...]

    def without_last(self, line: bytes) -> "Fields":
        """The same without a number that touches the line's end, for a line that was cut there."""
        if not self.spans or self.spans[-1][1] < len(line):
            return self
        return replace(self, shape=replace(self.shape, slots=self.shape.slots[:-1]), spans=self.spans[:-1])


def find_fields(line: bytes) -> Fields | None:
    """The fields of a line, each once; None where it is no line of tegrastats, or two run together.

    What stands in front of `RAM`, such as a shell's prompt, is not searched.
    """
    starts = [found.start() for found in islice(_START.finditer(line), 2)]
    if len(starts) > 1:
        return None
    finder = _Finder()
    for found in _FIELD.finditer(line, *starts):
        finder.take(found)
    if len(finder.kinds) < _LEAST_KINDS:
        return None
    stamp = STAMP.match(line)
    is_dated = stamp is not None and not (starts and line[stamp.end() : starts[0]].strip())
    return finder.fields(stamp_bytes=stamp.end() if stamp and is_dated else 0)


class _Finder:
    """The fields of one line as they are found."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._slots: list[Slot] = []
        self._spans: list[tuple[int, int]] = []
        self._known: set[Quantity] = set()
        self._unread: list[Quantity] = []
        self._has_cores = False

    def take(self, found: re.Match[bytes]) -> None:
        kind = next(name for name in _KINDS if found[name] is not None)
        self.kinds.add(kind)
        if kind == "ram":
            self._add(_USED[found["unit"]], found.span("ram"))
        elif kind == "cores":
            self._take_cores(found["cores"], start=found.start("cores"))
        elif kind == "memory":
            self._take_memory(found)
        elif kind == "gpu":
            self._take_gpu(found)
        elif kind == "celsius":
            self._add(_TEMPERATURE, found.span("celsius"))
        elif found["rail"] != _NOT_CONNECTED:
            self._add(_rail_slot(found["rail"]), found.span("mw"))

    def fields(self, *, stamp_bytes: int) -> Fields:
        unread = tuple(quantity for quantity in self._unread if quantity not in self._known)
        shape = Shape(slots=tuple(self._slots), unread=unread, has_cores=self._has_cores)
        return Fields(stamp_bytes=stamp_bytes, shape=shape, spans=tuple(self._spans))

    def _add(self, slot: Slot, span: tuple[int, int]) -> None:
        if slot.quantity not in self._known:
            self._known.add(slot.quantity)
            self._slots.append(slot)
            self._spans.append(span)

    def _take_cores(self, cores: bytes, *, start: int) -> None:
        found = [_CORE.fullmatch(entry) for entry in cores.split(b",", _MOST_CORES - 1)]
        if self._has_cores or None in found:
            return
        self._has_cores = True
        for core in filter(None, found):
            if core["load"]:
                self._slots.append(_CORE_LOAD)
                self._spans.append((start, start + len(core["load"])))
            start += len(core[0]) + 1

    def _take_memory(self, found: re.Match[bytes]) -> None:
        has_clock = found["mhz"] is not None
        if found["load"] is not None:
            self._add(_EMC_LOAD if has_clock else _EMC_LOAD_ALONE, found.span("load"))
        else:
            self._unread.append(MEMORY_LOAD)
        if has_clock:
            self._add(_EMC_CLOCK, found.span("mhz"))

    def _take_gpu(self, found: re.Match[bytes]) -> None:
        if found["gpu_load"] is not None:
            self._add(_LOAD, found.span("gpu_load"))
        else:
            self._unread.append(GPU_LOAD)
        name = "clock" if found["clock"] is not None else "clocks"
        if found[name] is None:
            return
        for slot, number in zip(_GPU_CLOCKS, _NUMBER.finditer(found[name]), strict=False):
            self._add(slot, (found.start(name) + number.start(), found.start(name) + number.end()))


@lru_cache(maxsize=256)
def _rail_slot(name: bytes) -> Slot:
    return Slot(rail_power(name.decode("ascii")), down=1_000.0)
