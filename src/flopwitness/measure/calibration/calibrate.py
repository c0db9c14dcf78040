"""From tables of runs of known size to a calibration, and what a reader must know of it."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import NotCalibratedError, UnknownChipError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.bounds import bound_from_above
from flopwitness.measure.calibration.assess import assess_calibration
from flopwitness.measure.calibration.file import MOST_WORKLOADS, decode_calibration, encode_calibration
from flopwitness.measure.calibration.fingerprint import fingerprint_of, settle_fingerprint
from flopwitness.measure.calibration.fitted import fit_methods
from flopwitness.measure.calibration.record import Calibration, CalibrationData
from flopwitness.measure.estimators.link_operations import DeclaredSteps, LinkModel, fit_link
from flopwitness.measure.observed import observe
from flopwitness.measure.sources.declared_steps import declare_steps
from flopwitness.measure.sources.run_table import RunRow, RunTable
from flopwitness.measure.sources.workloads import number_workloads, workload_columns

__all__ = ["Calibrated", "calibrate", "known_runs"]

_PASSES_PEAK_BY: Final = 1.1  # clocks above the data sheet's, as for the comparison with a rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A calibration, its bytes, and what is told of it.

    Attributes:
        calibration: As decoding the bytes gives it.
        data: Its canonical bytes.
        findings: What a reader must know.
    """

    calibration: Calibration
    data: bytes
    findings: tuple[Finding, ...]


def calibrate(
    tables: Sequence[tuple[RunTable, Sequence[RunRow]]],
    *,
    catalogue: ChipCatalogue,
    conditions: Sequence[str] = (),
    gate_pct: float | None = None,
    columns: Sequence[str] = (),
) -> Calibrated:
    """Fit all estimators to the chosen runs of one device.

    Args:
        tables: Each table with the rows of it that were chosen.
        catalogue: The known chips: no run can have computed more than theirs allow.
        conditions: How the rows were chosen, to be written down.
        gate_pct: The gate on utilisation, to be written down [%].
        columns: The columns that tell workloads apart; the known hyperparameters where none is named.

    Raises:
        InputError: A named column that a table lacks.
        NotCalibratedError: Runs of unlike devices or modes, or fewer than three that can be used, or
            more than 10,000 workloads.
    """
    rows = [row for _, chosen in tables for row in chosen]
    findings: list[Finding] = []
    chosen = _choose_known(rows, catalogue, findings, where=tables[0][0].provenance.path if tables else "")
    fingerprint = settle_fingerprint([fingerprint_of(row, catalogue) for row in chosen])
    workload = _number(chosen, columns)
    runs, flop = observe(chosen), np.array([float(row.true_flop or 0) for row in chosen])
    fitted = fit_methods(runs, flop, workload=workload)
    used = fitted.is_usable(runs, flop)
    used_rows = [row for row, is_used in zip(chosen, used, strict=True) if is_used]
    firsts = np.unique(workload[used], return_index=True)[1]
    calibration, data = _freeze(
        Calibration(
            fingerprint=fingerprint,
            data=CalibrationData(
                tables=tuple(table.provenance.digest for table, _ in tables),
                rows=_lines(tables, used_rows),
                n_workloads=firsts.size,
                conditions=tuple(_written(text) for text in conditions),
                gate_pct=gate_pct,
            ),
            fitted=fitted,
            link=_fit_link(runs.link_tb[used], declare_steps(used_rows), flop[used], workload[used]),
            digest=digest_bytes(b""),
        )
    )
    findings += assess_calibration(
        calibration,
        used_rows,
        workloads=[used_rows[place] for place in firsts],
        n_left_out=len(rows) - len(used_rows),
    )
    return Calibrated(calibration=calibration, data=data, findings=tuple(findings))


