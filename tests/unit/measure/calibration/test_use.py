"""A calibration applied to one run: a point, or a refusal that names its reason."""

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from tests.made_runs import IDLE_W, calibrate_cells, catalogue, make_cells, read_table

from flopwitness.catalogue.chips import Chip, ChipCatalogue
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.calibration.fingerprint import Fingerprint, fingerprint_of
from flopwitness.measure.calibration.fitted import MOST_DOUBT, Method, Model
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.calibration.use import CalibratedAnswer, answer_from_calibration
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.estimators.link_operations import DeclaredSteps
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import Feature, ObservedRuns, observe
from flopwitness.measure.sources.declared_steps import declare_steps

CELLS = make_cells(40)
TEACH, HELD = read_table(CELLS[:30]).rows, read_table(CELLS[30:]).rows
RUN = observe(HELD[:1])


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(CELLS[:30]).calibration


@pytest.fixture
def v100(chips: ChipCatalogue) -> Chip:
    (chip,) = chips.find_all("v100-sxm2-16gb")
    return chip


def ask(
    calibration: Calibration,
    run: ObservedRuns = RUN,
    fingerprint: Fingerprint | None = None,
    *,
    declared: DeclaredSteps | None = None,
    method: Method = Method.EFFICIENCY,
    level: float = 0.9,
) -> CalibratedAnswer:
    return answer_from_calibration(
        calibration,
        run,
        calibration.fingerprint if fingerprint is None else fingerprint,
        chips=catalogue().find_all("v100-sxm2-16gb"),
        declared=declared,
        method=method,
        level=level,
    )


def codes(answer: CalibratedAnswer) -> list[str]:
    return [finding.code for finding in answer.findings]


def refusals(answer: CalibratedAnswer) -> list[str]:
    assert (answer.point is None) is bool(answer.refusals)
    assert answer.findings[: len(answer.refusals)] == answer.refusals
    return [finding.code for finding in answer.refusals]


def with_model(calibration: Calibration, method: Method, model: Model) -> Calibration:
    models = MappingProxyType({**calibration.fitted.models, method: model})
    return replace(calibration, fitted=replace(calibration.fitted, models=models))


def changed(**columns: float) -> ObservedRuns:
    return replace(RUN, **{name: np.array([value]) for name, value in columns.items()})


def test_a_run_of_the_same_kind_has_a_point_with_its_interval(calibration: Calibration) -> None:
    answer = ask(calibration)
    expected = calibration.fitted.predict(Method.EFFICIENCY, RUN, 0.9)
    assert answer.point is not None
    assert answer.point.flop == expected.flop[0]
    assert answer.point.low_flop == expected.low_flop[0]
    assert answer.point.high_flop == expected.high_flop[0]
    assert answer.method is Method.EFFICIENCY
    assert answer.bracket is None
    assert answer.findings == ()


def test_points_are_close_and_intervals_hold_the_truth(calibration: Calibration) -> None:
    held = 0
    for row in HELD:
        point = ask(calibration, observe([row])).point
        assert point is not None
        assert row.true_flop is not None
        assert point.flop == pytest.approx(row.true_flop, rel=0.1)
        held += point.low_flop <= row.true_flop <= point.high_flop
    assert held >= 8


@pytest.mark.parametrize("method", Method)
def test_every_estimator_can_be_asked(method: Method, calibration: Calibration) -> None:
    answer = ask(calibration, method=method)
    assert answer.method is method
    assert answer.point is not None
    assert answer.point.flop == calibration.fitted.predict(method, RUN).flop[0]


def test_a_higher_level_is_wider(calibration: Calibration) -> None:
    narrow, wide = ask(calibration, level=0.5).point, ask(calibration, level=0.99).point
    assert narrow is not None
    assert wide is not None
    assert wide.low_flop < narrow.low_flop < narrow.flop == wide.flop < narrow.high_flop < wide.high_flop


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("chips", ("h100-sxm",), "h100-sxm"),
        ("count", 4, "4"),
        ("power_mode", "250W", "250W"),
        ("precisions", ("fp32",), "fp32"),
        ("precisions", ("fp16", "fp32"), "fp16 or fp32"),
    ],
)
def test_another_device_or_mode_is_refused(
    field: str, value: object, found: str, calibration: Calibration
) -> None:
    differing: dict[str, Any] = {field: value}
    other = replace(calibration.fingerprint, **differing)
    answer = ask(calibration, fingerprint=other)
    assert refusals(answer) == ["calibration-mismatch"]
    (finding,) = answer.refusals
    assert finding.where == field
    assert finding.found == found
    assert finding.expected
    assert answer.bracket is None


