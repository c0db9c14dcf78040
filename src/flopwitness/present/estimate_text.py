"""The answer of `estimate` for a person: whole words, worst news first, every number with unit and doubt."""

import datetime as dt
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Final

from flopwitness.accounting.answers import RowAnswer
from flopwitness.accounting.thresholds import ThresholdAssessment
from flopwitness.catalogue.rules import Evidence, Rule, Standing
from flopwitness.foundation.units import format_duration, format_energy, format_flop, scale_count
from flopwitness.foundation.verdict import Finding, Position, Severity, rank_findings
from flopwitness.measure.answer import Estimate, Measurement
from flopwitness.measure.bounds import BoundBy, UpperBound
from flopwitness.measure.question import Question
from flopwitness.measure.samples import Scope
from flopwitness.present.finding_lines import brief_finding_lines, finding_lines
from flopwitness.present.rules_text import describe_amount, say_no_law, warn_of_standing
from flopwitness.present.safe_text import escape_line, join_lines, name_count

__all__ = ["describe_side", "render_run_text", "render_table_text"]

_WIDTH: Final = 100
_INDENT: Final = 14
_MOST_NAMES: Final = 3
_DIGEST_SHOWN: Final = 15
_SIDES: Final = {
    Scope.GPU: "at the accelerator boards",
    Scope.MODULE: "at the modules' inputs",
    Scope.RAIL: "on the recorded rail",
    Scope.NODE_GPUS: "at the accelerator boards",
    Scope.NODE_AC: "on the AC side",
    Scope.NODE_DC: "on the DC side",
    Scope.NODE: "at the nodes",
    Scope.UNKNOWN: "with an unrecorded scope",
}
_POSITION_ORDER: Final = (Position.LIKELY_ABOVE, Position.CANNOT_TELL, Position.BELOW)
_POSITION_WORDS: Final = {
    Position.BELOW: "below",
    Position.LIKELY_ABOVE: "likely above",
    Position.CANNOT_TELL: "cannot tell",
}


def render_run_text(
    measurement: Measurement,
    question: Question,
    assessments: Sequence[ThresholdAssessment],
    *,
    rules: Mapping[str, Rule],
    on: dt.date,
    findings: Sequence[Finding],
) -> str:
    """The whole answer for one run, ready to print.

    Args:
        measurement: The meter's answer.
        question: What it was asked.
        assessments: One for each limit of each rule.
        rules: The rules by id.
        on: The day that decides which of them is law; what is none stands last and says so first.
        findings: What the reader must know, worst first.
    """
    lines = [_headline(measurement, question), *_measured_lines(measurement)]
    for item in _law_first(assessments, rules, on):
        lines += _wrapped(_rule_sentence(item, rules[item.rule_id], on), indent=2)
    if not assessments:
        lines.append(say_no_law(on))
    lines += finding_lines(findings)
    return join_lines(lines)


def _law_first(
    assessments: Sequence[ThresholdAssessment], rules: Mapping[str, Rule], on: dt.date
) -> list[ThresholdAssessment]:
    """Laws in force first, and of each kind the worst news first."""
    return sorted(
        assessments,
        key=lambda item: (
            rules[item.rule_id].status_on(on) is not Standing.IN_FORCE,
            _POSITION_ORDER.index(item.position),
        ),
    )


def describe_side(scope: Scope) -> str:
    """Where the power was read, in words; "" for what is no power of the run."""
    return _SIDES.get(scope, "")


def _headline(measurement: Measurement, question: Question) -> str:
    names = " or ".join(chip.name for chip in question.chips[:_MOST_NAMES])
    names += " or others" if len(question.chips) > _MOST_NAMES else ""
    parts = [f"{question.count:,} x {names}"]
    energy = measurement.energy
    if energy is not None and energy.scope.is_per_node:
        parts.append(name_count(len(energy.devices), "node"))
    parts.append(
        format_duration(measurement.duration_s) if measurement.duration_s is not None else "time not recorded"
    )
    return ", ".join(parts)


def _measured_lines(measurement: Measurement) -> Iterator[str]:
    energy, estimate, upper = measurement.energy, measurement.estimate, measurement.upper
    if energy is not None:
        covered = "" if energy.coverage is None else f", {100 * energy.coverage:.1f} % of the time covered"
        yield f"  energy      {format_energy(energy.shown_j)} {_SIDES[energy.scope]}{covered}"
    else:
        yield "  energy      not recorded, or not usable"
    if estimate is not None:
        yield from _wrapped(
            f"{format_flop(estimate.low_flop)} to {format_flop(estimate.high_flop)} FLOP "
            f"(nominal {100 * estimate.level:.0f} %; {_method_words(measurement, estimate)})",
            indent=_INDENT,
            head="  estimate    ",
        )
    else:
        yield "  estimate    none: neither power nor time can be used"
    bracket = measurement.calibrated.bracket if measurement.calibrated is not None else None
    if bracket is not None:
        yield from _wrapped(
            f"{format_flop(scale_count(bracket.low_flop))} to "
            f"{format_flop(scale_count(bracket.high_flop, up=True))} FLOP "
            f"(nominal {100 * bracket.level:.0f} % at each precision), since nobody recorded it "
            f"({', '.join(bracket.precisions)}; calibrated at {bracket.calibrated})",
            indent=_INDENT,
            head="  bracket     ",
        )
    if upper is None:
        yield "  at most     nothing bounds this run"
        return
    yield f"  at most     {format_flop(upper.flop)} FLOP ({_bound_words(upper)})"


