"""turbostat: one row for the whole machine at each interval, means over the interval before."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.turbostat import FORMATS

NINE = 1_747_213_200 * 10**9
HEADER = "Core\tCPU\tBusy%\tPkgWatt\tCorWatt\tGFXWatt\tRAMWatt\tSysWatt\n"


def _block(watts: float) -> str:
    return (
        f"{HEADER}-\t-\t1.02\t{watts}\t20.41\t0.50\t3.02\t60.00\n"
        f"0\t0\t1.02\t{watts}\t20.41\t0.50\t3.02\t60.00\n"
        "1\t1\t1.05\n"
    )


def _decode(text: str) -> Trace:
    return FORMATS[0].decode(Source(blocks=[text.encode()], where="t.txt", device="host"))


def _values(trace: Trace) -> dict[tuple[Scope, str], list[float]]:
    return {(one.scope, one.part): one.value.tolist() for one in trace.series}


def test_the_row_of_the_whole_machine_is_taken() -> None:
    trace = _decode("turbostat version 2024.05.10\ncpu0: MSR_RAPL\n" + _block(30.5) + _block(31.5))
    assert _values(trace) == {
        (Scope.CPU, ""): [30.5, 31.5],
        (Scope.CPU_PART, "cores"): [20.41, 20.41],
        (Scope.CPU_PART, "igpu"): [0.5, 0.5],
        (Scope.DRAM, ""): [3.02, 3.02],
        (Scope.PLATFORM, ""): [60.0, 60.0],
    }
    series = trace.series[0]
    assert (series.device, series.channel, series.timing) == ("host", Channel.POWER_W, Timing.COUNTED)
    assert series.utc_ns.tolist() == [0, 5 * 10**9]
    assert series.averaged_s == 5.0
    assert (trace.n_skipped, [finding.code for finding in trace.findings]) == (0, ["period-assumed"])


def test_a_table_of_summaries_has_no_columns_of_cpus() -> None:
    trace = _decode("PkgTmp\tPkgWatt\tSysWatt\n61\t6.21\t13.07\n60\t6.00\t12.75\n")
    assert _values(trace) == {(Scope.CPU, ""): [6.21, 6.0], (Scope.PLATFORM, ""): [13.07, 12.75]}


def test_times_of_day_are_in_utc() -> None:
    text = "Time_Of_Day_Seconds\tPkgWatt\n1747213200.25\t5\n1747213202.25\t6\n1747213205.25\t7\n"
    (series,) = _decode(text).series
    assert series.utc_ns.tolist() == [NINE + n * 10**9 + 250_000_000 for n in (0, 2, 5)]
    assert (series.timing, series.averaged_s) == (Timing.DATED, 3.0)


def test_without_a_row_of_the_machine_packages_are_parts() -> None:
    text = "Package\tCore\tCPU\tPkgWatt\tCorWatt\n0\t0\t0\t30.5\t20.5\n0\t1\t1\n1\t0\t2\t31.5\t21.5\n"
    assert _values(_decode(text)) == {
        (Scope.CPU, "package-0"): [30.5],
        (Scope.CPU_PART, "package-0/cores"): [20.5],
        (Scope.CPU, "package-1"): [31.5],
        (Scope.CPU_PART, "package-1/cores"): [21.5],
    }


def test_energies_of_intervals_are_a_counter() -> None:
    trace = _decode("Pkg_J RAM_J\n12.5 1.5\n13.5 -\n14.5 2.5\n")
    package, ram = trace.series
    assert package.channel is Channel.ENERGY_COUNTER_J
    assert package.value.tolist() == [0.0, 12.5, 26.0, 40.5]
    assert package.utc_ns.tolist() == [n * 5 * 10**9 for n in range(4)]
    assert ram.value.tolist()[:2] == [0.0, 1.5]
    assert math.isnan(ram.value[2])
    assert ram.value.tolist()[3:] == [0.0, 2.5]
    assert ram.utc_ns.tolist() == [n * 5 * 10**9 for n in (0, 1, 2, 2, 3)]


def test_the_first_dated_energy_has_no_start() -> None:
    text = "Time_Of_Day_Seconds\tPkg_J\n1747213200\t5\n1747213205\t6\n"
    (series,) = _decode(text).series
    assert (series.value.tolist(), series.utc_ns.tolist()) == ([5.0, 11.0], [NINE, NINE + 5 * 10**9])


def test_the_time_that_a_command_took_is_no_row() -> None:
    trace = _decode("1.004736 sec\nPkgWatt\tSysWatt\n6.05\t0.03\n1.004736 sec\n")
    assert (trace.n_skipped, len(trace.series[0])) == (0, 1)


@pytest.mark.parametrize("value", ["-", "n/a"])
def test_a_marker_is_missing(value: str) -> None:
    trace = _decode(f"PkgTmp\tPkgWatt\n61\t5\n61\t{value}\n")
    assert math.isnan(trace.series[0].value[1])
    assert trace.n_skipped == 0


@pytest.mark.parametrize("row", ["talk of the tool", "61\tx", "61\t5\t6", "^C", "61\t1e999"])
def test_a_row_that_cannot_be_read_is_skipped_with_its_place(row: str) -> None:
    trace = _decode(f"PkgTmp\tPkgWatt\n61\t5\n{row}\n61\t7\n")
    assert trace.series[0].value.tolist() == [5.0, 7.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "t.txt:3")


@pytest.mark.parametrize(
    "text", ["", "turbostat version 1\n", HEADER, "Core\tCPU\tBusy%\n-\t-\t5\n", "PkgWatt\nx\n"]
)
def test_a_file_without_a_power_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(text)
    assert caught.value.where == "t.txt:1"


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("cpu0: talk\n" + HEADER, True),
        ("PkgWatt\n5\n", True),
        ("Core,CPU,PkgWatt\n", True),
        ("Sys_J\n", True),
        ("the column PkgWatt tells the power\n", False),
        ("time,PkgWatt\n", False),
        ("Core\tCPU\tBusy%\n", False),
        ("", False),
    ],
)
def test_it_is_known_by_its_columns(text: str, is_it: bool) -> None:
    assert FORMATS[0].is_it(text.encode(), "x") is is_it
    assert FORMATS[0].is_it(text.encode("utf-16"), "x") is is_it
