"""Exact counts and honest units.

A count of operations is a Python int and travels as a decimal string: 1e25 overflows int64, and
`float(10**25) != 10**25`. A rate is a float and says so in its name. Conversions happen once, here.
"""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Final

from flopwitness.foundation.errors import DecodeError

__all__ = [
    "JOULE_PER_KWH",
    "NANOSECOND_PER_MILLISECOND",
    "NANOSECOND_PER_SECOND",
    "SECOND_PER_HOUR",
    "decode_flop",
    "encode_flop",
    "format_duration",
    "format_energy",
    "format_flop",
    "format_times",
    "parse_flop",
    "scale_count",
]

JOULE_PER_KWH: Final = 3_600_000
SECOND_PER_HOUR: Final = 3_600
NANOSECOND_PER_SECOND: Final = 1_000_000_000
NANOSECOND_PER_MILLISECOND: Final = 1_000_000

_DECIMAL_STRING: Final = re.compile(r"0|[1-9][0-9]{0,63}")
_WRITTEN_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_LONGEST_NUMBER: Final = 200
_LARGEST_EXPONENT: Final = 63


def encode_flop(flop: int) -> str:
    """The count as a decimal string without sign, leading zeros, point or exponent.

    Raises:
        ValueError: The count is negative: a negative estimate is an anomaly, not a count.
    """
    if flop < 0:
        raise ValueError(f"a count of operations cannot be negative: {flop}")
    return str(flop)


def decode_flop(text: str, *, where: str = "") -> int:
    """The count that a decimal string stands for; only what `encode_flop` writes is accepted.

    Raises:
        DecodeError: Anything else, or more than 64 digits.
    """
    if not _DECIMAL_STRING.fullmatch(text):
        raise DecodeError(
            "not a count of operations", where=where, expected="a decimal string", found=repr(text[:80])
        )
    return int(text)


def parse_flop(text: str, *, where: str = "", unit: str = "operations") -> int:
    """The count that a person wrote: `10000`, `1e25`, `2.5e24`, exactly.

    Args:
        text: A decimal number in ASCII digits, with or without an exponent; at most 64 digits before the
            point and 200 characters in all.
        where: The place to name in an error.
        unit: What is counted.

    Raises:
        DecodeError: Not a number, negative, not whole, or too large.
    """
    expected = f"a whole number of {unit} such as 10000 or 2.5e24"
    written = text.strip()
    if len(written) > _LONGEST_NUMBER or not _WRITTEN_NUMBER.fullmatch(written):
        raise DecodeError("not a number", where=where, expected=expected, found=repr(text[:80]))
    value = Decimal(written)
    if value < 0 or value.adjusted() > _LARGEST_EXPONENT:
        raise DecodeError(f"not a count of {unit}", where=where, expected=expected, found=repr(text[:80]))
    fraction = Fraction(value) if value.adjusted() >= -_LARGEST_EXPONENT else Fraction(1, 2)
    if fraction.denominator != 1:
        raise DecodeError("not a whole number", where=where, expected=expected, found=repr(text[:80]))
    return fraction.numerator


def scale_count(value: float, *, up: bool = False) -> int:
    """The whole count next to a finite float: floor by default, ceiling where `up`.

    Bounds from above round up and lower ends round down, so that rounding never flatters anybody.
    """
    fraction = Fraction(value)
    return (
        -((-fraction.numerator) // fraction.denominator) if up else fraction.numerator // fraction.denominator
    )


def format_flop(flop: int, *, digits: int = 2) -> str:
    """The count for a person's eye, such as `6.1e20`; zero is `0`."""
    if flop < 10_000:  # noqa: PLR2004 (short counts are shown whole)
        return str(flop)
    mantissa, exponent = f"{Decimal(flop):.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def format_energy(energy_j: float) -> str:
    """The energy for a person's eye: J below 10 kJ, kJ below 1 kWh, then kWh and MWh."""
    for limit_j, scale_j, unit in (
        (1e4, 1.0, "J"),
        (JOULE_PER_KWH, 1e3, "kJ"),
        (1e4 * JOULE_PER_KWH, JOULE_PER_KWH, "kWh"),
    ):
        if abs(energy_j) < limit_j:
            return f"{_significant(energy_j / scale_j)} {unit}"
    return f"{_significant(energy_j / (1000 * JOULE_PER_KWH))} MWh"


def _significant(value: float) -> str:
    """Four significant digits without an exponent, or every digit before the point."""
    if value == 0:
        return "0"
    decimals = max(0, 3 - Decimal(value).adjusted())
    return f"{value:.{min(decimals, 6)}f}"


def format_duration(time_s: float) -> str:
    """The length for a person's eye, such as `56 min 53 s` or `3 d 4 h`."""
    if time_s < 59.95:  # noqa: PLR2004 (from here on, three digits would show 60 s)
        return f"{time_s:.3g} s"
    seconds = round(time_s)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, SECOND_PER_HOUR)
    minutes, seconds = divmod(seconds, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    first = next(i for i, (amount, _) in enumerate(parts) if amount)
    return " ".join(f"{amount} {unit}" for amount, unit in parts[first : first + 2] if amount)


def format_times(ratio: Fraction) -> str:
    """How many times, for a person's eye: `2.9`, `2,900`, never more digits than they deserve."""
    value = float(ratio)
    if value < 10:  # noqa: PLR2004 (one decimal below ten)
        return f"{value:.2g}"
    if value < 100:  # noqa: PLR2004
        return f"{value:.0f}"
    if value >= 1e9:  # noqa: PLR2004
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    magnitude = 10 ** (Decimal(value).adjusted() - 1)
    return f"{int(value // magnitude) * magnitude:,}"
