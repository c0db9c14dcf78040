"""From the meter's answer to the rules: what the evidence leaves possible, and what each rule says to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flopwitness.accounting.thresholds import (
    NO_COMPUTE,
    SENSOR_TOLERANCE_PPM,
    ComputeRange,
    ThresholdAssessment,
    assess_levels,
)
from flopwitness.catalogue.rules import Rule
from flopwitness.foundation.units import format_flop
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.meter import Measurement
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
    """What the measurement leaves possible: the interval's lower end, and the bound."""
    low = measurement.estimate.low_flop if measurement.estimate is not None else 0
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


def find_parents(row: RunRow, index: Mapping[str, Sequence[RunRow]]) -> tuple[ComputeRange, tuple[str, ...]]:
    """What the models that a row builds on took, as published in the same table.

    A published total holds its own ancestors, so it is taken whole and not followed further.

    Returns:
        The range, and the names of those whose compute is not recorded; with one of them nothing bounds
        the range.
    """
    if not row.base_model.strip():
        return NO_COMPUTE, ()
    names = [row.base_model] if _key(row.base_model) in index else row.base_model.split(",")
    total, unrecorded = NO_COMPUTE, []
    for name in names:
        totals = [item.declared_flop for item in index.get(_key(name), ()) if item.declared_flop is not None]
        if not totals:
            unrecorded.append(name.strip())
            continue
        total = total.plus(ComputeRange(low_flop=min(totals), upper_flop=max(totals)))
    if unrecorded:
        total = ComputeRange(low_flop=total.low_flop, upper_flop=None)
    return total, tuple(unrecorded)


def answer_row(
    row: RunRow,
    measurement: Measurement,
    rules: Sequence[Rule],
    *,
    index: Mapping[str, Sequence[RunRow]],
    other: ComputeRange = NO_COMPUTE,
    tolerance_ppm: int = SENSOR_TOLERANCE_PPM,
) -> RowAnswer:
    """The row against the rules, with what it builds on, and with what it declares as a test of itself."""
    parents, unrecorded = find_parents(row, index)
    other = other.plus(parents)
    findings = []
    if unrecorded:
        findings.append(
            Finding(
                code="parent-unrecorded",
                severity=Severity.WARNING,
                message=(
                    f"it builds on {', '.join(unrecorded)}, whose compute is not recorded; the total "
                    "stays open"
                ),
                where=row.run_id,
                count=len(unrecorded),
            )
        )
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
    if row.declared_flop is None or total.upper_flop is None:
        return None
    if row.declared_flop * _WHOLE_PPM <= total.upper_flop * (_WHOLE_PPM + tolerance_ppm):
        return None
    return Finding(
        code="declared-over-bound",
        severity=Severity.CONTRADICTION,
        message=(
            f"the row declares {format_flop(row.declared_flop)} FLOP, its hardware and time allow "
            f"{format_flop(total.upper_flop)} at most; one of them is wrong, so the total stays open"
        ),
        where=row.run_id,
        expected=f"at most {format_flop(total.upper_flop)} FLOP",
        found=f"{format_flop(row.declared_flop)} FLOP",
    )
