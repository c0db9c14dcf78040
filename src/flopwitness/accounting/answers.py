"""From the meter's answer to the rules: what the evidence leaves possible, and what each rule says to it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from flopwitness.accounting.thresholds import (
    NO_COMPUTE,
    SENSOR_TOLERANCE_PPM,
    ComputeRange,
    ThresholdAssessment,
    assess_levels,
)
from flopwitness.catalogue.rules import Rule
from flopwitness.foundation.units import format_flop, scale_count
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.answer import Measurement
from flopwitness.measure.sources.run_table import RunRow

__all__ = ["RowAnswer", "answer_row", "assess_measurement", "find_parents", "index_models", "range_of"]

_WHOLE_PPM = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAnswer:
    """One row of a table of runs, measured and held against the rules.

    Attributes:
        row: The row.
        measurement: The meter's answer.
        rules: One assessment for each limit of each rule.
        findings: What the accounts add to the measurement's findings.
    """

    row: RunRow
    measurement: Measurement
    rules: tuple[ThresholdAssessment, ...]
    findings: tuple[Finding, ...]

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The accounts' findings, then the meter's."""
        return self.findings + self.measurement.findings


def range_of(measurement: Measurement) -> ComputeRange:
    """What the measurement leaves possible: the interval's lower end, and the bound.

    Where nobody recorded the precision, the lower end is that of the slowest plausible one.
    """
    low = measurement.estimate.low_flop if measurement.estimate is not None else 0
    bracket = measurement.calibrated.bracket if measurement.calibrated is not None else None
    if bracket is not None:
        low = min(low, scale_count(bracket.low_flop))
    if measurement.upper is None:
        return ComputeRange(low_flop=low, upper_flop=None)
    return ComputeRange(low_flop=min(low, measurement.upper.flop), upper_flop=measurement.upper.flop)


def assess_measurement(
    measurement: Measurement,
    rules: Iterable[Rule],
    *,
    other: ComputeRange = NO_COMPUTE,
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
) -> tuple[ThresholdAssessment, ...]:
    """What each rule that limits a total says, the model's other recorded compute included.

    Rules that limit something else (a share of another model, a cluster's rate) are passed over: a single
    run's telemetry does not answer them.
    """
    total = range_of(measurement)
    return tuple(
        level
        for rule in rules
        if rule.totals
        for level in assess_levels(rule, total, tolerance_ppm=tolerance_ppm, other=other)
    )


def index_models(rows: Iterable[RunRow]) -> Mapping[str, Sequence[RunRow]]:
    """The rows by the name of their model, case and surrounding space aside."""
    index: dict[str, list[RunRow]] = {}
    for row in rows:
        index.setdefault(_key(row.run_id), []).append(row)
    return index


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()


def find_parents(
    row: RunRow,
    index: Mapping[str, Sequence[RunRow]],
    measure: Callable[[RunRow], Measurement],
) -> tuple[ComputeRange, tuple[Finding, ...]]:
    """What the models that a row builds on took, as the same table tells it.

    A published total holds its own ancestors, so it is taken whole and not followed further. It is a claim:
    where the parent's own row shows more than it declares, the parent stays open.

    Args:
        row: The row that builds on them.
        index: All rows by the name of their model.
        measure: The meter, for the parents' own rows.

    Returns:
        The range, and what is told of it; with a parent that stays open nothing bounds the range.
    """
    if not row.base_model.strip():
        return NO_COMPUTE, ()
    names = [row.base_model] if _key(row.base_model) in index else row.base_model.split(",")
    total, open_names, told, claimed = NO_COMPUTE, [], [], []
    for name in names:
        claims = [
            item for item in index.get(_key(name), ()) if item.declared_flop is not None and item is not row
        ]
        if not claims:
            open_names.append(name.strip())
            continue
        totals = [item.declared_flop or 0 for item in claims]
        total = total.plus(ComputeRange(low_flop=min(totals), upper_flop=max(totals)))
        told += [finding for item in claims for finding in _understated(item, measure(item))]
        claimed.append(f"{name.strip()} with {format_flop(max(totals))} FLOP")
    if open_names:
        told.append(_unrecorded(row, open_names))
    if told:
        total = ComputeRange(low_flop=total.low_flop, upper_flop=None)
    if claimed:
        told.append(_claimed(row, claimed))
    return total, tuple(told)


