"""The answer in words: short, whole, worst news first, and harmless whatever a log says."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.accounting.answers import RowAnswer, answer_row, assess_measurement
from flopwitness.accounting.thresholds import NO_COMPUTE, ComputeRange
from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.catalogue.rules import Evidence, Rule, load_rules
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.meter import Measurement, Question, measure_trace
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.rows import measure_row
from flopwitness.measure.samples import Scope, Series, Trace
from flopwitness.measure.sources.run_table import RunRow
from flopwitness.present.estimate_text import render_run_text, render_table_text

MakeSeries = Callable[..., Series]

HOUR_S = 3_600.0
NOTE = Finding(code="scope", severity=Severity.NOTE, message="plain words")


@pytest.fixture(scope="module")
def question(chips: ChipCatalogue) -> Question:
    return Question(chips=chips.find("h100-sxm"), count=16)


@pytest.fixture(scope="module")
def measured(question: Question, reference: ReferenceTable, make_series: MakeSeries) -> Measurement:
    nodes = tuple(
        make_series(
            [1_000 + number + i % 7 for i in range(601)], device=f"node_{number}", scope=Scope.NODE_AC
        )
        for number in range(2)
    )
    return measure_trace(Trace(series=nodes), question, table=reference)


@pytest.fixture(scope="module")
def rules() -> dict[str, Rule]:
    return {rule.id: rule for rule in load_rules().rules}


def _text(
    measurement: Measurement,
    question: Question,
    rules: dict[str, Rule],
    *names: str,
    findings: tuple[Finding, ...] = (),
    other: ComputeRange = NO_COMPUTE,
) -> str:
    chosen = [rules[name] for name in names]
    items = assess_measurement(measurement, chosen, other=other)
    return render_run_text(measurement, question, items, rules=rules, findings=findings)


def test_the_answer_is_short_and_whole(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    lines = _text(measured, question, rules, "eu-ai-act-art51", findings=(NOTE,)).splitlines()
    assert lines[0] == "16 x NVIDIA H100 SXM5 80GB, 2 nodes, 10 min"
    assert lines[1].startswith("  energy      1204 kJ")
    assert lines[1].endswith("on the AC side, 100.0 % of the time covered")
    assert lines[2].startswith("  estimate    ")
    assert "nominal 90 %; prior from power" in " ".join(lines)
    (bound,) = (line for line in lines if line.startswith("  at most"))
    assert "energy over 0.5 x power limit per" in bound
    assert any(": below. Even the bound is" in line for line in lines)
    assert lines[-2:] == ["findings", "    scope  plain words"]
    assert all(len(line) <= 100 for line in lines)


def test_one_node_is_not_plural(measured: Measurement, question: Question, rules: dict[str, Rule]) -> None:
    assert measured.energy is not None
    single = replace(measured, energy=replace(measured.energy, devices=measured.energy.devices[:1]))
    assert ", 1 node, " in _text(single, question, rules)


def test_what_is_not_known_is_said(question: Question, rules: dict[str, Rule], measured: Measurement) -> None:
    empty = replace(measured, duration_s=None, energy=None, estimate=None, upper=None)
    text = _text(empty, question, rules, "eu-ai-act-art51")
    assert "time not recorded" in text
    assert "energy      not recorded" in text
    assert "estimate    none" in text
    assert "nothing bounds this run" in text
    assert "cannot tell" in text
    assert "findings" not in text


def test_a_time_bound_and_a_time_estimate_say_so(
    question: Question, rules: dict[str, Rule], reference: ReferenceTable, make_series: MakeSeries
) -> None:
    blank = make_series([float("nan")] * 601)
    answer = measure_trace(Trace(series=(blank,)), question, table=reference)
    text = " ".join(_text(answer, question, rules).split())
    assert "16 chips x time x" in text
    assert "prior from time alone" in text


def test_unknown_coverage_is_left_out(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    assert measured.energy is not None
    text = _text(replace(measured, energy=replace(measured.energy, coverage=None)), question, rules)
    assert "covered" not in text


def test_many_variants_are_not_all_named(
    measured: Measurement, chips: ChipCatalogue, rules: dict[str, Rule]
) -> None:
    two = _text(measured, Question(chips=chips.chips[:2], count=4), rules).splitlines()[0]
    many = _text(measured, Question(chips=chips.chips[:9], count=4), rules).splitlines()[0]
    assert " or " in two
    assert "others" not in two
    assert many.count(" or ") == 3
    assert "or others" in many


def test_worst_news_first(measured: Measurement, question: Question, rules: dict[str, Rule]) -> None:
    text = _text(
        measured,
        question,
        rules,
        "eu-ai-act-art51",
        "us-eo14110-model",
        "us-ca-sb1047",
        other=ComputeRange(low_flop=2 * 10**25, upper_flop=3 * 10**25),
    )
    assert text.index("likely above") < text.index(": below")


def test_a_contradiction_shouts(measured: Measurement, question: Question, rules: dict[str, Rule]) -> None:
    finding = replace(NOTE, severity=Severity.CONTRADICTION)
    assert "CONTRADICTION: plain words" in _text(measured, question, rules, findings=(finding,))


def test_an_unverified_wording_is_told(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    told = "wording was not verified"
    changed = {
        name: replace(rule, evidence=Evidence.RECALLED) if name == "eu-ai-act-art51" else rule
        for name, rule in rules.items()
    }
    assert told in " ".join(_text(measured, question, changed, "eu-ai-act-art51").split())
    read = {name: replace(rule, evidence=Evidence.READ) for name, rule in rules.items()}
    assert told not in " ".join(_text(measured, question, read, "eu-ai-act-art51").split())


HOSTILE = "node\x1b[2J\x1b[31m\r\x07\u202eevil\x9b31m"


def test_a_log_cannot_steer_the_terminal(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    finding = replace(NOTE, message=f"{HOSTILE}: no reading")
    text = _text(measured, question, rules, findings=(finding,))
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\\x1b[2J" in text


@pytest.fixture(scope="module")
def answer_for(
    chips: ChipCatalogue, reference: ReferenceTable, rules: dict[str, Rule]
) -> Callable[..., RowAnswer]:
    def answer(run_id: str, **fields: object) -> RowAnswer:
        row = RunRow(row=2, cells={}, run_id=run_id, **fields)  # type: ignore[arg-type]
        measurement = measure_row(row, Question(chips=(), count=0), catalogue=chips, table=reference)
        return answer_row(row, lambda _: measurement, [rules["eu-ai-act-art51"]], index={})

    return answer


def test_a_table_has_a_line_a_run_and_a_summary(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    answers = [
        answer_for("small", chip_name="h100-sxm", count=8, duration_s=HOUR_S),
        answer_for("huge", chip_name="h100-sxm", count=10**6, duration_s=HOUR_S * 10_000),
        answer_for("unknown"),
    ]
    lines = render_table_text(answers, rules=rules, findings=[NOTE], limit=40).splitlines()
    assert lines[0].startswith("run ")
    assert lines[1].startswith("small ")
    assert lines[1].endswith("1e25 below")
    assert lines[2].endswith("1e25 likely above")
    assert lines[3] == "... and 1 rows that nothing bounds (--json holds them)"
    assert "  1 likely above, 1 cannot tell, 1 below" in lines
    assert any("of 1 runs whose own bound is under a third of the threshold, 1 are" in line for line in lines)
    assert "findings in the rows" in lines
    assert lines[-1] == "  scope: plain words"


def test_rows_over_the_limit_are_counted(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    answers = [
        answer_for(f"run-{number}", chip_name="h100-sxm", count=8, duration_s=HOUR_S) for number in range(5)
    ]
    text = render_table_text(answers, rules=rules, findings=[], limit=2)
    assert "run-1" in text
    assert "run-2" not in text
    assert "... and 3 more rows (--rows 5 shows them" in text
    assert "0 likely above, 0 cannot tell, 5 below" in text
    none_shown = render_table_text(answers, rules=rules, findings=[], limit=0)
    assert "beside each rule" not in none_shown
    assert render_table_text([], rules=rules, findings=[], limit=2).strip() == ""


def test_a_declared_total_over_the_threshold_tests_the_verdicts(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    honest = answer_for(
        "big", chip_name="h100-sxm", count=10**5, duration_s=HOUR_S * 5_000, declared_flop=2 * 10**25
    )
    text = render_table_text([honest], rules=rules, findings=[], limit=5)
    assert "of 1 runs that declare a total over the threshold, 0 are called below" in text
    small = answer_for("liar", chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    liar = replace(small, row=replace(small.row, declared_flop=2 * 10**25))
    text = render_table_text([liar], rules=rules, findings=[], limit=5)
    assert "1 are called below: liar" in text


def test_rows_findings_are_counted_worst_first(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    liar = answer_for("liar", chip_name="h100-sxm", count=8, duration_s=HOUR_S, declared_flop=10**27)
    plain = answer_for("plain", chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    text = render_table_text([plain, liar], rules=rules, findings=[], limit=5)
    assert text.index("declared-over-bound") < text.index("precision-assumed")
    assert "      2 precision-assumed" in text


def test_a_row_cannot_steer_the_terminal(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    text = render_table_text([answer_for(HOSTILE, chip_name=HOSTILE)], rules=rules, findings=[], limit=5)
    assert all(line.isprintable() for line in text.split("\n"))
