"""All estimators fitted to the same runs, from nothing but those runs."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.made_runs import IDLE_W, make_cells, observed, read_table

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.calibration.fitted import MOST_DOUBT, Fitted, Method, fit_methods, offered_features
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import Feature, NetKind, ObservedRuns, observe, settle_net_energy

N_RUNS = 20
ROWS = read_table(make_cells(N_RUNS)).rows
RUNS = observe(ROWS)
FLOP = np.array([float(row.true_flop or 0) for row in ROWS])


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return fit_methods(RUNS, FLOP)


def with_column(name: str, place: int | Sequence[int], value: float) -> ObservedRuns:
    column = getattr(RUNS, name).copy()
    column[place] = value
    return replace(RUNS, **{name: column})


def scaled(factor: float) -> ObservedRuns:
    """The same runs, going on for longer."""
    names = ("duration_s", "busy_s", "energy_j", "net_energy_j", "memory_tb", "link_tb", "host_tb")
    return replace(RUNS, **{name: factor * getattr(RUNS, name) for name in names})


def test_all_estimators_are_fitted(fitted: Fitted) -> None:
    assert set(fitted.models) == set(Method)
    assert fitted.refused == {}
    assert fitted.net.kind is NetKind.POOLED_IDLE
    assert fitted.net.idle_w == IDLE_W
    assert fitted.features == tuple(Feature)
    assert fitted.domain.n_runs == N_RUNS


def test_every_estimator_knows_its_own_runs(fitted: Fitted) -> None:
    spread = np.log(FLOP / fitted.net.of(RUNS)).std()
    for method in Method:
        error = np.log(fitted.predict(method, RUNS).flop / FLOP)
        assert np.abs(error.mean()) < 0.05
        assert error.std() < 1.05 * spread
    own = np.log(fitted.predict(Method.EFFICIENCY, RUNS).flop / FLOP).std()
    assert own < 0.4 * spread


def test_a_method_that_was_not_asked_for_is_not_there() -> None:
    only = fit_methods(RUNS, FLOP, methods=[Method.CONSTANT])
    assert set(only.models) == {Method.CONSTANT}
    for method in set(Method) - {Method.CONSTANT}:
        with pytest.raises(NotCalibratedError, match=str(method)):
            only.predict(method, RUNS)


def test_what_cannot_be_fitted_is_refused_with_its_reason() -> None:
    few = fit_methods(RUNS.take(slice(0, 4)), FLOP[:4])
    assert set(few.models) == {Method.CONSTANT, Method.PAPER_EQ2}
    assert "at least 8" in few.refused[Method.EFFICIENCY]
    assert "at least 5" in few.refused[Method.PAPER_EQ1]
    with pytest.raises(NotCalibratedError) as refusal:
        few.predict(Method.EFFICIENCY, RUNS)
    assert "at least 8" in refusal.value.found


def test_without_memory_traffic_equation_1_is_refused() -> None:
    bare = fit_methods(replace(RUNS, memory_tb=np.full(N_RUNS, math.nan)), FLOP)
    assert "no memory traffic" in bare.refused[Method.PAPER_EQ1]
    assert set(bare.models) == set(Method) - {Method.PAPER_EQ1}
    assert Feature.MEMORY not in bare.features


@pytest.mark.parametrize("n_runs", [0, 1, 2])
def test_too_few_runs_are_refused(n_runs: int) -> None:
    with pytest.raises(NotCalibratedError, match="too few workloads"):
        fit_methods(RUNS.take(slice(0, n_runs)), FLOP[:n_runs])


def test_too_few_runs_above_idle_are_refused() -> None:
    runs = with_column("energy_j", range(2, N_RUNS), 1.0)
    with pytest.raises(NotCalibratedError, match="too few workloads") as refusal:
        fit_methods(runs, FLOP)
    assert refusal.value.found == "2"


@pytest.mark.parametrize(("n_missing", "is_offered"), [(0, True), (2, True), (3, False), (N_RUNS, False)])
def test_a_feature_is_offered_by_nine_runs_in_ten(n_missing: int, is_offered: bool) -> None:
    for value in (math.nan, 0.0):
        runs = with_column("host_tb", range(n_missing), value)
        assert (Feature.HOST in offered_features(runs, settle_net_energy(runs))) is is_offered


def test_power_is_always_offered() -> None:
    runs = observed(duration_s=[math.nan] * 5, energy_j=[1] * 5)
    assert offered_features(runs, settle_net_energy(runs)) == (Feature.POWER,)


def test_only_candidates_are_offered_and_in_their_order() -> None:
    net = settle_net_energy(RUNS)
    wanted = (Feature.LINK, Feature.POWER)
    assert offered_features(RUNS, net, wanted) == wanted
    narrow = fit_methods(RUNS, FLOP, candidates=(Feature.POWER,))
    assert narrow.features == (Feature.POWER,)
    assert Method.PAPER_EQ1 in narrow.refused


def test_runs_that_lack_an_offered_feature_teach_nothing(fitted: Fitted) -> None:
    runs = with_column("host_tb", 3, 0.0)
    rest = np.arange(N_RUNS) != 3
    lacking, without = fit_methods(runs, FLOP), fit_methods(RUNS.take(rest), FLOP[rest])
    assert lacking.is_usable(runs, FLOP).tolist() == rest.tolist()
    assert fitted.is_usable(RUNS, FLOP).all()
    assert lacking.domain.n_runs == N_RUNS - 1
    for method in Method:
        np.testing.assert_array_equal(lacking.predict(method, RUNS).flop, without.predict(method, RUNS).flop)


@pytest.mark.parametrize("flop", [1e130, 1e-130])
def test_a_size_that_no_number_holds_by_the_joule_teaches_nothing(flop: float, fitted: Fitted) -> None:
    sizes = FLOP.copy()
    sizes[3] = flop
    odd = fit_methods(RUNS, sizes)
    assert odd.domain.n_runs == N_RUNS - 1
    assert np.flatnonzero(~odd.is_usable(RUNS, sizes)).tolist() == [3]
    assert fitted.is_usable(RUNS, FLOP).all()


def test_a_run_that_lacks_what_an_estimator_needs_has_no_estimate(fitted: Fitted) -> None:
    missing = {
        "energy_j": set(Method),
        "duration_s": set(Method),  # the idle power is taken off for the whole time
        "memory_tb": {Method.EFFICIENCY, Method.PAPER_EQ1},
        "link_tb": {Method.EFFICIENCY},
    }
    for name, expected in missing.items():
        runs = with_column(name, 0, math.nan)
        if name in ("energy_j", "duration_s"):
            runs = replace(runs, net_energy_j=np.full(N_RUNS, math.nan))
        without = {method for method in Method if np.isnan(fitted.predict(method, runs).flop[0])}
        assert without == expected, name
        assert all(np.isfinite(fitted.predict(method, runs).flop[1:]).all() for method in Method)


def test_a_run_under_idle_has_no_estimate(fitted: Fitted) -> None:
    runs = with_column("energy_j", 0, 1.0)
    assert all(np.isnan(fitted.predict(method, runs).flop[0]) for method in Method)


def test_a_level_is_handed_to_every_estimator(fitted: Fitted) -> None:
    for method in Method:
        halves = [
            float(np.median(fitted.predict(method, RUNS, level).log_half)) for level in (0.5, 0.8, 0.95)
        ]
        assert halves == sorted(set(halves))


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_runs_does_not_matter(seed: int, fitted: Fitted) -> None:
    order = np.random.default_rng(seed).permutation(N_RUNS)
    other = fit_methods(RUNS.take(order), FLOP[order])
    assert other.net == fitted.net
    for method in Method:
        own, theirs = fitted.predict(method, RUNS), other.predict(method, RUNS)
        np.testing.assert_allclose(theirs.flop, own.flop, rtol=1e-9)
        np.testing.assert_allclose(theirs.log_half, own.log_half, rtol=1e-6)


@pytest.mark.parametrize("factor", [0.1, 7.0])
def test_a_run_that_goes_on_longer_counts_for_as_much_more(factor: float, fitted: Fitted) -> None:
    longer = replace(
        RUNS,
        **{
            name: factor * getattr(RUNS, name)
            for name in (
                "duration_s",
                "busy_s",
                "energy_j",
                "net_energy_j",
                "memory_tb",
                "link_tb",
                "host_tb",
            )
        },
    )
    for method in Method:
        own, other = fitted.predict(method, RUNS), fitted.predict(method, longer)
        np.testing.assert_allclose(other.flop, factor * own.flop, rtol=1e-9)
        np.testing.assert_allclose(other.log_half, own.log_half, rtol=1e-9)


def test_scaling_all_that_was_recorded_scales_the_estimates(fitted: Fitted) -> None:
    longer = scaled(3)
    again = fit_methods(longer, 3 * FLOP)
    for method in Method:
        np.testing.assert_allclose(
            again.predict(method, longer).flop, 3 * fitted.predict(method, RUNS).flop, rtol=1e-9
        )


def test_equation_2_is_equation_1_without_traffic(fitted: Fitted) -> None:
    first, second = fitted.models[Method.PAPER_EQ1], fitted.models[Method.PAPER_EQ2]
    assert isinstance(first, PaperModel)
    assert isinstance(second, PaperModel)
    assert (first.has_traffic, second.has_traffic) == (True, False)


def test_a_days_own_idle_does_not_move_the_estimate(fitted: Fitted) -> None:
    # the record's net energy and its own idle move together, total energy stays
    other = replace(
        RUNS, idle_w=RUNS.idle_w * 0.9, net_energy_j=RUNS.net_energy_j + 0.1 * IDLE_W * RUNS.duration_s
    )
    for method in Method:
        np.testing.assert_array_equal(fitted.predict(method, other).flop, fitted.predict(method, RUNS).flop)


def test_a_feature_that_never_varies_is_kept_in_the_domain_alone() -> None:
    runs = replace(RUNS, host_tb=1e-5 * settle_net_energy(RUNS).of(RUNS))
    fitted = fit_methods(runs, FLOP)
    model = fitted.models[Method.EFFICIENCY]
    assert isinstance(model, EfficiencyModel)
    assert Feature.HOST in fitted.features
    assert Feature.HOST not in model.features
    assert np.isfinite(fitted.predict(Method.EFFICIENCY, runs).flop).all()


def test_repeats_of_a_workload_teach_once_by_their_mean(fitted: Fitted) -> None:
    tripled = RUNS.take(np.repeat(np.arange(N_RUNS), 3))
    for factor, place in ((0.98, 0), (1.02, 1)):
        tripled.memory_tb[place::3] *= factor
    repeats = fit_methods(tripled, np.repeat(FLOP, 3), workload=np.repeat(np.arange(N_RUNS), 3))
    assert repeats.domain.n_runs == N_RUNS
    for method in Method:
        own, theirs = fitted.predict(method, RUNS), repeats.predict(method, RUNS)
        np.testing.assert_allclose(theirs.flop, own.flop, rtol=1e-9)
        np.testing.assert_allclose(theirs.log_half, own.log_half, rtol=1e-6)


def test_repeats_alone_are_too_few() -> None:
    with pytest.raises(NotCalibratedError, match="too few workloads") as refusal:
        fit_methods(RUNS, FLOP, workload=np.arange(N_RUNS) % 2)
    assert refusal.value.found == "2"
    few = fit_methods(RUNS, FLOP, workload=np.arange(N_RUNS) % 7)
    assert "found 7" in few.refused[Method.EFFICIENCY]


def test_numbers_of_workloads_are_names_alone(fitted: Fitted) -> None:
    named = fit_methods(RUNS, FLOP, workload=1_000 - 7 * np.arange(N_RUNS))
    for method in Method:
        np.testing.assert_allclose(
            named.predict(method, RUNS).flop, fitted.predict(method, RUNS).flop, rtol=1e-9
        )


def test_repeats_that_were_recorded_in_two_ways_still_teach() -> None:
    # one knows its total energy, the other only its energy above idle
    runs = RUNS.take(np.append(np.arange(N_RUNS), 0))
    runs.net_energy_j[0] = math.nan
    runs.energy_j[N_RUNS] = runs.idle_w[N_RUNS] = math.nan
    fitted = fit_methods(runs, np.append(FLOP, FLOP[0]), workload=np.append(np.arange(N_RUNS), 0))
    for method in Method:
        assert np.isfinite(fitted.predict(method, RUNS).flop).all(), method


def test_calibration_runs_lie_inside(fitted: Fitted) -> None:
    assert not fitted.is_outside(RUNS).any()
    assert np.median(fitted.doubt(RUNS)) == pytest.approx(1)


@pytest.mark.parametrize("name", ["memory_tb", "link_tb", "host_tb"])
@pytest.mark.parametrize("factor", [0.001, 1_000])
def test_unknown_traffic_lies_outside(name: str, factor: float, fitted: Fitted) -> None:
    runs = replace(RUNS, **{name: factor * getattr(RUNS, name)})
    assert fitted.is_outside(runs).all()


def test_features_that_no_run_combines_lie_outside() -> None:
    share = np.linspace(0.6, 1.6, 30)
    ripple = 1 + np.arange(30) % 3 / 300
    net_j = 25_000 * share
    runs = observed(
        duration_s=np.full(30, 100.0),
        energy_j=net_j,
        idle_w=0.0,
        memory_tb=net_j * 4e-3 * ripple * share**-1.5,
    )
    fitted = fit_methods(runs, net_j * 2e11 * share**0.3 * (1 + np.arange(30) % 4 / 1_000))
    assert not fitted.is_outside(runs).any()
    twisted = replace(runs, memory_tb=runs.memory_tb / 3).take(slice(0, 5))
    assert not fitted.domain.is_outside(fitted.log_features(twisted)).any()
    assert (fitted.doubt(twisted) > MOST_DOUBT).all()
    assert fitted.is_outside(twisted).all()


def test_without_efficiency_nothing_is_doubted() -> None:
    only = fit_methods(RUNS, FLOP, methods=[Method.CONSTANT])
    assert only.doubt(scaled(5)).tolist() == [0.0] * N_RUNS


def test_a_feature_that_is_missing_is_not_doubted(fitted: Fitted) -> None:
    runs = with_column("memory_tb", 2, math.nan)
    assert fitted.doubt(runs)[2] == 0
    assert not fitted.is_outside(runs)[2]


def test_each_estimator_needs_its_own_features(fitted: Fitted) -> None:
    assert fitted.needed(Method.EFFICIENCY) == tuple(Feature)
    assert fitted.needed(Method.PAPER_EQ1) == (Feature.POWER, Feature.MEMORY)
    assert fitted.needed(Method.PAPER_EQ2) == fitted.needed(Method.CONSTANT) == (Feature.POWER,)
    for method in Method:
        needed = fitted.needed(method)
        columns = {Feature.MEMORY: "memory_tb", Feature.LINK: "link_tb", Feature.HOST: "host_tb"}
        for feature, column in columns.items():
            flop = fitted.predict(method, with_column(column, 0, math.nan)).flop[0]
            assert np.isnan(flop) == (feature in needed), (method, feature)


def test_pauses_move_no_estimate_beyond_their_idle_power(fitted: Fitted) -> None:
    paused = replace(RUNS, duration_s=RUNS.duration_s + 60, energy_j=RUNS.energy_j + 60 * fitted.net.idle_w)
    for method in Method:
        np.testing.assert_allclose(
            fitted.predict(method, paused).flop, fitted.predict(method, RUNS).flop, rtol=1e-9
        )