def _claimed(row: RunRow, parents: Sequence[str]) -> Finding:
    return Finding(
        code="parent-claimed",
        severity=Severity.NOTE,
        message=f"it counts what it builds on as published: {', '.join(parents)}; nothing here checks that",
        where=row.run_id,
        count=len(parents),
    )


def _unrecorded(row: RunRow, names: Sequence[str]) -> Finding:
    return Finding(
        code="parent-unrecorded",
        severity=Severity.WARNING,
        message=f"it builds on {', '.join(names)}, whose compute is not recorded; the total stays open",
        where=row.run_id,
        count=len(names),
    )


def _understated(row: RunRow, measurement: Measurement) -> list[Finding]:
    """A declared total far under what the row's own hardware and time show."""
    least_flop = range_of(measurement).low_flop
    if row.declared_flop is None or row.declared_flop >= least_flop:
        return []
    return [
        Finding(
            code="declared-under-estimate",
            severity=Severity.WARNING,
            message=(
                f"{row.run_id} declares {format_flop(row.declared_flop)} FLOP, its hardware and time show "
                f"{format_flop(least_flop)} at least; what builds on it stays open"
            ),
            where=row.run_id,
            expected=f"at least {format_flop(least_flop)} FLOP",
            found=f"{format_flop(row.declared_flop)} FLOP",
        )
    ]


def answer_row(
    row: RunRow,
    measure: Callable[[RunRow], Measurement],
    rules: Sequence[Rule],
    *,
    index: Mapping[str, Sequence[RunRow]],
    other: ComputeRange = NO_COMPUTE,
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
) -> RowAnswer:
    """The row against the rules, with what it builds on, and with what it declares as a test of itself.

    Args:
        row: The row.
        measure: The meter, for this row and for those that it builds on.
        rules: The rules.
        index: All rows of the table by the name of their model.
        other: The model's other compute, as the user states it.
        tolerance_ppm: What sensors and clocks may be off by [parts per million].
    """
    measurement = measure(row)
    parents, told = find_parents(row, index, measure)
    other = other.plus(parents)
    findings = [*told, *_understated(row, measurement)]
    contradiction = _contradiction(row, range_of(measurement).plus(other), tolerance_ppm)
    if contradiction is not None:
        findings.append(contradiction)
        other = ComputeRange(low_flop=other.low_flop, upper_flop=None)
    assessed = assess_measurement(measurement, rules, other=other, tolerance_ppm=tolerance_ppm)
    return RowAnswer(row=row, measurement=measurement, rules=assessed, findings=tuple(findings))


def _contradiction(row: RunRow, total: ComputeRange, tolerance_ppm: int) -> Finding | None:
    """A declared total that the declared hardware and time cannot have made.

    One of the two records is wrong, so neither may put the model below a threshold.
    """
    claims = [flop for flop in (row.declared_flop, row.true_flop) if flop is not None]
    if not claims or total.upper_flop is None:
        return None
    claim_flop = max(claims)
    if claim_flop * _WHOLE_PPM <= total.upper_flop * (_WHOLE_PPM + tolerance_ppm):
        return None
    return Finding(
        code="declared-over-bound",
        severity=Severity.CONTRADICTION,
        message=(
            f"the row declares {format_flop(claim_flop)} FLOP, its hardware and time allow "
            f"{format_flop(total.upper_flop)} at most; one of them is wrong, so the total stays open"
        ),
        where=row.run_id,
        expected=f"at most {format_flop(total.upper_flop)} FLOP",
        found=f"{format_flop(claim_flop)} FLOP",
    )
