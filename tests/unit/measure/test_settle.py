"""Which estimate is told: the calibration's point under the bound, else the prior with the reasons kept."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.made_runs import calibrate_cells, make_cells

from flopwitness.catalogue.chips import ChipCatalogue, Precision
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.answer import Estimate
from flopwitness.measure.bounds import BoundBy, UpperBound
from flopwitness.measure.calibration.bracket import Bracket
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.calibration.use import CalibratedAnswer, Point
from flopwitness.measure.estimators.prior import Observation
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.samples import Scope
from flopwitness.measure.settle import settle_estimate

Settled = tuple[Estimate | None, CalibratedAnswer | None, list[Finding]]
Settle = Callable[..., Settled]

SEEN = Observation(count=2, duration_s=100.0, energy_j=40_000.0, scope=Scope.GPU)
POINT = Point(flop=3e15, low_flop=2.5e15, high_flop=3.6e15)
REFUSAL = Finding(code="calibration-mismatch", severity=Severity.WARNING, message="m", where="count")
NOTE = Finding(code="estimators-disagree", severity=Severity.NOTE, message="m")
BRACKET = Bracket(
    low_flop=1e15,
    high_flop=9e15,
    level=0.9,
    calibrated=Precision.FP16,
    precisions=(Precision.FP16, Precision.FP32),
)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(make_cells(12)).calibration


@pytest.fixture(scope="module")
def question(chips: ChipCatalogue, calibration: Calibration) -> Question:
    return Question(chips=chips.find_all("v100-sxm2-16gb"), count=2, calibration=calibration, level=0.8)


@pytest.fixture
def settle(question: Question, reference: ReferenceTable) -> Settle:
    def settle_it(
        calibrated: CalibratedAnswer | None,
        *,
        seen: Observation | None = SEEN,
        upper: UpperBound | None = None,
        asked: Question = question,
    ) -> Settled:
        findings: list[Finding] = [NOTE]
        estimate, kept = settle_estimate(
            asked, seen, table=reference, upper=upper, calibrated=calibrated, findings=findings
        )
        assert findings[0] is NOTE
        return estimate, kept, findings[1:]

    return settle_it


def answer(
    point: Point | None = POINT,
    *,
    refusals: tuple[Finding, ...] = (),
    notes: tuple[Finding, ...] = (),
    bracket: Bracket | None = None,
) -> CalibratedAnswer:
    return CalibratedAnswer(
        method=Method.PAPER_EQ2,
        point=point,
        refusals=refusals,
        bracket=bracket,
        findings=(*refusals, *notes),
    )


def bound(flop: int) -> UpperBound:
    return UpperBound(
        flop=flop,
        by=BoundBy.TIME,
        time_flop=flop,
        energy_flop=None,
        safety=Fraction(1, 2),
        peak_flop_per_s=1e12,
        peak_precision="fp16",
        chip="v100-sxm2-16gb",
        count=2,
        duration_s=100.0,
    )


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_a_point_wins_over_the_prior(settle: Settle, calibration: Calibration) -> None:
    estimate, kept, findings = settle(answer(notes=(NOTE,)))
    assert estimate == Estimate(
        flop=3 * 10**15,
        low_flop=25 * 10**14,
        high_flop=36 * 10**14,
        level=0.8,
        method="paper-eq2",
        calibration=str(calibration.digest),
        precisions=("fp16",),
        n_runs=12,
    )
    assert kept == answer(notes=(NOTE,))
    assert findings == [NOTE]


def test_a_point_needs_nothing_that_the_prior_goes_by(settle: Settle) -> None:
    estimate, _, findings = settle(answer(), seen=None)
    assert estimate is not None
    assert (estimate.flop, estimate.method) == (3 * 10**15, "paper-eq2")
    assert findings == []


def test_a_calibrated_precision_is_not_called_assumed(settle: Settle) -> None:
    assert codes(settle(answer())[2]) == []
    assert codes(settle(None)[2]) == ["precision-assumed"]


def test_ends_are_rounded_away_from_the_point(settle: Settle) -> None:
    estimate, _, _ = settle(answer(Point(flop=1_000.7, low_flop=900.9, high_flop=1_100.1)))
    assert estimate is not None
    assert (estimate.low_flop, estimate.flop, estimate.high_flop) == (900, 1_000, 1_101)


def test_a_refused_point_leaves_the_prior_and_keeps_its_reasons(
    settle: Settle, reference: ReferenceTable
) -> None:
    second = replace(REFUSAL, where="power_mode")
    refused = answer(None, refusals=(REFUSAL, second), notes=(NOTE,))
    estimate, kept, findings = settle(refused)
    alone, _, _ = settle(None)
    assert estimate is not None
    assert estimate == alone
    assert estimate.method == "prior-energy"
    assert estimate.calibration == str(reference.digest)
    assert estimate.n_runs is None
    assert kept == refused
    assert findings[:3] == [REFUSAL, second, NOTE]
    assert codes(findings[3:]) == ["precision-assumed"]


def test_a_point_over_the_bound_is_refused(settle: Settle) -> None:
    earlier = answer(bracket=BRACKET, notes=(NOTE,))
    estimate, kept, findings = settle(earlier, upper=bound(3 * 10**15 - 1))
    assert kept is not None
    assert kept.point is None
    assert kept.bracket is BRACKET
    (refusal,) = kept.refusals
    assert (refusal.code, refusal.severity) == ("estimate-over-bound", Severity.WARNING)
    assert refusal.where == "paper-eq2"
    assert refusal.expected == "at most 3.000e15 FLOP"
    assert refusal.found == "3.000e15 FLOP"
    assert kept.findings == (refusal, NOTE)
    assert codes(findings) == ["estimate-over-bound", "estimators-disagree", "precision-assumed"]
    assert estimate is not None
    assert estimate.method == "prior-energy"


def test_a_point_at_the_bound_stands_and_is_cut_there(settle: Settle) -> None:
    estimate, kept, findings = settle(answer(), upper=bound(3 * 10**15))
    assert kept == answer()
    assert findings == []
    assert estimate is not None
    assert (estimate.low_flop, estimate.flop, estimate.high_flop) == (25 * 10**14, 3 * 10**15, 3 * 10**15)


@pytest.mark.parametrize(
    ("upper_flop", "high_flop"),
    [(3_200 * 10**12, 3_200 * 10**12), (3_600 * 10**12, 3_600 * 10**12), (10**16, 3_600 * 10**12)],
)
def test_the_upper_end_is_cut_at_the_bound(settle: Settle, upper_flop: int, high_flop: int) -> None:
    estimate, _, _ = settle(answer(), upper=bound(upper_flop))
    assert estimate is not None
    assert (estimate.flop, estimate.low_flop) == (3 * 10**15, 25 * 10**14)
    assert estimate.high_flop == high_flop


def test_a_prior_is_cut_at_the_bound_with_its_point(settle: Settle) -> None:
    free, _, _ = settle(None)
    assert free is not None
    for share in (Fraction(9, 10), Fraction(1, 10), Fraction(1, 10**9)):
        upper = int(free.high_flop * share)
        cut, _, _ = settle(None, upper=bound(upper))
        assert cut is not None
        assert cut.high_flop == upper
        assert cut.low_flop == min(free.low_flop, upper)
        assert cut.low_flop <= cut.flop <= min(upper, free.flop)
    assert settle(None, upper=bound(free.high_flop))[0] == free


def test_nothing_to_go_by_gives_no_estimate(settle: Settle) -> None:
    assert settle(None, seen=None) == (None, None, [])
    refused = answer(None, refusals=(REFUSAL,))
    assert settle(refused, seen=None) == (None, refused, [REFUSAL])
    blind = Observation(count=2, duration_s=None, energy_j=None, scope=Scope.UNKNOWN)
    assert settle(None, seen=blind)[0] is None
    assert codes(settle(None, seen=blind)[2]) == []


def test_a_stated_precision_is_assumed_by_nobody(settle: Settle, question: Question) -> None:
    stated = replace(question, precisions=(Precision.FP16,))
    estimate, _, findings = settle(answer(None, refusals=(REFUSAL,)), asked=stated)
    assert codes(findings) == ["calibration-mismatch"]
    assert estimate is not None
    assert estimate.precisions == ("fp16",)


def test_an_assumed_precision_names_those_that_the_interval_allows_for(settle: Settle) -> None:
    estimate, _, findings = settle(None)
    assert estimate is not None
    assert estimate.prior is not None
    assert len(estimate.precisions) > 1
    assert f"the interval allows for {', '.join(estimate.precisions)}" in findings[0].message
    assert findings[0].severity is Severity.NOTE
