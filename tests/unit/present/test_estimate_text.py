"""The answer in words: short, whole, worst news first, and harmless whatever a log says."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.accounting.answers import RowAnswer, answer_row, assess_measurement
from flopwitness.accounting.thresholds import NO_COMPUTE, ComputeRange
from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.catalogue.rules import Evidence, Rule
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.answer import Measurement
from flopwitness.measure.bounds import BoundBy
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.rows import measure_row
from flopwitness.measure.samples import Scope, Series, Trace
from flopwitness.measure.sources.run_table import RunRow
from flopwitness.present.estimate_text import render_run_text, render_table_text

MakeSeries = Callable[..., Series]

HOUR_S = 3_600.0
TODAY = dt.date(2026, 6, 1)
NOTE = Finding(code="scope", severity=Severity.NOTE, message="plain words")


@pytest.fixture(scope="module")
def question(chips: ChipCatalogue) -> Question:
    return Question(chips=chips.find("h100-sxm"), count=16)


@pytest.fixture(scope="module")
def measured(question: Question, reference: ReferenceTable, make_series: MakeSeries) -> Measurement:
    nodes = tuple(
        make_series(
            [2_000 + number + i % 7 for i in range(601)], device=f"node_{number}", scope=Scope.NODE_AC
        )
        for number in range(2)
    )
    return measure_trace(Trace(series=nodes), question, table=reference)


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
    return render_run_text(measurement, question, items, rules=rules, on=TODAY, findings=findings)


def test_the_answer_is_short_and_whole(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    lines = _text(measured, question, rules, "eu-ai-act-art51", findings=(NOTE,)).splitlines()
    assert lines[0] == "16 x NVIDIA H100 SXM5 80GB, 2 nodes, 10 min"
    assert lines[1].startswith("  energy      2404 kJ")
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
    assert "(16 chips x 10 min x fp8 peak)" in text
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


@pytest.mark.parametrize(
    ("rule_id", "warning"),
    [
        ("us-ca-sb1047", "Not in force: vetoed, never law. California SB 1047"),
        ("us-eo14110-model", "Not in force: rescinded on 20 January 2025. "),
        ("us-ny-raise", "Not in force yet: applies from 1 January 2027. "),
        ("miri-draft-treaty", "Not in force: a proposal, not law. "),
        ("eu-gpai-indicative", "Not in force as law: guidance, which binds nobody. "),
    ],
)
def test_what_is_no_law_says_so_first_and_stands_last(
    measured: Measurement, question: Question, rules: dict[str, Rule], rule_id: str, warning: str
) -> None:
    lines = _text(measured, question, rules, rule_id, "eu-ai-act-art51").splitlines()
    places = [n for n, line in enumerate(lines) if line.startswith(warning)]
    law = next(n for n, line in enumerate(lines) if line.startswith("EU AI Act Art. 51(2), more than 1e25"))
    assert places
    assert law < min(places)


def test_a_law_in_force_stands_before_worse_news_from_what_is_none(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    other = ComputeRange(low_flop=2 * 10**23, upper_flop=2 * 10**23)
    text = _text(measured, question, rules, "eu-gpai-indicative", "eu-ai-act-art51", other=other)
    assert text.index("FLOP: below") < text.index("FLOP: likely above")


def test_a_day_without_law_is_said_in_one_sentence(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    text = render_run_text(measured, question, [], rules={}, on=dt.date(1900, 1, 1), findings=[])
    assert text.splitlines()[-1] == "No compute rule in this catalogue was in force on 1 January 1900."
    assert "No compute rule" not in _text(measured, question, rules, "us-ca-sb1047")


def test_the_bound_names_the_chips_and_the_time_that_it_counts(
    measured: Measurement, question: Question, rules: dict[str, Rule]
) -> None:
    assert measured.upper is not None
    upper = replace(measured.upper, by=BoundBy.TIME, count=64, duration_s=3_702.0)
    assert "(64 chips x 1 h 1 min x fp8 peak)" in _text(replace(measured, upper=upper), question, rules)
    one = replace(upper, count=1)
    assert "(1 chip x 1 h 1 min x fp8 peak)" in _text(replace(measured, upper=one), question, rules)


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
    lines = render_table_text(answers, rules=rules, on=TODAY, findings=[NOTE], limit=40).splitlines()
    assert lines[0] == "A = EU AI Act Art. 51(2), more than 1e25 FLOP, in force"
    assert lines[1].startswith("run ")
    assert lines[2].startswith("small ")
    assert lines[2].endswith("A below")
    assert lines[3].endswith("A likely above")
    assert lines[4] == "... and 1 row of which nothing can be said (--json holds them)"
    assert "  1 likely above, 1 cannot tell, 1 below" in lines
    assert any("of 1 run whose own bound is under a third of the threshold, 1 is" in line for line in lines)
    assert "findings in the rows" in lines
    assert not any(line.startswith("estimates:") for line in lines)
    assert lines[-1] == "  scope: plain words"


def test_rows_over_the_limit_are_counted(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    answers = [
        answer_for(f"run-{number}", chip_name="h100-sxm", count=8, duration_s=HOUR_S) for number in range(5)
    ]
    text = render_table_text(answers, rules=rules, on=TODAY, findings=[], limit=2)
    assert "run-1" in text
    assert "run-2" not in text
    assert "... and 3 more rows (--rows 5 shows them" in text
    assert "0 likely above, 0 cannot tell, 5 below" in text
    none_shown = render_table_text(answers, rules=rules, on=TODAY, findings=[], limit=0)
    assert "beside each rule" not in none_shown
    assert render_table_text([], rules=rules, on=TODAY, findings=[], limit=2).strip() == ""


def test_a_declared_total_over_the_threshold_tests_the_verdicts(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    honest = answer_for(
        "big", chip_name="h100-sxm", count=10**5, duration_s=HOUR_S * 5_000, declared_flop=2 * 10**25
    )
    text = render_table_text([honest], rules=rules, on=TODAY, findings=[], limit=5)
    assert "of 1 run that declares a total over the threshold, 0 are called below" in text
    small = answer_for("liar", chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    liar = replace(small, row=replace(small.row, declared_flop=2 * 10**25))
    text = render_table_text([liar], rules=rules, on=TODAY, findings=[], limit=5)
    assert "1 is called below: liar" in text


def test_rows_with_a_contradiction_or_a_warning_say_which(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    fields = {"chip_name": "h100-sxm", "count": 8, "duration_s": HOUR_S}
    liar = answer_for("liar", declared_flop=10**27, **fields)
    child = answer_for("child", base_model="nobody", **fields)
    lines = render_table_text(
        [liar, child, answer_for("plain", **fields)], rules=rules, on=TODAY, findings=[], limit=5
    ).splitlines()
    assert lines[2].endswith("A cannot tell: declared-over-bound")
    assert lines[3].endswith("A cannot tell: parent-unrecorded")
    assert lines[4].endswith("A below")


def test_the_columns_of_a_table_name_their_rules_and_what_is_no_law_says_so_first(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    plain = answer_for("plain", chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    names = ("us-ca-sb1047", "miri-draft-treaty", "eu-ai-act-art51")
    items = assess_measurement(plain.measurement, [rules[name] for name in names])
    text = render_table_text([replace(plain, rules=items)], rules=rules, on=TODAY, findings=[], limit=5)
    lines = text.splitlines()
    assert lines[0] == "A = EU AI Act Art. 51(2), more than 1e25 FLOP, in force"
    assert lines[1].startswith("B = Not in force: vetoed, never law. California SB 1047")
    for letter in "CD":
        assert any(line.startswith(f"{letter} = Not in force: a proposal, not law. ") for line in lines)
    assert any(line.endswith("A below, B below, C below, D below") for line in lines)
    summary = [line for line in lines if line.startswith("Not in force")]
    assert len(summary) == 3


def test_a_table_on_a_day_without_law_says_so(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    plain = replace(answer_for("plain", chip_name="h100-sxm", count=8, duration_s=HOUR_S), rules=())
    text = render_table_text([plain], rules=rules, on=dt.date(1900, 1, 1), findings=[], limit=5)
    assert "No compute rule in this catalogue was in force on 1 January 1900." in text


def test_rows_findings_are_counted_worst_first(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    liar = answer_for("liar", chip_name="h100-sxm", count=8, duration_s=HOUR_S, declared_flop=10**27)
    plain = answer_for("plain", chip_name="h100-sxm", count=8, duration_s=HOUR_S)
    text = render_table_text([plain, liar], rules=rules, on=TODAY, findings=[], limit=5)
    assert text.index("declared-over-bound") < text.index("precision-assumed")
    assert "      2 precision-assumed" in text


def test_a_row_cannot_steer_the_terminal(
    answer_for: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    fields = {"chip_name": "h100-sxm", "count": 8, "duration_s": HOUR_S}
    answers = [
        answer_for(HOSTILE, chip_name=HOSTILE),
        answer_for(HOSTILE, base_model=f"{HOSTILE}\n", **fields),
        answer_for("x\nA = EU AI Act: below", **fields),
        answer_for(HOSTILE, declared_flop=10**27, **fields),
    ]
    text = render_table_text(
        answers, rules=rules, on=TODAY, findings=[replace(NOTE, message=f"{HOSTILE}\nbelow")], limit=5
    )
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\nA = EU AI Act: below" not in text
    assert "x\\nA = EU AI Act: below " in text
    assert not any(line.startswith("below") for line in text.splitlines())