def _method_words(measurement: Measurement, estimate: Estimate) -> str:
    """How the estimate was made."""
    if estimate.prior is None:
        runs = name_count(estimate.n_runs or 0, "run")
        return (
            f"{estimate.method}, point {format_flop(estimate.flop, digits=3)}; calibrated on {runs}, "
            f"{estimate.calibration[:_DIGEST_SHOWN]}"
        )
    how = "power" if estimate.method == "prior-energy" else "time alone"
    why = "calibration refused" if measurement.refusals else "no calibration for this chip"
    return f"prior from {how}, {', '.join(estimate.precisions)}; {why}"


def _bound_words(upper: UpperBound) -> str:
    """The product that was computed, with the chips and the time that it took."""
    if upper.by is BoundBy.TIME and upper.count is not None and upper.duration_s is not None:
        chips, time = name_count(upper.count, "chip"), format_duration(upper.duration_s)
        return f"{chips} x {time} x {upper.peak_precision} peak"
    return f"energy over {float(upper.safety):g} x power limit per {upper.peak_precision} peak"


def _rule_sentence(item: ThresholdAssessment, rule: Rule, on: dt.date) -> str:
    doubt = " (The rule's wording was not verified.)" if rule.evidence is Evidence.RECALLED else ""
    return f"{_limit_words(item, rule, on)}: {_POSITION_WORDS[item.position]}. {item.reason}{doubt}"


def _limit_words(item: ThresholdAssessment, rule: Rule, on: dt.date) -> str:
    """The rule and its limit; what is no law in force says so before anything else."""
    warning = warn_of_standing(rule, on)
    level = f", {item.level}" if item.level else ""
    limit = f"{item.comparison.words} {describe_amount(item.threshold_flop)} FLOP"
    return f"{warning}{' ' if warning else ''}{rule.title}{level}, {limit}"


