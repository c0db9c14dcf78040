"""Rows of tokens, drawn or read: the same row for the same number, and no token outside the vocabulary."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.trainers import rows as rows_module
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.randomness import Randomness, derive_root
from flopwitness.trainers.rows import FileRows, RandomRows, open_rows

Make = Callable[..., RunConfig]

RANDOMNESS = Randomness(derive_root(7))


@pytest.fixture
def file_run(make_run: Make, drop: object) -> RunConfig:
    return make_run(data__kind="tokens", data__rows=drop, data__path="tokens.bin", data__dtype="uint16")


def _write(path: Path, tokens: list[int], dtype: str = "<u2") -> Path:
    path.write_bytes(np.array(tokens, dtype=dtype).tobytes())
    return path


def test_a_drawn_row_follows_from_its_number(make_run: Make) -> None:
    rows = RandomRows(make_run(), RANDOMNESS)
    first = rows.row(3)
    assert first.shape == (9,)
    assert first.dtype == np.int64
    assert (first == RandomRows(make_run(), RANDOMNESS).row(3)).all()
    assert (first != rows.row(4)).any()
    assert 0 <= first.min() <= first.max() < 32
    assert rows.row(0).tolist() == GOLDEN_ROW


GOLDEN_ROW = [15, 20, 2, 11, 2, 22, 4, 13, 15]


def test_drawn_rows_end_where_the_run_says(make_run: Make, drop: object) -> None:
    rows = RandomRows(make_run(), RANDOMNESS)
    assert rows.count == 12
    rows.row(11)
    with pytest.raises(InputError, match="no such row"):
        rows.row(12)
    endless = RandomRows(make_run(data__rows=drop), RANDOMNESS)
    assert endless.count == 0
    assert endless.row(10**9).shape == (9,)


def test_what_is_drawn_has_a_digest(make_run: Make) -> None:
    digests = {
        str(RandomRows(run, randomness).digest)
        for run, randomness in (
            (make_run(), RANDOMNESS),
            (make_run(data__rows=13), RANDOMNESS),
            (make_run(model__vocabulary=31), RANDOMNESS),
            (make_run(model__sequence=9), RANDOMNESS),
            (make_run(), Randomness(derive_root(8))),
        )
    }
    assert len(digests) == 5


def test_rows_of_a_file_overlap_by_the_target(file_run: RunConfig, tmp_path: Path) -> None:
    path = _write(tmp_path / "tokens.bin", [token % 32 for token in range(20)])
    rows = FileRows(path, file_run)
    assert rows.count == 2
    assert rows.row(0).tolist() == list(range(9))
    assert rows.row(1).tolist() == list(range(8, 17))
    assert rows.digest == digest_bytes(path.read_bytes())


def test_a_file_of_wide_tokens(make_run: Make, drop: object, tmp_path: Path) -> None:
    run = make_run(
        model__vocabulary=70_000, data__kind="tokens", data__rows=drop, data__path="t", data__dtype="uint32"
    )
    _write(tmp_path / "t", [69_999] * 9, "<u4")
    source = open_rows(run, RANDOMNESS, folder=tmp_path)
    assert source.row(0).tolist() == [69_999] * 9


def test_the_last_token_of_the_vocabulary_is_one(file_run: RunConfig, tmp_path: Path) -> None:
    FileRows(_write(tmp_path / "tokens.bin", [31] * 9), file_run)


@pytest.mark.parametrize("place", [0, 8, 16, 20])
def test_a_token_outside_the_vocabulary_is_told_with_its_place(
    file_run: RunConfig, tmp_path: Path, place: int
) -> None:
    tokens = [0] * 21
    tokens[place] = 32
    path = _write(tmp_path / "tokens.bin", tokens)
    with pytest.raises(DecodeError, match="outside the vocabulary") as caught:
        FileRows(path, file_run)
    assert caught.value.where == f"data.path {path}, token {place}"
    assert (caught.value.expected, caught.value.found) == ("below 32", "32")


def _overwrite(path: Path, place_bytes: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place_bytes)
        file.write(data)


@pytest.mark.parametrize("data", [b"\xff\xff", b"\x01\x00"])
def test_a_row_that_changed_later_is_refused(file_run: RunConfig, tmp_path: Path, data: bytes) -> None:
    path = _write(tmp_path / "tokens.bin", [0] * 20)
    rows = FileRows(path, file_run)
    _overwrite(path, 2 * 9, data)
    with pytest.raises(InputError, match="changed since it was opened") as caught:
        rows.row(1)
    assert caught.value.where == f"data.path {path}, token 8"


def test_a_file_that_is_cut_later_is_refused(file_run: RunConfig, tmp_path: Path) -> None:
    path = _write(tmp_path / "tokens.bin", [0] * 20)
    rows = FileRows(path, file_run)
    os.truncate(path, 20)
    with pytest.raises(InputError, match="found a shorter file") as caught:
        rows.row(1)
    assert caught.value.where == f"data.path {path}, token 8"


def test_rows_across_chunks_are_read_and_compared(
    file_run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "_CHUNK_BYTES", 4)
    tokens = [token % 32 for token in range(90)]
    path = _write(tmp_path / "tokens.bin", tokens)
    rows = FileRows(path, file_run)
    assert rows.digest == digest_bytes(path.read_bytes())
    for _ in range(2):
        for index in range(rows.count):
            assert rows.row(index).tolist() == tokens[8 * index : 8 * index + 9]
    _overwrite(path, 2 * 17, b"\x05\x00")
    assert rows.row(0).tolist() == tokens[:9]
    for index in (1, 2):  # the last target of row 1 lies in the chunk that changed
        with pytest.raises(InputError, match=f"token {8 * index}"):
            rows.row(index)


def test_a_pipe_is_refused_without_waiting(file_run: RunConfig, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokens.bin")
    with pytest.raises(InputError, match="no regular file"):
        open_rows(file_run, RANDOMNESS, folder=tmp_path)


def test_a_file_that_was_closed_gives_no_row(file_run: RunConfig, tmp_path: Path) -> None:
    rows = FileRows(_write(tmp_path / "tokens.bin", [0] * 20), file_run)
    rows.close()
    with pytest.raises(InputError, match="cannot be read"):
        rows.row(0)


def test_no_file_stays_open(file_run: RunConfig, tmp_path: Path) -> None:
    path = _write(tmp_path / "tokens.bin", [0] * 20)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        FileRows(path, file_run).row(0)
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(DecodeError, match=r"data\.path"):
        FileRows(path, file_run)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no whole number of tokens"),
        (b"\0" * 19, "no whole number of tokens"),
        (b"\0" * 16, "shorter than one row"),
        (b"\0" * 2, "shorter than one row"),
    ],
)
def test_a_file_that_holds_no_row_is_refused(
    file_run: RunConfig, tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "tokens.bin"
    path.write_bytes(data)
    with pytest.raises(DecodeError, match=message):
        open_rows(file_run, RANDOMNESS, folder=tmp_path)


def test_a_missing_file_a_folder_and_a_closed_file_are_refused(file_run: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_rows(file_run, RANDOMNESS, folder=tmp_path)
    (tmp_path / "tokens.bin").mkdir()
    with pytest.raises(InputError, match="no regular file"):
        open_rows(file_run, RANDOMNESS, folder=tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_refused(file_run: RunConfig, tmp_path: Path) -> None:
    path = _write(tmp_path / "tokens.bin", [0] * 20)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        open_rows(file_run, RANDOMNESS, folder=tmp_path)


@pytest.mark.parametrize("index", [-1, 2])
def test_a_row_that_a_file_does_not_have_is_refused(file_run: RunConfig, tmp_path: Path, index: int) -> None:
    rows = FileRows(_write(tmp_path / "tokens.bin", [0] * 20), file_run)
    with pytest.raises(InputError, match="no such row"):
        rows.row(index)
