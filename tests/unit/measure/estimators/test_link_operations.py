"""Declared operations through link traffic: the constant comes back, and a lie moves it as it should."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.estimators.link_operations import (
    FALSE_ALARM,
    DeclaredSteps,
    LinkModel,
    fit_link,
    gate,
)

Vector = NDArray[np.float64]

RNG = np.random.default_rng(2)
CONSTANT = 1.6e12
N_RUNS = 10
DECLARED = DeclaredSteps(
    tokens=RNG.choice([2_048.0, 4_096.0, 8_192.0], N_RUNS),
    sequence_length=RNG.choice([128.0, 256.0, 512.0], N_RUNS),
    width=RNG.choice([256.0, 512.0, 1_024.0], N_RUNS),
)
LINK_TB = RNG.uniform(0.5, 3, N_RUNS)
FLOP = np.array(
    [
        CONSTANT * tb * tokens * (1 + length / (6 * width))
        for tb, tokens, length, width in zip(
            LINK_TB, DECLARED.tokens, DECLARED.sequence_length, DECLARED.width, strict=True
        )
    ]
)
NOISY = FLOP * np.exp(0.03 * RNG.normal(size=N_RUNS))


def steps(tokens: float, length: float, width: float) -> DeclaredSteps:
    return DeclaredSteps(
        tokens=np.array([tokens]), sequence_length=np.array([length]), width=np.array([width])
    )


@pytest.fixture
def model() -> LinkModel:
    return fit_link(LINK_TB, DECLARED, NOISY)


def test_the_constant_that_made_the_data_comes_back() -> None:
    model = fit_link(LINK_TB, DECLARED, FLOP)
    assert math.exp(model.log_flop_per_tb_token) == pytest.approx(CONSTANT)
    assert model.errors == pytest.approx(0, abs=1e-9)
    assert model.predict(LINK_TB, DECLARED, 0.9).flop == pytest.approx(FLOP)


def test_attention_adds_its_share() -> None:
    assert steps(10, 600, 100).work(np.array([3.0])).tolist() == [3 * 10 * 2]
    assert steps(10, 6e-9, 1e3).work(np.array([3.0])).tolist() == pytest.approx([30])


@pytest.mark.parametrize(
    ("tokens", "length", "width", "link_tb"),
    [
        (math.nan, 128, 256, 1),
        (2_048, math.nan, 256, 1),
        (2_048, 128, math.nan, 1),
        (2_048, 128, 256, math.nan),
        (0, 128, 256, 1),
        (-5, 128, 256, 1),
        (2_048, 128, 256, 0),
        (2_048, 128, 0, 1),
        (-5, 128, -1, 1),
        (math.inf, 128, 256, 1),
        (1e300, 1e300, 1e-300, 1),
    ],
)
def test_a_declaration_that_says_nothing_gives_nothing(
    tokens: float, length: float, width: float, link_tb: float, model: LinkModel
) -> None:
    declared = steps(tokens, length, width)
    assert np.isnan(declared.work(np.array([link_tb]))).all()
    assert np.isnan(model.predict(np.array([link_tb]), declared, 0.9).flop).all()


def test_declarations_are_taken_in_the_order_asked_for() -> None:
    taken = DECLARED.take(np.array([3, 1], dtype=np.intp))
    assert taken.tokens.tolist() == DECLARED.tokens[[3, 1]].tolist()
    assert taken.sequence_length.tolist() == DECLARED.sequence_length[[3, 1]].tolist()
    assert taken.width.tolist() == DECLARED.width[[3, 1]].tolist()
    np.testing.assert_array_equal(
        DECLARED.take(LINK_TB > 1).work(LINK_TB[LINK_TB > 1]), DECLARED.work(LINK_TB)[LINK_TB > 1]
    )


def test_runs_without_traffic_or_declaration_are_passed_over(model: LinkModel) -> None:
    more = DeclaredSteps(
        tokens=np.append(DECLARED.tokens, [math.nan, 1e9]),
        sequence_length=np.append(DECLARED.sequence_length, [128, 128]),
        width=np.append(DECLARED.width, [256, 256]),
    )
    other = fit_link(np.append(LINK_TB, [5.0, math.nan]), more, np.append(NOISY, [1e20, 1e20]))
    assert other.log_flop_per_tb_token == model.log_flop_per_tb_token
    np.testing.assert_array_equal(other.errors, model.errors)


def test_errors_are_those_of_refits_without_each_run(model: LinkModel) -> None:
    for place in range(N_RUNS):
        rest = np.delete(np.arange(N_RUNS), place)
        other = fit_link(LINK_TB[rest], DECLARED.take(rest), NOISY[rest])
        (flop,) = other.predict(LINK_TB[[place]], DECLARED.take(np.array([place])), 0.9).flop
        assert model.errors[place] == pytest.approx(abs(np.log(NOISY[place] / flop)), rel=1e-8)


@pytest.mark.parametrize("n_runs", [0, 1, 7])
def test_too_few_runs_are_refused(n_runs: int) -> None:
    part = np.arange(n_runs)
    with pytest.raises(NotCalibratedError, match="too few runs") as refusal:
        fit_link(LINK_TB[part], DECLARED.take(part), NOISY[part])
    assert refusal.value.found == str(n_runs)


def test_too_few_runs_with_link_traffic_are_refused() -> None:
    with pytest.raises(NotCalibratedError, match="link traffic"):
        fit_link(np.where(np.arange(N_RUNS) < 7, LINK_TB, 0), DECLARED, NOISY)


def test_eight_runs_are_enough() -> None:
    part = np.arange(8)
    assert fit_link(LINK_TB[part], DECLARED.take(part), NOISY[part]).errors.size == 8


def test_the_interval_is_the_wider_of_two() -> None:
    even = fit_link(LINK_TB, DECLARED, FLOP * np.exp(0.1 * (-1.0) ** np.arange(N_RUNS)))
    bayes = stats.t.ppf(0.95, N_RUNS - 1) * np.sqrt(0.01 * N_RUNS / (N_RUNS - 1)) * np.sqrt(1 + 1 / N_RUNS)
    assert even.predict(LINK_TB, DECLARED, 0.9).log_half == pytest.approx(bayes)
    assert bayes > even.errors.max()
    spiked = fit_link(LINK_TB, DECLARED, np.where(np.arange(N_RUNS) == 0, FLOP * 30, FLOP))
    assert spiked.predict(LINK_TB, DECLARED, 0.9).log_half[0] == pytest.approx(spiked.errors[0])


def test_half_of_the_tokens_make_half_of_the_operations(model: LinkModel) -> None:
    half = DeclaredSteps(
        tokens=DECLARED.tokens / 2, sequence_length=DECLARED.sequence_length, width=DECLARED.width
    )
    np.testing.assert_allclose(
        model.predict(LINK_TB, half, 0.9).flop, model.predict(LINK_TB, DECLARED, 0.9).flop / 2
    )


def test_order_of_runs_does_not_matter(model: LinkModel) -> None:
    order = RNG.permutation(N_RUNS)
    other = fit_link(LINK_TB[order], DECLARED.take(order), NOISY[order])
    assert other.log_flop_per_tb_token == pytest.approx(model.log_flop_per_tb_token, rel=1e-14)
    np.testing.assert_allclose(other.errors, model.errors[order], rtol=1e-7)


def test_the_gate_is_students_t_at_the_rate_of_false_alarms(model: LinkModel) -> None:
    energy_errors = np.full(30, 0.04)
    spread = math.sqrt(float((model.errors**2).mean()) + 0.04**2)
    quantile = float(stats.t.ppf(FALSE_ALARM, N_RUNS - 3))
    assert gate(model, energy_errors) == pytest.approx(quantile * spread)
    assert gate(model, energy_errors) < 0


def test_the_gate_counts_the_fewer_of_both_runs(model: LinkModel) -> None:
    few, many = (gate(model, np.full(n_runs, 0.04)) for n_runs in (8, 10))
    assert few < many == gate(model, np.full(500, 0.04))


def test_a_worse_estimate_opens_the_gate(model: LinkModel) -> None:
    assert gate(model, np.full(10, 0.2)) < gate(model, np.full(10, 0.1)) < gate(model, np.full(10, 0.01)) < 0
