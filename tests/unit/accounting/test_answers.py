"""From the meter's answer to the rules, with what a row builds on and what it says of itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flopwitness.accounting.answers import (
    answer_row,
    assess_measurement,
    find_parents,
    index_models,
    range_of,
)
from flopwitness.accounting.thresholds import NO_COMPUTE, ComputeRange
from flopwitness.catalogue.chips import ChipCatalogue, Precision
from flopwitness.catalogue.rules import Rule, load_rules
from flopwitness.foundation.verdict import Position, Severity, Verdict
from flopwitness.measure.answer import Measurement
from flopwitness.measure.calibration.bracket import Bracket
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.use import CalibratedAnswer
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.rows import measure_row
from flopwitness.measure.sources.run_table import RunRow

HOUR_S = 3_600.0


def _row(run_id: str = "run-1", **fields: Any) -> RunRow:  # noqa: ANN401 (the fields of a row)
    return RunRow(row=2, cells={}, run_id=run_id, **fields)


@pytest.fixture(scope="module")
def measure(chips: ChipCatalogue, reference: ReferenceTable) -> Callable[[RunRow], Measurement]:
    stated = Question(chips=(), count=0)
    return lambda row: measure_row(row, stated, catalogue=chips, table=reference)


@pytest.fixture(scope="module")
def small(measure: Callable[[RunRow], Measurement]) -> Measurement:
    """Eight chips for an hour: about 1e20 FLOP at most."""
    return measure(_row(chip_name="h100-sxm", count=8, duration_s=HOUR_S))


@pytest.fixture(scope="module")
def huge(measure: Callable[[RunRow], Measurement]) -> Measurement:
    """A hundred thousand chips for half a year."""
    return measure(_row(chip_name="h100-sxm", count=100_000, duration_s=180 * 86_400.0))


@pytest.fixture(scope="module")
def unbounded(measure: Callable[[RunRow], Measurement]) -> Measurement:
    return measure(_row())


@pytest.fixture(scope="module")
def art51() -> Rule:
    return load_rules().find("eu-ai-act-art51")


def test_the_range_runs_from_the_interval_to_the_bound(small: Measurement, unbounded: Measurement) -> None:
    assert small.estimate is not None
    assert small.upper is not None
    assert range_of(small) == ComputeRange(low_flop=small.estimate.low_flop, upper_flop=small.upper.flop)
    assert range_of(replace(small, estimate=None)).low_flop == 0
    assert range_of(unbounded) == ComputeRange(low_flop=0, upper_flop=None)
    assert range_of(replace(small, upper=None)).upper_flop is None


def test_a_low_end_over_the_bound_is_cut(small: Measurement) -> None:
    assert small.upper is not None
    assert range_of(replace(small, upper=replace(small.upper, flop=5))) == ComputeRange(
        low_flop=5, upper_flop=5
    )


def _bracketed(measurement: Measurement, bracket: Bracket | None) -> Measurement:
    """The measurement as if a calibration had spoken, with or without a recorded precision."""
    said = CalibratedAnswer(method=Method.EFFICIENCY, point=None, refusals=(), bracket=bracket, findings=())
    return replace(measurement, calibrated=said)


def _bracket(low_flop: float, high_flop: float = 1e30) -> Bracket:
    return Bracket(
        low_flop=low_flop,
        high_flop=high_flop,
        level=0.9,
        calibrated=Precision.FP16,
        precisions=(Precision.FP16, Precision.FP32),
    )


def test_a_bracket_lowers_the_low_end_and_never_the_bound(small: Measurement) -> None:
    assert small.estimate is not None
    assert small.upper is not None
    low = small.estimate.low_flop
    for bracket_low, expected in ((low / 8, low // 8), (1.9, 1), (2.0 * low, low)):
        found = range_of(_bracketed(small, _bracket(bracket_low)))
        assert found == ComputeRange(low_flop=expected, upper_flop=small.upper.flop)
    assert range_of(_bracketed(small, None)) == range_of(small)
    narrow = _bracketed(small, _bracket(low / 8, low / 4))
    assert range_of(narrow).upper_flop == small.upper.flop


def test_a_bracket_without_an_estimate_shows_nothing_from_below(
    small: Measurement, unbounded: Measurement
) -> None:
    assert range_of(_bracketed(replace(small, estimate=None), _bracket(1e9))).low_flop == 0
    assert range_of(_bracketed(unbounded, _bracket(1e9))) == ComputeRange(low_flop=0, upper_flop=None)


def test_an_estimate_without_a_bound_leaves_the_top_open(small: Measurement) -> None:
    assert small.estimate is not None
    open_top = _bracketed(replace(small, upper=None), _bracket(small.estimate.low_flop / 4))
    assert range_of(open_top) == ComputeRange(low_flop=small.estimate.low_flop // 4, upper_flop=None)


def test_a_run_of_unknown_precision_is_likely_above_only_by_its_bracket(
    huge: Measurement, art51: Rule
) -> None:
    assert huge.estimate is not None
    assert huge.estimate.low_flop > 10**25
    for low_flop, position in ((2e25, Position.LIKELY_ABOVE), (0.5e25, Position.CANNOT_TELL)):
        (item,) = assess_measurement(_bracketed(huge, _bracket(low_flop)), [art51])
        assert item.position is position


def test_a_declared_total_within_the_bracket_is_not_called_understated(
    small: Measurement, art51: Rule
) -> None:
    assert small.estimate is not None
    row = _row(declared_flop=small.estimate.low_flop // 2)
    plain = answer_row(row, lambda _: small, [art51], index={})
    assert [finding.code for finding in plain.findings] == ["declared-under-estimate"]
    open_precision = _bracketed(small, _bracket(small.estimate.low_flop / 8))
    assert answer_row(row, lambda _: open_precision, [art51], index={}).findings == ()


def test_rules_see_the_bound_and_rank_by_the_interval(
    small: Measurement, huge: Measurement, unbounded: Measurement, art51: Rule
) -> None:
    for measurement, position, verdict in (
        (small, Position.BELOW, Verdict.CONSISTENT),
        (huge, Position.LIKELY_ABOVE, Verdict.INCONCLUSIVE),
        (unbounded, Position.CANNOT_TELL, Verdict.INCONCLUSIVE),
    ):
        (item,) = assess_measurement(measurement, [art51])
        assert (item.position, item.verdict) == (position, verdict)


def test_other_compute_is_added(small: Measurement, art51: Rule) -> None:
    for other, position in (
        (NO_COMPUTE, Position.BELOW),
        (ComputeRange(low_flop=0, upper_flop=10**25), Position.CANNOT_TELL),
        (ComputeRange(low_flop=0, upper_flop=None), Position.CANNOT_TELL),
        (ComputeRange(low_flop=10**25, upper_flop=10**25), Position.LIKELY_ABOVE),
    ):
        (item,) = assess_measurement(small, [art51], other=other)
        assert item.position is position


def test_the_sensors_tolerance_decides_near_the_threshold(small: Measurement, art51: Rule) -> None:
    assert small.upper is not None
    near = replace(small, estimate=None, upper=replace(small.upper, flop=96 * 10**23))
    (strict,) = assess_measurement(near, [art51], tolerance_ppm=0)
    (usual,) = assess_measurement(near, [art51])
    assert (strict.position, usual.position) == (Position.BELOW, Position.CANNOT_TELL)


def test_rules_that_limit_no_total_are_passed_over(small: Measurement) -> None:
    rules = load_rules().rules
    others = [rule for rule in rules if not rule.totals]
    assert others
    assert assess_measurement(small, others) == ()
    assert len(assess_measurement(small, rules)) == sum(len(rule.totals) for rule in rules)


def test_models_are_found_by_name_whatever_its_case_and_space() -> None:
    rows = [_row("Big  Model"), _row("big model "), _row("other")]
    index = index_models(rows)
    assert {key: len(found) for key, found in index.items()} == {"big model": 2, "other": 1}


def _nothing(row: RunRow) -> Measurement:
    """What the meter says of a row that records nothing but its name."""
    return Measurement(
        duration_s=row.duration_s,
        recorded_s=None,
        window=None,
        energy=None,
        estimate=None,
        upper=None,
        findings=(),
    )


@pytest.mark.parametrize(
    ("base", "low", "upper", "unrecorded"),
    [
        ("", 0, 0, ()),
        ("  ", 0, 0, ()),
        ("parent", 100, 100, ()),
        ("PARENT", 100, 100, ()),
        ("parent, second", 107, 120, ()),
        ("One, Two", 50, 50, ()),
        ("silent", 0, None, ("silent",)),
        ("stranger", 0, None, ("stranger",)),
        ("parent,stranger, silent", 100, None, ("stranger", "silent")),
    ],
)
def test_parents_are_summed_and_one_unknown_opens_the_total(
    base: str, low: int, upper: int | None, unrecorded: tuple[str, ...]
) -> None:
    index = index_models(
        [
            _row("Parent", declared_flop=100),
            _row("second", declared_flop=20),
            _row("Second", declared_flop=7),
            _row("second"),
            _row("silent"),
            _row("one, two", declared_flop=50),
            _row("one", declared_flop=1),
        ]
    )
    total, told = find_parents(_row("child", base_model=base), index, _nothing)
    assert total == ComputeRange(low_flop=low, upper_flop=upper)
    missing = [finding for finding in told if finding.code == "parent-unrecorded"]
    assert [finding.count for finding in missing] == ([len(unrecorded)] if unrecorded else [])
    assert all(name in missing[0].message for name in unrecorded)
    assert ("parent-claimed" in {finding.code for finding in told}) == (low > 0)


def test_a_row_is_held_against_the_rules(small: Measurement, art51: Rule) -> None:
    answer = answer_row(_row(), lambda _: small, [art51], index={})
    assert [item.position for item in answer.rules] == [Position.BELOW]
    assert answer.findings == ()
    assert answer.all_findings == small.findings


def test_a_row_carries_what_it_builds_on(small: Measurement, art51: Rule) -> None:
    row = _row("child", base_model="parent")
    index = index_models([_row("parent", declared_flop=2 * 10**25)])
    answer = answer_row(row, lambda _: small, [art51], index=index)
    assert answer.rules[0].position is Position.LIKELY_ABOVE
    assert [finding.code for finding in answer.findings] == ["parent-claimed"]


def test_an_unrecorded_parent_leaves_the_total_open(small: Measurement, art51: Rule) -> None:
    answer = answer_row(_row("child", base_model="parent"), lambda _: small, [art51], index={})
    assert answer.rules[0].position is Position.CANNOT_TELL
    (finding,) = answer.findings
    assert (finding.code, finding.where, finding.count) == ("parent-unrecorded", "child", 1)
    assert answer.all_findings[0] is finding


def test_a_model_that_builds_on_itself_stays_open(small: Measurement, art51: Rule) -> None:
    row = _row("loop", base_model="loop", declared_flop=10**19)
    answer = answer_row(row, lambda _: small, [art51], index=index_models([row]))
    assert answer.rules[0].position is Position.CANNOT_TELL
    assert "parent-unrecorded" in {finding.code for finding in answer.findings}


def test_a_parent_that_declares_less_than_its_row_shows_stays_open(small: Measurement, art51: Rule) -> None:
    assert small.estimate is not None
    parent = _row("parent", declared_flop=1)
    answer = answer_row(
        _row("child", base_model="parent"), lambda _: small, [art51], index=index_models([parent])
    )
    assert answer.rules[0].position is Position.CANNOT_TELL
    assert [finding.code for finding in answer.findings] == ["declared-under-estimate", "parent-claimed"]
    honest = _row("parent", declared_flop=small.estimate.low_flop)
    answer = answer_row(
        _row("child", base_model="parent"), lambda _: small, [art51], index=index_models([honest])
    )
    assert answer.rules[0].position is Position.BELOW
    assert [finding.code for finding in answer.findings] == ["parent-claimed"]


def test_a_known_truth_over_the_bound_is_a_contradiction(small: Measurement, art51: Rule) -> None:
    answer = answer_row(_row(true_flop=10**26), lambda _: small, [art51], index={})
    assert answer.rules[0].position is Position.CANNOT_TELL
    assert [finding.code for finding in answer.findings] == ["declared-over-bound"]


def test_a_row_that_declares_more_than_it_can_have_done_is_a_contradiction(
    small: Measurement, art51: Rule
) -> None:
    assert small.upper is not None
    most = small.upper.flop
    over = answer_row(_row(declared_flop=2 * most), lambda _: small, [art51], index={})
    (finding,) = over.findings
    assert (finding.code, finding.severity) == ("declared-over-bound", Severity.CONTRADICTION)
    assert over.rules[0].position is Position.CANNOT_TELL
    for fine in (None, most, most * 110 // 100):
        assert answer_row(_row(declared_flop=fine), lambda _: small, [art51], index={}).findings == ()


def test_what_nothing_bounds_contradicts_nothing(unbounded: Measurement, art51: Rule) -> None:
    answer = answer_row(_row(declared_flop=10**27), lambda _: unbounded, [art51], index={})
    assert answer.findings == ()
    assert answer.rules[0].position is Position.CANNOT_TELL
