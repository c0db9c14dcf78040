"""perf's energies as counters: from 0 at the start, and nothing bridged that was not counted."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources.perf_stat import FORMATS
from flopwitness.measure.sources.source import Source

NINE = 1_747_213_200 * 10**9
HEADER = " Performance counter stats for 'system wide':\n\n"


def _energy(joules: object, domain: str = "pkg", place: str = "", spread: str = "") -> str:
    return f"  {place}      {joules} Joules power/energy-{domain}/     {spread}\n"


def _elapsed(seconds: object) -> str:
    return f"\n       {seconds} seconds time elapsed\n\n"


def _interval(second: float, joules: object, domain: str = "pkg") -> str:
    return f"     {second:.9f}           {joules} Joules power/energy-{domain}/\n"


def _decode(text: str) -> Trace:
    return FORMATS[0].decode(Source(blocks=[text.encode()], where="perf.txt", device="host"))


def _courses(trace: Trace) -> dict[tuple[Scope, str], list[tuple[int, float]]]:
    return {
        (one.scope, one.part): list(zip(one.utc_ns.tolist(), one.value.tolist(), strict=True))
        for one in trace.series
    }


def test_an_energy_over_a_command_is_a_counter_of_two_readings() -> None:
    trace = _decode(
        HEADER
        + _energy("3.59", "cores")
        + _energy("12.74")
        + _energy("51.10", "psys")
        + _elapsed("5.001965465")
    )
    assert _courses(trace) == {
        (Scope.CPU_PART, "cores"): [(0, 0.0), (5_001_965_465, 3.59)],
        (Scope.CPU, ""): [(0, 0.0), (5_001_965_465, 12.74)],
        (Scope.PLATFORM, ""): [(0, 0.0), (5_001_965_465, 51.1)],
    }
    series = trace.series[0]
    assert (series.device, series.channel, series.timing) == (
        "host",
        Channel.ENERGY_COUNTER_J,
        Timing.RELATIVE,
    )
    assert [finding.code for finding in trace.findings] == ["times-undated"]
    assert trace.n_skipped == 0


def test_perfs_own_date_places_the_counter() -> None:
    trace = _decode("# started on Wed May 14 09:00:00 2025\n\n" + HEADER + _energy("5.00") + _elapsed("2.5"))
    assert _courses(trace) == {(Scope.CPU, ""): [(NINE, 0.0), (NINE + 2_500_000_000, 5.0)]}
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]


def test_a_mean_of_runs_is_one_run_and_told() -> None:
    text = " Performance counter stats for 'system wide' (10 runs):\n" + _energy(
        "85.09", spread="( +-  0.83% )"
    )
    trace = _decode(text + "    34.922801 +- 0.000736 seconds time elapsed ( +-  0.00% )\n")
    assert _courses(trace)[Scope.CPU, ""] == [(0, 0.0), (34_922_801_000, 85.09)]
    assert [(f.code, f.count) for f in trace.findings if f.code == "mean-of-runs"] == [("mean-of-runs", 10)]


def test_summaries_in_a_row_stand_end_to_end_and_are_told() -> None:
    trace = _decode(2 * (HEADER + _energy("5.00") + _elapsed("2.0")))
    assert _courses(trace) == {(Scope.CPU, ""): [(0, 0.0), (2 * 10**9, 5.0), (4 * 10**9, 10.0)]}
    assert [(f.code, f.count) for f in trace.findings if f.code != "times-undated"] == [
        ("summaries-end-to-end", 2)
    ]


def test_dated_summaries_have_a_gap_between_them_that_nothing_bridges() -> None:
    first = "# started on Wed May 14 09:00:00 2025\n" + _energy("5.00") + _elapsed("2.0")
    second = "# started on Wed May 14 09:01:00 2025\n" + _energy("6.00") + _elapsed("2.0")
    trace = _decode(first + second)
    assert [value for _, value in _courses(trace)[Scope.CPU, ""]] == [0.0, 5.0, 0.0, 6.0]
    assert trace.series[0].utc_ns.tolist()[2] == NINE + 60 * 10**9
    assert "summaries-end-to-end" not in {finding.code for finding in trace.findings}


def test_sockets_are_parts() -> None:
    text = HEADER + _energy("5.00", place="S0  1") + _energy("6.00", place="S1  1") + _elapsed("2.0")
    assert {key: course[-1][1] for key, course in _courses(_decode(text)).items()} == {
        (Scope.CPU, "package-0"): 5.0,
        (Scope.CPU, "package-1"): 6.0,
    }


@pytest.mark.parametrize("order", [("3.73", "<not counted>"), ("<not counted>", "3.73")])
def test_cores_on_which_the_event_does_not_count_say_nothing(order: tuple[str, str]) -> None:
    lines = "".join(
        _energy(value, place=f"S0-D0-C{core}  {int(not value.startswith('<'))}")
        for core, value in enumerate(order)
    )
    trace = _decode(HEADER + lines + _elapsed("1.0"))
    assert _courses(trace) == {(Scope.CPU, "package-0"): [(0, 0.0), (10**9, 3.73)]}
    assert trace.n_skipped == 0


def test_a_second_core_that_counts_the_same_is_a_part_and_not_added() -> None:
    lines = _energy("3.00", place="S0-D0-C0  1") + _energy("4.00", place="S0-D0-C4  1")
    trace = _decode(HEADER + lines + _elapsed("1.0"))
    assert {key[1] for key in _courses(trace)} == {"package-0", "package-0/S0-D0-C4"}


def test_what_was_not_counted_is_missing() -> None:
    trace = _decode(HEADER + _energy("5.00") + _energy("<not supported>", "ram") + _elapsed("2.0"))
    ram = next(one for one in trace.series if one.scope is Scope.DRAM)
    assert ram.value.size == 1
    assert math.isnan(ram.value[0])
    assert trace.n_skipped == 0


def test_intervals_add_up_and_begin_again_after_one_that_was_not_counted() -> None:
    trace = _decode(
        "#           time             counts unit events\n"
        + _interval(1, "9.93")
        + _interval(2, "10.07")
        + _interval(3, "<not counted>")
        + _interval(4, "<not counted>")
        + _interval(5, "5.00")
    )
    (series,) = trace.series
    assert series.utc_ns.tolist() == [n * 10**9 for n in (0, 1, 2, 3, 4, 4, 5)]
    assert series.value.tolist()[:3] == [0.0, 9.93, 20.0]
    assert all(map(math.isnan, series.value[3:5]))
    assert series.value.tolist()[5:] == [0.0, 5.0]


def test_the_summary_after_intervals_is_not_added() -> None:
    text = _interval(1, "5.00") + _interval(2, "6.00") + HEADER + _energy("11.00") + _elapsed("2.0")
    trace = _decode(text)
    assert trace.series[0].value.tolist() == [0.0, 5.0, 11.0]
    assert trace.n_skipped == 0


def test_an_interval_whose_line_was_lost_is_not_bridged() -> None:
    text = (
        _interval(1, "5.00")
        + _interval(1, "1.00", "ram")
        + _interval(2, "2.00", "ram")
        + _interval(3, "7.00")
    )
    trace = _decode(text + _interval(3, "3.00", "ram"))
    assert [value for _, value in _courses(trace)[Scope.CPU, ""]] == [0.0, 5.0, 0.0, 7.0]
    assert [value for _, value in _courses(trace)[Scope.DRAM, ""]] == [0.0, 1.0, 3.0, 6.0]


def test_a_second_run_of_intervals_goes_on_where_the_first_ended() -> None:
    trace = _decode(_interval(1, "5.00") + _interval(2, "5.00") + _interval(1, "7.00") + _interval(2, "7.00"))
    (series,) = trace.series
    assert series.utc_ns.tolist() == [n * 10**9 for n in (0, 1, 2, 3, 4)]
    assert series.value.tolist() == [0.0, 5.0, 10.0, 17.0, 24.0]


def test_summaries_in_csv_have_no_length_of_time() -> None:
    text = "".join(
        f"{joules},Joules,power/energy-pkg/,20005559241,100.00,,\n" for joules in ("893.33", "892.02")
    )
    trace = _decode(text)
    (series,) = trace.series
    assert series.timing is Timing.COUNTED
    assert series.value.tolist() == [0.0, 893.33, 1_785.35]
    assert [finding.code for finding in trace.findings] == ["period-assumed"]


def test_intervals_in_csv_have_their_times() -> None:
    ends = (("1.001048308", "19.63"), ("2.002369058", "19.41"))
    text = "".join(f"     {end},S0,1,{joules},Joules,power/energy-pkg/,1,100.00,,\n" for end, joules in ends)
    (series,) = _decode(text).series
    assert series.utc_ns.tolist() == [0, 1_001_048_308, 2_002_369_058]
    assert (series.part, series.value[-1]) == ("package-0", pytest.approx(39.04))


def test_other_output_is_passed_over() -> None:
    talk = (
        "epoch 1 done\n  12,345   cycles\n\n  Some events weren't counted. Try disabling the NMI watchdog:\n"
    )
    trace = _decode(talk + HEADER + _energy("5.00") + "  1.5 seconds user\n" + _elapsed("2.0") + talk)
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        _energy("x"),
        _energy("5.00", "other"),
        _energy("9.00"),
        "9.00,Joules,power/energy-pkg/,1,100.00,,\n",
        _interval(1, "9.00"),
    ],
)
def test_an_energy_that_does_not_fit_is_skipped_with_its_place(line: str) -> None:
    trace = _decode(_energy("5.00") + line + _elapsed("2.0"))
    assert trace.series[0].value.tolist() == [0.0, 5.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "perf.txt:2")


@pytest.mark.parametrize("end", ["", HEADER, "       x seconds time elapsed\n" + HEADER])
def test_energies_without_a_length_of_time_are_skipped(end: str) -> None:
    trace = _decode(_energy("5.00") + _elapsed("2.0") + _energy("6.00") + end)
    assert trace.series[0].value.tolist() == [0.0, 5.0]
    assert trace.skipped[-1].where in ("perf.txt:5", "perf.txt:6")
    assert "elapsed" in trace.skipped[-1].expected


@pytest.mark.parametrize(
    "text", ["", "talk\n", _energy("5.00"), _energy("x") + _elapsed("1.0"), _elapsed("1.0"), HEADER]
)
def test_a_file_without_an_energy_over_a_time_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(text)
    assert caught.value.where == "perf.txt:1"
    assert "Joules" in caught.value.expected


def test_more_time_than_clocks_show_is_refused() -> None:
    with pytest.raises(DecodeError, match="time"):
        _decode(5 * (_energy("5.00") + _elapsed("999999999.9")))


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (HEADER + _energy("5.00"), True),
        (_interval(1, "5.00"), True),
        ("5.00,Joules,power/energy-ram/,1\n", True),
        ("5,00;Joules;power/energy-psys/;1\n", True),
        ("perf stat -e power/energy-pkg/ sleep 1\n", False),
        ("5.00 Joules in all\n", False),
        (HEADER + "  12,345   cycles\n", False),
        ("", False),
    ],
)
def test_it_is_known_by_an_energy(text: str, is_it: bool) -> None:
    assert FORMATS[0].is_it(text.encode(), "x") is is_it
    assert FORMATS[0].is_it(text.encode("utf-16"), "x") is is_it
