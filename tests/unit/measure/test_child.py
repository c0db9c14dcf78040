"""Tests of `flopwitness.measure.child`: what unpacks hostile bytes may stop, and only that child stops."""

import os

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure import child
from flopwitness.measure.child import refuse_and_end, unpack_in_child
from flopwitness.measure.sources.run_records import unpack_parquet


def stop_dead() -> None:
    os.abort()


def test_child_that_refuses_gives_its_reason() -> None:
    with pytest.raises(DecodeError, match=r"x: cannot be unpacked \(expected Apache Parquet; found .+\)"):
        unpack_in_child(unpack_parquet, b"PAR1 and nothing more", where="x", expected="Apache Parquet")


def test_child_that_cannot_even_start_is_a_refusal() -> None:
    with pytest.raises(DecodeError, match="its reader stopped, status"):
        unpack_in_child(stop_dead, b"", where="x", expected="anything")


def test_child_that_takes_too_long_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_LIMIT_S", 0.01)
    with pytest.raises(DecodeError, match="not unpacked in"):
        unpack_in_child(unpack_parquet, b"", where="x", expected="Apache Parquet")


def test_refusal_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        refuse_and_end("two\nlines " + "x" * 500)
    assert ended.value.code not in (0, None)
    said = capsys.readouterr().err.strip()
    assert said.startswith("two lines")
    assert "\n" not in said
    assert len(said) < 200
