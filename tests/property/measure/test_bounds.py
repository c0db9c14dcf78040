"""What must hold of every bound: more of anything never lowers it, and no precision escapes it."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwitness.catalogue.chips import Chip, ChipCatalogue, load_chips
from flopwitness.measure.answer import Measurement
from flopwitness.measure.bounds import BoundBy, UpperBound, bound_from_above
from flopwitness.measure.energy import doubt_clock
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable, load_reference
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Trace

START_NS = 1_700_000_000 * 10**9
N_CHIPS = 3


@cache
def _catalogue() -> ChipCatalogue:
    return load_chips()


@cache
def _table() -> ReferenceTable:
    return load_reference()


def _chips() -> st.SearchStrategy[Chip]:
    return st.deferred(lambda: st.sampled_from(_catalogue().chips))


COUNTS = st.integers(1, 10**6)
TIMES_S = st.floats(1e-3, 1e8)
ENERGIES_J = st.floats(1e-3, 1e18)
SAFETIES = st.fractions(min_value=Fraction(1, 100), max_value=1)


def _bound(
    chips: list[Chip],
    count: int | None,
    duration_s: float | None,
    energy_j: float | None,
    safety: Fraction = Fraction(1, 2),
) -> UpperBound:
    upper = bound_from_above(chips, count=count, duration_s=duration_s, energy_j=energy_j, safety=safety)
    assert upper is not None
    return upper


@given(_chips(), COUNTS, TIMES_S, ENERGIES_J, st.floats(1, 10), st.integers(1, 10))
def test_more_of_anything_never_lowers_it(
    chip: Chip, count: int, duration_s: float, energy_j: float, factor: float, more: int
) -> None:
    base = _bound([chip], count, duration_s, energy_j).flop
    assert _bound([chip], count + more, duration_s, energy_j).flop >= base
    assert _bound([chip], count, duration_s * factor, energy_j).flop >= base
    assert _bound([chip], count, duration_s, energy_j * factor).flop >= base


@given(_chips(), COUNTS, TIMES_S, ENERGIES_J)
def test_knowing_less_never_lowers_it(chip: Chip, count: int, duration_s: float, energy_j: float) -> None:
    base = _bound([chip], count, duration_s, energy_j)
    assert _bound([chip], count, duration_s, None).flop >= base.flop
    unlimited = replace(chip, power_limit_w=None)
    assert _bound([unlimited], count, duration_s, energy_j).flop >= base.flop


@given(_chips(), COUNTS, TIMES_S, st.none() | ENERGIES_J)
def test_no_precision_escapes_unless_energy_binds(
    chip: Chip, count: int, duration_s: float, energy_j: float | None
) -> None:
    upper = _bound([chip], count, duration_s, energy_j)
    for peak in chip.peak_flop_per_s.values():
        if upper.by is BoundBy.TIME:
            assert upper.flop >= count * Fraction(duration_s) * Fraction(peak.value)
    if upper.by is BoundBy.ENERGY:
        assert energy_j is not None
        assert upper.energy_flop == upper.flop
        assert upper.time_flop is not None
        assert upper.flop <= upper.time_flop


@given(_chips(), _chips(), COUNTS, TIMES_S, st.none() | ENERGIES_J)
def test_an_open_name_bounds_no_less_than_any_of_its_chips(
    one: Chip, other: Chip, count: int, duration_s: float, energy_j: float | None
) -> None:
    both = _bound([one, other], count, duration_s, energy_j).flop
    assert both >= _bound([one], count, duration_s, energy_j).flop
    assert both >= _bound([other], count, duration_s, energy_j).flop


@given(_chips(), COUNTS, TIMES_S, ENERGIES_J, SAFETIES, SAFETIES)
def test_more_distrust_never_lowers_it(
    chip: Chip, count: int, duration_s: float, energy_j: float, one: Fraction, other: Fraction
) -> None:
    low, high = sorted([one, other])
    distrusting = _bound([chip], count, duration_s, energy_j, low)
    assert distrusting.flop >= _bound([chip], count, duration_s, energy_j, high).flop


def _device(number: int, time_s: list[float], power_w: list[float], conversion: float) -> Series:
    return Series(
        device=f"gpu_{number}",
        channel=Channel.POWER_W,
        scope=Scope.GPU,
        utc_ns=START_NS + np.array([round(t * 1e3) for t in time_s], dtype=np.int64) * 1_000_000,
        value=np.array(power_w, dtype=np.float64),
        conversion=conversion,
    )


READINGS = st.lists(
    st.tuples(st.floats(0, 1e6), st.floats(0, 2_000) | st.just(math.nan) | st.floats(allow_nan=True)),
    min_size=0,
    max_size=12,
)
CONVERSIONS = st.just(1.0) | st.floats(min_value=0, exclude_min=True, allow_infinity=False)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """What a prover may hand over: any readings in any order, and any marks."""
    series = tuple(
        _device(number, [t for t, _ in readings], [p for _, p in readings], draw(CONVERSIONS))
        for number, readings in enumerate(draw(st.lists(READINGS, max_size=4)))
    )
    marks = draw(
        st.lists(
            st.tuples(st.integers(-(10**6), 10**7), st.none() | st.integers(-(10**6), 10**7)), max_size=3
        )
    )
    return Trace(
        series=series,
        windows=tuple(
            RunWindow(
                start_utc_ns=START_NS + start * 10**9,
                stop_utc_ns=None if stop is None else START_NS + stop * 10**9,
            )
            for start, stop in marks
        ),
    )


def _is_clock_lost(trace: Trace) -> bool:
    """Four devices at most: one clock that tells no length is more than a tenth of them."""
    return any(doubt_clock(series) for series in trace.series if len(series))


def _measure(trace: Trace, *, level: float = 0.9) -> Measurement:
    chips = _catalogue().find("h100-sxm")
    return measure_trace(trace, Question(chips=chips, count=N_CHIPS, level=level), table=_table())


@settings(deadline=None)
@given(traces(), st.floats(0.5, 0.999))
def test_whatever_is_handed_over_the_answer_is_in_order(trace: Trace, level: float) -> None:
    answer = _measure(trace, level=level)
    if answer.estimate is not None:
        estimate = answer.estimate
        assert 0 <= estimate.low_flop <= estimate.flop <= estimate.high_flop
        assert _is_clock_lost(trace) if answer.upper is None else estimate.high_flop <= answer.upper.flop
    if answer.energy is not None:
        assert 0 <= answer.energy.low_j <= (answer.energy.high_j or 0.0) * (1 + 1e-9)
        assert answer.energy.recorded_high_j is not None
        assert math.isfinite(answer.energy.recorded_high_j)


@settings(deadline=None)
@given(traces())
def test_the_marks_never_lower_the_bound(trace: Trace) -> None:
    bare, marked = _measure(replace(trace, windows=())), _measure(trace)
    if bare.upper is not None:
        assert marked.upper is not None
        assert marked.upper.flop >= bare.upper.flop


@settings(deadline=None)
@given(traces())
def test_every_recorded_time_is_in_the_bound(trace: Trace) -> None:
    answer = _measure(trace)
    upper = answer.upper
    if any(finding.code == "hardware-contradicted" for finding in answer.findings):
        assert upper is None
        return
    if _is_clock_lost(trace):
        assert upper is None
        return
    peak = _catalogue().find("h100-sxm")[0].peak_best[1].value
    for series in trace.series:
        if len(series):
            length_ns = int(series.utc_ns.max() - series.utc_ns.min())
            least = N_CHIPS * Fraction(length_ns, 10**9) * Fraction(peak)
            if length_ns:
                assert upper is not None
                assert upper.time_flop is not None
                assert upper.time_flop >= least * (1 - Fraction(1, 10**12))


@settings(deadline=None)
@given(
    st.lists(st.floats(1, 700), min_size=20, max_size=60),
    st.data(),
)
def test_more_gaps_never_lower_the_energys_top(power_w: list[float], data: st.DataObject) -> None:
    """Readings once a second; the prover deletes some between the first and the last."""
    times = [float(i) for i in range(len(power_w))]
    devices = [_device(number, times, [p + number for p in power_w], 1.0) for number in range(N_CHIPS)]
    start = data.draw(st.integers(1, len(power_w) - 6))
    stop = data.draw(st.integers(start + 3, len(power_w) - 2))
    keep = [i for i in range(len(power_w)) if not start <= i < stop]
    holed = [replace(item, utc_ns=item.utc_ns[keep], value=item.value[keep]) for item in devices]
    if np.median(np.diff(times)[: len(keep)]) != np.median(np.diff([times[i] for i in keep])):
        return
    whole, part = _measure(Trace(series=tuple(devices))), _measure(Trace(series=tuple(holed)))
    assert whole.energy is not None
    assert part.energy is not None
    assert whole.energy.recorded_high_j is not None
    assert part.energy.recorded_high_j is not None
    assert part.energy.recorded_high_j >= whole.energy.recorded_high_j - 1e-6
