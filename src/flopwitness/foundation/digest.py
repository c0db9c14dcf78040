"""Digests that carry the name of their algorithm, and comparison that leaks no timing.

A digest without its algorithm's name is a promise nobody can check later, so the written form is
`sha256:<64 hex digits>` and nothing shorter.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flopwitness.foundation.errors import DecodeError

__all__ = ["Digest", "Digester", "digest_bytes", "digest_file", "digest_stream", "is_same_secret"]

_WRITTEN_FORM: Final = re.compile(r"(sha256):([0-9a-f]{64})")
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Digest:
    """What some bytes hash to.

    Attributes:
        algorithm: The algorithm with all its parameters in its name; today `sha256` (FIPS 180-4).
        value: The raw digest.
    """

    algorithm: str
    value: bytes

    def __str__(self) -> str:
        """The written form, `sha256:<hex>`."""
        return f"{self.algorithm}:{self.value.hex()}"

    @classmethod
    def parse(cls, text: str, *, where: str = "") -> "Digest":
        """The digest that a written form names.

        Raises:
            DecodeError: Another algorithm, another length, or upper-case digits.
        """
        match = _WRITTEN_FORM.fullmatch(text)
        if match is None:
            raise DecodeError(
                "not a digest", where=where, expected="sha256:<64 hex digits>", found=repr(text[:80])
            )
        return cls(match[1], bytes.fromhex(match[2]))


class Digester:
    """The SHA-256 of bytes as they pass by."""

    def __init__(self) -> None:
        self._state = hashlib.sha256()

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        self._state.update(data)

    def digest(self) -> Digest:
        """The digest of everything so far."""
        return Digest("sha256", self._state.digest())


def digest_bytes(data: bytes) -> Digest:
    """The SHA-256 of `data`."""
    return Digest("sha256", hashlib.sha256(data).digest())


def digest_stream(chunks: Iterable[bytes]) -> Digest:
    """The SHA-256 of the chunks joined, in constant memory."""
    state = hashlib.sha256()
    for chunk in chunks:
        state.update(chunk)
    return Digest("sha256", state.digest())


def digest_file(path: Path) -> Digest:
    """The SHA-256 of a file's bytes, in constant memory.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        return digest_stream(iter(lambda: file.read(_CHUNK_BYTES), b""))


def is_same_secret(left: bytes, right: bytes) -> bool:
    """Whether two secrets are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(left, right)
