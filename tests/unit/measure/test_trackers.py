"""Trackers: whole-machine records of one host and time are one figure, never a sum."""

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.trackers import (
    TrackerPart,
    TrackerRecord,
    add_tracked_hosts,
    name_part,
    parse_part,
    records_of,
)

SECOND_NS = 10**9
MACHINE = TrackerPart(mode="machine", gpu_count=4, label="rank0")


def record(
    energy_j: float,
    *,
    host: str = "a",
    mode: str = "machine",
    gpu_count: int | None = 4,
    start_s: int | None = None,
    duration_s: float = 100.0,
) -> TrackerRecord:
    return TrackerRecord(
        host=host,
        part=TrackerPart(mode=mode, gpu_count=gpu_count, label="rank0"),
        energy_j=energy_j,
        duration_s=duration_s,
        start_utc_ns=None if start_s is None else start_s * SECOND_NS,
    )


def counter(
    value: list[float], *, part: str = "", device: str = "a", timing: Timing = Timing.DATED
) -> Series:
    return Series(
        device=device,
        channel=Channel.ENERGY_COUNTER_J,
        scope=Scope.GPU,
        utc_ns=np.arange(len(value), dtype=np.int64) * 10 * SECOND_NS,
        value=np.array(value),
        part=part or name_part(MACHINE),
        timing=timing,
    )


@pytest.mark.parametrize(
    "part",
    [
        MACHINE,
        TrackerPart(mode="", gpu_count=None, label="tracker 1"),
        TrackerPart(mode="process", gpu_count=0, label="a, b\nof 3 GPUs"),
    ],
)
def test_a_part_comes_back_from_its_name(part: TrackerPart) -> None:
    assert parse_part(name_part(part)) == part


@pytest.mark.parametrize(
    "name", ["", "VDD_SOC", "machine", "machine of GPUs, x", "machine of 1234567 GPUs, x"]
)
def test_other_parts_are_no_trackers(name: str) -> None:
    assert parse_part(name) is None


def test_records_of_one_host_are_their_mean_and_the_overlap_is_told() -> None:
    tracked = add_tracked_hosts([record(100), record(104), record(50, host="b")])
    assert tracked.energy_j == pytest.approx(152)
    assert (tracked.n_hosts, tracked.gpu_count) == (2, 8)
    first = tracked.hosts[0]
    assert (first.least_j, first.most_j, first.n_records) == (100, 104, 2)
    (finding,) = tracked.findings
    assert (finding.code, finding.where, finding.count) == ("trackers-overlap", "a", 2)
    assert "overlapping whole-machine records" in finding.message
    assert "100.0 J to 104.0 J" in finding.message


def test_one_record_a_host_is_no_overlap() -> None:
    tracked = add_tracked_hosts([record(100), record(50, host="b")])
    assert (tracked.energy_j, tracked.findings) == (150, ())


def test_nothing_tracked_is_nothing() -> None:
    tracked = add_tracked_hosts([])
    assert (tracked.energy_j, tracked.n_hosts, tracked.gpu_count, tracked.findings) == (0, 0, None, ())


def test_records_that_follow_each_other_are_added() -> None:
    tracked = add_tracked_hosts([record(100, start_s=0), record(40, start_s=100), record(7, start_s=300)])
    assert tracked.energy_j == 147
    assert tracked.findings == ()
    assert (tracked.n_hosts, tracked.gpu_count) == (1, 4)


def test_records_that_share_most_of_their_time_are_not() -> None:
    tracked = add_tracked_hosts([record(100, start_s=0), record(110, start_s=30), record(5, start_s=200)])
    assert tracked.energy_j == 110
    assert len(tracked.findings) == 1


def test_a_record_that_merely_touches_another_is_another_time() -> None:
    assert add_tracked_hosts([record(100, start_s=0), record(110, start_s=80)]).energy_j == 210


def test_a_number_of_gpus_that_one_host_does_not_say_is_not_known() -> None:
    assert add_tracked_hosts([record(1), record(1, host="b", gpu_count=None)]).gpu_count is None


def test_processes_may_have_gpus_of_their_own() -> None:
    host = add_tracked_hosts([record(100, mode="process"), record(90, mode="process")]).hosts[0]
    assert (host.energy_j, host.least_j, host.most_j) == (95, 90, 190)


def test_a_counter_that_begins_again_is_two_records() -> None:
    trace = Trace(series=(counter([0, 5, 9, 0, 4]),))
    assert [(item.energy_j, item.duration_s, item.start_utc_ns) for item in records_of(trace)] == [
        (9.0, 20.0, 0),
        (4.0, 10.0, 30 * SECOND_NS),
    ]


def test_missing_readings_and_single_ones_are_no_record() -> None:
    trace = Trace(series=(counter([np.nan, 5]), counter([0, np.nan, 8], device="b"), counter([], device="c")))
    assert [(item.host, item.energy_j) for item in records_of(trace)] == [("b", 8.0)]


def test_records_without_a_date_have_none() -> None:
    (item,) = records_of(Trace(series=(counter([0, 3], timing=Timing.RELATIVE),)))
    assert (item.start_utc_ns, item.stop_utc_ns) == (None, None)


def test_series_of_other_scopes_channels_and_parts_are_passed_over() -> None:
    assert records_of(Trace(series=(counter([0, 3]),)), scope=Scope.CPU) == ()
    assert records_of(Trace(series=(counter([0, 3], part="step"),))) == ()