def _choose_known(
    rows: Sequence[RunRow], catalogue: ChipCatalogue, findings: list[Finding], *, where: str
) -> list[RunRow]:
    """The rows of known size.

    Raises:
        NotCalibratedError: There is none.
    """
    known = known_runs(rows, catalogue, findings)
    chosen = [row for row, is_known in zip(rows, known, strict=True) if is_known]
    if not chosen:
        raise NotCalibratedError(
            "no run of known size",
            where=where,
            expected="a column such as true_tflop, an energy and a duration",
        )
    return chosen


def _number(rows: Sequence[RunRow], columns: Sequence[str]) -> NDArray[np.intp]:
    """The number of each run's workload, shape (n,).

    Raises:
        InputError: A named column that a table lacks.
        NotCalibratedError: More than 10,000 workloads.
    """
    workload = number_workloads(rows, workload_columns(rows, columns))
    n_workloads = int(workload.max()) + 1
    if n_workloads > MOST_WORKLOADS:
        raise NotCalibratedError(
            "too many workloads", expected=f"at most {MOST_WORKLOADS:,}", found=f"{n_workloads:,}"
        )
    return workload


def _lines(
    tables: Sequence[tuple[RunTable, Sequence[RunRow]]], used: Sequence[RunRow]
) -> tuple[tuple[int, ...], ...]:
    """The lines of each table's rows that were used."""
    kept = {id(row) for row in used}
    return tuple(tuple(row.row for row in rows if id(row) in kept) for _, rows in tables)


def _freeze(made: Calibration) -> tuple[Calibration, bytes]:
    """The calibration as its own bytes give it, and the bytes."""
    data = encode_calibration(made)
    return decode_calibration(data), data


def known_runs(
    rows: Sequence[RunRow], catalogue: ChipCatalogue, findings: list[Finding]
) -> NDArray[np.bool_]:
    """Which rows have a true size, an energy and a length, shape (n,), and a size that their chips allow.

    Args:
        rows: The rows.
        catalogue: The known chips.
        findings: Takes the rows whose size cannot be true.
    """
    known = np.array([_is_complete(row) for row in rows], dtype=np.bool_)
    for place, row in enumerate(rows):
        if known[place] and _is_impossible(row, catalogue):
            known[place] = False
            findings.append(
                Finding(
                    code="truth-over-bound",
                    severity=Severity.CONTRADICTION,
                    message=(
                        f"{row.run_id or f'line {row.row}'}: its true operations are more than its chips can "
                        "compute in its time; the run is left out"
                    ),
                    where=row.run_id or f"line {row.row}",
                )
            )
    return known


def _is_complete(row: RunRow) -> bool:
    has_energy = row.energy_j is not None or row.net_energy_j is not None
    return bool(row.true_flop) and has_energy and row.duration_s is not None


def _is_impossible(row: RunRow, catalogue: ChipCatalogue) -> bool:
    """Whether the true size exceeds chips x time x best peak, or without a count what energy allows.

    Unknown hardware excludes nothing.
    """
    try:
        chips = catalogue.find_all(row.chip_name) if row.chip_name else ()
    except UnknownChipError:
        return False
    if not chips or not row.duration_s:
        return False
    energy_j = row.energy_j if row.count is None else None
    upper = bound_from_above(chips, count=row.count, duration_s=row.duration_s, energy_j=energy_j)
    return upper is not None and (row.true_flop or 0) > _PASSES_PEAK_BY * upper.flop


def _fit_link(
    link_tb: NDArray[np.float64],
    declared: DeclaredSteps,
    flop: NDArray[np.float64],
    workload: NDArray[np.intp],
) -> LinkModel | None:
    """The constant of declared operations; None where the runs do not offer it."""
    try:
        return fit_link(link_tb, declared, flop, workload=workload)
    except NotCalibratedError:
        return None


def _written(text: str) -> str:
    """A condition as text that canonical bytes take."""
    return unicodedata.normalize("NFC", text.encode("utf-8", "backslashreplace").decode("utf-8"))
