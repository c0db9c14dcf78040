"""What readers could not read: counted, located, and quoted so that a terminal can show it."""

from collections.abc import Iterable
from typing import Final

from flopwitness.measure.samples import Skipped

__all__ = ["SkipTally", "excerpt"]

_KEPT_SKIPS: Final = 20
_EXCERPT_BYTES: Final = 80


class SkipTally:
    """The first lines that could not be read and the number of them all, in bounded memory."""

    def __init__(self) -> None:
        self._first: list[Skipped] = []
        self._count = 0

    def add(self, where: str, *, expected: str, found: str) -> None:
        """Count one more."""
        self._count += 1
        if not self.is_full:
            self._first.append(Skipped(where=where, expected=expected, found=found))

    def add_all(self, skipped: Iterable[Skipped], *, count: int) -> None:
        """Count `count` more, of which `skipped` are known by place."""
        self._count += count
        self._first.extend(list(skipped)[: _KEPT_SKIPS - len(self._first)])

    @property
    def first(self) -> tuple[Skipped, ...]:
        """The first 20."""
        return tuple(self._first)

    @property
    def is_full(self) -> bool:
        """Whether more of them are counted only."""
        return len(self._first) >= _KEPT_SKIPS

    @property
    def count(self) -> int:
        """How many in all."""
        return self._count


def excerpt(data: bytes) -> str:
    """How some bytes begin, for a person: one line, unprintable characters escaped."""
    text = data[:_EXCERPT_BYTES].decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return shown + ("..." if len(data) > _EXCERPT_BYTES else "")
