"""Rows of tokens: drawn by the run's own generator, or read from a file that is checked whole first."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from flopwitness.foundation.digest import Digest, Digester, digest_bytes
from flopwitness.foundation.encoding import encode_signable
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.trainers.config import DataKind, RunConfig, TokenType
from flopwitness.trainers.randomness import Randomness

__all__ = ["FileRows", "RandomRows", "RowSource", "open_rows"]

_CHUNK_TOKENS: Final = 1 << 22


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

    A row's last target is the next row's first token; what is left at the end is not used.
    """

    def __init__(self, path: Path, run: RunConfig) -> None:
        """Read the whole file once: its digest, and every token against the vocabulary.

        Raises:
            InputError: There is no such regular file, or it cannot be read.
            DecodeError: It is no whole number of tokens, holds less than one row, or holds a token that is
                not below the vocabulary; the first one is told.
        """
        self._path, self._vocabulary, self._length = path, run.model.vocabulary, run.model.sequence
        self._tokens = _map_tokens(path, run.data.dtype)
        n_tokens = len(self._tokens)
        self.count: int = (n_tokens - 1) // self._length
        if not self.count:
            raise DecodeError(
                "shorter than one row",
                where=str(path),
                expected=f"at least {self._length + 1} tokens",
                found=f"{n_tokens} tokens",
            )
        digester = Digester()
        for start, chunk in self._chunks():
            digester.update(chunk.tobytes())
            self._check(chunk, start)
        self.digest: Digest = digester.digest()

    def row(self, index: int) -> npt.NDArray[np.int64]:
        """One row; the tokens are checked again, because a mapped file can change."""
        if not 0 <= index < self.count:
            raise InputError(
                "no such row", where=str(self._path), expected=f"below {self.count}", found=str(index)
            )
        start = index * self._length
        tokens = self._tokens[start : start + self._length + 1]
        self._check(tokens, start)
        return tokens.astype(np.int64)

    def _chunks(self) -> Iterator[tuple[int, npt.NDArray[np.unsignedinteger]]]:
        for start in range(0, len(self._tokens), _CHUNK_TOKENS):
            yield start, self._tokens[start : start + _CHUNK_TOKENS]

    def _check(self, tokens: npt.NDArray[np.unsignedinteger], start: int) -> None:
        if int(tokens.max()) < self._vocabulary:
            return
        place = int(np.argmax(tokens >= self._vocabulary))
        raise DecodeError(
            "a token outside the vocabulary",
            where=f"{self._path}, token {start + place}",
            expected=f"below {self._vocabulary}",
            found=str(int(tokens[place])),
        )


def _map_tokens(path: Path, dtype: TokenType) -> npt.NDArray[np.unsignedinteger]:
    try:
        if not path.is_file():
            message = "no regular file" if path.exists() else "no such file"
            raise InputError(message, where=str(path), expected="a file of tokens")
        size_bytes = path.stat().st_size
        if size_bytes % dtype.size_bytes or not size_bytes:
            raise DecodeError(
                "no whole number of tokens",
                where=str(path),
                expected=f"a multiple of {dtype.size_bytes} bytes",
                found=f"{size_bytes} bytes",
            )
        if not os.access(path, os.R_OK):
            raise InputError("cannot be read", where=str(path), expected="a file of tokens")
        return np.memmap(path, dtype=np.dtype(str(dtype)).newbyteorder("<"), mode="r")
    except (OSError, ValueError) as error:
        raise InputError("cannot be read", where=str(path), found=str(error)[:120]) from error


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
