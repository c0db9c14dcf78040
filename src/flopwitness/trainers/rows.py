"""Rows of tokens: drawn by the run's own generator, or read from a file that is checked whole first."""

import os
import stat
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from flopwitness.foundation.digest import Digest, Digester, digest_bytes
from flopwitness.foundation.encoding import encode_signable
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.trainers.config import DataKind, RunConfig
from flopwitness.trainers.randomness import Randomness

__all__ = ["FileRows", "RandomRows", "RowSource", "open_rows"]

_CHUNK_BYTES: Final = 1 << 18  # what one row costs to compare; whole tokens of every width
_KNOWN_CHUNKS: Final = 16
_DIGEST_BYTES: Final = 32


class RowSource(Protocol):
    """Rows by number. The same number gives the same row, whenever and in whatever order it is asked for.

    Attributes:
        count: How many there are; 0 where every number is a row.
        digest: The digest of all the data, or of what draws it.
    """

    count: int
    digest: Digest

    def row(self, index: int) -> npt.NDArray[np.int64]:
        """The tokens of one row and the one after it, shape (sequence + 1,), each below the vocabulary.

        Raises:
            InputError: There is no such row, or it cannot be read any more.
        """


class RandomRows:
    """Rows whose tokens are drawn evenly from the vocabulary."""

    def __init__(self, run: RunConfig, randomness: Randomness) -> None:
        self.count: int = run.data.rows
        self._vocabulary, self._length = run.model.vocabulary, run.model.sequence + 1
        self._randomness = randomness
        drawn = {
            "root": randomness.root.hex(),
            "vocabulary": self._vocabulary,
            "length": self._length,
            "rows": self.count,
        }
        self.digest: Digest = digest_bytes(encode_signable({"random tokens": drawn}))

    def row(self, index: int) -> npt.NDArray[np.int64]:
        """One row, drawn by its number alone."""
        if self.count and index >= self.count:
            raise InputError("no such row", expected=f"below {self.count}", found=str(index))
        return self._randomness.below(self._vocabulary, self._length, "random tokens", index)