def test_all_reasons_are_told_at_once(calibration: Calibration) -> None:
    other = replace(calibration.fingerprint, count=4, power_mode="250W")
    answer = ask(calibration, changed(memory_tb=1e6, host_tb=1e6, link_tb=math.nan), other)
    assert refusals(answer) == [
        "calibration-mismatch",
        "calibration-mismatch",
        "feature-missing",
        "feature-outside",
        "feature-outside",
    ]


def test_what_the_calibration_does_not_know_refuses_nothing(calibration: Calibration) -> None:
    other = replace(calibration.fingerprint, scope="gpu", driver="551", clock_limit="1200MHz")
    assert ask(calibration, fingerprint=other).point is not None


def test_what_the_run_does_not_record_is_told_and_refuses_nothing(calibration: Calibration) -> None:
    answer = ask(calibration, fingerprint=replace(calibration.fingerprint, power_mode="", count=None))
    assert answer.point is not None
    (finding,) = answer.findings
    assert finding.code == "fingerprint-unrecorded"
    assert finding.severity is Severity.WARNING
    assert finding.found == "count, power_mode"
    (lesser,) = ask(calibration, fingerprint=replace(calibration.fingerprint, count=None)).findings
    assert (lesser.severity, lesser.found) == (Severity.NOTE, "count")


def test_what_the_calibration_does_not_know_is_told(calibration: Calibration) -> None:
    unknown = replace(calibration, fingerprint=replace(calibration.fingerprint, chips=()))
    for chips in (("a100-sxm-80gb",), ()):
        answer = ask(unknown, fingerprint=replace(calibration.fingerprint, chips=chips))
        assert answer.point is not None
        (finding,) = answer.findings
        assert (finding.severity, finding.found) == (Severity.WARNING, "chips")


def test_a_run_without_a_recorded_precision_has_a_bracket(calibration: Calibration) -> None:
    answer = ask(calibration, fingerprint=replace(calibration.fingerprint, precisions=()))
    assert answer.point is not None
    assert answer.bracket is not None
    assert answer.bracket.low_flop <= answer.point.low_flop
    assert answer.bracket.high_flop >= answer.point.high_flop


def test_a_refused_run_without_a_recorded_precision_still_has_a_bracket(calibration: Calibration) -> None:
    answer = ask(calibration, changed(memory_tb=1e6), replace(calibration.fingerprint, precisions=()))
    assert answer.point is None
    assert answer.bracket is not None


@pytest.mark.parametrize(
    ("name", "feature"), [("memory_tb", "memory"), ("link_tb", "link"), ("host_tb", "host")]
)
@pytest.mark.parametrize("value", [math.nan, 0.0])
def test_a_feature_that_was_not_recorded_is_refused(
    name: str, feature: str, value: float, calibration: Calibration
) -> None:
    answer = ask(calibration, changed(**{name: value}))
    assert refusals(answer) == ["feature-missing"]
    assert answer.refusals[0].found == f"no {feature}_tb_per_j"


@pytest.mark.parametrize(
    ("method", "missing"),
    [
        (Method.EFFICIENCY, 3),
        (Method.PAPER_EQ1, 1),
        (Method.PAPER_EQ2, 0),
        (Method.CONSTANT, 0),
    ],
)
def test_an_estimator_asks_for_no_more_than_it_needs(
    method: Method, missing: int, calibration: Calibration
) -> None:
    answer = ask(calibration, changed(memory_tb=math.nan, link_tb=math.nan, host_tb=math.nan), method=method)
    assert refusals(answer) == ["feature-missing"] * bool(missing)
    assert [finding.count for finding in answer.refusals] == [missing] * bool(missing)


def test_a_run_without_energy_is_refused(calibration: Calibration) -> None:
    answer = ask(calibration, changed(energy_j=math.nan, net_energy_j=math.nan))
    assert refusals(answer) == ["feature-missing"]
    assert answer.refusals[0].count == 4


@pytest.mark.parametrize("energy_j", [1.0, IDLE_W * 60])
def test_a_run_under_idle_is_refused_as_an_anomaly(energy_j: float, calibration: Calibration) -> None:
    answer = ask(calibration, changed(duration_s=60, busy_s=60, energy_j=energy_j))
    assert refusals(answer) == ["energy-under-idle"]
    assert answer.refusals[0].severity is Severity.WARNING


