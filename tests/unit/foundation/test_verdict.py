import pytest

from flopwitness.foundation.verdict import (
    Finding,
    Position,
    Severity,
    Verdict,
    combine_verdicts,
    fold_findings,
    rank_findings,
)

GOOD, BAD, OPEN = Verdict.CONSISTENT, Verdict.INCONSISTENT, Verdict.INCONCLUSIVE


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_verdict_has_no_truth_value(verdict: Verdict) -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(verdict)
    with pytest.raises(TypeError):
        _ = not verdict


def test_the_exit_status_of_a_verdict() -> None:
    assert [verdict.exit_status for verdict in (GOOD, BAD, OPEN)] == [0, 1, 3]


def test_no_position_contradicts_by_itself() -> None:
    assert {position: position.verdict for position in Position} == {
        Position.BELOW: GOOD,
        Position.LIKELY_ABOVE: OPEN,
        Position.CANNOT_TELL: OPEN,
    }
    assert [str(position) for position in Position] == ["below", "likely-above", "cannot-tell"]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], OPEN),
        ([GOOD], GOOD),
        ([GOOD, GOOD], GOOD),
        ([GOOD, OPEN], OPEN),
        ([OPEN], OPEN),
        ([GOOD, BAD], BAD),
        ([OPEN, BAD, GOOD], BAD),
    ],
)
def test_the_worst_verdict_wins_and_none_is_inconclusive(verdicts: list[Verdict], expected: Verdict) -> None:
    assert combine_verdicts(verdicts) is expected
    assert combine_verdicts(iter(reversed(verdicts))) is expected


def test_findings_are_ranked_worst_first_and_keep_their_order() -> None:
    def finding(code: str, severity: Severity) -> Finding:
        return Finding(code=code, severity=severity, message="m")

    given = [
        finding("a", Severity.NOTE),
        finding("b", Severity.WARNING),
        finding("c", Severity.CONTRADICTION),
        finding("d", Severity.WARNING),
    ]
    assert [each.code for each in rank_findings(given)] == ["c", "b", "d", "a"]
    assert rank_findings([]) == ()


def test_many_findings_alike_are_one_with_their_number() -> None:
    alike = [
        Finding(code="gap", severity=Severity.WARNING, message=f"device {number}", count=2)
        for number in range(5)
    ]
    other = Finding(code="scope", severity=Severity.NOTE, message="x")
    folded = fold_findings([other, *alike])
    assert [(item.code, item.count) for item in folded] == [("gap", 10), ("scope", 1)]
    assert folded[0].message == "device 0; and 4 more like it"
    assert fold_findings(alike[:3]) == tuple(alike[:3])
