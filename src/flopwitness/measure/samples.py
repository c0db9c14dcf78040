"""Readings as every reader gives them and every estimator takes them.

A `Series` is one channel of one device over time; a `Trace` is all series of one recording with its marks,
its provenance and what its reader could not read. A missing reading is NaN, never zero. The scope of a
figure travels with it, because a GPU's watts, a module's and a node's are different quantities.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.digest import Digest

__all__ = ["Channel", "Declaration", "Mark", "Provenance", "RunWindow", "Scope", "Series", "Skipped", "Trace"]


class Channel(StrEnum):
    """What is read; the unit is in the name."""

    POWER_W = "power_w"
    POWER_AVERAGE_W = "power_average_w"
    ENERGY_COUNTER_J = "energy_counter_j"
    UTILISATION_PCT = "utilisation_pct"
    MEMORY_UTILISATION_PCT = "memory_utilisation_pct"
    MEMORY_TRAFFIC_BYTE = "memory_traffic_byte"
    LINK_TRAFFIC_BYTE = "link_traffic_byte"
    HOST_TRAFFIC_BYTE = "host_traffic_byte"
    CLOCK_HZ = "clock_hz"
    TEMPERATURE_C = "temperature_c"


class Scope(StrEnum):
    """What a power or energy figure covers; figures of overlapping scopes are never added."""

    GPU = "gpu"
    MODULE = "module"
    RAIL = "rail"
    NODE_AC = "node-ac"
    NODE_DC = "node-dc"
    NODE = "node"  # a whole node, on which side of its power supply is not recorded
    SWITCH = "switch"
    UNKNOWN = "unknown"

    @property
    def is_node(self) -> bool:
        """Whether hosts, fans and conversion losses are in the figure."""
        return self in (Scope.NODE_AC, Scope.NODE_DC, Scope.NODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One channel of one device over time, in the order of the recording.

    Attributes:
        device: The device's name in the recording, such as `node_17` or a GPU's UUID.
        channel: What is read.
        scope: What the figure covers.
        utc_ns: Wall-clock nanoseconds since 1970, int64, shape (n,); may repeat or step backwards.
        monotonic_ns: Nanoseconds of a clock that never steps, int64, shape (n,); None where not recorded.
        value: The readings in the channel's unit, float64, shape (n,); NaN where missing.
        conversion: The factor that the recording names for its readings (AC to DC); 1 where none.
            `value` holds the readings as they stand, unconverted.
        is_estimate: Whether the recording itself calls the value an estimate, not a measurement.
    """

    device: str
    channel: Channel
    scope: Scope
    utc_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    monotonic_ns: NDArray[np.int64] | None = None
    conversion: float = 1.0
    is_estimate: bool = False

    def __post_init__(self) -> None:
        """Refuse arrays of unlike shape, and a factor that is none."""
        if not 0 < self.conversion < float("inf"):
            raise ValueError(f"not a conversion factor: {self.conversion}")
        if self.utc_ns.ndim != 1 or self.utc_ns.shape != self.value.shape:
            raise ValueError(f"times {self.utc_ns.shape} and values {self.value.shape} differ in shape")
        if self.monotonic_ns is not None and self.monotonic_ns.shape != self.value.shape:
            raise ValueError(
                f"monotonic times {self.monotonic_ns.shape} and values {self.value.shape} differ in shape"
            )

    def __len__(self) -> int:
        """How many readings, missing ones included."""
        return int(self.value.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An event that the recording names, such as the start of its power measurement.

    Attributes:
        name: The event's name in the recording.
        utc_ns: Wall-clock nanoseconds since 1970.
        where: File and line.
    """

    name: str
    utc_ns: int
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWindow:
    """The training run as its own log marks it: a claim of the Prover, not a measurement.

    Attributes:
        start_utc_ns: When the run says that it started.
        stop_utc_ns: When it says that it stopped; None for a run cut short.
        status: What the log calls its outcome, such as `success`; "" where it does not say.
    """

    start_utc_ns: int
    stop_utc_ns: int | None
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a log declares about its run. It may test a claim; it never reaches a prediction.

    Attributes:
        benchmark: The workload's declared name, such as `gpt3`.
        platform: The declared platform, as it stands.
        nodes: The declared number of nodes; None where it does not say.
        chips: The declared number of accelerators; None where it does not say.
        chip_name: The declared accelerator, as it stands; "" where it does not say.
        other_chip_names: What further records of the run call it, where they spell it otherwise.
        differing: What records of one run declare unalike, in words, such as `8 and 512 chips`.
    """

    benchmark: str = ""
    platform: str = ""
    nodes: int | None = None
    chips: int | None = None
    chip_name: str = ""
    other_chip_names: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()

    @property
    def chip_names(self) -> tuple[str, ...]:
        """Every name that the accelerator is declared by."""
        return tuple(name for name in (self.chip_name, *self.other_chip_names) if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A line or record that the reader could not read: counted and located, never silently dropped.

    Attributes:
        where: File and line.
        expected: What should have stood there.
        found: How what stood there begins.
    """

    where: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a trace came from.

    Attributes:
        path: The path as the user gave it, with the member's name for an archive.
        format: The reader's name, such as `mlperf-power`.
        digest: The digest of the bytes read.
        size_bytes: How many bytes were read.
    """

    path: str
    format: str
    digest: Digest
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One recording: its series, its marks, and what could not be read.

    Attributes:
        series: The channels.
        marks: Named events in the order of the recording.
        windows: The runs that the recording marks; none for a plain power log.
        extent: From the first to the last event of its logs, whatever the events say, readings left out
            (their series hold their times); its stop is never missing. None where there is no such event.
        declaration: What the recording declares; None where it declares nothing.
        skipped: The first lines that could not be read, at most 20.
        n_skipped: How many could not be read in all.
        provenance: Where each part came from.
    """

    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    windows: tuple[RunWindow, ...] = ()
    extent: RunWindow | None = None
    declaration: Declaration | None = None
    skipped: tuple[Skipped, ...] = ()
    n_skipped: int = 0
    provenance: tuple[Provenance, ...] = field(default=())
