"""TOML read key by key: each key of the kind that is asked for, and none left over.

A catalogue is data that people edit by hand, so a misspelt key must be an error and never a value that is
silently missing.
"""

import datetime as dt
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import decode_flop

__all__ = ["TomlTable", "decode_toml"]

_Kind = TypeVar("_Kind")
_Member = TypeVar("_Member", bound=StrEnum)


def decode_toml(data: bytes, *, where: str = "") -> "TomlTable":
    """The top table of TOML 1.0 in UTF-8.

    Raises:
        DecodeError: Not TOML.
    """
    try:
        return TomlTable(values=tomllib.loads(data.decode("utf-8")), where=where)
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise DecodeError("not TOML", where=where, expected="TOML 1.0", found=str(error)[:160]) from None


@dataclass(slots=True, kw_only=True)
class TomlTable:
    """A table that is read key by key; `close` refuses it where a key was not asked for.

    Every getter raises `DecodeError` for a missing key or a value of another kind.

    Attributes:
        values: The keys and values.
        where: The place to name in an error.
        read: The keys that were asked for so far.
    """

    values: Mapping[str, object]
    where: str
    read: set[str] = field(default_factory=set)

    def error(self, message: str, *, expected: str = "", found: str = "") -> DecodeError:
        """The error to raise about this table."""
        return DecodeError(message, where=self.where, expected=expected, found=found[:80])

    def has(self, name: str) -> bool:
        """Whether the table holds the key."""
        return name in self.values

    def _get(self, name: str, kind: type[_Kind], expected: str) -> _Kind:
        self.read.add(name)
        value = self.values.get(name)
        if not isinstance(value, kind) or type(value) is not kind:  # a bool is no int, a time no date
            raise self.error(
                f"bad or missing key {name!r}",
                expected=expected,
                found="nothing" if value is None else repr(value),
            )
        return value

    def text(self, name: str) -> str:
        """Text that is not empty."""
        value = self._get(name, str, "text")
        if not value.strip():
            raise self.error(f"empty key {name!r}", expected="text")
        return value

    def optional_text(self, name: str) -> str:
        """Text, or "" where the key is missing."""
        return self.text(name) if self.has(name) else ""

    def integer(self, name: str) -> int:
        """A whole number."""
        return self._get(name, int, "a whole number")

    def date(self, name: str) -> dt.date:
        """A date without a time."""
        return self._get(name, dt.date, "a date such as 2026-01-31")

    def optional_date(self, name: str) -> dt.date | None:
        """A date, or None where the key is missing."""
        return self.date(name) if self.has(name) else None

    def member(self, name: str, kind: type[_Member]) -> _Member:
        """The member of `kind` that the text names."""
        text = self.text(name)
        if text not in [str(member) for member in kind]:
            raise self.error(f"bad key {name!r}", expected="one of " + ", ".join(kind), found=text)
        return kind(text)

    def positive_count(self, name: str) -> int:
        """A count above zero, written as a decimal string."""
        count = decode_flop(self.text(name), where=f"{self.where}, {name}")
        if count == 0:
            raise DecodeError("a limit of zero", where=f"{self.where}, {name}", expected="more than 0")
        return count

    def _list(self, name: str, kind: type[_Kind], expected: str) -> list[_Kind]:
        items = self._get(name, list, expected) if self.has(name) else []
        if not all(isinstance(item, kind) and item != "" for item in items):
            raise self.error(f"bad key {name!r}", expected=expected)
        return items

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where the key is missing."""
        return tuple(self._list(name, str, "a list of texts"))

    def table(self, name: str) -> "TomlTable":
        """A table inside this one."""
        return TomlTable(values=self._get(name, dict, "a table"), where=f"{self.where}, {name}")

    def tables(self, name: str) -> "tuple[TomlTable, ...]":
        """A list of tables; empty where the key is missing."""
        items = self._list(name, dict, "a list of tables")
        return tuple(
            TomlTable(values=item, where=f"{self.where}, {name}[{i}]") for i, item in enumerate(items)
        )

    def close(self) -> None:
        """Refuse a key that nobody asked for."""
        unknown = sorted(set(self.values) - self.read)
        if unknown:
            raise self.error("unknown key", found=repr(unknown[0]))
