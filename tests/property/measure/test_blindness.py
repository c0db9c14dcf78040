"""Names, hyperparameters, step counts and truths reach no prediction, however they are shuffled or forged."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.made_runs import Cells, calibrate_cells, catalogue, make_cells, write_table

from flopwitness.measure.calibration.fingerprint import fingerprint_of
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.use import CalibratedAnswer, answer_from_calibration
from flopwitness.measure.observed import observe
from flopwitness.measure.sources.declared_steps import declare_steps
from flopwitness.measure.sources.run_table import decode_run_table
from flopwitness.measure.sources.workloads import HYPERPARAMETERS

CELLS = make_cells(30)
TEACH, HELD = CELLS[:22], CELLS[22:]
CALIBRATION = calibrate_cells(TEACH).calibration
CLAIMS = tuple(
    name for name in ("run_id", "mean_utilisation_pct", "true_tflop", *HYPERPARAMETERS) if name in CELLS[0]
)
CHIPS = catalogue().find_all("v100-sxm2-16gb")

orders = st.permutations(range(len(HELD)))
forged = st.one_of(
    st.integers(0, 10**30).map(str), st.floats(0, 1e12).map(str), st.text("abc 1,", max_size=6), st.just("")
)


def answer(
    cells: Sequence[Cells], method: Method, *, has_declaration: bool = False, without: Sequence[str] = ()
) -> list[CalibratedAnswer]:
    """What the calibration says of each run, as it stands in a file."""
    rows = decode_run_table(write_table(cells, without=without), where="t.csv").rows
    assert len(rows) == len(cells)
    return [
        answer_from_calibration(
            CALIBRATION,
            observe([row]),
            fingerprint_of(row, catalogue()),
            chips=CHIPS,
            declared=declare_steps([row]) if has_declaration else None,
            method=method,
        )
        for row in rows
    ]


def shuffle(shuffled: dict[str, list[int]]) -> list[Cells]:
    """The held-out runs, each claim taken from another of them."""
    return [
        {**own, **{name: HELD[order[place]][name] for name, order in shuffled.items()}}
        for place, own in enumerate(HELD)
    ]


PLAIN = {method: answer(HELD, method) for method in Method}


def test_the_plain_runs_have_points() -> None:
    assert all(each.point is not None for answers in PLAIN.values() for each in answers)
    assert {"run_id", "true_tflop", "steps", "d_model", "seq_len", "batch_size", "precision"} <= set(CLAIMS)


@settings(max_examples=30)
@given(st.fixed_dictionaries(dict.fromkeys(CLAIMS, orders)), st.sampled_from(Method))
def test_shuffled_claims_move_no_answer(shuffled: dict[str, list[int]], method: Method) -> None:
    assert answer(shuffle(shuffled), method) == PLAIN[method]


@settings(max_examples=30)
@given(st.fixed_dictionaries(dict.fromkeys(CLAIMS, orders)))
def test_shuffled_claims_move_no_bracket_of_an_unrecorded_precision(shuffled: dict[str, list[int]]) -> None:
    plain, found = (
        answer(cells, Method.EFFICIENCY, without=["precision"]) for cells in (HELD, shuffle(shuffled))
    )
    assert found == plain
    assert all(each.bracket is not None for each in found)


@settings(max_examples=30)
@given(
    st.lists(
        st.fixed_dictionaries({name: forged for name in CLAIMS if name != "precision"}),
        min_size=len(HELD),
        max_size=len(HELD),
    ),
    st.sampled_from(Method),
)
def test_forged_claims_move_no_answer(claims: list[Cells], method: Method) -> None:
    cells = [{**own, **claim} for own, claim in zip(HELD, claims, strict=True)]
    assert answer(cells, method) == PLAIN[method]


@settings(max_examples=30)
@given(st.fixed_dictionaries(dict.fromkeys(CLAIMS, orders)))
def test_shuffled_declarations_are_judged_and_move_no_point(shuffled: dict[str, list[int]]) -> None:
    for found, plain in zip(
        answer(shuffle(shuffled), Method.EFFICIENCY, has_declaration=True),
        PLAIN[Method.EFFICIENCY],
        strict=True,
    ):
        assert found.point == plain.point
        assert found.refusals == plain.refusals


@settings(max_examples=30)
@given(orders)
def test_the_order_of_runs_moves_no_answer(order: list[int]) -> None:
    found = answer([HELD[place] for place in order], Method.EFFICIENCY)
    assert found == [PLAIN[Method.EFFICIENCY][place] for place in order]


@settings(max_examples=30)
@given(st.sets(st.integers(0, len(HELD) - 1), min_size=1))
def test_other_runs_beside_it_move_no_answer(places: set[int]) -> None:
    chosen = sorted(places)
    found = answer([HELD[place] for place in chosen], Method.EFFICIENCY)
    assert found == [PLAIN[Method.EFFICIENCY][place] for place in chosen]


@pytest.mark.parametrize(
    "name", ["net_energy_j", "duration_s", "memory_traffic_tb", "link_traffic_tb", "host_traffic_tb"]
)
def test_shuffled_sensors_do_move_answers(name: str) -> None:
    cells = [{**own, name: HELD[place - 1][name]} for place, own in enumerate(HELD)]
    assert answer(cells, Method.EFFICIENCY) != PLAIN[Method.EFFICIENCY]


@settings(max_examples=30)
@given(orders)
def test_runs_of_the_same_size_teach_the_same_whatever_they_are_called(order: list[int]) -> None:
    cells = [
        {**own, "run_id": f"{order[place % 8]}", "steps": str(7 * place)} for place, own in enumerate(TEACH)
    ]
    other = calibrate_cells(cells).calibration
    for method in Method:
        assert (other.fitted.models[method].errors == CALIBRATION.fitted.models[method].errors).all()
