"""The answer of `estimate` for a person: whole words, worst news first, every number with unit and doubt."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from flopwitness.accounting.answers import RowAnswer
from flopwitness.accounting.thresholds import ThresholdAssessment
from flopwitness.catalogue.rules import Evidence, Rule
from flopwitness.foundation.units import format_duration, format_energy, format_flop
from flopwitness.foundation.verdict import Finding, Position, Severity
from flopwitness.measure.bounds import BoundBy
from flopwitness.measure.meter import Measurement, Question
from flopwitness.measure.samples import Scope

__all__ = ["render_run_text", "render_table_text"]

_WIDTH: Final = 100
_INDENT: Final = 14
_MOST_NAMES: Final = 3
_SIDES: Final = {
    Scope.GPU: "at the accelerator boards",
    Scope.MODULE: "at the modules' inputs",
    Scope.RAIL: "on the recorded rail",
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
    findings: Sequence[Finding],
) -> str:
    """The whole answer for one run, ready to print."""
    lines = [_headline(measurement, question), *_measured_lines(measurement, question)]
    for item in sorted(assessments, key=lambda item: _POSITION_ORDER.index(item.position)):
        lines += _wrapped(_rule_sentence(item, rules[item.rule_id]), indent=2)
    if findings:
        lines.append("findings")
        width = max(len(finding.code) for finding in findings) + 2
        for finding in findings:
            lines += _wrapped(_marked(finding), indent=4 + width, head=f"    {finding.code:<{width}}")
    return _joined(lines)


def _joined(lines: Iterable[str]) -> str:
    """The lines as one text, control characters as escapes: a log's words must not steer a terminal."""
    return "".join(
        "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line) + "\n"
        for line in lines
    )


def _headline(measurement: Measurement, question: Question) -> str:
    names = " or ".join(chip.name for chip in question.chips[:_MOST_NAMES])
    names += " or others" if len(question.chips) > _MOST_NAMES else ""
    parts = [f"{question.count:,} x {names}"]
    energy = measurement.energy
    if energy is not None and energy.scope.is_node:
        parts.append(f"{len(energy.devices)} node{'s' if len(energy.devices) != 1 else ''}")
    parts.append(
        format_duration(measurement.duration_s) if measurement.duration_s is not None else "time not recorded"
    )
    return ", ".join(parts)


def _measured_lines(measurement: Measurement, question: Question) -> Iterator[str]:
    energy, estimate, upper = measurement.energy, measurement.estimate, measurement.upper
    if energy is not None:
        covered = "" if energy.coverage is None else f", {100 * energy.coverage:.1f} % of the time covered"
        yield f"  energy      {format_energy(energy.shown_j)} {_SIDES[energy.scope]}{covered}"
    else:
        yield "  energy      not recorded"
    if estimate is not None:
        how = "power" if estimate.prior.method == "prior-energy" else "time alone"
        yield from _wrapped(
            f"{format_flop(estimate.low_flop)} to {format_flop(estimate.high_flop)} FLOP "
            f"(nominal {100 * estimate.level:.0f} %; prior from {how}, "
            f"{', '.join(estimate.prior.precisions)}; "
            "no calibration for this chip)",
            indent=_INDENT,
            head="  estimate    ",
        )
    else:
        yield "  estimate    none: neither power nor time can be used"
    if upper is None:
        yield "  at most     nothing bounds this run"
        return
    if upper.by is BoundBy.TIME:
        how = f"{question.count:,} chips x time x {upper.peak_precision} peak"
    else:
        how = f"energy over {float(upper.safety):g} x power limit per {upper.peak_precision} peak"
    yield f"  at most     {format_flop(upper.flop)} FLOP ({how})"


def _rule_sentence(item: ThresholdAssessment, rule: Rule) -> str:
    level = f", {item.level}" if item.level else ""
    doubt = " (The rule's wording was not verified.)" if rule.evidence is Evidence.RECALLED else ""
    return (
        f"{rule.title}{level}, {item.comparison.words} {format_flop(item.threshold_flop, digits=1)} FLOP: "
        f"{_POSITION_WORDS[item.position]}. {item.reason}{doubt}"
    )


