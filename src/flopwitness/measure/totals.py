"""What a ledger adds up for each device: a pure fold that no cutting can change.

Splitting a run into sessions loses energy with each cut, and an estimator that is fed with wall-clock time
or mean power reads cut runs low. So nothing here goes by sessions. Every reading counts with the time that
it stands for (half of the step on either side), in energy, in busy time and in squared power alike; sums
run in the order of the readings, so that pieces of a stream give the very bits that the whole gives.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.paired import check_power, hold_values, is_later, usable_w
from flopwitness.measure.samples import Channel, Scope, Series

__all__ = [
    "LastReading",
    "LedgerState",
    "Meter",
    "MeterKey",
    "Totals",
    "add_totals",
    "busy_limit_w",
    "extend",
]

_BUSY_W: Final = 0.5
_BUSY_SHARE: Final = 0.05
_USED_PCT: Final = 5.0
_BLOCK: Final = 1 << 16  # readings looked at at once: they and what is made of them fit into a cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the readings of one meter, or of several.

    Attributes:
        energy_j: Energy over the covered time [J].
        net_energy_j: What of it lies above idle, over the time whose idle power is known [J].
        unnetted_j: The energy of the time whose idle power is not known [J].
        net_square_w2s: Integral of the squared net power, over the time whose idle power is known [W^2 s].
        busy_s: Time with net power above the busy limit [s]; it needs the idle power.
        used_s: Time with utilisation above 5 % [s].
        utilisation_s: Time whose utilisation is known [s]; `used_s` is a part of it.
        covered_s: Time between readings that are close enough [s].
        gap_s: Time between readings that are not [s].
        bridged_j: Straight lines across the gaps [J]; in none of the sums above.
        gap_low_j: The least energy that the gaps can hold [J].
        gap_high_j: The most [J]; None where a gap has no limit.
        n_readings: Readings that count.
        n_missing: Readings without a value.
        n_ignored: Readings not later than the last one: repeated pieces, or a clock that was set back.
    """

    energy_j: float = 0.0
    net_energy_j: float = 0.0
    unnetted_j: float = 0.0
    net_square_w2s: float = 0.0
    busy_s: float = 0.0
    used_s: float = 0.0
    utilisation_s: float = 0.0
    covered_s: float = 0.0
    gap_s: float = 0.0
    bridged_j: float = 0.0
    gap_low_j: float = 0.0
    gap_high_j: float | None = 0.0
    n_readings: int = 0
    n_missing: int = 0
    n_ignored: int = 0

    @property
    def working_net_w(self) -> float | None:
        """The energy-weighted mean net power P*, int p^2 / int p [W]; None where nothing lies above idle.

        Idle time moves it no more than its own energy does.
        """
        return self.net_square_w2s / self.net_energy_j if self.net_energy_j > 0 else None

    @property
    def net_low_j(self) -> float:
        """The least energy above idle that the covered time can hold [J]."""
        return self.net_energy_j

    @property
    def net_high_j(self) -> float:
        """The most [J]: without an idle power, all of the energy may lie above it."""
        return self.net_energy_j + self.unnetted_j


