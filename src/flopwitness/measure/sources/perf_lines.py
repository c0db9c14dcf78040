"""Lines of `perf stat` that hold an energy, in its three layouts and in the numbers of any locale.

perf prints energies with two decimals and, outside CSV, with the locale's separators, so `2,306.32`,
`2.306,32` and `0,05` are all met. An aggregated line names a socket, die, core or CPU in front.
"""

import re
from dataclasses import dataclass
from typing import Final

from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.values import Unreadable, parse_number

__all__ = ["EnergyLine", "parse_elapsed_ns", "parse_energy_line"]

_SINGLE_MARK: Final = re.compile(rb"([0-9]+)([.,])([0-9]+)")
_GROUPED: Final = {
    b",": re.compile(rb"[0-9]{1,3}(?:,[0-9]{2,3}){1,20}(?:\.[0-9]+)?"),
    b".": re.compile(rb"[0-9]{1,3}(?:\.[0-9]{2,3}){1,20}(?:,[0-9]+)?"),
}
_GROUP: Final = 3
_LONGEST_LINE: Final = 1_000
_MOST_DIGITS: Final = 9
_SPACES: Final = re.compile(rb"(?<=[0-9])(?:\xe2\x80\xaf|\xc2\xa0)(?=[0-9])")
_EVENT: Final = rb"(\S{0,100}energy-(pkg|ram|psys|cores?|gpu)\b\S{0,100})"
_PLACE: Final = rb"(?:S|N|CPU|D)[0-9]{1,6}(?:-[A-Z]{1,3}[0-9]{1,6}){0,6}"
_TEXT: Final = re.compile(
    rb"(?:([0-9]{1,9}[.,][0-9]{3,9})\s+)?(?:(" + _PLACE + rb")\s+(?:([0-9]{1,9})\s+)?)?"
    rb"(<not (?:counted|supported)>|[0-9][0-9.,']{0,63})\s+Joules\s+" + _EVENT + rb"(?:\s.*)?",
    re.DOTALL,
)
_CSV: Final = re.compile(rb"([,;|:\t@!/])Joules\1")
_CSV_PLACE: Final = re.compile(_PLACE)
_CSV_TIME: Final = re.compile(rb"[0-9]{1,9}[.,][0-9]{3,9}")
_CSV_EVENT: Final = re.compile(_EVENT)
_ELAPSED: Final = re.compile(rb"([0-9][0-9.,']{0,40})(?:\s*\+-\s*[0-9.,']+)?\s+seconds time elapsed(?:\s.*)?")
_LEVELS: Final = re.compile(r"(S|D|N|CPU|C)([0-9]+)")
_OTHER_LEVELS: Final = (("N", "node"), ("CPU", "cpu"), ("D", "die"))
_DOMAINS: Final = {
    b"pkg": (Scope.CPU, ""),
    b"ram": (Scope.DRAM, ""),
    b"psys": (Scope.PLATFORM, ""),
    b"cores": (Scope.CPU_PART, "cores"),
    b"core": (Scope.CPU_PART, "cores"),
    b"gpu": (Scope.CPU_PART, "igpu"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyLine:
    """One energy.

    Attributes:
        energy_j: NaN where perf did not count.
        scope: What it covers: cores and the processor's own graphics lie inside the package, so they are
            rails.
        part: The socket and the rail, such as `package-0/cores`; "" for all of the machine.
        place: Where perf says that it counted, as it stands, such as `S0-D0-C1`.
        is_elsewhere: Whether it is of a core on which the event does not count, because another does.
        time_ns: The end of the interval since the start; None outside interval mode.
        is_csv: Whether the layout is that of `-x`.
    """

    energy_j: float
    scope: Scope
    part: str
    place: str
    is_elsewhere: bool
    time_ns: int | None
    is_csv: bool


def parse_energy_line(line: bytes) -> EnergyLine | None:
    """The energy of a line; None where the line holds none, or a summary of intervals already printed.

    Raises:
        Unreadable: It looks like one and cannot be read.
    """
    if b"energy-" not in line or b"Joules" not in line:
        return None
    if len(line) > _LONGEST_LINE:
        raise Unreadable("a line that is too long")
    found = _CSV.search(line)
    if found is not None:
        return _parse_csv(line.split(found[1]))
    text = _TEXT.fullmatch(_SPACES.sub(b"'", line.strip()))
    if text is None:
        raise Unreadable(line[:64].decode("utf-8", "backslashreplace"))
    time, place, count, value, _, domain = text.groups()
    return _energy_line(value, domain, place=place or b"", count=count, time=time, is_csv=False)


def parse_elapsed_ns(line: bytes) -> int | None:
    """The length that `seconds time elapsed` gives; None where the line is no such line."""
    found = _ELAPSED.fullmatch(line.strip())
    return None if found is None else _nanoseconds(found[1].replace(b"'", b""))


def _parse_csv(fields: list[bytes]) -> EnergyLine | None:
    """`[time,][place,[count,]]value,Joules,event,...`; a line of `--summary` begins with that word."""
    at = fields.index(b"Joules")
    event = _CSV_EVENT.fullmatch(fields[at + 1].strip())
    before = [field.strip() for field in fields[:at]]
    if before and before[0] == b"summary":
        return None
    time = before.pop(0) if len(before) > 1 and _CSV_TIME.fullmatch(before[0]) else None
    place = before.pop(0) if len(before) > 1 and _CSV_PLACE.fullmatch(before[0]) else b""
    count = before.pop(0) if place and len(before) > 1 and before[0].isdigit() else None
    if event is None or len(before) != 1 or not before[0]:
        raise Unreadable(b",".join(fields)[:64].decode("utf-8", "backslashreplace"))
    return _energy_line(before[0], event[2], place=place, count=count, time=time, is_csv=True)


def _energy_line(
    value: bytes, domain: bytes, *, place: bytes, count: bytes | None, time: bytes | None, is_csv: bool
) -> EnergyLine:
    scope, rail = _DOMAINS[domain]
    name = place.decode("ascii")
    time_ns = None if time is None else _nanoseconds(time)
    if time is not None and time_ns is None:
        raise Unreadable(time.decode("ascii"))
    return EnergyLine(
        energy_j=float("nan") if value.startswith(b"<not") else _energy_j(value),
        scope=scope,
        part="/".join(word for word in (_package(name, is_core=domain == b"core"), rail) if word),
        place=name,
        is_elsewhere=count is not None and not count.strip(b"0"),
        time_ns=time_ns,
        is_csv=is_csv,
    )


def _package(place: str, *, is_core: bool) -> str:
    """The socket and die, as the kernel names them; the core too where the event is one of a core."""
    levels = dict(_LEVELS.findall(place))
    if "S" not in levels:
        words = [f"{word}-{levels[level]}" for level, word in _OTHER_LEVELS if level in levels]
        return words[0] if words else ""
    name = f"package-{levels['S']}"
    if levels.get("D", "0") != "0":
        name += f"-die-{levels['D']}"
    return f"{name}/core-{levels['C']}" if is_core and "C" in levels else name


def _energy_j(text: bytes) -> float:
    """An energy in any locale's numbers.

    A single comma in front of three digits groups them, as perf prints two decimals; a single point never
    does.

    Raises:
        Unreadable: It is no number.
    """
    text = text.replace(b"'", b"")
    single = _SINGLE_MARK.fullmatch(text)
    if single is not None:
        whole, mark, fraction = single.groups()
        return parse_number(whole + (b"" if mark == b"," and len(fraction) == _GROUP else b".") + fraction)
    for group, mark in ((b",", b"."), (b".", b",")):
        if _GROUPED[group].fullmatch(text):
            return parse_number(text.replace(group, b"").replace(mark, b"."))
    return parse_number(text)


def _nanoseconds(text: bytes) -> int | None:
    """Seconds with a decimal mark of either kind as whole nanoseconds; perf groups no digits of a time."""
    last = max(text.rfind(b"."), text.rfind(b","))
    whole, fraction = (text, b"") if last < 0 else (text[:last], text[last + 1 :])
    whole = whole.replace(b".", b"").replace(b",", b"")
    if not whole.isdigit() or len(whole) > _MOST_DIGITS or not (fraction or b"0").isdigit():
        return None
    return int(whole) * 1_000_000_000 + int(fraction[:9].ljust(9, b"0"))
