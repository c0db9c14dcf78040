"""The meter for a table of runs: one row in, the same answer out as for a log, with less behind it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from flopwitness.catalogue.chips import Chip, ChipCatalogue, Precision
from flopwitness.foundation.errors import OutOfRangeError, UnknownChipError
from flopwitness.foundation.verdict import Finding, Severity, rank_findings
from flopwitness.measure.answer import Estimate, Measurement, RunEnergy
from flopwitness.measure.bounds import UpperBound, bound_from_above
from flopwitness.measure.calibration.fingerprint import fingerprint_of
from flopwitness.measure.calibration.use import CalibratedAnswer, answer_from_calibration
from flopwitness.measure.capacity import covers_limits, needed_devices, total_limit_w
from flopwitness.measure.estimators.prior import Observation
from flopwitness.measure.observed import observe
from flopwitness.measure.plausibility import Power, assess_power, settle_hardware
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.samples import Scope
from flopwitness.measure.settle import settle_estimate
from flopwitness.measure.sources.declared_steps import declare_steps
from flopwitness.measure.sources.run_table import RunRow

__all__ = ["chip_left_open", "measure_row"]

_MANY_CHIPS: Final = 5
_ONE_CHIP_OVER_LIMIT: Final = 1.2


def measure_row(
    row: RunRow, stated: Question, *, catalogue: ChipCatalogue, table: ReferenceTable
) -> Measurement:
    """The answer for one row; what is missing leaves parts of it open and is never made up.

    Args:
        row: The row.
        stated: What the user states for all rows; no chips, or a count of 0, leaves that to the row.
        catalogue: The known chips.
        table: The reference classes.
    """
    findings: list[Finding] = []
    row = replace(row, power_mode=stated.power_mode or row.power_mode)
    own_chips = _find_chips(row, catalogue, [] if stated.chips else findings)
    chips, count = stated.chips or own_chips, stated.count or row.count
    if not chips or count is None or not row.duration_s:
        findings.append(_open_finding(row, has_chip=bool(chips), has_count=count is not None))
        estimate, calibrated = settle_estimate(
            stated,
            None,
            table=table,
            upper=None,
            calibrated=_calibrated(row, chips, stated, catalogue),
            findings=findings,
        )
        return _answer(row, estimate, None, findings, calibrated)
    hardware = settle_hardware(
        chips, count, declared_chips=own_chips, declared_count=row.count, findings=findings
    )
    power = _judge_power(row, chips, count, findings)
    is_usable = power is Power.PLAUSIBLE and covers_limits(row.scope, chips)
    upper = bound_from_above(
        hardware.chips,
        count=hardware.count,
        duration_s=row.duration_s,
        energy_j=row.energy_j if is_usable else None,
        safety=stated.safety,
    )
    used = row if power is Power.PLAUSIBLE else replace(row, energy_j=None, net_energy_j=None)
    calibrated = _calibrated(used, chips, stated, catalogue)
    if upper is None or power is Power.TOO_HIGH:
        findings += () if calibrated is None else calibrated.findings
        return _answer(row, None, None, findings, calibrated)
    in_mode = _in_mode(chips, row, findings)
    question = replace(
        stated, chips=in_mode, count=count, precisions=_precisions(row, in_mode, stated, findings)
    )
    energy_j = row.energy_j if power is Power.PLAUSIBLE else None
    seen = Observation(count=count, duration_s=row.duration_s, energy_j=energy_j, scope=row.scope)
    estimate, calibrated = settle_estimate(
        question, seen, table=table, upper=upper, calibrated=calibrated, findings=findings
    )
    return _answer(row, estimate, upper, findings, calibrated)


def _calibrated(
    row: RunRow, chips: Sequence[Chip], stated: Question, catalogue: ChipCatalogue
) -> CalibratedAnswer | None:
    """What the calibration says of the row; None where none was handed over. The user's word goes first."""
    if stated.calibration is None:
        return None
    own = fingerprint_of(row, catalogue)
    fingerprint = replace(
        own,
        chips=tuple(sorted(chip.id for chip in stated.chips)) or own.chips,
        count=stated.count or own.count,
        precisions=tuple(sorted(map(str, stated.precisions))) or own.precisions,
    )
    return answer_from_calibration(
        stated.calibration,
        observe([row]),
        fingerprint,
        chips=chips,
        declared=declare_steps([row], count=stated.count or None),
        method=stated.method,
        level=stated.level,
    )


def _judge_power(row: RunRow, chips: Sequence[Chip], count: int, findings: list[Finding]) -> Power:
    """Whether the chips can have drawn the row's mean power."""
    if row.energy_j is None or not row.duration_s:
        return Power.PLAUSIBLE
    mean_w = row.energy_j / row.duration_s
    n_devices = needed_devices(row.scope, chips, count)
    total_w = total_limit_w(chips, count, row.scope, n_devices)
    power, told = assess_power(
        mean_w,
        chips,
        count=count,
        scope=row.scope,
        limit_w=total_w,
        over_share=1.0 if total_w is not None and mean_w > total_w else 0.0,
    )
    if power is Power.PLAUSIBLE and count >= _MANY_CHIPS and _is_of_one_chip(mean_w, chips, row.scope):
        power = Power.TOO_LOW
        told = [
            Finding(
                code="power-of-one-chip",
                severity=Severity.WARNING,
                message=(
                    f"{mean_w:,.4g} W is what one such chip draws, and the row counts {count:,}: energy is "
                    "not used"
                ),
                where=row.run_id,
                found=f"{mean_w:,.4g} W",
            )
        ]
    findings += told
    return power


