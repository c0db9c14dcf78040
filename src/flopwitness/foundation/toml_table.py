"""TOML read key by key: each key of the kind that is asked for, and none left over.

Catalogues and configurations are edited by hand, so a misspelt key must be an error and never a value that
is silently missing; and the error names the key by its path, such as `run.toml, model.experts.active`.
"""

import datetime as dt
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import decode_flop

__all__ = ["TomlTable", "decode_toml", "show_value"]

_Kind = TypeVar("_Kind")
_Member = TypeVar("_Member", bound=StrEnum)


def decode_toml(data: bytes, *, where: str = "") -> "TomlTable":
    """The top table of TOML 1.0 in UTF-8; a byte order mark, as some editors write it, is passed over.

    Raises:
        DecodeError: Not TOML.
    """
    try:
        return TomlTable(values=tomllib.loads(data.decode("utf-8-sig")), where=where)
    except RecursionError:
        raise DecodeError("not TOML", where=where, expected="TOML 1.0", found="nested too deep") from None
    except (UnicodeDecodeError, ValueError) as error:
        raise DecodeError("not TOML", where=where, expected="TOML 1.0", found=str(error)[:160]) from None


def show_value(value: object) -> str:
    """A value as it is written, for an error; Python refuses to write integers of very many digits."""
    try:
        return repr(value)
    except ValueError:
        return "a number of too many digits"


@dataclass(slots=True, kw_only=True)
class TomlTable:
    """A table that is read key by key; `close` refuses it where a key was not asked for.

    Every getter raises `DecodeError` for a missing key or a value of another kind. A getter with a `default`
    gives it where the key is missing.

    Attributes:
        values: The keys and values.
        where: The file to name in an error.
        path: The table's own place in the file, such as `model.experts`; "" for the top.
        read: The keys that were asked for so far.
    """

    values: Mapping[str, object]
    where: str
    path: str = ""
    read: set[str] = field(default_factory=set)

    def error(self, message: str, *, key: str = "", expected: str = "", found: str = "") -> DecodeError:
        """The error to raise about a key of this table, or about the table itself."""
        return DecodeError(message, where=self.place(key), expected=expected, found=found[:80])

    def place(self, key: str = "") -> str:
        """Where the table, or one of its keys, stands: the file and the dotted path."""
        dotted = ".".join(part for part in (self.path, key) if part)
        return ", ".join(part for part in (self.where, dotted) if part)

    def has(self, name: str) -> bool:
        """Whether the table holds the key."""
        return name in self.values

    def _may_have(self, name: str) -> bool:
        """Whether the table holds a key that may be missing; it counts as asked for either way."""
        self.read.add(name)
        return name in self.values

    def _get(self, name: str, kind: type[_Kind], expected: str) -> _Kind:
        self.read.add(name)
        if name not in self.values:
            raise self.error("missing key", key=name, expected=expected)
        value = self.values[name]
        if not isinstance(value, kind) or type(value) is not kind:  # a bool is no int, a time no date
            raise self.error("bad value", key=name, expected=expected, found=show_value(value))
        return value

    def text(self, name: str) -> str:
        """Text that is not empty."""
        value = self._get(name, str, "text")
        if not value.strip():
            raise self.error("empty text", key=name, expected="text")
        return value

    def optional_text(self, name: str) -> str:
        """Text, or "" where the key is missing."""
        return self.text(name) if self._may_have(name) else ""

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false."""
        return self._get(name, bool, "true or false") if self._may_have(name) else default

    def integer(self, name: str) -> int:
        """A whole number."""
        return self._get(name, int, "a whole number")

    def whole(self, name: str, *, low: int, high: int, default: int | None = None) -> int:
        """A whole number from `low` to `high`."""
        if not self._may_have(name) and default is not None:
            return default
        expected = f"a whole number from {low} to {high}"
        value = self._get(name, int, expected)
        if not low <= value <= high:
            raise self.error("out of range", key=name, expected=expected, found=show_value(value))
        return value

    def number(self, name: str, *, low: float, high: float, default: float | None = None) -> float:
        """A number from `low` to `high`, both included; a whole number counts as one."""
        if not self._may_have(name) and default is not None:
            return default
        expected = f"a number from {low:g} to {high:g}"
        kind = int if type(self.values.get(name)) is int else float
        value = self._get(name, kind, expected)
        if not low <= value <= high:  # no NaN passes
            raise self.error("out of range", key=name, expected=expected, found=show_value(value))
        return float(value)

    def date(self, name: str) -> dt.date:
        """A date without a time."""
        return self._get(name, dt.date, "a date such as 2026-01-31")

    def optional_date(self, name: str) -> dt.date | None:
        """A date, or None where the key is missing."""
        return self.date(name) if self._may_have(name) else None

    def member(self, name: str, kind: type[_Member], *, default: _Member | None = None) -> _Member:
        """The member of `kind` that the text names."""
        if not self._may_have(name) and default is not None:
            return default
        expected = "one of " + ", ".join(kind)
        text = self._get(name, str, expected)
        if text not in [str(member) for member in kind]:
            raise self.error("bad value", key=name, expected=expected, found=show_value(text))
        return kind(text)

    def positive_count(self, name: str) -> int:
        """A count above zero, written as a decimal string."""
        count = decode_flop(self.text(name), where=self.place(name))
        if count == 0:
            raise self.error("a limit of zero", key=name, expected="more than 0")
        return count

    def _list(self, name: str, kind: type[_Kind], expected: str) -> list[_Kind]:
        items = self._get(name, list, expected) if self._may_have(name) else []
        if not all(type(item) is kind and item != "" for item in items):
            raise self.error("bad value", key=name, expected=expected, found=show_value(items))
        return items

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where the key is missing."""
        return tuple(self._list(name, str, "a list of texts"))

    def integers(self, name: str, *, low: int, high: int) -> tuple[int, ...]:
        """A list of whole numbers from `low` to `high`; empty where the key is missing."""
        expected = f"a list of whole numbers from {low} to {high}"
        items = self._list(name, int, expected)
        odd = next((item for item in items if not low <= item <= high), None)
        if odd is not None:
            raise self.error("out of range", key=name, expected=expected, found=show_value(odd))
        return tuple(items)

    def table(self, name: str) -> "TomlTable":
        """A table inside this one."""
        return self._inner(self._get(name, dict, "a table"), name)

    def optional_table(self, name: str) -> "TomlTable":
        """A table inside this one; an empty one where the key is missing."""
        return self.table(name) if self._may_have(name) else self._inner({}, name)

    def tables(self, name: str) -> "tuple[TomlTable, ...]":
        """A list of tables; empty where the key is missing."""
        items = self._list(name, dict, "a list of tables")
        return tuple(self._inner(item, f"{name}[{i}]") for i, item in enumerate(items))

    def _inner(self, values: Mapping[str, object], name: str) -> "TomlTable":
        path = ".".join(part for part in (self.path, name) if part)
        return TomlTable(values=values, where=self.where, path=path)

    def close(self) -> None:
        """Refuse a key that nobody asked for."""
        unknown = sorted(set(self.values) - self.read)
        if unknown:
            known = sorted(self.read)
            raise self.error("unknown key", key=unknown[0], expected=f"one of {', '.join(known)}")
