"""Between which counts a run lies where nobody recorded its precision."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from tests.made_runs import calibrate_cells, make_cells, read_table

from flopwitness.catalogue.chips import Chip, ChipCatalogue, Precision
from flopwitness.measure.calibration.bracket import Bracket, bracket_precisions
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.prior import plausible_precisions
from flopwitness.measure.observed import ObservedRuns, observe

CELLS = make_cells(14, precision="fp32")
RUN = observe(read_table(CELLS).rows[:1])


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(CELLS).calibration


@pytest.fixture
def v100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find_all("v100-sxm2-16gb")
    return chip


def bracket(calibration: Calibration, run: ObservedRuns, *chips: Chip) -> Bracket:
    found = bracket_precisions(calibration, run, chips, level=0.9)
    assert found is not None
    return found


def test_it_reaches_from_the_slowest_to_the_fastest_plausible_precision(
    calibration: Calibration, v100: Chip
) -> None:
    found = bracket(calibration, RUN, v100)
    own = calibration.fitted.predict(Method.EFFICIENCY, RUN, 0.9)
    peaks = [v100.peak(precision).value for precision in found.precisions]
    fp32 = v100.peak(Precision.FP32).value
    assert found.calibrated is Precision.FP32
    assert set(found.precisions) == {Precision.FP32, *plausible_precisions(v100)}
    assert found.low_flop == pytest.approx(own.low_flop[0] * min(peaks) / fp32, rel=1e-9)
    assert found.high_flop == pytest.approx(own.high_flop[0] * max(peaks) / fp32, rel=1e-9)
    assert found.ratio == pytest.approx(found.high_flop / found.low_flop)


def test_it_holds_the_estimate_at_the_calibrated_precision(calibration: Calibration, v100: Chip) -> None:
    for row in read_table(CELLS).rows:
        found = bracket(calibration, observe([row]), v100)
        assert row.true_flop is not None
        assert found.low_flop < row.true_flop < found.high_flop


def test_a_faster_calibrated_precision_leaves_room_below(v100: Chip) -> None:
    fast = calibrate_cells(make_cells(14, precision="fp16")).calibration
    found = bracket(fast, RUN, v100)
    own = fast.fitted.predict(Method.EFFICIENCY, RUN, 0.9)
    assert found.high_flop == pytest.approx(own.high_flop[0], rel=1e-9)
    slowest = min(v100.peak(precision).value for precision in found.precisions)
    assert found.low_flop == pytest.approx(
        own.low_flop[0] * slowest / v100.peak(Precision.FP16).value, rel=1e-9
    )


def test_a_higher_level_is_wider(calibration: Calibration, v100: Chip) -> None:
    ratios = []
    for level in (0.5, 0.9, 0.99):
        found = bracket_precisions(calibration, RUN, [v100], level=level)
        assert found is not None
        ratios.append(found.ratio)
    assert ratios == sorted(set(ratios))


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("other", ["h100-sxm", "p100-pcie-16gb", "titan-v", "titan-xp"])
def test_several_chips_are_held_by_one_bracket(
    precision: str, other: str, v100: Chip, chips: ChipCatalogue
) -> None:
    calibration = calibrate_cells(make_cells(14, precision=precision)).calibration
    (second,) = chips.find_all(other)
    alone = [bracket(calibration, RUN, chip) for chip in (v100, second)]
    for both in (bracket(calibration, RUN, v100, second), bracket(calibration, RUN, second, v100)):
        assert both.low_flop == pytest.approx(min(each.low_flop for each in alone))
        assert both.high_flop == pytest.approx(max(each.high_flop for each in alone))
        assert set(both.precisions) == {name for each in alone for name in each.precisions}


def test_a_run_far_outside_is_asked_for_the_nearest_place(calibration: Calibration, v100: Chip) -> None:
    far = replace(RUN, memory_tb=RUN.memory_tb * 1_000, host_tb=RUN.host_tb * 1_000)
    found = bracket(calibration, far, v100)
    model = calibration.fitted.models[Method.EFFICIENCY]
    assert isinstance(model, EfficiencyModel)
    per_j = np.exp(model.log_flop_per_j)
    net_j = calibration.fitted.net.of(far)[0]
    assert net_j * per_j.min() / 2 < found.low_flop < found.high_flop < net_j * per_j.max() * 2 * 8.1


@pytest.mark.parametrize("precisions", [(), ("fp16", "fp32"), ("mxfp4-odd",)])
def test_without_one_known_precision_there_is_none(
    precisions: tuple[str, ...], calibration: Calibration, v100: Chip
) -> None:
    other = replace(calibration, fingerprint=replace(calibration.fingerprint, precisions=precisions))
    assert bracket_precisions(other, RUN, [v100], level=0.9) is None


def test_without_a_chip_that_has_the_precision_there_is_none(
    calibration: Calibration, v100: Chip, chips: ChipCatalogue
) -> None:
    assert bracket_precisions(calibration, RUN, [], level=0.9) is None
    bf16 = replace(calibration, fingerprint=replace(calibration.fingerprint, precisions=("bf16",)))
    assert bracket_precisions(bf16, RUN, [v100], level=0.9) is None
    (h100,) = chips.find_all("h100-sxm")
    assert bracket_precisions(bf16, RUN, [h100], level=0.9) is not None
    assert bracket_precisions(bf16, RUN, [h100, v100], level=0.9) is None


@pytest.mark.parametrize("name", ["memory_tb", "energy_j", "duration_s"])
def test_without_a_feature_there_is_none(name: str, calibration: Calibration, v100: Chip) -> None:
    lacking = replace(RUN, **{name: np.array([np.nan])})
    if name != "memory_tb":
        lacking = replace(lacking, net_energy_j=np.array([np.nan]))
    assert bracket_precisions(calibration, lacking, [v100], level=0.9) is None


def test_a_run_under_idle_has_none(calibration: Calibration, v100: Chip) -> None:
    under = replace(RUN, energy_j=np.array([1.0]))
    assert bracket_precisions(calibration, under, [v100], level=0.9) is None


def test_without_efficiency_there_is_none(calibration: Calibration, v100: Chip) -> None:
    models = dict(calibration.fitted.models)
    del models[Method.EFFICIENCY]
    bare = replace(calibration, fitted=replace(calibration.fitted, models=MappingProxyType(models)))
    assert bracket_precisions(bare, RUN, [v100], level=0.9) is None