def _marked(finding: Finding) -> str:
    return (
        f"CONTRADICTION: {finding.message}" if finding.severity is Severity.CONTRADICTION else finding.message
    )


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
    answers: Sequence[RowAnswer], *, rules: Mapping[str, Rule], findings: Sequence[Finding], limit: int
) -> str:
    """A line a run, then what was decided in all.

    Args:
        answers: One a row.
        rules: The rules by id.
        findings: Findings about the table as a whole.
        limit: How many rows with a bound to show; the summary counts them all.
    """
    bounded = [answer for answer in answers if answer.measurement.upper is not None]
    lines = [_row_line(answer) for answer in bounded[:limit]]
    if lines:
        lines.insert(0, f"{'run':<32} {'estimate, FLOP':<20} {'at most':<10} beside each rule")
    if len(bounded) > limit:
        lines.append(f"... and {len(bounded) - limit} more rows (--rows {len(bounded)} shows them)")
    if len(answers) > len(bounded):
        lines.append(f"... and {len(answers) - len(bounded)} rows that nothing bounds (--json holds them)")
    lines += ["", *_decided(answers, rules), *_row_findings(answers)]
    lines += [f"  {finding.code}: {finding.message}" for finding in findings]
    return _joined(lines)


def _row_line(answer: RowAnswer) -> str:
    estimate, upper = answer.measurement.estimate, answer.measurement.upper
    interval = (
        "-" if estimate is None else f"{format_flop(estimate.low_flop)} to {format_flop(estimate.high_flop)}"
    )
    bound = "-" if upper is None else format_flop(upper.flop)
    places = ", ".join(
        f"{format_flop(item.threshold_flop, digits=1)} {_POSITION_WORDS[item.position]}"
        for item in answer.rules
    )
    return f"{answer.row.run_id[:32]:<32} {interval:<20} {bound:<10} {places or '-'}"


def _decided(answers: Sequence[RowAnswer], rules: Mapping[str, Rule]) -> Iterator[str]:
    """For each limit: how many rows were called what, and how many could have been."""
    limits = dict.fromkeys((item.rule_id, item.level) for answer in answers for item in answer.rules)
    for rule_id, level in limits:
        items = [
            (answer, item)
            for answer in answers
            for item in answer.rules
            if (item.rule_id, item.level) == (rule_id, level)
        ]
        counts = Counter(item.position for _, item in items)
        threshold_flop = items[0][1].threshold_flop
        yield (
            f"{rules[rule_id].title}{f', {level}' if level else ''}, {items[0][1].comparison.words} "
            f"{format_flop(threshold_flop, digits=1)} FLOP"
        )
        yield "  " + ", ".join(
            f"{counts[position]} {_POSITION_WORDS[position]}" for position in _POSITION_ORDER
        )
        bounded = [(a, i) for a, i in items if a.measurement.upper is not None]
        within = [
            (a, i)
            for a, i in bounded
            if a.measurement.upper is not None and 3 * a.measurement.upper.flop < threshold_flop
        ]
        below = sum(1 for _, i in within if i.position is Position.BELOW)
        if within:
            yield (
                f"  of {len(within)} runs whose own bound is under a third of the threshold, {below} are "
                f"called below ({100 * below / len(within):.0f} %)"
            )
        above = [
            (a, i)
            for a, i in items
            if a.row.declared_flop is not None and i.comparison.is_met(a.row.declared_flop, threshold_flop)
        ]
        wrong = [a.row.run_id for a, i in above if i.position is Position.BELOW]
        if above:
            yield (
                f"  of {len(above)} runs that declare a total over the threshold, {len(wrong)} are "
                f"called below{': ' + ', '.join(wrong) if wrong else ''}"
            )


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