class FileRows:
    """Rows of a file of tokens: row `i` starts at token `i` times the sequence's length.

    A row's last target is the next row's first token; what is left at the end is not used. Every row is read
    anew and compared with what was read first, so nothing is trained on that the digest does not cover.
    """

    def __init__(self, path: Path, run: RunConfig) -> None:
        """Read the whole file once: its digest, and every token against the vocabulary.

        Raises:
            InputError: There is no such regular file, or it cannot be read.
            DecodeError: It is no whole number of tokens, holds less than one row, or holds a token that is
                not below the vocabulary; the first one is told.
        """
        self._where, self._vocabulary, self._length = (
            f"data.path {path}",
            run.model.vocabulary,
            run.model.sequence,
        )
        self._dtype = np.dtype(str(run.data.dtype)).newbyteorder("<")
        self._file = _open_regular(path, self._where)
        self._known: OrderedDict[int, bytes] = OrderedDict()
        self._finalizer = weakref.finalize(self, os.close, self._file)
        try:
            self._size_bytes = self._check_size(os.fstat(self._file).st_size)
            self.count: int = (self._size_bytes // self._dtype.itemsize - 1) // self._length
            self._digests, self.digest = self._digest_all()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, after which no row can be read; without a call, when nobody holds the rows."""
        self._finalizer()
        self._file = -1
        self._known.clear()

    def row(self, index: int) -> npt.NDArray[np.int64]:
        """One row, of the bytes that the digest covers.

        Raises:
            InputError: There is no such row, or the file changed.
        """
        if not 0 <= index < self.count:
            raise InputError(
                "no such row", where=self._where, expected=f"below {self.count}", found=str(index)
            )
        token = index * self._length
        start = token * self._dtype.itemsize
        end = start + (self._length + 1) * self._dtype.itemsize
        first = start // _CHUNK_BYTES
        chunks = range(first, (end - 1) // _CHUNK_BYTES + 1)
        data = b"".join(self._chunk(number, token) for number in chunks)
        offset = start - first * _CHUNK_BYTES
        tokens = np.frombuffer(data[offset : offset + end - start], dtype=self._dtype)
        return tokens.astype(np.int64)

    def _check_size(self, size_bytes: int) -> int:
        width = self._dtype.itemsize
        if size_bytes % width or not size_bytes:
            raise DecodeError(
                "no whole number of tokens",
                where=self._where,
                expected=f"a multiple of {width} bytes",
                found=f"{size_bytes} bytes",
            )
        if size_bytes // width <= self._length:
            raise DecodeError(
                "shorter than one row",
                where=self._where,
                expected=f"at least {self._length + 1} tokens",
                found=f"{size_bytes // width} tokens",
            )
        return size_bytes

    def _digest_all(self) -> tuple[bytes, Digest]:
        """The digests of all chunks, one after the other, and that of the whole."""
        digester, digests = Digester(), bytearray()
        for number in range(-(-self._size_bytes // _CHUNK_BYTES)):
            token = number * _CHUNK_BYTES // self._dtype.itemsize
            data = self._read(number, token)
            digester.update(data)
            digests += digest_bytes(data).value
            self._check_tokens(np.frombuffer(data, dtype=self._dtype), token)
        return bytes(digests), digester.digest()

    def _chunk(self, number: int, token: int) -> bytes:
        """A chunk as it was when it was read first."""
        if number in self._known:
            self._known.move_to_end(number)
            return self._known[number]
        data = self._read(number, token)
        place = number * _DIGEST_BYTES
        if digest_bytes(data).value != self._digests[place : place + _DIGEST_BYTES]:
            raise self._changed(token, "other tokens")
        self._known[number] = data
        if len(self._known) > _KNOWN_CHUNKS:
            self._known.popitem(last=False)
        return data

    def _read(self, number: int, token: int) -> bytes:
        start = number * _CHUNK_BYTES
        left = min(_CHUNK_BYTES, self._size_bytes - start)
        parts = []
        while left:
            try:
                part = os.pread(self._file, left, start)
            except OSError as error:
                where = f"{self._where}, token {token}"
                raise InputError("cannot be read", where=where, found=str(error)[:120]) from error
            if not part:
                raise self._changed(token, "a shorter file")
            parts.append(part)
            start, left = start + len(part), left - len(part)
        return b"".join(parts)

    def _changed(self, token: int, found: str) -> InputError:
        return InputError(
            "changed since it was opened",
            where=f"{self._where}, token {token}",
            expected="the tokens of the run's data digest",
            found=found,
        )

    def _check_tokens(self, tokens: npt.NDArray[np.unsignedinteger], start: int) -> None:
        if int(tokens.max()) < self._vocabulary:
            return
        place = int(np.argmax(tokens >= self._vocabulary))
        raise DecodeError(
            "a token outside the vocabulary",
            where=f"{self._where}, token {start + place}",
            expected=f"below {self._vocabulary}",
            found=str(int(tokens[place])),
        )


def _open_regular(path: Path, where: str) -> int:
    """The file, open for reading; a pipe is refused at once, not waited for."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise InputError("no such file", where=where, expected="a file of tokens") from None
    except (OSError, ValueError) as error:
        raise InputError(
            "cannot be read", where=where, expected="a file of tokens", found=str(error)[:120]
        ) from error
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise InputError("no regular file", where=where, expected="a file of tokens")


def open_rows(run: RunConfig, randomness: Randomness, *, folder: Path) -> RowSource:
    """The run's rows.

    Args:
        run: The run.
        randomness: The run's random numbers.
        folder: Where the configuration lies: a relative path starts there.

    Raises:
        InputError: The file of tokens cannot be used.
    """
    if run.data.kind is DataKind.RANDOM:
        return RandomRows(run, randomness)
    return FileRows(folder / run.data.path, run)
