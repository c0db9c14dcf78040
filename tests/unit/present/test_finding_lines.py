"""Findings under an answer: each once, in the order given, wrapped beside its code."""

import pytest

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.present.finding_lines import finding_lines

LONG = "nothing in the calibration runs tells scope, clock_limit, driver: " * 4


def finding(code: str, message: str, severity: Severity = Severity.NOTE) -> Finding:
    return Finding(code=code, severity=severity, message=message)


def test_nothing_found_is_nothing_said() -> None:
    assert finding_lines([]) == []


def test_messages_stand_beside_their_codes() -> None:
    assert finding_lines([finding("gap", "one"), finding("scope-unrecorded", "two")]) == [
        "findings",
        "    gap               one",
        "    scope-unrecorded  two",
    ]


def test_the_order_is_kept_and_nothing_is_dropped() -> None:
    lines = finding_lines([finding("b", "x"), finding("a", "y"), finding("b", "x")])
    assert [line.split() for line in lines[1:]] == [["b", "x"], ["a", "y"], ["b", "x"]]


@pytest.mark.parametrize("code", ["gap", "fingerprint-unrecorded"])
def test_long_messages_are_wrapped_under_themselves(code: str) -> None:
    lines = finding_lines([finding(code, LONG)])[1:]
    assert len(lines) > 2
    assert all(len(line) <= 100 for line in lines)
    column = 4 + len(code) + 2
    assert lines[0].startswith(f"    {code}  nothing")
    for line in lines[1:]:
        assert line[:column].strip() == ""
        assert line[column] != " "
    assert " ".join(line[column:] for line in lines) == LONG.strip()


def test_words_are_never_broken() -> None:
    word = "sha256:" + "0" * 120
    lines = finding_lines([finding("gap", f"see {word} and power-mode-unknown words")])
    assert any(line.strip() == word or line.endswith(word) for line in lines)
    assert "power-mode-unknown" in " ".join(lines)


def test_only_a_contradiction_shouts() -> None:
    for severity in Severity:
        (line,) = finding_lines([finding("gap", "one", severity)])[1:]
        assert ("CONTRADICTION: one" in line) == (severity is Severity.CONTRADICTION)


def test_a_message_is_one_block_whatever_line_breaks_it_holds() -> None:
    lines = finding_lines([finding("gap", "one\nfindings\n\n    gap  two\r\nthree\x0bfour")])
    assert lines == ["findings", "    gap  one findings      gap  two  three four"]
