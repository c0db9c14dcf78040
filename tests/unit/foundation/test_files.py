import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError
from flopwitness.foundation.files import check_target, read_bounded, write_all_whole, write_whole


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
    for path, message in (
        (tmp_path, "no regular file"),
        (tmp_path / "missing", "no such file"),
        (tmp_path / "pipe", "no regular file"),
    ):
        with pytest.raises(InputError, match=message):
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
    with pytest.raises(FlopwitnessError if isinstance(failure, OSError) else KeyboardInterrupt):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(("number", "status"), [(28, 4), (122, 4), (5, 4), (13, 2), (30, 2)])
def test_a_full_disk_is_nobodys_wrong_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FlopwitnessError, match="cannot be written") as caught:
        write_whole(tmp_path / "file", b"new")
    assert caught.value.exit_status == status


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "file"
    target.write_bytes(b"old")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "second").symlink_to("link")
    (tmp_path / "new").symlink_to(tmp_path / "real" / "later")
    for name in ("link", "second"):
        write_whole(tmp_path / name, name.encode())
        assert target.read_bytes() == name.encode()
        assert (tmp_path / name).is_symlink()
    write_whole(tmp_path / "new", b"x")
    assert (tmp_path / "real" / "later").read_bytes() == b"x"
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["file", "later"]


def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to_pipe").symlink_to(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing" / "file")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        before = sorted((path.name, path.lstat().st_ino) for path in tmp_path.iterdir())
        for name in ("pipe", "folder", "to_pipe", "loop", "nowhere", "s", "/dev/null", "/dev/full"):
            for refuse in (check_target, lambda path: write_whole(path, b"x")):
                with pytest.raises(InputError, match="cannot be written"):
                    refuse(tmp_path / name)
        assert sorted((path.name, path.lstat().st_ino) for path in tmp_path.iterdir()) == before


def test_standard_output_by_name_is_refused_where_it_is_a_pipe() -> None:
    program = "from pathlib import Path; from flopwitness.foundation.files import check_target;"
    done = subprocess.run(
        [sys.executable, "-c", f"{program} check_target(Path('/dev/stdout'))"],
        capture_output=True,
        check=False,
    )
    assert b"cannot be written" in done.stderr


def test_several_files_are_written_all_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_all_whole({first: b"1", second: b"2"})
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    for bad in (tmp_path / "missing" / "x", tmp_path):
        with pytest.raises(InputError, match="cannot be written"):
            write_all_whole({first: b"new", bad: b"x"})
    assert first.read_bytes() == b"1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_where_the_last_step_fails_for_one_nothing_new_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Path.replace

    def fail(path: Path, target: Path) -> Path:
        if target.name == "second":
            raise PermissionError(1, "Operation not permitted")
        return usual(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match=r"second: cannot be written .*not permitted"):
        write_all_whole({tmp_path / "first": b"1", tmp_path / "second": b"2"})
    assert list(tmp_path.iterdir()) == []
