"""A finding as JSON, alike in the answer of every verb."""

from typing import Any

from flopwitness.foundation.verdict import Finding

__all__ = ["render_finding"]


def render_finding(item: Finding) -> dict[str, Any]:
    """The record of one finding."""
    return {
        "code": item.code,
        "severity": str(item.severity),
        "count": item.count,
        "message": item.message,
        "where": item.where,
        "expected": item.expected,
        "found": item.found,
        "reproduce": item.reproduce,
    }
