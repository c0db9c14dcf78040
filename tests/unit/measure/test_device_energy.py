"""Power readings and a counter of one device: joined where they agree, told apart where they do not."""

from collections.abc import Callable, Sequence

import pytest

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.device_energy import bound_device_j, measure_device
from flopwitness.measure.energy import Energy
from flopwitness.measure.samples import Channel, Series

MakeSeries = Callable[..., Series]


def _counter(make_series: MakeSeries, power_w: float, time_s: Sequence[float]) -> Series:
    joules = [power_w * (moment_s - time_s[0]) for moment_s in time_s]
    return make_series(joules, time_s=time_s, channel=Channel.ENERGY_COUNTER_J)


def _measure(series: Series, counter: Series | None) -> tuple[Energy, list[str]]:
    findings = list[Finding]()
    energy = measure_device(series, counter, findings, window=None, limit_w=700, floor_w=0.0)
    return energy, [finding.code for finding in findings]


def test_where_both_agree_the_counter_gives_the_energy_and_fills_gaps(make_series: MakeSeries) -> None:
    times = [*range(10), *range(40, 50)]
    power = make_series([400] * 20, time_s=times)
    energy, codes = _measure(power, _counter(make_series, 410, range(50)))
    assert codes == []
    assert energy.measured_j == pytest.approx(49 * 410)
    assert energy.gaps == ()
    assert energy.coverage == 1
    assert energy.square_w2s / energy.shown_j == pytest.approx(410)
    assert energy.peak_w == 400


def test_where_they_disagree_the_readings_stand_and_it_is_told(make_series: MakeSeries) -> None:
    power = make_series([400] * 50)
    energy, codes = _measure(power, _counter(make_series, 200, range(50)))
    assert codes == ["counter-differs"]
    assert energy.measured_j == 49 * 400


def test_a_counter_alone_gives_the_energy(make_series: MakeSeries) -> None:
    energy, codes = _measure(_counter(make_series, 300, [0, 3_600]), None)
    assert codes == []
    assert energy.measured_j == 300 * 3_600
    assert energy.coverage == 1


def test_a_counter_that_covers_less_does_not_replace_readings(make_series: MakeSeries) -> None:
    power = make_series([400] * 50)
    energy, _ = _measure(power, _counter(make_series, 400, range(48)))
    assert energy.measured_j == 49 * 400


def test_a_reset_is_told(make_series: MakeSeries) -> None:
    counter = make_series(
        [0, 4_000, 8_000, 12_000, 100, 4_100], time_s=range(0, 60, 10), channel=Channel.ENERGY_COUNTER_J
    )
    _, codes = _measure(make_series([400] * 51), counter)
    assert "counter-reset" in codes


@pytest.mark.parametrize(
    ("power_w", "counted_w", "most_w"),
    [(400, 400, 400), (400, 200, 400), (200, 400, 400), (400, None, 400)],
)
def test_the_bound_takes_the_higher_where_they_disagree(
    make_series: MakeSeries, power_w: float, counted_w: float | None, most_w: float
) -> None:
    power = make_series([power_w] * 50)
    counter = None if counted_w is None else _counter(make_series, counted_w, range(50))
    assert bound_device_j(power, counter, window=None, limit_w=700) == pytest.approx(49 * most_w)


def test_a_counter_bounds_what_rare_readings_cannot(make_series: MakeSeries) -> None:
    rare = make_series([400] * 20, time_s=range(0, 1_200, 60))
    counter = _counter(make_series, 400, range(0, 1_200, 60))
    assert bound_device_j(rare, None, window=None, limit_w=700) == pytest.approx(1_140 * 700)
    assert bound_device_j(rare, counter, window=None, limit_w=700) == pytest.approx(1_140 * 400)
    assert bound_device_j(rare, counter, window=None, limit_w=None) == pytest.approx(1_140 * 400)
    assert bound_device_j(counter, None, window=None, limit_w=None) == pytest.approx(1_140 * 400)
