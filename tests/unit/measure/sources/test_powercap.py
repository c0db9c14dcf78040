"""Counters of the power capping framework in every layout that scripts write."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources.powercap import FORMATS
from flopwitness.measure.sources.source import Source

NINE = 1_747_213_200 * 10**9
PAIRS = "zone,name,energy_uj_start,energy_uj_end,max_energy_range_uj\n"
SYSFS = "/sys/class/powercap"

INFO = """intel-rapl
  enabled: 1
  Zone 0
    name: package-0
    enabled: 0
    max_energy_range_uj: 262143328850
    energy_uj: 65000000
    Constraint 0
      name: long_term
      power_limit_uw: 65000000
      time_window_us: 7995392
      max_power_uw: 65000000
    Zone 0:0
      name: core
      enabled: 0
      max_energy_range_uj: 262143328850
      energy_uj: 48000000
intel-rapl-mmio
  enabled: 1
  Zone 0
    name: package-0
    energy_uj: 65000000
"""


def _decode(text: str) -> Trace:
    return FORMATS[0].decode(Source(blocks=[text.encode()], where="rapl.csv", device="host"))


def _values(trace: Trace) -> dict[tuple[Scope, str], list[float]]:
    return {(one.scope, one.part): one.value.tolist() for one in trace.series}


def test_a_start_and_an_end_are_two_readings_without_a_time() -> None:
    trace = _decode(
        PAIRS
        + "intel-rapl:0,package-0,120000000000,132000000000,262143328850\n"
        + "intel-rapl:0:0,core,81000000000,90000000000,262143328850\n"
        + "intel-rapl:0:2,dram,14000000000,15800000000,262143328850\n"
        + "intel-rapl:1,psys,200000000000,221000000000,262143328850\n"
    )
    assert _values(trace) == {
        (Scope.CPU, "package-0"): [120_000.0, 132_000.0],
        (Scope.CPU_PART, "package-0/core"): [81_000.0, 90_000.0],
        (Scope.DRAM, "package-0/dram"): [14_000.0, 15_800.0],
        (Scope.PLATFORM, ""): [200_000.0, 221_000.0],
    }
    series = trace.series[0]
    assert (series.device, series.channel, series.timing, series.counter_range_j) == (
        "host",
        Channel.ENERGY_COUNTER_J,
        Timing.COUNTED,
        262_143.32885,
    )
    assert (trace.n_skipped, [finding.code for finding in trace.findings]) == (0, ["period-assumed"])


def test_the_end_may_stand_in_front_of_the_start() -> None:
    trace = _decode("name;end_energy_uj;start_energy_uj\npackage-0;9000000;5000000\n")
    assert _values(trace) == {(Scope.CPU, "package-0"): [5.0, 9.0]}


def test_zones_in_rows_have_their_times() -> None:
    trace = _decode(
        "timestamp,zone,name,energy_uj\n"
        "1747213200.5,/sys/class/powercap/intel-rapl:0,package-0,1000000\n"
        "1747213200.5,intel-rapl:0:0,core,500000\n"
        "1747213201.5,intel-rapl:0,package-0,9000000\n"
    )
    assert _values(trace) == {
        (Scope.CPU, "package-0"): [1.0, 9.0],
        (Scope.CPU_PART, "package-0/core"): [0.5],
    }
    assert trace.series[0].utc_ns.tolist() == [NINE + 500_000_000, NINE + 1_500_000_000]
    assert trace.findings == ()


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("time_s", ("0", "0.5")),
        ("elapsed_ms", ("0", "500")),
        ("t", ("0.0", "0.5")),
        ("timestamp_ns", ("1000", "500001000")),
    ],
)
def test_small_numbers_are_lengths(name: str, texts: tuple[str, str]) -> None:
    rows = "".join(f"{text},package-0,{n}000000\n" for n, text in enumerate(texts))
    (series,) = _decode(f"{name},name,energy_uj\n{rows}").series
    assert (series.timing, series.utc_ns.tolist()) == (Timing.RELATIVE, [0, 500_000_000])


def test_dates_without_a_zone_are_local() -> None:
    trace = _decode("time,name,energy_uj\n2025-05-14 09:00:00,package-0,5\n")
    assert trace.series[0].utc_ns.tolist() == [NINE]
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]


def test_rows_without_a_time_are_numbered_by_zone() -> None:
    trace = _decode("name,energy_uj\npackage-0,1\ndram,2\npackage-0,3\ndram,4\n")
    assert [one.utc_ns.tolist() for one in trace.series] == [[0, 10**9], [0, 10**9]]


def test_zones_in_columns_are_read_by_their_names() -> None:
    trace = _decode(
        "time_s\tpackage-0_energy_uj\tpackage-0/dram_energy_uj\tpackage_1 (uj)\tintel-rapl:3 energy_uj\n"
        "0\t1000000\t2000000\t3000000\t4000000\n1\t5000000\tN/A\t3000000\t4000000\n"
    )
    values = _values(trace)
    assert values[Scope.CPU, "package-0"] == [1.0, 5.0]
    assert values[Scope.CPU, "package-1"] == [3.0, 3.0]
    assert values[Scope.UNKNOWN, "intel-rapl:3"] == [4.0, 4.0]
    assert math.isnan(values[Scope.DRAM, "package-0/dram"][1])
    assert trace.n_skipped == 0


def test_files_printed_by_grep_are_read_in_any_order() -> None:
    trace = _decode(
        f"{SYSFS}/intel-rapl:0:0/energy_uj:500000\n"
        f"{SYSFS}/intel-rapl:0/energy_uj:1000000\n"
        f"{SYSFS}/intel-rapl:0/max_energy_range_uj:262143328850\n"
        f"{SYSFS}/intel-rapl:0/name:package-0\n"
        f"{SYSFS}/intel-rapl:0:0/name:core\n"
        f"{SYSFS}/intel-rapl:0/energy_uj:9000000\n"
    )
    assert _values(trace) == {
        (Scope.CPU_PART, "package-0/core"): [0.5],
        (Scope.CPU, "package-0"): [1.0, 9.0],
    }
    assert trace.series[1].counter_range_j == 262_143.32885
    assert trace.n_skipped == 0


def test_dates_between_the_files_are_their_times() -> None:
    text = "".join(f"2025-05-14 09:00:0{n}\n{SYSFS}/intel-rapl:0/energy_uj:{n}000000\n" for n in range(3))
    trace = _decode(text + f"{SYSFS}/intel-rapl:0/name:package-0\n")
    assert trace.series[0].utc_ns.tolist() == [NINE + n * 10**9 for n in range(3)]
    assert (trace.series[0].value.tolist(), trace.n_skipped) == ([0.0, 1.0, 2.0], 0)


def test_powercap_info_is_read_with_the_names_of_its_zones() -> None:
    trace = _decode(INFO + INFO)
    assert _values(trace) == {
        (Scope.CPU, "package-0"): [65.0, 65.0],
        (Scope.CPU_PART, "package-0/core"): [48.0, 48.0],
        (Scope.CPU_PART, "mmio/package-0"): [65.0, 65.0],
    }
    assert trace.n_skipped == 0


def test_blank_lines_and_repeated_headers_are_nothing() -> None:
    trace = _decode("name,energy_uj\n\npackage-0,1\nname,energy_uj\npackage-0,3\n")
    assert (len(trace.series[0]), trace.n_skipped) == (2, 0)


@pytest.mark.parametrize(
    "row",
    [
        "1,package-0",
        "1,package-0,5,6",
        "soon,package-0,5",
        ",package-0,5",
        "1,,5",
        "1,package-0,five",
        "1,package-0,1e999",
    ],
)
def test_a_row_that_cannot_be_read_is_skipped_with_its_place(row: str) -> None:
    trace = _decode(f"t,name,energy_uj\n0,package-0,1000000\n{row}\n2,package-0,3000000\n")
    assert trace.series[0].value.tolist() == [1.0, 3.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "rapl.csv:3")


@pytest.mark.parametrize(
    "line",
    [f"{SYSFS}/intel-rapl:0/energy_uj:x", f"grep: {SYSFS}/intel-rapl:0/energy_uj: Permission denied", "talk"],
)
def test_a_file_that_cannot_be_read_is_skipped_with_its_place(line: str) -> None:
    trace = _decode(f"{SYSFS}/intel-rapl:0/energy_uj:1000000\n{line}\n")
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "rapl.csv:2")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "talk\n",
        PAIRS,
        PAIRS + "a,b\n",
        "time,power_w\n0,5\n",
        "intel-rapl\n  enabled: 1\n",
        f"{SYSFS}/intel-rapl:0/name:package-0\n",
    ],
)
def test_a_file_without_a_counter_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(text)
    assert caught.value.where == "rapl.csv:1"
    assert "energy_uj" in caught.value.expected


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (PAIRS, True),
        ("timestamp,zone,energy_uj\n", True),
        ("t,package-0_energy_uj\n", True),
        ("t,intel-rapl:0 uj\n", True),
        (INFO, True),
        (f"Wed May 14 09:00:00 2025\n{SYSFS}/intel-rapl:0/energy_uj:5\n", True),
        ("t,energy_uj\n", False),
        ("t,gpu_energy_uj\n", False),
        ("zone,name,energy_uj,dram_energy_uj\n", False),
        ("t,energy_j,name\n", False),
        ("intel-rapl\n", False),
        (f"{SYSFS}/intel-rapl:0/name:package-0\n", False),
        ("", False),
    ],
)
def test_it_is_known_by_zones_and_counters(text: str, is_it: bool) -> None:
    assert FORMATS[0].is_it(text.encode(), "x") is is_it
    assert FORMATS[0].is_it(text.encode("utf-16"), "x") is is_it
