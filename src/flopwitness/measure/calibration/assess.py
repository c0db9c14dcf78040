"""What a reader must know of a calibration before trusting it."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.power_range import assess_power_range
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.efficiency import MOST_RUNS, EfficiencyModel, take_evenly
from flopwitness.measure.estimators.paper import OVERHEAD_GRID_W, PaperModel
from flopwitness.measure.intervals import FEWEST_FOR_A_GUARANTEE, FEWEST_FOR_A_RANK
from flopwitness.measure.observed import Feature, NetKind
from flopwitness.measure.sources.run_table import RunRow
from flopwitness.measure.wording import plural

__all__ = ["assess_calibration", "assess_precisions"]

_COLLINEAR: Final = 30.0  # Belsley, Kuh & Welsch 1980: from here on, columns depend on each other
_FAR_OUT: Final = 5.0  # times the median error of runs left out
_AT_LEAST: Final = 0.1  # and an error of this much: a calibration that fits to 1 % has no outlier at 6 %


def assess_calibration(
    calibration: Calibration, rows: Sequence[RunRow], *, workloads: Sequence[RunRow], n_left_out: int
) -> tuple[Finding, ...]:
    """All findings about a calibration.

    Args:
        calibration: The calibration.
        rows: The rows that it was made from, in order.
        workloads: The first row of each workload, in the order of the calibration's numbers.
        n_left_out: How many chosen rows could not be used.
    """
    found = [
        *_assess_rows(n_left_out),
        *_assess_fingerprint(calibration),
        *_assess_energy(calibration),
        *_assess_traffic(calibration, rows),
        *assess_power_range(calibration),
        *_assess_constants(calibration),
        *_assess_size(calibration),
        *_assess_thinning(calibration),
        *_assess_outliers(calibration, workloads),
    ]
    return tuple(found)


def _assess_rows(n_left_out: int) -> Iterator[Finding]:
    if n_left_out:
        yield Finding(
            code="runs-unusable",
            severity=Severity.WARNING,
            message=(
                f"{plural(n_left_out, 'chosen run')} had no true operations, energy, duration or traffic "
                "above 0, or more operations than the chips allow, and taught nothing"
            ),
            count=n_left_out,
        )


def _assess_fingerprint(calibration: Calibration) -> Iterator[Finding]:
    missing = calibration.fingerprint.unrecorded()
    if missing:
        yield Finding(
            code="fingerprint-unrecorded",
            severity=Severity.NOTE,
            message=(
                f"nothing in the calibration runs tells {', '.join(missing)}: runs that differ in it are not "
                "refused for that"
            ),
            found=", ".join(missing),
            count=len(missing),
        )
    yield from assess_precisions(calibration.fingerprint)


def assess_precisions(fingerprint: Fingerprint) -> Iterator[Finding]:
    """One finding where runs of several precisions are taken together."""
    if len(fingerprint.precisions) > 1:
        names = ", ".join(fingerprint.precisions)
        yield Finding(
            code="precisions-mixed",
            severity=Severity.WARNING,
            message=(
                f"the runs used {names}, whose joules "
                "per operation differ by factors; the interval must hold them all. "
                "--where precision=... keeps one"
            ),
            found=names,
        )


def _assess_energy(calibration: Calibration) -> Iterator[Finding]:
    kind = calibration.fitted.net.kind
    if kind is not NetKind.POOLED_IDLE:
        what = "as each record gives it" if kind is NetKind.RECORDED else "with idle included"
        yield Finding(
            code="idle-unrecorded",
            severity=Severity.WARNING,
            message=(
                f"no idle power was recorded; energy counts {what}, and the idle power of another day moves "
                "the estimate"
            ),
            expected="a column such as idle_power_w",
        )


def _assess_traffic(calibration: Calibration, rows: Sequence[RunRow]) -> Iterator[Finding]:
    columns = {
        Feature.MEMORY: [row.memory_traffic_tb for row in rows],
        Feature.LINK: [row.link_traffic_tb for row in rows],
        Feature.HOST: [row.host_traffic_tb for row in rows],
    }
    for feature, values in columns.items():
        n_known = sum(value is not None for value in values)
        if n_known and feature not in calibration.fitted.features:
            yield Finding(
                code="traffic-unusable",
                severity=Severity.WARNING,
                message=(
                    f"{feature.removesuffix('_tb_per_j')} traffic above 0 was recorded in too few of the "
                    "runs, and is not used: a counter that reads 0 is one that is not read"
                ),
                found=f"{sum(1 for value in values if value)} of {len(values)}",
            )


def _assess_constants(calibration: Calibration) -> Iterator[Finding]:
    fitted = calibration.fitted
    for method, reason in fitted.refused.items():
        yield Finding(
            code="estimator-refused",
            severity=Severity.WARNING if method is Method.EFFICIENCY else Severity.NOTE,
            message=f"{method} is not fitted: {reason}",
            where=str(method),
        )
    for method, model in fitted.models.items():
        if not isinstance(model, PaperModel):
            continue
        if model.is_overhead_at_edge:
            yield Finding(
                code="overhead-at-edge",
                severity=Severity.NOTE,
                message=(
                    f"{method}: the overhead {model.overhead_w:g} W lies on the edge of the published grid, "
                    "so it is bounded and not known"
                ),
                where=str(method),
                expected=f"inside {OVERHEAD_GRID_W[0]:g} to {OVERHEAD_GRID_W[-1]:g} W",
                found=f"{model.overhead_w:g} W",
            )
        if model.condition_number > _COLLINEAR:
            yield Finding(
                code="constants-collinear",
                severity=Severity.NOTE,
                message=(
                    f"{method}: work, traffic and time grow together in these runs (condition number "
                    f"{model.condition_number:.0f}); its constants trade off against each other"
                ),
                where=str(method),
                expected=f"at most {_COLLINEAR:.0f}",
                found=f"{model.condition_number:.0f}",
            )


def _assess_size(calibration: Calibration) -> Iterator[Finding]:
    n_runs = calibration.data.n_workloads
    if n_runs < FEWEST_FOR_A_GUARANTEE:
        rank = (
            f"; below {FEWEST_FOR_A_RANK} even its rank is not reached" if n_runs < FEWEST_FOR_A_RANK else ""
        )
        yield Finding(
            code="calibration-small",
            severity=Severity.NOTE,
            message=(
                f"{plural(n_runs, 'workload')}: the level of its intervals is nominal, nothing guarantees it "
                f"below {FEWEST_FOR_A_GUARANTEE}{rank}"
            ),
            expected=f"at least {FEWEST_FOR_A_GUARANTEE}",
            found=str(n_runs),
        )


def _assess_thinning(calibration: Calibration) -> Iterator[Finding]:
    n_workloads = calibration.data.n_workloads
    if n_workloads > MOST_RUNS and Method.EFFICIENCY in calibration.fitted.models:
        yield Finding(
            code="calibration-thinned",
            severity=Severity.NOTE,
            message=(
                f"efficiency takes {MOST_RUNS} of {n_workloads:,} workloads, evenly spread in the order of "
                "the tables; the others count for the ranges of features and for the other estimators"
            ),
            expected=f"at most {MOST_RUNS}",
            found=f"{n_workloads:,}",
        )


def _assess_outliers(calibration: Calibration, rows: Sequence[RunRow]) -> Iterator[Finding]:
    """Runs that all others together do not predict: a mistake in the table, or a poisoned run."""
    model = calibration.fitted.models.get(Method.EFFICIENCY)
    if not isinstance(model, EfficiencyModel):
        return
    limit = max(_AT_LEAST, _FAR_OUT * float(np.median(model.errors)))
    taken = [rows[place] for place in take_evenly(len(rows))]
    for row, error in zip(taken, model.errors, strict=True):
        if error > limit:
            yield Finding(
                code="run-unlike-others",
                severity=Severity.WARNING,
                message=(
                    f"{row.run_id or f'line {row.row}'}: predicted from the other runs it is off by a factor "
                    f"of {np.exp(error):.2f}; look whether its size, energy and mode are right"
                ),
                where=row.run_id or f"line {row.row}",
                expected=f"at most {np.exp(limit):.2f}",
                found=f"{np.exp(error):.2f}",
            )