class MeterKey(NamedTuple):
    """What makes figures of one meter: unlike scopes, parts and channels are never added."""

    device: str
    channel: Channel
    scope: Scope
    part: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LastReading:
    """Where a stream stands, so that its next piece goes on as if it had never been cut.

    Attributes:
        seen_ns: The latest time of all readings, those without a value included.
        utc_ns: The time of the last reading with a value; None before the first.
        power_w: Its power [W].
        net_w: Its power above idle [W]; None where the idle power is not known.
        is_busy: Whether that lies above the busy limit.
        utilisation_pct: The utilisation that was current then [%]; None where not known.
        utilisation_ns: The time of the last utilisation reading; None before the first.
        held_pct: What it said [%]; None where it is missing.
    """

    seen_ns: int | None = None
    utc_ns: int | None = None
    power_w: float = 0.0
    net_w: float | None = None
    is_busy: bool = False
    utilisation_pct: float | None = None
    utilisation_ns: int | None = None
    held_pct: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """The totals of one meter, and where its stream stands."""

    totals: Totals = field(default_factory=Totals)
    last: LastReading = field(default_factory=LastReading)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The totals of every meter; never changed, only followed by the next state."""

    meters: Mapping[MeterKey, Meter] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class _Stream:
    """The readings of a piece that count, the last one of the piece before in front: shape (n,)."""

    utc_ns: NDArray[np.int64]
    power_w: NDArray[np.float64]
    net_w: NDArray[np.float64]
    is_busy: NDArray[np.bool_]
    utilisation_pct: NDArray[np.float64]
    skips_missing: NDArray[np.bool_]  # whether a reading without a value lies before it


@dataclass(frozen=True, slots=True)
class _Rule:
    """How readings count; see `extend`."""

    idle_w: float | None
    longest_step_s: float
    floor_w: float
    limit_w: float | None
    busy_net_w: float


@dataclass(frozen=True, slots=True)
class _Held:
    """Utilisation readings in order of time [ns and %], shape (n,); NaN where missing."""

    utc_ns: NDArray[np.int64]
    value_pct: NDArray[np.float64]

    @classmethod
    def of(cls, last: LastReading, utilisation: Series | None) -> "_Held":
        """Those of a piece, behind the last one before it."""
        utc_ns = np.zeros(0, dtype=np.int64) if utilisation is None else utilisation.utc_ns
        value_pct = np.zeros(0) if utilisation is None else utilisation.value
        if last.utilisation_ns is not None:
            utc_ns = np.concatenate([[last.utilisation_ns], utc_ns])
            value_pct = np.concatenate([[_or_nan(last.held_pct)], value_pct])
        if (utc_ns[1:] < utc_ns[:-1]).any():
            order = np.argsort(utc_ns, kind="stable")
            utc_ns, value_pct = utc_ns[order], value_pct[order]
        return cls(utc_ns, np.where(value_pct >= 0, value_pct, np.nan))

    def at(self, utc_ns: NDArray[np.int64], longest_s: float) -> NDArray[np.float64]:
        """What is current at each instant, in order of time: only the readings around them are looked at."""
        if utc_ns.size == 0:
            return np.zeros(0)
        first = max(0, int(np.searchsorted(self.utc_ns, utc_ns[0], side="right")) - 1)
        around = slice(first, int(np.searchsorted(self.utc_ns, utc_ns[-1], side="right")))
        return hold_values(self.utc_ns[around], self.value_pct[around], utc_ns, longest_s=longest_s)


def busy_limit_w(working_net_w: float | None = None) -> float:
    """Net power above which a device counts as busy [W]: 5 % of what work draws, at least 0.5 W.

    Args:
        working_net_w: What work draws above idle [W], from a calibration; None where there is none.
    """
    return max(_BUSY_W, _BUSY_SHARE * (working_net_w or 0.0))


def extend(
    state: LedgerState,
    power: Series,
    utilisation: Series | None = None,
    *,
    idle_w: float | None,
    longest_step_s: float,
    floor_w: float = 0.0,
    limit_w: float | None = None,
    busy_net_w: float = _BUSY_W,
) -> LedgerState:
    """The state after one more piece of a meter's stream.

    Readings not later than the last one are ignored and counted, so a piece that comes twice, or overlaps
    the one before, adds nothing. Any cutting of a stream gives the same totals, as long as each piece
    brings the utilisation of its own time.

    Two figures say how long a device worked. `busy_s` goes by net power, which needs a good idle power and
    sees work that utilisation does not; `used_s` goes by utilisation, which needs none and calls waiting
    work. Neither is moved by cutting a run open. Estimators take `busy_s`.

    Args:
        state: The totals so far.
        power: The next power readings [W].
        utilisation: The utilisation of the same device [%]; None where it was not recorded.
        idle_w: What the device draws idle [W], pooled over its host; None where it is not known.
        longest_step_s: Readings further apart than this leave a gap, and utilisation is current for as long
            [s]. It is the caller's, because a usual step changes with the piece.
        floor_w: What the device draws at least while it is on [W]; bounds gaps from below.
        limit_w: The most that it can draw [W]; bounds gaps from above.
        busy_net_w: Net power above which the device is busy [W]; see `busy_limit_w`.

    Raises:
        ValueError: The series is none of power.
    """
    check_power(power)
    rule = _Rule(idle_w, longest_step_s, floor_w, limit_w, busy_net_w)
    key = MeterKey(power.device, power.channel, power.scope, power.part)
    meter = state.meters.get(key, Meter())
    held = _Held.of(meter.last, utilisation)
    power_w = usable_w(power)
    for start in range(0, len(power), _BLOCK):
        block = slice(start, start + _BLOCK)
        meter = _extend_meter(meter, power.utc_ns[block], power_w[block], held, rule)
    meter = replace(meter, last=_remember_utilisation(meter.last, utilisation))
    return LedgerState(meters=MappingProxyType({**state.meters, key: meter}))


def add_totals(meters: Mapping[MeterKey, Meter]) -> Totals:
    """The totals of several devices together, such as all of one scope.

    P* of the sum is the power of one device, weighted by energy, not of all together.

    Raises:
        ValueError: The meters are of unlike scope, or two of them are of one device: they may show the same
            joules.
    """
    if len({key.scope for key in meters}) > 1:
        raise ValueError("figures of unlike scope are never added")
    if len({key.device for key in meters}) < len(meters):
        raise ValueError("two figures of one device are never added")
    return _sum(meter.totals for meter in meters.values())


def _sum(parts: Iterable[Totals]) -> Totals:
    total = Totals()
    for part in parts:
        highs = (total.gap_high_j, part.gap_high_j)
        total = Totals(
            energy_j=total.energy_j + part.energy_j,
            net_energy_j=total.net_energy_j + part.net_energy_j,
            unnetted_j=total.unnetted_j + part.unnetted_j,
            net_square_w2s=total.net_square_w2s + part.net_square_w2s,
            busy_s=total.busy_s + part.busy_s,
            used_s=total.used_s + part.used_s,
            utilisation_s=total.utilisation_s + part.utilisation_s,
            covered_s=total.covered_s + part.covered_s,
            gap_s=total.gap_s + part.gap_s,
            bridged_j=total.bridged_j + part.bridged_j,
            gap_low_j=total.gap_low_j + part.gap_low_j,
            gap_high_j=None if None in highs else sum(high for high in highs if high is not None),
            n_readings=total.n_readings + part.n_readings,
            n_missing=total.n_missing + part.n_missing,
            n_ignored=total.n_ignored + part.n_ignored,
        )
    return total


def _extend_meter(
    meter: Meter, utc_ns: NDArray[np.int64], power_w: NDArray[np.float64], held: _Held, rule: _Rule
) -> Meter:
    """The meter after a few more readings [ns and W], NaN where missing."""
    later = is_later(utc_ns, meter.last.seen_ns)
    known = later & np.isfinite(power_w)
    stream = _join(meter.last, (utc_ns, power_w), (later, known), held, rule)
    totals = _add_steps(meter.totals, stream, rule)
    totals = replace(
        totals,
        n_readings=totals.n_readings + int(known.sum()),
        n_missing=totals.n_missing + int((later & ~known).sum()),
        n_ignored=totals.n_ignored + int((~later).sum()),
    )
    return Meter(totals=totals, last=_last_of(meter.last, stream, utc_ns[later]))


def _join(
    last: LastReading,
    readings: tuple[NDArray[np.int64], NDArray[np.float64]],
    chosen: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    held: _Held,
    rule: _Rule,
) -> _Stream:
    """The readings that count, behind the last one before them.

    Args:
        last: Where the stream stands.
        readings: Times [ns] and power [W].
        chosen: Which of them are later than all before them, and which of these hold a value.
        held: The utilisation.
        rule: How they count.
    """
    later, known = chosen
    utc_ns, power_w = readings[0][known], readings[1][known]
    net_w = power_w - _or_nan(rule.idle_w)
    utilisation_pct = held.at(utc_ns, rule.longest_step_s)
    place = np.cumsum(later)[known]  # of each reading among all that are later, from 1
    skips_missing = np.diff(place, prepend=0) > 1
    stream = _Stream(utc_ns, power_w, net_w, net_w > rule.busy_net_w, utilisation_pct, skips_missing)
    if last.utc_ns is None:
        return stream
    skips_missing[:1] |= last.seen_ns != last.utc_ns
    return _Stream(
        np.concatenate([[last.utc_ns], utc_ns]),
        np.concatenate([[last.power_w], power_w]),
        np.concatenate([[_or_nan(last.net_w)], net_w]),
        np.concatenate([[last.is_busy], stream.is_busy]),
        np.concatenate([[_or_nan(last.utilisation_pct)], utilisation_pct]),
        np.concatenate([[False], skips_missing]),
    )


def _add_steps(totals: Totals, stream: _Stream, rule: _Rule) -> Totals:
    """The totals with the steps of a stream, added one by one in their order."""
    if stream.utc_ns.size < 2:  # noqa: PLR2004 (a step lies between two readings)
        return totals
    step_s = np.diff(stream.utc_ns) / NANOSECOND_PER_SECOND
    is_gap = (step_s > rule.longest_step_s) | stream.skips_missing[1:]
    kept_s, gap_s = np.where(is_gap, 0.0, step_s), np.where(is_gap, step_s, 0.0)
    power_w, net_w = stream.power_w, stream.net_w
    is_netted = np.isfinite(net_w[1:] + net_w[:-1])
    net_s = np.where(is_netted, kept_s, 0.0)
    known = np.isfinite(stream.utilisation_pct)
    least_w = np.minimum(rule.floor_w, np.minimum(power_w[1:], power_w[:-1]))
    limit_w = np.inf if rule.limit_w is None else rule.limit_w
    most_w = np.maximum(limit_w, np.maximum(power_w[1:], power_w[:-1]))
    net_w = np.where(np.isfinite(net_w), net_w, 0.0)
    terms = {
        "energy_j": _mean(power_w) * kept_s,
        "net_energy_j": _mean(net_w) * net_s,
        "unnetted_j": _mean(power_w) * (kept_s - net_s),
        "net_square_w2s": _mean(net_w**2) * net_s,
        "busy_s": _mean(stream.is_busy) * kept_s,
        "used_s": _mean(known & (stream.utilisation_pct > _USED_PCT)) * kept_s,
        "utilisation_s": _mean(known) * kept_s,
        "covered_s": kept_s,
        "gap_s": gap_s,
        "bridged_j": _mean(power_w) * gap_s,
        "gap_low_j": least_w * gap_s,
        "gap_high_j": np.where(is_gap, most_w, 0.0) * gap_s,
    }
    return _run_on(totals, terms)


def _mean(value: NDArray[np.float64] | NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean of each reading and the next, shape (n - 1,)."""
    return (value[1:].astype(np.float64) + value[:-1]) / 2


