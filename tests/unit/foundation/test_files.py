import os
from pathlib import Path

import pytest

from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.foundation.files import read_bounded, write_whole


def test_a_file_up_to_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bounded(path, limit_bytes=5) == b"12345"
    assert read_bounded(path, limit_bytes=500) == b"12345"


def test_a_larger_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"123456")
    with pytest.raises(DecodeError, match=r"too large \(expected at most 5 bytes; found 6 bytes\)"):
        read_bounded(path, limit_bytes=5)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "pipe"):
        with pytest.raises(InputError, match="no such file"):
            read_bounded(path, limit_bytes=5)


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"cannot be read \(found Permission denied\)"):
        read_bounded(path, limit_bytes=5)


def test_a_file_is_written_whole_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208 (names, not paths)


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    for path in (tmp_path / "missing" / "file", tmp_path / "folder"):
        with pytest.raises(InputError, match="cannot be written"):
            write_whole(path, b"data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_older_file_and_no_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")

    def fail(_: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError if isinstance(failure, OSError) else KeyboardInterrupt):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
