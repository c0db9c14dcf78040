"""Rotated logs are one device; what runs at one time is never joined."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.lanes import join_recordings
from flopwitness.measure.samples import Channel, Scope, Series, Timing

MakeSeries = Callable[..., Series]

DAY_S = 86_400


def _file(
    make_series: MakeSeries,
    start_s: float,
    n: int = 101,
    *,
    device: str = "gpu_0",
    monotonic_s: Sequence[float] | None = None,
) -> Series:
    return make_series(
        [400.0] * n, time_s=[start_s + i for i in range(n)], device=device, monotonic_s=monotonic_s
    )


def test_files_that_follow_each_other_are_one_device(make_series: MakeSeries) -> None:
    files = [_file(make_series, 101 * k, device=f"week_{k}") for k in (2, 0, 1)]
    findings: list[Finding] = []
    (joined,) = join_recordings(files, findings)
    assert (joined.device, len(joined), joined.monotonic_ns) == ("week_0", 303, None)
    assert (np.diff(joined.utc_ns) == 10**9).all()
    assert integrate_power(joined).measured_j == 302 * 400
    (finding,) = findings
    assert (finding.code, finding.severity) == ("recordings-joined", Severity.NOTE)
    assert (finding.where, finding.count) == ("week_0", 2)
    assert finding.message == "3 recordings that follow each other are taken as 1 device"


def test_two_nodes_of_several_files_are_two_devices(make_series: MakeSeries) -> None:
    files = [_file(make_series, 150 * k, device=f"{node}_{k}") for node in "ab" for k in range(6)]
    findings: list[Finding] = []
    lanes = join_recordings(files, findings)
    assert [len(lane) for lane in lanes] == [606, 606]
    assert findings[0].message == ("12 recordings, some of which follow each other, are taken as 2 devices")


@pytest.mark.parametrize(
    ("pause_s", "length_s", "n_lanes"),
    [
        (0, 100, 1),
        (200, 100, 1),
        (201, 100, 2),
        (-1, 100, 2),
        (7 * DAY_S, 4 * DAY_S, 1),
        (7 * DAY_S + 1, 4 * DAY_S, 2),
    ],
)
def test_a_pause_is_no_longer_than_a_week_or_than_both(
    make_series: MakeSeries, pause_s: int, length_s: int, n_lanes: int
) -> None:
    first = make_series([400, 400], time_s=[0, length_s])
    second = make_series([400, 400], time_s=[length_s + pause_s, 2 * length_s + pause_s], device="gpu_1")
    assert len(join_recordings([first, second], [])) == n_lanes


def test_what_runs_at_one_time_stays_as_it_is(make_series: MakeSeries) -> None:
    files = (_file(make_series, 50, device="b"), _file(make_series, 0, device="a"))
    findings: list[Finding] = []
    assert join_recordings(files, findings) == files
    assert join_recordings([], findings) == ()
    assert findings == []


def test_unlike_readings_are_not_joined(make_series: MakeSeries) -> None:
    first, second = _file(make_series, 0), _file(make_series, 101, device="gpu_1")
    for unlike in (
        replace(second, channel=Channel.POWER_AVERAGE_W),
        replace(second, conversion=0.9),
        replace(second, scope=Scope.NODE),
    ):
        assert join_recordings([first, unlike], []) == (first, unlike)
    assert len(join_recordings([first, second], [])) == 1


def test_a_clock_that_steps_back_ends_with_the_time_that_it_ran(make_series: MakeSeries) -> None:
    twice = make_series([400.0] * 200, time_s=[*range(100), *range(100)])
    files = (twice, _file(make_series, 150, device="gpu_1"))
    assert join_recordings(files, []) == files


def test_steady_clocks_that_start_anew_are_laid_end_to_end(make_series: MakeSeries) -> None:
    first = _file(make_series, 0, monotonic_s=range(500, 601))
    second = _file(make_series, 120, device="gpu_1", monotonic_s=range(101))
    third = replace(_file(make_series, 240, device="gpu_2"), is_estimate=True)
    (joined,) = join_recordings([first, second, third], [])
    assert joined.monotonic_ns is not None
    assert (np.diff(joined.monotonic_ns) == np.diff(joined.utc_ns)).all()
    assert joined.is_estimate


def test_single_readings_of_one_instant_are_of_several_devices(make_series: MakeSeries) -> None:
    series = [make_series([100], device=f"gpu_{number}") for number in range(3)]
    findings: list[Finding] = []
    assert join_recordings(series, findings) == tuple(series)
    assert findings == []


@pytest.mark.parametrize(
    "changed",
    [
        {"part": "VDD_SOC"},
        {"averaged_s": 1.0},
        {"timing": Timing.RELATIVE},
        {"channel": Channel.POWER_AVERAGE_W},
    ],
)
def test_recordings_of_another_kind_do_not_follow(
    make_series: MakeSeries, changed: dict[str, object]
) -> None:
    first = make_series([100] * 10)
    second = replace(make_series([100] * 10, time_s=range(20, 30), device="gpu_1"), **changed)  # type: ignore[arg-type]
    assert len(join_recordings([first, second], [])) == 2