def _run_on(totals: Totals, terms: Mapping[str, NDArray[np.float64]]) -> Totals:
    """The totals with the terms added in their order: a running sum has the same bits wherever it is cut."""
    sums: dict[str, Any] = {}
    for name, term in terms.items():
        start = getattr(totals, name)
        term[0] += np.inf if start is None else start
        sums[name] = float(np.add.accumulate(term, out=term)[-1])
    high_j: float = sums.pop("gap_high_j")
    return replace(totals, **sums, gap_high_j=high_j if np.isfinite(high_j) else None)


def _last_of(last: LastReading, stream: _Stream, later_ns: NDArray[np.int64]) -> LastReading:
    """Where the stream stands after a few readings.

    Args:
        last: Where it stood.
        stream: The readings that count.
        later_ns: The times of all readings that are later than those before, shape (n,).
    """
    if later_ns.size:
        last = replace(last, seen_ns=int(later_ns[-1]))
    if not stream.utc_ns.size:
        return last
    return replace(
        last,
        utc_ns=int(stream.utc_ns[-1]),
        power_w=float(stream.power_w[-1]),
        net_w=_or_none(stream.net_w[-1]),
        is_busy=bool(stream.is_busy[-1]),
        utilisation_pct=_or_none(stream.utilisation_pct[-1]),
    )


def _remember_utilisation(last: LastReading, utilisation: Series | None) -> LastReading:
    """Where the stream stands with the latest utilisation of a piece; of two at one time, the second."""
    if utilisation is None or not len(utilisation):
        return last
    latest = len(utilisation) - 1 - int(np.argmax(utilisation.utc_ns[::-1]))
    latest_ns = int(utilisation.utc_ns[latest])
    if last.utilisation_ns is not None and latest_ns < last.utilisation_ns:
        return last
    return replace(last, utilisation_ns=latest_ns, held_pct=_or_none(utilisation.value[latest]))


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _or_none(value: float) -> float | None:
    """A number of Python's own; None where it is none."""
    return float(value) if np.isfinite(value) else None
