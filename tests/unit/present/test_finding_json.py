from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.present.finding_json import render_finding


def test_every_field_of_a_finding_is_there() -> None:
    finding = Finding(
        code="gap",
        severity=Severity.WARNING,
        message="m",
        where="w",
        expected="e",
        found="f",
        count=3,
        reproduce="r",
    )
    assert render_finding(finding) == {
        "code": "gap",
        "severity": "warning",
        "message": "m",
        "where": "w",
        "expected": "e",
        "found": "f",
        "count": 3,
        "reproduce": "r",
    }
