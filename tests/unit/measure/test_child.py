"""Tests of `flopwitness.measure.child`: what unpacks hostile bytes may stop, and only that child stops."""

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.measure import child
from flopwitness.measure.child import map_from_child, refuse_and_end, spool, unpack_in_child
from flopwitness.measure.sources.run_records import unpack_parquet

_UNPACKERS = """
import os
import sys

from flopwitness.measure.child import bound_memory, refuse_and_end


def turn_round():
    bound_memory()
    data = sys.stdin.buffer.read()
    with os.fdopen(1, "r+b", closefd=False) as out:
        for place, number in enumerate(data):
            out.seek(len(data) - 1 - place)
            out.write(bytes([number]))


def say_nothing():
    bound_memory()


def take_all_memory():
    bound_memory()
    bytearray(9 << 30)


def fill_the_disk():
    bound_memory()
    os.ftruncate(1, 17 << 30)


def refuse():
    refuse_and_end("not today")
"""


def stop_dead() -> None:
    os.abort()


@pytest.fixture
def unpackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Children of several kinds, in a module that a child can import."""
    (tmp_path / "odd_unpackers.py").write_text(_UNPACKERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.delitem(sys.modules, "odd_unpackers", raising=False)
    return importlib.import_module("odd_unpackers")


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


@pytest.mark.usefixtures("_where")
def test_an_answer_in_a_file_is_mapped(unpackers: ModuleType) -> None:
    with spool([b"abc", b"", b"def"], limit_bytes=6, where="x") as file:
        answer = map_from_child(unpackers.turn_round, file, where="x", expected="letters")
    assert answer[:] == b"fedcba"
    with pytest.raises(TypeError):
        answer[0] = 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("refuse", "not today"),
        ("say_nothing", "empty"),
        ("take_all_memory", "its reader stopped, status 1"),
        ("fill_the_disk", "its reader stopped, status"),
    ],
)
def test_a_child_that_gives_no_answer_is_a_refusal(unpackers: ModuleType, name: str, reason: str) -> None:
    with (
        spool([b"abc"], limit_bytes=3, where="x") as file,
        pytest.raises(DecodeError, match=f"x: cannot be unpacked .expected letters; found .*{reason}"),
    ):
        map_from_child(getattr(unpackers, name), file, where="x", expected="letters")


def test_a_child_whose_answer_comes_too_late_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_LIMIT_S", 0.01)
    with (
        spool([b"abc"], limit_bytes=3, where="x") as file,
        pytest.raises(DecodeError, match="not unpacked in"),
    ):
        map_from_child(unpack_parquet, file, where="x", expected="letters")


@pytest.fixture(params=["in memory", "on a disk"])
def _where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of files without a name."""
    if request.param == "on a disk":
        monkeypatch.delattr(os, "memfd_create", raising=False)


@pytest.mark.usefixtures("_where")
def test_what_is_kept_is_all_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with spool((bytes([number]) * 1_000 for number in range(9)), limit_bytes=9_000, where="x") as file:
        assert file.read() == b"".join(bytes([number]) * 1_000 for number in range(9))
        assert list(tmp_path.iterdir()) == []
    with spool([], limit_bytes=0, where="x") as file:
        assert file.read() == b""


@pytest.mark.parametrize("blocks", [[b"1234567890"], [b"12345", b"67890"], [b"123456789", b"", b"0"]])
def test_more_than_the_limit_is_not_kept(blocks: list[bytes]) -> None:
    with pytest.raises(DecodeError, match="too large"):
        spool(blocks, limit_bytes=9, where="x")


def test_an_error_on_the_way_is_passed_on() -> None:
    def broken() -> Iterator[bytes]:
        yield b"1"
        raise InputError("gone", where="x")

    with pytest.raises(InputError):
        spool(broken(), limit_bytes=9, where="x")


def test_no_room_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(DecodeError, match="cannot be unpacked"):
        spool([b"1"], limit_bytes=9, where="x")