@pytest.mark.parametrize("factor", [1e-4, 1e4])
@pytest.mark.parametrize(
    ("name", "feature"),
    [("memory_tb", Feature.MEMORY), ("link_tb", Feature.LINK), ("host_tb", Feature.HOST)],
)
def test_traffic_far_outside_is_refused(
    name: str, feature: Feature, factor: float, calibration: Calibration
) -> None:
    answer = ask(calibration, changed(**{name: factor * float(getattr(RUN, name)[0])}))
    assert refusals(answer) == ["feature-outside"]
    (finding,) = answer.refusals
    assert finding.where == str(feature)
    assert ("below" if factor < 1 else "above") in finding.message
    assert feature.unit in finding.expected


@pytest.mark.parametrize("factor", [0.1, 10])
def test_power_far_outside_is_refused(factor: float, calibration: Calibration) -> None:
    time_s = float(RUN.duration_s[0]) / factor
    net_j = float(calibration.fitted.net.of(RUN)[0])
    answer = ask(calibration, changed(duration_s=time_s, busy_s=time_s, energy_j=net_j + IDLE_W * time_s))
    assert refusals(answer) == ["feature-outside"]
    assert answer.refusals[0].where == "power_w"


def test_a_feature_just_outside_is_not_refused(calibration: Calibration) -> None:
    domain = calibration.fitted.domain
    place = domain.features.index(Feature.MEMORY)
    width = domain.log_high[place] - domain.log_low[place]
    net_j = float(calibration.fitted.net.of(RUN)[0])

    def at(ranges: float) -> CalibratedAnswer:
        edge = math.exp(domain.log_high[place] + ranges * width)
        return ask(calibration, changed(memory_tb=edge * net_j))

    assert "feature-outside" not in codes(at(domain.most_ranges - 1e-6))
    assert "feature-outside" in codes(at(domain.most_ranges + 1e-6))


def test_features_that_no_run_combines_are_refused() -> None:
    # memory traffic falls as power grows in every calibration run, and in this one it does not
    cells = make_cells(30, duration_s="100")
    for number, each in enumerate(cells):
        net_j = 15_000 + 800 * number
        share = net_j / 25_000
        each["net_energy_j"] = str(net_j)
        each["memory_traffic_tb"] = f"{net_j * 4e-3 * (1 + number % 3 / 300) * share**-1.5:.9f}"
        each["true_tflop"] = f"{net_j * 0.2 * share**0.3 * (1 + number % 4 / 1_000):.6f}"
    columns = ["link_traffic_tb", "host_traffic_tb"]
    calibration = calibrate_cells(cells, without=columns).calibration
    known = observe(read_table(cells, without=columns).rows[:1])
    assert ask(calibration, known).point is not None
    twisted = replace(known, memory_tb=known.memory_tb / 3)
    assert not calibration.fitted.domain.is_outside(calibration.fitted.log_features(twisted)).any()
    answer = ask(calibration, twisted)
    assert refusals(answer) == ["features-unlike"]
    assert float(answer.refusals[0].found.split()[0]) > MOST_DOUBT


def test_an_estimator_that_was_not_fitted_is_refused_with_its_reason() -> None:
    few = calibrate_cells(CELLS[:5]).calibration
    answer = ask(few, observe(TEACH[:1]))
    assert refusals(answer) == ["estimator-missing"]
    assert "at least 8" in answer.refusals[0].message
    assert "constant" in answer.refusals[0].expected
    assert ask(few, observe(TEACH[:1]), method=Method.CONSTANT).point is not None


def test_an_estimate_below_zero_is_an_anomaly_and_never_zero(calibration: Calibration) -> None:
    model = calibration.fitted.models[Method.PAPER_EQ1]
    assert isinstance(model, PaperModel)
    greedy = with_model(calibration, Method.PAPER_EQ1, replace(model, energy_per_tb_j=1e9))
    answer = ask(greedy, method=Method.PAPER_EQ1)
    assert refusals(answer) == ["estimate-negative"]
    assert codes(answer) == ["estimate-negative"]


def test_another_estimator_below_zero_is_a_tripwire(calibration: Calibration) -> None:
    model = calibration.fitted.models[Method.PAPER_EQ1]
    assert isinstance(model, PaperModel)
    greedy = with_model(calibration, Method.PAPER_EQ1, replace(model, energy_per_tb_j=1e9))
    answer = ask(greedy)
    assert answer.point is not None
    (finding,) = answer.findings
    assert (finding.code, finding.where) == ("estimate-negative", "paper-eq1")


@pytest.mark.parametrize("shift", [-3.0, 3.0])
def test_another_estimator_far_away_is_told(shift: float, calibration: Calibration) -> None:
    model = calibration.fitted.models[Method.CONSTANT]
    assert isinstance(model, ConstantModel)
    apart = with_model(
        calibration, Method.CONSTANT, replace(model, log_flop_per_j=model.log_flop_per_j + shift)
    )
    answer = ask(apart)
    assert answer.point is not None
    (finding,) = answer.findings
    assert (finding.code, finding.severity, finding.where) == (
        "estimators-disagree",
        Severity.NOTE,
        "constant",
    )