def _wrapped(text: str, *, indent: int, head: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width=_WIDTH,
        initial_indent=head,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_table_text(
    answers: Sequence[RowAnswer],
    *,
    rules: Mapping[str, Rule],
    on: dt.date,
    findings: Sequence[Finding],
    limit: int,
) -> str:
    """A line a run, then what was decided in all.

    Args:
        answers: One a row.
        rules: The rules by id.
        on: The day that decides which of them is law.
        findings: Findings about the table as a whole.
        limit: How many rows with a bound or an estimate to show; the summary counts them all.
    """
    bounded = [answer for answer in answers if _has_answer(answer)]
    letters = _letter_limits(answers[0].rules if answers else (), rules, on)
    lines = [_row_line(answer, letters) for answer in bounded[:limit]]
    if lines:
        levels = {a.measurement.estimate.level for a in bounded if a.measurement.estimate}
        estimate = f"FLOP, nominal {100 * levels.pop():g} %" if levels else "FLOP"
        head = f"{'run':<32} {estimate:<20} {'at most':<10} beside each rule: what was found"
        lines = [*_legend(letters, answers[0].rules, rules, on), *_calibration_lines(answers), head, *lines]
    if answers and not letters:
        lines.insert(0, say_no_law(on))
    if len(bounded) > limit:
        more = name_count(len(bounded) - limit, "more row")
        lines.append(f"... and {more} (--rows {len(bounded)} shows them)")
    if len(answers) > len(bounded):
        open_rows = name_count(len(answers) - len(bounded), "row")
        lines.append(f"... and {open_rows} of which nothing can be said (--json holds them)")
    lines += ["", *_decided(answers, letters, rules, on), *_row_findings(answers)]
    lines += brief_finding_lines(findings)
    return join_lines(lines)


def _calibration_lines(answers: Sequence[RowAnswer]) -> Iterator[str]:
    """How many rows a calibration answers, and which calibration; nothing where none was handed over."""
    asked = [answer.measurement for answer in answers if answer.measurement.calibrated is not None]
    points = [item.estimate for item in asked if not item.refusals and item.estimate is not None]
    if not asked:
        return
    made = ""
    if points:
        first = points[0]
        made = (
            f" by {first.method}, calibrated on {name_count(first.n_runs or 0, 'run')}, {first.calibration}"
        )
    yield f"estimates: {len(points):,} of {name_count(len(asked), 'row')}{made}"
    if len(points) < len(asked):
        yield (f"  {len(asked) - len(points):,} refused: their interval is the prior's")


def _has_answer(answer: RowAnswer) -> bool:
    return answer.measurement.upper is not None or answer.measurement.estimate is not None


def _letter_limits(
    assessments: Sequence[ThresholdAssessment], rules: Mapping[str, Rule], on: dt.date
) -> dict[tuple[str, str], str]:
    """A letter for every limit, by rule and level: laws in force first, otherwise in the order given."""
    limits = sorted(
        ((item.rule_id, item.level) for item in assessments),
        key=lambda limit: rules[limit[0]].status_on(on) is not Standing.IN_FORCE,
    )
    return {
        limit: f"{ascii_uppercase[index % 26]}{index // 26 or ''}"
        for index, limit in enumerate(dict.fromkeys(limits))
    }


def _legend(
    letters: Mapping[tuple[str, str], str],
    assessments: Sequence[ThresholdAssessment],
    rules: Mapping[str, Rule],
    on: dt.date,
) -> Iterator[str]:
    """What each letter stands for."""
    items = {(item.rule_id, item.level): item for item in assessments}
    for limit, letter in letters.items():
        rule = rules[limit[0]]
        force = ", in force" if rule.status_on(on) is Standing.IN_FORCE else ""
        yield from _wrapped(f"{letter} = {_limit_words(items[limit], rule, on)}{force}", indent=4)


def _row_line(answer: RowAnswer, letters: Mapping[tuple[str, str], str]) -> str:
    estimate, upper = answer.measurement.estimate, answer.measurement.upper
    interval = (
        "-" if estimate is None else f"{format_flop(estimate.low_flop)} to {format_flop(estimate.high_flop)}"
    )
    bound = "-" if upper is None else format_flop(upper.flop)
    places = {(item.rule_id, item.level): _POSITION_WORDS[item.position] for item in answer.rules}
    judged = ", ".join(f"{letter} {places[limit]}" for limit, letter in letters.items()) or "-"
    doubts = _doubts(answer)
    run = escape_line(answer.row.run_id)[:32]
    return f"{run:<32} {interval:<20} {bound:<10} {judged}{': ' if doubts else ''}{doubts}"


def _doubts(answer: RowAnswer) -> str:
    """The codes of a row's contradictions and warnings, worst first."""
    told = [f.code for f in rank_findings(answer.all_findings) if f.severity is not Severity.NOTE]
    return ", ".join(dict.fromkeys(told))


def _decided(
    answers: Sequence[RowAnswer],
    letters: Mapping[tuple[str, str], str],
    rules: Mapping[str, Rule],
    on: dt.date,
) -> Iterator[str]:
    """For each limit: how many rows were called what, and how many could have been."""
    for limit in letters:
        judged = [
            (answer, item)
            for answer in answers
            for item in answer.rules
            if (item.rule_id, item.level) == limit
        ]
        first = judged[0][1]
        yield from _wrapped(_limit_words(first, rules[first.rule_id], on), indent=2)
        counts = Counter(item.position for _, item in judged)
        yield "  " + ", ".join(
            f"{counts[position]:,} {_POSITION_WORDS[position]}" for position in _POSITION_ORDER
        )
        yield from _decided_within(judged)
        yield from _decided_above(judged)


def _decided_within(judged: Sequence[tuple[RowAnswer, ThresholdAssessment]]) -> Iterator[str]:
    """How many of the runs that lie far under the limit by their own bound are called below."""
    within = [
        item
        for answer, item in judged
        if answer.measurement.upper is not None and 3 * answer.measurement.upper.flop < item.threshold_flop
    ]
    below = sum(1 for item in within if item.position is Position.BELOW)
    if within:
        yield (
            f"  of {name_count(len(within), 'run')} whose own bound is under a third of the threshold, "
            f"{below:,} {_is_or_are(below)} called below ({100 * below / len(within):.0f} %)"
        )


def _decided_above(judged: Sequence[tuple[RowAnswer, ThresholdAssessment]]) -> Iterator[str]:
    """Whether a run that itself declares more than the limit is called below: a test of the verdicts."""
    above = [
        (answer, item)
        for answer, item in judged
        if answer.row.declared_flop is not None
        and item.comparison.is_met(answer.row.declared_flop, item.threshold_flop)
    ]
    wrong = [answer.row.run_id for answer, item in above if item.position is Position.BELOW]
    if above:
        declare = "declares" if len(above) == 1 else "declare"
        yield (
            f"  of {name_count(len(above), 'run')} that {declare} a total over the threshold, {len(wrong):,} "
            f"{_is_or_are(len(wrong))} called below{': ' if wrong else ''}{', '.join(wrong)}"
        )


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def _row_findings(answers: Sequence[RowAnswer]) -> Iterator[str]:
    """The rows' findings by kind, the most telling first."""
    kinds: Counter[str] = Counter()
    severities: dict[str, Severity] = {}
    for answer in answers:
        for finding in answer.all_findings:
            kinds[finding.code] += 1
            severities[finding.code] = finding.severity
    order = list(Severity)
    if kinds:
        yield "findings in the rows"
    for code in sorted(kinds, key=lambda code: (order.index(severities[code]), -kinds[code])):
        example = next(f for a in answers for f in a.all_findings if f.code == code)
        yield from _wrapped(f"{example.message}", indent=30, head=f"  {kinds[code]:>5} {code:<21} e.g. ")
