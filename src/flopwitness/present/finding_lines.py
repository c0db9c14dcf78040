"""Findings as lines under an answer: the code, then the sentence, wrapped beside it."""

import textwrap
from collections.abc import Sequence
from typing import Final

from flopwitness.foundation.verdict import Finding, Severity

__all__ = ["brief_finding_lines", "finding_lines"]

_WIDTH: Final = 100


def brief_finding_lines(findings: Sequence[Finding]) -> list[str]:
    """One line a finding, under an answer of a line and under a table."""
    return [f"  {finding.code}: {finding.message}" for finding in findings]


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """A heading and one block a finding, in the order given; nothing where there are none."""
    if not findings:
        return []
    lines = ["findings"]
    width = max(len(finding.code) for finding in findings) + 2
    for finding in findings:
        head = "CONTRADICTION: " if finding.severity is Severity.CONTRADICTION else ""
        lines += textwrap.wrap(
            f"{head}{finding.message}",
            width=_WIDTH,
            initial_indent=f"    {finding.code:<{width}}",
            subsequent_indent=" " * (4 + width),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines
