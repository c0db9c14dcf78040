"""What a check may conclude: three values, and findings that can be reproduced.

Missing evidence is inconclusive, never consistent. A verdict has no truth value, so that none is
skipped by an `if`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import NoReturn

__all__ = ["Finding", "Position", "Severity", "Verdict", "combine_verdicts", "fold_findings", "rank_findings"]


class Verdict(Enum):
    """The three answers to "does the evidence agree with the claim?"."""

    CONSISTENT = "consistent"
    INCONSISTENT = "inconsistent"
    INCONCLUSIVE = "inconclusive"

    def __bool__(self) -> NoReturn:
        """Refused: compare with a member instead."""
        raise TypeError("a verdict is neither true nor false; compare it with Verdict.CONSISTENT")

    @property
    def exit_status(self) -> int:
        """The status with which a command ends on this verdict, as the README lists them."""
        return _EXIT_STATUS[self]


_MOST_ALIKE = 3
_EXIT_STATUS = {Verdict.CONSISTENT: 0, Verdict.INCONSISTENT: 1, Verdict.INCONCLUSIVE: 3}


class Position(StrEnum):
    """Where a total lies beside a threshold, as far as sensors can tell.

    Energy bounds compute from above and never from below, so there is no "proven above".
    """

    BELOW = "below"
    LIKELY_ABOVE = "likely-above"
    CANNOT_TELL = "cannot-tell"

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim "stays below the threshold"."""
        return Verdict.CONSISTENT if self is Position.BELOW else Verdict.INCONCLUSIVE


class Severity(StrEnum):
    """How much a finding weighs, worst first."""

    CONTRADICTION = "contradiction"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a reader of the answer must know.

    Attributes:
        code: The stable name of the kind of finding, lower case with hyphens, listed in docs/findings.md.
        severity: How much it weighs.
        message: The finding as a whole sentence for a person who knows no code.
        where: The place: file and line, device, node or row; "" for the whole answer.
        expected: What an unremarkable record would show; "" where it goes without saying.
        found: What this one shows.
        count: How many times it was found; at least 1.
        reproduce: The command that shows it again; "" where the command of the answer itself does.
    """

    code: str
    severity: Severity
    message: str
    where: str = ""
    expected: str = ""
    found: str = ""
    count: int = 1
    reproduce: str = ""


def combine_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of several checks together: the worst of them, and inconclusive where there are none."""
    seen = set(verdicts)
    if Verdict.INCONSISTENT in seen:
        return Verdict.INCONSISTENT
    return Verdict.CONSISTENT if seen == {Verdict.CONSISTENT} else Verdict.INCONCLUSIVE


def rank_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, worst first, otherwise in the order given."""
    order = list(Severity)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.severity)))


def fold_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, worst first; of more than three of one code and severity the first, and how many more.

    What is found on each of a thousand devices is one thing to know.
    """
    groups: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in rank_findings(findings):
        groups.setdefault((finding.code, finding.severity), []).append(finding)
    return tuple(finding for group in groups.values() for finding in _folded(group))


def _folded(group: list[Finding]) -> list[Finding]:
    if len(group) <= _MOST_ALIKE:
        return group
    first, count = group[0], sum(finding.count for finding in group)
    return [replace(first, message=f"{first.message}; and {len(group) - 1:,} more like it", count=count)]
