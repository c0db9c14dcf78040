"""Text that is safe to print, whatever a log says: the one place where control characters become escapes.

A name in a log may hold terminal commands or line breaks. Shown as they are, they could clear the screen or
forge a line of the answer.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["encode_answer", "escape_line", "join_lines", "name_count"]

# What a terminal obeys or reorders, and halves of characters, which UTF-8 cannot write.
_UNSAFE_IN_JSON: Final = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def escape_line(text: str) -> str:
    r"""The text on one line, with every character that does not print as an escape such as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def join_lines(lines: Iterable[str]) -> str:
    """The lines as one text, each escaped and ended."""
    return "".join(f"{escape_line(line)}\n" for line in lines)


def name_count(count: int, name: str) -> str:
    """The count with its noun, such as `1 row` or `1,200 rows`."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def encode_answer(record: Mapping[str, Any]) -> str:
    """The record as JSON for people and programs, without a character that a terminal would obey.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
