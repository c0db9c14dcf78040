"""The estimate without calibration: what training runs elsewhere made of the same energy or time.

With power:     F = E_dev * peak / (TDP * rho),   E_dev = energy / node share, at most chips x TDP x time
Without power:  F = chips * time * peak * mfu

`rho` and `mfu` come from the reference classes. Where the precision is not known, the interval is the
union over the precisions it may have been: ignorance is shown as width, not averaged away. No interval
reaches above its precision's own peak.

The convention: model FLOP, a multiply-add is 2, recomputation not counted (the classes are mostly
published model-FLOP utilisations).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.catalogue.chips import Chip, Kind, Precision
from flopwitness.measure.reference import Load, LogSpread, Quantity, ReferenceTable, Unit, Workload
from flopwitness.measure.samples import Scope

__all__ = ["Interval", "Observation", "Prior", "estimate_prior", "plausible_precisions", "unit_of"]

_STACKED_BYTE_PER_S: Final = 1.2e12
_SERVER_BYTE: Final = 60e9
_LOW_PRECISIONS: Final = (Precision.FP16, Precision.BF16, Precision.FP8, Precision.FP4)
_SLOW_PRECISIONS: Final = (Precision.FP32, Precision.TF32)
_VECTOR_PRECISIONS: Final = (Precision.FP32, Precision.FP64, Precision.FP16_VECTOR)
_SIGNS_OF_A_MATRIX_UNIT: Final = (Precision.BF16, Precision.TF32, Precision.FP8, Precision.FP16_VECTOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A prediction interval for a count of operations.

    Attributes:
        low_flop: Lower end.
        mid_flop: The point between the ends, on the logarithmic scale.
        high_flop: Upper end.
    """

    low_flop: float
    mid_flop: float
    high_flop: float

    @property
    def ratio(self) -> float:
        """Upper end over lower end."""
        return self.high_flop / self.low_flop


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that the prior may look at. Names, hyperparameters and step counts are not among it.

    Attributes:
        count: How many chips.
        duration_s: For how long they ran [s]; None where unknown.
        energy_j: What they, or the nodes around them, drew in that time [J]; None where not measured.
        scope: What the energy and the power cover.
        working_w: Energy-weighted mean power of all of them [W]; the mean over the time where None.
        energy_log_sd: The doubt that gaps leave about the energy, as the spread of its logarithm.
    """

    count: int
    duration_s: float | None
    energy_j: float | None
    scope: Scope
    working_w: float | None = None
    energy_log_sd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The prior's answer.

    Attributes:
        interval: The union over the precisions and chip variants that are left open.
        method: `prior-energy` or `prior-time`.
        precisions: The precisions that the union runs over.
        load: How hard the chips worked.
        power_share: Their power while they worked over their limit, node overhead taken off; None without
            power.
        n_groups: The fewest groups that any of the classes used rests on.
    """

    interval: Interval
    method: str
    precisions: tuple[Precision, ...]
    load: Load
    power_share: float | None
    n_groups: int


def plausible_precisions(chip: Chip) -> tuple[Precision, ...]:
    """The precisions that a training run on this chip plausibly used where nobody recorded it.

    On server chips with a bfloat16 matrix unit training runs in 16 bits or fewer. On workstation cards,
    modules and older chips fp32 and tf32 are as likely, and stay in. A slower precision than these would
    only lower the estimate, and the bound does not depend on it.
    """
    low = tuple(p for p in _LOW_PRECISIONS if p in chip.peak_flop_per_s)
    slow = tuple(p for p in _SLOW_PRECISIONS if p in chip.peak_flop_per_s)
    if _is_for_servers(chip) and Precision.BF16 in low:
        return low
    return slow + low or tuple(chip.peak_flop_per_s)


def _is_for_servers(chip: Chip) -> bool:
    """Whether the chip is one of those that large runs use: in a known server, or with memory to match."""
    if chip.reference_node is not None or chip.kind in (Kind.ASIC, Kind.WAFER):
        return True
    memory, bandwidth = chip.memory_byte, chip.memory_bandwidth_byte_per_s
    has_stacked_memory = bandwidth is not None and bandwidth.value >= _STACKED_BYTE_PER_S
    return has_stacked_memory and memory is not None and memory.value >= _SERVER_BYTE


def unit_of(chip: Chip, precision: Precision) -> Unit:
    """Which arithmetic unit serves a precision: vector for fp32, fp64, and fp16 without a matrix unit."""
    if precision in _VECTOR_PRECISIONS:
        return Unit.VECTOR
    has_matrix_unit = any(sign in chip.peak_flop_per_s for sign in _SIGNS_OF_A_MATRIX_UNIT)
    return Unit.MATRIX if has_matrix_unit or precision is not Precision.FP16 else Unit.VECTOR


