"""perf's lines: three layouts, and numbers as any locale writes them."""

import math

import pytest

from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.perf_lines import EnergyLine, parse_elapsed_ns, parse_energy_line
from flopwitness.measure.sources.values import Unreadable


def _parse(line: str | bytes) -> EnergyLine:
    parsed = parse_energy_line(line.encode() if isinstance(line, str) else line)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("value", "energy_j"),
    [
        ("12.74", 12.74),
        ("0,05", 0.05),
        ("2,306.32", 2_306.32),
        ("2.306,32", 2_306.32),
        ("1'234'567.89", 1_234_567.89),
        ("1,234,567.89", 1_234_567.89),
        ("1.234.567,89", 1_234_567.89),
        ("1\u202f234,50", 1_234.5),
        ("1\u00a0234,50", 1_234.5),
        ("12,345", 12_345.0),
        ("12.345", 12.345),
        ("1,234,567", 1_234_567.0),
        ("12,3456", 12.3456),
        ("7", 7.0),
    ],
)
def test_numbers_of_every_locale_are_read(value: str, energy_j: float) -> None:
    assert _parse(f"   {value} Joules power/energy-pkg/   ").energy_j == energy_j


@pytest.mark.parametrize(
    ("event", "scope", "part"),
    [
        ("power/energy-pkg/", Scope.CPU, ""),
        ("power/energy-ram/", Scope.DRAM, ""),
        ("power/energy-psys/", Scope.PLATFORM, ""),
        ("power/energy-cores/", Scope.CPU_PART, "cores"),
        ("power/energy-gpu/", Scope.CPU_PART, "igpu"),
        ("power_core/energy-core/", Scope.CPU_PART, "cores"),
        ("energy-pkg", Scope.CPU, ""),
        ("power/energy-pkg/u", Scope.CPU, ""),
    ],
)
def test_each_domain_has_its_scope(event: str, scope: Scope, part: str) -> None:
    parsed = _parse(f"1.00 Joules {event}")
    assert (parsed.scope, parsed.part) == (scope, part)


@pytest.mark.parametrize(
    ("place", "event", "part"),
    [
        ("S0        1", "power/energy-pkg/", "package-0"),
        ("S1-D0     1", "power/energy-ram/", "package-1"),
        ("S0-D1     1", "power/energy-pkg/", "package-0-die-1"),
        ("S0-D0-C3  1", "power/energy-pkg/", "package-0"),
        ("S0-D0-C3  1", "power/energy-cores/", "package-0/cores"),
        ("S0-D0-C3  1", "power_core/energy-core/", "package-0/core-3/cores"),
        ("CPU2", "power/energy-pkg/", "cpu-2"),
        ("N1        1", "power/energy-pkg/", "node-1"),
        ("D1        1", "power/energy-pkg/", "die-1"),
    ],
)
def test_a_place_in_front_is_a_part(place: str, event: str, part: str) -> None:
    parsed = _parse(f"  {place}     3.73 Joules {event}")
    assert (parsed.part, parsed.energy_j) == (part, 3.73)


@pytest.mark.parametrize("marker", ["<not counted>", "<not supported>"])
def test_what_was_not_counted_is_missing(marker: str) -> None:
    parsed = _parse(f"  S0-D0-C1    0   {marker} Joules power/energy-pkg/")
    assert math.isnan(parsed.energy_j)
    assert parsed.is_elsewhere
    assert not _parse(f"{marker} Joules power/energy-pkg/").is_elsewhere


@pytest.mark.parametrize(
    ("line", "time_ns", "energy_j", "part"),
    [
        ("     1.001078602               9.93 Joules power/energy-pkg/", 1_001_078_602, 9.93, ""),
        ("1.001078602 S0 1 9,93 Joules power/energy-pkg/", 1_001_078_602, 9.93, "package-0"),
        ("     1.001048308,19.63,Joules,power/energy-pkg/,2002406532,100.00,,", 1_001_048_308, 19.63, ""),
        (
            "1.001048308,S1,1,19.63,Joules,power/energy-pkg/,2002406532,100.00,,",
            1_001_048_308,
            19.63,
            "package-1",
        ),
        (
            "1.001048308;CPU0;19,63;Joules;power/energy-pkg/;2002406532;100,00;;",
            1_001_048_308,
            19.63,
            "cpu-0",
        ),
        ("19.63,Joules,power/energy-pkg/,0.52%,2002406532,100.00", None, 19.63, ""),
        ("S0|2|19.63|Joules|power/energy-pkg/|1|100.00", None, 19.63, "package-0"),
        ("12.74 Joules power/energy-pkg/  ( +-  0.83% )  (33.3%)", None, 12.74, ""),
    ],
)
def test_layouts_are_told_apart(line: str, time_ns: int | None, energy_j: float, part: str) -> None:
    parsed = _parse(line)
    assert (parsed.time_ns, parsed.energy_j, parsed.part) == (time_ns, energy_j, part)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   12,345      cycles",
        "1.5 Joules of something",
        "$ perf stat -e power/energy-pkg/ sleep 1",
        "summary,19.63,Joules,power/energy-pkg/,1,100.00,,",
        "  5.001965465 seconds time elapsed",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    assert parse_energy_line(line.encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        "x Joules power/energy-pkg/",
        "Joules power/energy-pkg/",
        "1.5.. Joules power/energy-pkg/",
        "-1.50 Joules power/energy-pkg/",
        "1.50 Joules power/energy-other/",
        "1.50,Joules,power/energy-other/,1",
        "1,50,Joules,power/energy-pkg/,1",
        ",Joules,power/energy-pkg/,1",
        "1e999,Joules,power/energy-pkg/,1",
        "9" * 70 + " Joules power/energy-pkg/",
        "9" * 12 + ".123456789,5,Joules,power/energy-pkg/,1",
        "1.50 Joules power/energy-pkg/" + " " * 2_000,
    ],
)
def test_an_energy_that_cannot_be_read_is_told(line: str) -> None:
    with pytest.raises(Unreadable):
        parse_energy_line(line.encode())


@pytest.mark.parametrize(
    ("line", "elapsed_ns"),
    [
        ("       5.001965465 seconds time elapsed", 5_001_965_465),
        ("       0,000869161 seconds time elapsed", 869_161),
        ("    34.922801 +- 0.000736 seconds time elapsed ( +-  0.00% )", 34_922_801_000),
        ("       1,277.955355190 seconds time elapsed", 1_277_955_355_190),
        ("       0,123 seconds time elapsed", 123_000_000),
        ("       7 seconds time elapsed", 7 * 10**9),
    ],
)
def test_the_time_elapsed_is_read_by_integers(line: str, elapsed_ns: int) -> None:
    assert parse_elapsed_ns(line.encode()) == elapsed_ns


@pytest.mark.parametrize(
    "line",
    [
        "",
        "seconds time elapsed",
        "x seconds time elapsed",
        "9" * 30 + " seconds time elapsed",
        "1.5 seconds user",
    ],
)
def test_no_time_elapsed_is_none(line: str) -> None:
    assert parse_elapsed_ns(line.encode()) is None