def test_an_interval_without_bound_is_no_answer(calibration: Calibration) -> None:
    model = calibration.fitted.models[Method.PAPER_EQ2]
    assert isinstance(model, PaperModel)
    unbounded = with_model(
        calibration, Method.PAPER_EQ2, replace(model, errors=np.full(model.errors.size, math.inf))
    )
    assert refusals(ask(unbounded, method=Method.PAPER_EQ2)) == ["interval-unbounded"]
    assert codes(ask(unbounded)) == []


def honest(tokens: float = 1.0, length: float = 1.0) -> DeclaredSteps:
    declared = declare_steps(HELD[:1])
    return replace(
        declared, tokens=tokens * declared.tokens, sequence_length=length * declared.sequence_length
    )


def test_an_honest_declaration_is_not_doubted(calibration: Calibration) -> None:
    for place, row in enumerate(HELD):
        answer = ask(calibration, observe([row]), declared=declare_steps(HELD[place : place + 1]))
        assert set(codes(answer)) <= {"feature-beyond"}


def test_a_feature_beyond_what_was_seen_is_told_before_it_is_refused(calibration: Calibration) -> None:
    domain = calibration.fitted.domain
    place = domain.features.index(Feature.MEMORY)
    width = domain.log_high[place] - domain.log_low[place]
    own = calibration.fitted.log_features(RUN)[0, place]
    for share, expected in ((-0.01, []), (0.5, ["feature-beyond"]), (1.5, ["feature-outside"])):
        factor = np.exp(domain.log_high[place] + share * width - own)
        answer = ask(calibration, replace(RUN, memory_tb=RUN.memory_tb * factor))
        told = [code for code in codes(answer) if code.startswith("feature-")]
        assert told == expected
        assert (answer.point is None) is (share > 1)


@pytest.mark.parametrize("factor", [0.5, 0.25, 0.01])
def test_understated_tokens_are_told(factor: float, calibration: Calibration) -> None:
    answer = ask(calibration, declared=honest(factor))
    (finding,) = answer.findings
    assert (finding.code, finding.severity) == ("declared-steps-low", Severity.WARNING)
    assert answer.refusals == ()


@pytest.mark.parametrize("factor", [2.0, 100.0])
def test_overstated_tokens_are_noted(factor: float, calibration: Calibration) -> None:
    (finding,) = ask(calibration, declared=honest(factor)).findings
    assert (finding.code, finding.severity) == ("declared-steps-high", Severity.NOTE)


def test_a_gap_beyond_the_gate_is_told_and_one_within_is_not(calibration: Calibration) -> None:
    limit = calibration.link_gate
    assert limit is not None
    assert calibration.link is not None
    energy = calibration.fitted.predict(Method.EFFICIENCY, RUN).flop[0]
    operations = calibration.link.predict(RUN.link_tb, honest(), 0.9).flop[0]
    for gap, told in (
        (limit + 1e-6, []),
        (limit - 1e-6, ["declared-steps-low"]),
        (-limit - 1e-6, []),
        (-limit + 1e-6, ["declared-steps-high"]),
    ):
        tokens = energy / operations * math.exp(gap)
        assert codes(ask(calibration, declared=honest(tokens))) == told


def test_a_declaration_never_moves_the_estimate(calibration: Calibration) -> None:
    points = [ask(calibration, declared=honest(factor)).point for factor in (0.01, 0.5, 1.0, 100.0)]
    assert points == [ask(calibration).point] * 4


@pytest.mark.parametrize("tokens", [math.nan, 0.0])
def test_a_declaration_that_says_nothing_is_not_judged(tokens: float, calibration: Calibration) -> None:
    assert codes(ask(calibration, declared=honest(tokens))) == []


def test_without_link_or_point_no_declaration_is_judged(calibration: Calibration) -> None:
    assert codes(ask(replace(calibration, link=None), declared=honest(0.1))) == []
    other = replace(calibration.fingerprint, count=4)
    assert codes(ask(calibration, fingerprint=other, declared=honest(0.1))) == ["calibration-mismatch"]


def test_names_and_hyperparameters_cannot_reach_the_answer(calibration: Calibration) -> None:
    (row,) = read_table(
        [{**CELLS[30], "d_model": "8192", "steps": "1", "run_id": "x", "true_tflop": "1"}]
    ).rows
    answer = ask(calibration, observe([row]), fingerprint_of(row, catalogue()))
    assert answer.point == ask(calibration).point