def _is_of_one_chip(mean_w: float, chips: Sequence[Chip], scope: Scope) -> bool:
    """Whether a mean power is one board's: tables often give it for one of many."""
    limits_w = [chip.power_limit_w.value for chip in chips if chip.power_limit_w is not None]
    return not scope.is_per_node and bool(limits_w) and mean_w <= _ONE_CHIP_OVER_LIMIT * max(limits_w)


def _find_chips(row: RunRow, catalogue: ChipCatalogue, findings: list[Finding]) -> tuple[Chip, ...]:
    if not row.chip_name:
        return ()
    try:
        chips = catalogue.find_all(row.chip_name)
    except UnknownChipError as error:
        findings.append(
            Finding(
                code="chip-unknown",
                severity=Severity.WARNING,
                message=f"the catalogue does not know the hardware {row.chip_name!r}; nothing bounds the run",
                where=row.run_id,
                expected=error.expected,
                found=row.chip_name,
            )
        )
        return ()
    if len(chips) > 1:
        findings.append(chip_left_open(row.chip_name, chips))
    return chips


def chip_left_open(name: str, chips: Sequence[Chip]) -> Finding:
    """A name that several chips share: the bound takes the fastest, the interval spans all."""
    return Finding(
        code="chip-variants",
        severity=Severity.NOTE,
        message=f"{name!r} may be {' or '.join(chip.id for chip in chips[:6])}"
        + (f" or {len(chips) - 6} others" if len(chips) > 6 else "")  # noqa: PLR2004 (a line's worth of names)
        + "; the bound takes the fastest, the interval spans them all",
        count=len(chips),
    )


def _open_finding(row: RunRow, *, has_chip: bool, has_count: bool) -> Finding:
    wanting = [
        word
        for word, is_there in (
            ("hardware", has_chip),
            ("number of chips", has_count),
            ("time", row.duration_s is not None),
        )
        if not is_there
    ]
    return Finding(
        code="row-incomplete",
        severity=Severity.WARNING,
        message=(
            f"not recorded, or not usable: {', '.join(wanting) or 'energy'}; the row stays open. --chip and "
            "--count name what the table does not"
        ),
        where=row.run_id,
    )


def _in_mode(chips: tuple[Chip, ...], row: RunRow, findings: list[Finding]) -> tuple[Chip, ...]:
    """The chips in the row's power mode, for the interval only: a stated mode must not lower a bound."""
    if not row.power_mode or not any(chip.power_modes for chip in chips):
        return chips
    try:
        return tuple(chip.in_mode(row.power_mode) if chip.power_modes else chip for chip in chips)
    except OutOfRangeError as error:
        findings.append(
            Finding(
                code="power-mode-unknown",
                severity=Severity.NOTE,
                message=f"the catalogue does not know the power mode {row.power_mode!r}",
                expected=error.expected,
                found=row.power_mode,
            )
        )
        return chips


def _precisions(
    row: RunRow, chips: Sequence[Chip], stated: Question, findings: list[Finding]
) -> tuple[Precision, ...]:
    """The user's word, else the row's, as far as the chips have such a precision."""
    named = stated.precisions or tuple(Precision(name) for name in row.precisions if name in tuple(Precision))
    usable = tuple(p for p in named if all(p in chip.peak_flop_per_s for chip in chips))
    asked = ", ".join(stated.precisions or row.precisions)
    if asked and not usable:
        findings.append(
            Finding(
                code="precision-unknown",
                severity=Severity.NOTE,
                message=f"no rate is known for the chip at {asked}; the precision is taken as not recorded",
            )
        )
    return usable


def _answer(
    row: RunRow,
    estimate: Estimate | None,
    upper: UpperBound | None,
    findings: list[Finding],
    calibrated: CalibratedAnswer | None = None,
) -> Measurement:
    energy = None
    if row.energy_j is not None:
        energy = RunEnergy(
            scope=row.scope,
            devices=(),
            shown_j=row.energy_j,
            working_w=row.energy_j / row.duration_s if row.duration_s else 0.0,
            low_j=row.energy_j,
            high_j=row.energy_j,
            recorded_high_j=row.energy_j,
            coverage=None,
            filled=1.0,
        )
    return Measurement(
        duration_s=row.duration_s,
        recorded_s=row.duration_s,
        window=None,
        energy=energy,
        estimate=estimate,
        upper=upper,
        findings=rank_findings(findings),
        calibrated=calibrated,
    )
