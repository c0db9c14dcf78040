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
from flopwitness.foundation.verdict import Finding

__all__ = [
    "Channel",
    "Declaration",
    "Device",
    "Mark",
    "Provenance",
    "RunWindow",
    "Scope",
    "Series",
    "Skipped",
    "Timing",
    "Trace",
]


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
    MEMORY_TRAFFIC_BYTE_PER_S = "memory_traffic_byte_per_s"
    LINK_TRAFFIC_BYTE_PER_S = "link_traffic_byte_per_s"
    HOST_TRAFFIC_BYTE_PER_S = "host_traffic_byte_per_s"
    ENGINE_ACTIVE_PCT = "engine_active_pct"  # share of time in which any compute or graphics engine worked
    SM_ACTIVE_PCT = "sm_active_pct"  # mean share of multiprocessors with work
    TENSOR_ACTIVE_PCT = "tensor_active_pct"  # share of cycles in which the tensor pipe worked
    MEMORY_ACTIVE_PCT = "memory_active_pct"  # share of cycles in which device memory moved data
    CLOCK_HZ = "clock_hz"
    MEMORY_CLOCK_HZ = "memory_clock_hz"
    MEMORY_USED_BYTE = "memory_used_byte"
    TEMPERATURE_C = "temperature_c"
    POWER_LIMIT_W = "power_limit_w"
    PERFORMANCE_STATE = "performance_state"  # 0 is the fastest, as in P0
    CPU_UTILISATION_PCT = "cpu_utilisation_pct"  # mean of the cores that are on
    CPU_CORES_ON = "cpu_cores_on"


class Scope(StrEnum):
    """What a power or energy figure covers; figures of overlapping scopes are never added."""

    GPU = "gpu"
    MODULE = "module"
    RAIL = "rail"
    NODE_AC = "node-ac"
    NODE_DC = "node-dc"
    NODE_GPUS = "node-gpus"  # all accelerator boards of a node together, hosts not in the figure
    NODE = "node"  # a whole node, on which side of its power supply is not recorded
    SWITCH = "switch"
    CPU = "cpu"  # processor packages, without memory
    CPU_PART = "cpu-part"  # cores or graphics inside a processor package
    DRAM = "dram"  # the host's memory
    PLATFORM = "platform"  # what a board's own meter covers: packages, memory and more
    INSTANCE = "instance"  # a slice of a partitioned GPU; power is never known for one
    UNKNOWN = "unknown"

    @property
    def is_per_node(self) -> bool:
        """Whether one figure covers all accelerators of a node."""
        return self.is_node or self is Scope.NODE_GPUS

    @property
    def is_node(self) -> bool:
        """Whether hosts, fans and conversion losses are in the figure."""
        return self in (Scope.NODE_AC, Scope.NODE_DC, Scope.NODE)


class Timing(StrEnum):
    """What the times of a series are worth."""

    DATED = "dated"  # a calendar's time
    RELATIVE = "relative"  # lengths only: counted from the start of the recording, whose date is not known
    COUNTED = "counted"  # no time is recorded: readings are numbered, and their period is assumed


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
        part: What of the device is read, such as the rail `VDD_SOC`, the zone `core` or the slice
            `mig-7`; "" for all of it.
        timing: What the times are worth; those without a date count from 0.
        averaged_s: Over how long before its time a reading may be a mean, at most [s]; 0 for one of an
            instant. Energy from averaged readings is late by up to so much.
        counter_range_j: Where a counter begins again at 0 [J]; None where that is not recorded.
    """

    device: str
    channel: Channel
    scope: Scope
    utc_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    monotonic_ns: NDArray[np.int64] | None = None
    conversion: float = 1.0
    is_estimate: bool = False
    part: str = ""
    timing: Timing = Timing.DATED
    averaged_s: float = 0.0
    counter_range_j: float | None = None

    def __post_init__(self) -> None:
        """Refuse arrays of unlike shape, and a factor that is none."""
        if not 0 < self.conversion < float("inf"):
            raise ValueError(f"not a conversion factor: {self.conversion}")
        if not 0 <= self.averaged_s < float("inf"):
            raise ValueError(f"not an averaging time: {self.averaged_s}")
        if self.counter_range_j is not None and not 0 < self.counter_range_j < float("inf"):
            raise ValueError(f"not a counter's range: {self.counter_range_j}")
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
class Device:
    """What a recording says of one of its devices: its word, which nothing here checks.

    Attributes:
        name: As in `Series.device`.
        chip_name: The accelerator's name as it stands, such as `NVIDIA H100 80GB HBM3`; "" where not said.
        host: The machine that it sits in; "" where not said.
        driver: The driver's version; "" where not said.
        is_shared: Whether it is partitioned (MIG) or lent to virtual machines (vGPU): then its power cannot
            be attributed to any one workload.
    """

    name: str
    chip_name: str = ""
    host: str = ""
    driver: str = ""
    is_shared: bool = False

    def joined(self, later: "Device") -> "Device":
        """What this record and a later one say together: the first word of each counts."""
        return Device(
            name=self.name,
            chip_name=self.chip_name or later.chip_name,
            host=self.host or later.host,
            driver=self.driver or later.driver,
            is_shared=self.is_shared or later.is_shared,
        )


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
        devices: What the recording says of its devices, each once.
        findings: What only its readers could see, such as impossible values that they left out.
    """

    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    windows: tuple[RunWindow, ...] = ()
    extent: RunWindow | None = None
    declaration: Declaration | None = None
    skipped: tuple[Skipped, ...] = ()
    n_skipped: int = 0
    provenance: tuple[Provenance, ...] = field(default=())
    devices: tuple[Device, ...] = ()
    findings: tuple[Finding, ...] = ()
