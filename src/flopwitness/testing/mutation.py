"""Make damaged inputs out of good ones, the same ones for the same seed.

Random bytes rarely get past a decoder's first check. A good input with one to four wounds does: a number
blown up, a name repeated, a line cut, torn UTF-8, text that another format begins with.
"""

import re
from collections.abc import Callable
from random import Random
from typing import Final

__all__ = ["LARGEST_MUTANT_BYTES", "mutate"]

LARGEST_MUTANT_BYTES: Final = 2 << 20
_MOST_WOUNDS: Final = 4
_NUMBER: Final = re.compile(rb"-?[0-9][0-9.]*")
_TEXT: Final = re.compile(rb'"[^"\n]{0,64}"')
_NUMBERS: Final = (
    b"1e999",
    b"-1",
    b"NaN",
    b"-Infinity",
    b"0",
    b"-0",
    b"true",
    b"null",
    b'"12"',
    b"1.5",
    b"9" * 40,
    b"9" * 5_000,
    b"9223372036854775808",
    b"1e-400",
    b"0x10",
    b"1_000",
    b"01",
    b"",
)
_KEYWORDS: Final = (
    b":::MLLOG ",
    b":::SYSJSON ",
    b'{"key": "run_start", "time_ms": 1}',
    b'"value": null, ',
    b'"time_ms": 1, ',
    b"\r\n",
    b",",
    b"\xef\xbb\xbf",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"PAR1",
    b"ustar",
    b"../",
)
_BROKEN_TEXT: Final = (
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\x00",
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"\\",
    b'"',
)


def mutate(seed_bytes: bytes, rng: Random) -> bytes:
    """The seed with one to four wounds, at most 2 MiB; a function of the seed and the generator's state."""
    data = seed_bytes
    for _ in range(rng.randint(1, _MOST_WOUNDS)):
        data = rng.choice(_WOUNDS)(data, rng)
    return data[:LARGEST_MUTANT_BYTES]


def _place(data: bytes, rng: Random) -> int:
    return rng.randint(0, len(data))


def _insert(data: bytes, piece: bytes, rng: Random) -> bytes:
    place = _place(data, rng)
    return data[:place] + piece + data[place:]


def _flip_bits(data: bytes, rng: Random) -> bytes:
    flipped = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if flipped:
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def _truncate(data: bytes, rng: Random) -> bytes:
    return data[: _place(data, rng)]


def _delete(data: bytes, rng: Random) -> bytes:
    first, last = sorted((_place(data, rng), _place(data, rng)))
    return data[:first] + data[last:]


def _splice(data: bytes, rng: Random) -> bytes:
    """A piece of the data copied over another place."""
    first, last = sorted((_place(data, rng), _place(data, rng)))
    place = _place(data, rng)
    return data[:place] + data[first:last] + data[place + last - first :]


def _duplicate(data: bytes, rng: Random) -> bytes:
    first, last = sorted((_place(data, rng), _place(data, rng)))
    return data[:last] + data[first:last] * rng.randint(1, 3) + data[last:]


def _blow_up_number(data: bytes, rng: Random) -> bytes:
    return _replace_match(data, _NUMBER, rng.choice(_NUMBERS), rng)


def _replace_text(data: bytes, rng: Random) -> bytes:
    texts = _TEXT.findall(data)
    return _replace_match(data, _TEXT, rng.choice((*_NUMBERS, *texts[:64])), rng)


def _replace_match(data: bytes, pattern: re.Pattern[bytes], piece: bytes, rng: Random) -> bytes:
    """The first match after a place drawn at random replaced; the data itself where there is none."""
    found = pattern.search(data, _place(data, rng))
    return data if found is None else data[: found.start()] + piece + data[found.end() :]


def _break_text(data: bytes, rng: Random) -> bytes:
    return _insert(data, rng.choice(_BROKEN_TEXT), rng)


def _insert_keyword(data: bytes, rng: Random) -> bytes:
    return _insert(data, rng.choice(_KEYWORDS), rng)


def _lengthen_line(data: bytes, rng: Random) -> bytes:
    """Mostly a few kilobytes; now and then beyond a mebibyte."""
    length = (1 << 20) + 2 if rng.random() < 0.005 else rng.choice((300, 5_000, 20_000))  # noqa: PLR2004
    return _insert(data, rng.choice((b"a", b" ", b"1", b'"')) * length, rng)


def _nest(data: bytes, rng: Random) -> bytes:
    depth = rng.choice((10, 300, 5_000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")))
    middle = _place(data, rng)
    piece = opening * depth + (b"1" + closing * depth if rng.random() < 0.5 else b"")  # noqa: PLR2004
    return data[:middle] + piece + data[middle:]


def _swap_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _repeat_name(data: bytes, rng: Random) -> bytes:
    """A `"name": value,` written once more, with another value."""
    found = re.compile(rb'"[a-z_]{1,40}": ?').search(data, _place(data, rng))
    if found is None:
        return data
    return data[: found.start()] + found[0] + rng.choice(_NUMBERS) + b", " + data[found.start() :]


_WOUNDS: Final[tuple[Callable[[bytes, Random], bytes], ...]] = (
    _flip_bits,
    _truncate,
    _delete,
    _splice,
    _duplicate,
    _blow_up_number,
    _blow_up_number,
    _replace_text,
    _break_text,
    _insert_keyword,
    _lengthen_line,
    _nest,
    _swap_lines,
    _repeat_name,
)
