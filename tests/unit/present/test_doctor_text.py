"""What a recording holds, as a person reads it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.host_energy import measure_hosts
from flopwitness.measure.inventory import list_readings
from flopwitness.measure.samples import Channel, Device, Provenance, RunWindow, Scope, Series, Timing, Trace
from flopwitness.present.doctor_text import render_doctor_text

MakeSeries = Callable[..., Series]

ENERGY = "  serves for an estimate from energy"
TIME = "  serves for an estimate from time alone: no accelerator's power over any time is recorded"
UNNAMED = "  serves for an estimate from energy once --scope names what the readings cover"


def _lines(trace: Trace, findings: Sequence[Finding] = ()) -> list[str]:
    text = render_doctor_text(trace, list_readings(trace), measure_hosts(trace), findings)
    assert text.endswith("\n")
    return text.splitlines()


def _of(*series: Series) -> Trace:
    return Trace(series=series)


def _file(name: str, size_bytes: int = 5) -> Provenance:
    return Provenance(path=name, format="nvidia-smi-csv", digest=digest_bytes(b"x"), size_bytes=size_bytes)


def test_the_whole_answer(make_series: MakeSeries) -> None:
    power = [make_series([400.0 + i % 50 for i in range(601)], device=f"gpu{n}") for n in range(2)]
    use = make_series([97.0] * 601, device="gpu0", channel=Channel.UTILISATION_PCT)
    trace = Trace(
        series=(*power, use),
        provenance=(_file("run/gpu.csv", 12_345),),
        devices=(Device(name="gpu0", chip_name="NVIDIA H100"), Device(name="gpu1", chip_name="NVIDIA H100")),
        windows=(RunWindow(start_utc_ns=0, stop_utc_ns=90 * 10**9, status="success"),),
    )
    told = [
        Finding(code="run-status", severity=Severity.CONTRADICTION, message="it cannot be"),
        Finding(code="gap", severity=Severity.NOTE, message="nothing was read"),
    ]
    assert _lines(trace, told) == [
        "run/gpu.csv: nvidia-smi-csv, 12,345 bytes",
        "  from       2023-11-14T22:13:20Z, 10 min",
        "  devices    2 x NVIDIA H100 (gpu0, gpu1)",
        "  power_w                   good: 1,202 readings on 2 devices, every 1 s, 400 to 449 W (gpu)",
        "  utilisation_pct           good: 601 readings, every 1 s, 97 to 97 % (gpu)",
        "  run marked 1 min 30 s, success",
        ENERGY,
        "findings",
        "    run-status  CONTRADICTION: it cannot be",
        "    gap         nothing was read",
    ]


def test_nothing_is_told_as_nothing() -> None:
    assert _lines(Trace()) == ["  no readings", TIME]


def test_the_worst_device_speaks_for_its_group(make_series: MakeSeries) -> None:
    trace = _of(make_series([400.0] * 100), make_series([math.nan, *[500.0] * 3], device="gpu_1"))
    line = next(line for line in _lines(trace) if "power_w" in line)
    assert line.startswith(
        "  power_w                   poor: 104 readings on 2 devices, every 1 s, 400 to 500 W"
    )
    told = " ".join(line.strip() for line in _lines(trace))
    assert "(gpu); 67 % of the time covered, 1 without a value" in told


@pytest.mark.parametrize(
    ("channel", "value", "shown"),
    [
        (Channel.POWER_W, 12_345.6, "12,346 to 12,346 W"),
        (Channel.POWER_W, 0.1234567, "0.1235 to 0.1235 W"),
        (Channel.POWER_LIMIT_W, 700, "700 to 700 W"),
        (Channel.POWER_AVERAGE_W, 999.96, "1000 to 1000 W"),
        (Channel.ENERGY_COUNTER_J, 123_456_789, "123,457 to 123,457 kJ"),
        (Channel.ENERGY_COUNTER_J, 9e14, "9e+11 to 9e+11 kJ"),
        (Channel.MEMORY_USED_BYTE, 80 * 2**30, "80 to 80 GiB"),
        (Channel.CLOCK_HZ, 1_980e6, "1,980 to 1,980 MHz"),
        (Channel.MEMORY_CLOCK_HZ, 2_619e6, "2,619 to 2,619 MHz"),
        (Channel.TEMPERATURE_C, 61, "61 to 61 degrees C"),
        (Channel.PERFORMANCE_STATE, 0, "0 to 0 ("),
        (Channel.CPU_CORES_ON, 12, "12 to 12 cores"),
        (Channel.CPU_UTILISATION_PCT, 55.5, "55.5 to 55.5 %"),
        (Channel.LINK_TRAFFIC_BYTE, 512, "512 to 512 byte ("),
        (Channel.LINK_TRAFFIC_BYTE_PER_S, 512, "512 to 512 byte/s"),
    ],
)
def test_every_channel_has_its_unit(
    make_series: MakeSeries, channel: Channel, value: float, shown: str
) -> None:
    text = " ".join(line.strip() for line in _lines(_of(make_series([value] * 5, channel=channel))))
    assert f"every 1 s, {shown}" in text


def test_values_that_nobody_read_have_no_range(make_series: MakeSeries) -> None:
    lines = _lines(_of(make_series([math.nan] * 5)))
    assert "poor: 5 readings, every 1 s (gpu); no reading has a value" in " ".join(
        line.strip() for line in lines
    )


@pytest.mark.parametrize(
    ("timing", "line"),
    [
        (Timing.DATED, "  from       2023-11-14T22:13:20Z, 4 s"),
        (Timing.RELATIVE, "  length     4 s, no date"),
        (Timing.COUNTED, "  length     4 s, no date"),
    ],
)
def test_the_time_is_told_as_far_as_it_is_known(make_series: MakeSeries, timing: Timing, line: str) -> None:
    assert _lines(_of(replace(make_series([400.0] * 5), timing=timing)))[0] == line


def test_a_date_on_no_calendar_is_told_as_such(make_series: MakeSeries) -> None:
    series = make_series([400.0] * 5)
    lines = _lines(_of(replace(series, utc_ns=series.utc_ns - 2 * 10**18)))
    assert lines[0] == "  from       a time that is on no calendar, 4 s"


def test_the_earliest_of_all_dates_is_told(make_series: MakeSeries) -> None:
    late, early = make_series([1.0] * 5, time_s=range(50, 55)), make_series([1.0] * 5, device="b")
    undated = replace(make_series([1.0] * 20, device="c"), timing=Timing.RELATIVE)
    assert _lines(_of(late, early, undated))[0] == "  from       2023-11-14T22:13:20Z, 19 s"


def test_files_devices_and_runs_beyond_a_handful_are_counted(make_series: MakeSeries) -> None:
    trace = Trace(
        series=(make_series([400.0] * 5),),
        provenance=tuple(_file(f"{number}.csv") for number in range(8)),
        devices=tuple(Device(name=f"gpu{n}", chip_name=f"chip {n % 5}") for n in range(20)),
        windows=tuple(RunWindow(start_utc_ns=n, stop_utc_ns=None) for n in range(5)),
    )
    lines = _lines(trace)
    assert lines[5:7] == ["5.csv: nvidia-smi-csv, 5 bytes", "and 2 more files"]
    assert "  devices    4 x chip 0 (gpu0, gpu5, gpu10, ...)" in lines
    assert "  and devices of 2 more names" in lines
    assert lines.count("  run marked no stop") == 3
    assert "  and 2 more runs" in lines


def test_a_device_without_a_name_for_its_chip_says_so(make_series: MakeSeries) -> None:
    assert "  device     1 x name not recorded (gpu0)" in _lines(Trace(devices=(Device(name="gpu0"),)))


def test_a_run_that_stops_before_it_starts_lasts_nothing() -> None:
    trace = Trace(windows=(RunWindow(start_utc_ns=10**9, stop_utc_ns=0),))
    assert "  run marked 0 s" in _lines(trace)


@pytest.mark.parametrize(
    ("scope", "channel", "value", "line"),
    [
        (Scope.GPU, Channel.POWER_W, 400.0, ENERGY),
        (Scope.RAIL, Channel.POWER_AVERAGE_W, 4.0, ENERGY),
        (Scope.NODE, Channel.ENERGY_COUNTER_J, 0.0, ENERGY),
        (Scope.UNKNOWN, Channel.POWER_W, 400.0, UNNAMED),
        (Scope.GPU, Channel.POWER_W, 0.0, TIME),
        (Scope.GPU, Channel.POWER_W, math.nan, TIME),
        (Scope.GPU, Channel.ENERGY_COUNTER_J, math.nan, TIME),
        (Scope.GPU, Channel.UTILISATION_PCT, 90.0, TIME),
        (Scope.GPU, Channel.POWER_LIMIT_W, 700.0, TIME),
        (Scope.SWITCH, Channel.POWER_W, 400.0, TIME),
        (Scope.CPU, Channel.ENERGY_COUNTER_J, 400.0, TIME),
        (Scope.DRAM, Channel.POWER_W, 40.0, TIME),
        (Scope.PLATFORM, Channel.POWER_W, 40.0, TIME),
        (Scope.INSTANCE, Channel.POWER_W, 40.0, TIME),
    ],
)
def test_what_it_can_serve_for(
    make_series: MakeSeries, scope: Scope, channel: Channel, value: float, line: str
) -> None:
    assert _lines(_of(make_series([value] * 5, scope=scope, channel=channel)))[-1] == line


def test_a_named_scope_beside_an_unnamed_one_serves(make_series: MakeSeries) -> None:
    gpu, other = make_series([400.0] * 5), make_series([400.0] * 5, device="x", scope=Scope.UNKNOWN)
    assert _lines(_of(gpu, other))[-1] == ENERGY
    assert _lines(_of(make_series([]), other))[-1] == UNNAMED


def test_a_recording_cannot_steer_the_terminal_or_forge_a_line(make_series: MakeSeries) -> None:
    evil = "x\x1b[2J\n\r  serves for everything\u202e\ud800"
    trace = Trace(
        series=(replace(make_series([math.nan] * 5, device=evil), part=evil),),
        provenance=(_file(evil),),
        devices=(Device(name=evil, chip_name=evil),),
        windows=(RunWindow(start_utc_ns=0, stop_utc_ns=None, status=evil),),
    )
    text = render_doctor_text(
        trace,
        list_readings(trace),
        measure_hosts(trace),
        [Finding(code="gap", severity=Severity.NOTE, message=evil, where=evil)],
    )
    assert not {"\x1b", "\r", "\u202e", "\ud800"} & set(text)
    assert "\n  serves for everything" not in text
    text.encode()


def test_lines_are_wrapped_and_hang_below_their_text(make_series: MakeSeries) -> None:
    message = "word " * 60
    lines = _lines(
        _of(make_series([400.0] * 5)), [Finding(code="gap", severity=Severity.NOTE, message=message)]
    )
    told = lines[lines.index("findings") + 1 :]
    assert len(told) > 2
    assert all(len(line) <= 100 for line in told)
    assert all(line.startswith(" " * 9 + "word") for line in told[1:])


def test_a_hosts_energy_is_told_with_what_overlaps_apart(make_series: MakeSeries) -> None:
    counter = make_series(
        [500.0 + 100.0 * i for i in range(11)], channel=Channel.ENERGY_COUNTER_J, device="n1"
    )
    trace = _of(
        replace(counter, scope=Scope.CPU, part="package-0"),
        replace(counter, scope=Scope.CPU_PART, part="package-0/core"),
        replace(counter, scope=Scope.PLATFORM),
    )
    assert [line for line in _lines(trace) if "host" in line] == [
        "  host n1                   processors 1000 J, the platform's own meter 1000 J; 100.0 % of the time"
    ]


def test_a_hosts_energy_that_is_not_known_is_no_number(make_series: MakeSeries) -> None:
    stuck = make_series([500.0] * 61, channel=Channel.ENERGY_COUNTER_J, device="n1", scope=Scope.CPU)
    assert "  host n1                   energy not known; 0.0 % of the time covered" in _lines(_of(stuck))


def test_of_many_hosts_the_first_are_told(make_series: MakeSeries) -> None:
    hosts = [make_series([50.0] * 5, device=f"n{number}", scope=Scope.CPU) for number in range(9)]
    assert "  and 6 more hosts" in _lines(_of(*hosts))