def estimate_prior(
    chips: Sequence[Chip],
    seen: Observation,
    *,
    table: ReferenceTable,
    precisions: Sequence[Precision] = (),
    workload: Workload = Workload.ANY,
    level: float = 0.9,
) -> Prior | None:
    """The interval from energy where power was measured, else from time; None where neither is known.

    Args:
        chips: The chips that may have been used; several where a name leaves the variant open.
        seen: What the meter saw.
        table: The reference classes.
        precisions: The precisions that may have been used; plausible ones of the chip where empty.
        workload: What the user states of the workload.
        level: Nominal level of the interval, per precision.

    Raises:
        OutOfRangeError: A chip has none of the precisions.
    """
    answers = [_estimate_chip(chip, seen, table, precisions, workload, level) for chip in chips]
    known = [answer for answer in answers if answer is not None]
    if not known:
        return None
    low = min(answer.interval.low_flop for answer in known)
    high = max(answer.interval.high_flop for answer in known)
    first = max(known, key=lambda answer: answer.interval.high_flop)
    return Prior(
        interval=Interval(low_flop=low, mid_flop=math.sqrt(low * high), high_flop=high),
        method=first.method,
        precisions=tuple(dict.fromkeys(p for answer in known for p in answer.precisions)),
        load=first.load,
        power_share=first.power_share,
        n_groups=min(answer.n_groups for answer in known),
    )


def _estimate_chip(
    chip: Chip,
    seen: Observation,
    table: ReferenceTable,
    precisions: Sequence[Precision],
    workload: Workload,
    level: float,
) -> Prior | None:
    """The union over the precisions for one chip."""
    device = _device_power(chip, seen, table)
    if device is None and seen.duration_s is None:
        return None
    wanted = tuple(precisions) or plausible_precisions(chip)
    spreads = {p: _choose_spread(chip, p, device, table, workload) for p in wanted}
    ends = [_ends(chip.peak(p).value, seen, device, spread, level) for p, spread in spreads.items()]
    low_flop, high_flop = min(low for low, _ in ends), max(high for _, high in ends)
    return Prior(
        interval=Interval(low_flop=low_flop, mid_flop=math.sqrt(low_flop * high_flop), high_flop=high_flop),
        method="prior-energy" if device is not None else "prior-time",
        precisions=wanted,
        load=device.load if device is not None else Load.UNKNOWN,
        power_share=device.share if device is not None else None,
        n_groups=min(spread.n_groups for spread in spreads.values()),
    )


def _choose_spread(
    chip: Chip, precision: Precision, device: "_DevicePower | None", table: ReferenceTable, workload: Workload
) -> LogSpread:
    """The reference class for a precision, by what was measured."""
    unit = unit_of(chip, precision)
    if device is not None:
        return table.find(workload=workload, load=device.load, unit=unit, quantity=Quantity.RHO)
    return table.find(workload=workload, load=Load.UNKNOWN, unit=unit, quantity=Quantity.MFU)


def _ends(
    peak_flop_per_s: float, seen: Observation, device: "_DevicePower | None", spread: LogSpread, level: float
) -> tuple[float, float]:
    """The interval at one precision [FLOP]; its upper end at most what the peak allows in the time."""
    most_flop = seen.count * (seen.duration_s or 0.0) * peak_flop_per_s
    if device is None:
        low, high = spread.interval(level=level)
        return most_flop * low, most_flop * min(high, 1.0)
    low, high = spread.interval(level=level, extra_sd=device.log_sd)
    scale_flop = device.energy_j * peak_flop_per_s / device.limit_w
    return min(scale_flop / high, most_flop), min(scale_flop / low, most_flop)


@dataclass(frozen=True, slots=True)
class _DevicePower:
    """The accelerators' own energy, taken out of whatever the meter covers."""

    energy_j: float
    limit_w: float
    log_sd: float
    share: float
    load: Load


def _device_power(chip: Chip, seen: Observation, table: ReferenceTable) -> _DevicePower | None:
    """The accelerators' energy, or None where it was not measured or the chip's limit is not known."""
    has_power = seen.energy_j is not None and seen.duration_s is not None and seen.duration_s > 0
    if not has_power or chip.power_limit_w is None or seen.scope in (Scope.SWITCH, Scope.UNKNOWN):
        return None
    energy_j, duration_s = seen.energy_j or 0.0, seen.duration_s or 0.0
    overhead, log_sd = 1.0, seen.energy_log_sd
    if seen.scope.is_node:
        share = table.node_share[str(seen.scope)]
        overhead, log_sd = share.centre, math.hypot(log_sd, share.log_sd)
    limit_w = chip.power_limit_w.value
    most_j = seen.count * limit_w * duration_s
    working_w = seen.working_w if seen.working_w is not None else energy_j / duration_s
    load_share = working_w / overhead / (seen.count * limit_w)
    return _DevicePower(
        energy_j=min(energy_j / overhead, most_j),
        limit_w=limit_w,
        log_sd=log_sd,
        share=load_share,
        load=Load.NEAR_LIMIT if load_share >= table.near_limit_from else Load.PART_LOAD,
    )
