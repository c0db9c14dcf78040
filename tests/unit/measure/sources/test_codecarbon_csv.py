"""CodeCarbon's files: rows grow within a run, runs follow or overlap, and nothing counts twice."""

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources import codecarbon_csv
from flopwitness.measure.sources.codecarbon_csv import decode_codecarbon_csv, is_codecarbon_csv
from flopwitness.measure.sources.source import Source
from flopwitness.measure.trackers import parse_part

KWH = 3_600_000.0
SECOND = 10**9
HEADER = (
    "timestamp,run_id,duration,emissions,cpu_energy,gpu_energy,ram_energy,energy_consumed,gpu_count,gpu_model,"
    "tracking_mode\n"
)


def row(
    time: str,
    run: str,
    duration: str,
    gpu: str,
    *,
    cpu: str = "0.1",
    ram: str = "0.01",
    mode: str = "machine",
) -> str:
    return f"{time},{run},{duration},1e-3,{cpu},{gpu},{ram},9,4,4 x Example A100,{mode}\n"


def decode(text: str) -> Trace:
    return decode_codecarbon_csv(Source(blocks=[text.encode()], where="e.csv", device="log"))


def gpu(trace: Trace) -> list[Series]:
    return [item for item in trace.series if item.scope is Scope.GPU]


def test_rows_of_one_run_are_one_counter_from_its_start() -> None:
    trace = decode(
        HEADER
        + row("2024-01-01T00:01:00", "r", "60.5", "0.5")
        + row("2024-01-01T00:02:00", "r", "120.25", "1.0")
    )
    (series,) = gpu(trace)
    assert series.value.tolist() == pytest.approx([0, 0.5 * KWH, 1.0 * KWH])
    start = 1_704_067_200 * SECOND
    assert (series.utc_ns - start).tolist() == [-SECOND // 2, 60 * SECOND, 120 * SECOND]
    assert (series.channel, series.timing, series.device) == (Channel.ENERGY_COUNTER_J, Timing.DATED, "log")
    assert trace.devices[0].chip_name == "Example A100"


def test_processor_and_memory_stand_apart_and_memory_is_an_estimate() -> None:
    trace = decode(HEADER + row("2024-01-01T00:01:00", "r", "60", "0.5"))
    assert {item.scope: item.is_estimate for item in trace.series} == {
        Scope.GPU: False,
        Scope.CPU: False,
        Scope.DRAM: True,
    }
    assert all(item.value[-1] != 9 * KWH for item in trace.series)


def test_the_part_says_mode_number_and_tracker() -> None:
    part = parse_part(gpu(decode(HEADER + row("2024-01-01T00:01:00", "r", "60", "0.5")))[0].part)
    assert part is not None
    assert (part.mode, part.gpu_count, part.label) == ("machine", 4, "tracker 1")


def test_runs_that_follow_each_other_are_one_counter_that_begins_again() -> None:
    trace = decode(
        HEADER + row("2024-01-01T00:01:00", "a", "60", "0.5") + row("2024-01-01T00:01:59", "b", "60", "0.25")
    )
    (series,) = gpu(trace)
    assert series.value.tolist() == pytest.approx([0, 0.5 * KWH, 0, 0.25 * KWH])
    assert (series.utc_ns[1:] >= series.utc_ns[:-1]).all()


def test_runs_beside_each_other_are_parts_of_their_own() -> None:
    trace = decode(
        HEADER
        + row("2024-01-01T01:00:00", "a", "3600", "1.0")
        + row("2024-01-01T01:00:01", "b", "3600", "1.1")
    )
    assert [item.value[-1] for item in gpu(trace)] == pytest.approx([1.0 * KWH, 1.1 * KWH])
    assert [item.part.rpartition(", ")[2] for item in gpu(trace)] == ["tracker 1", "tracker 2"]


def test_tasks_of_one_run_that_begin_anew_are_not_its_totals() -> None:
    trace = decode(
        HEADER + row("2024-01-01T00:01:00", "a", "60", "0.5") + row("2024-01-01T00:02:00", "a", "60", "0.25")
    )
    (series,) = gpu(trace)
    assert series.value.tolist() == pytest.approx([0, 0.5 * KWH, 0, 0.25 * KWH])


def test_times_with_a_zone_are_placed() -> None:
    trace = decode(HEADER + row("2024-01-01T00:01:00+01:00", "r", "60", "0.5"))
    assert gpu(trace)[0].utc_ns[0] == (1_704_067_200 - 3_600) * SECOND
    assert trace.findings == ()


def test_without_times_runs_have_lengths_and_ranks_their_parts() -> None:
    text = "run_id,rank,hostname,tracking_mode,gpu_count,duration_s,gpu_energy_kwh\n"
    trace = decode(text + "r,0,n1,machine,4,3600,0.5\nr,1,n1,machine,4,3600,0.51\n")
    assert [(item.device, item.part, item.timing) for item in trace.series] == [
        ("n1", "machine of 4 GPUs, rank0", Timing.RELATIVE),
        ("n1", "machine of 4 GPUs, rank1", Timing.RELATIVE),
    ]
    assert trace.series[0].utc_ns.tolist() == [0, 3_600 * SECOND]


def test_runs_without_times_may_have_run_beside_each_other() -> None:
    text = "run_id,tracking_mode,duration,gpu_energy\na,machine,60,1\nb,machine,60,2\n"
    assert len(gpu(decode(text))) == 2


def test_the_oldest_files_have_a_total_alone() -> None:
    text = "timestamp,experiment_id,duration,emissions,energy_consumed\n2021-01-01T00:01:00,x,60,8,0.5\n"
    (series,) = decode(text).series
    assert (series.scope, series.value[-1]) == (Scope.UNKNOWN, pytest.approx(0.5 * KWH))


def test_missing_energies_are_missing() -> None:
    trace = decode(HEADER + row("2024-01-01T00:01:00", "r", "60", "", ram="nan"))
    assert [str(item.value[-1]) for item in trace.series] == ["nan", "360000.0", "nan"]
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        row("2020-04-31T03:26:11", "r", "60", "1"),
        row("yesterday", "r", "60", "1"),
        row("2024-01-01T00:01:00", "r", "-1", "1"),
        row("2024-01-01T00:01:00", "r", "1e12", "1"),
        row("2024-01-01T00:01:00", "r", "nan", "1"),
        row("2024-01-01T00:01:00", "r", "60", "much"),
        row("2024-01-01T00:01:00Z", "r", "60", "1"),
        "2024-01-01T00:01:00,r,60\n",
        '"\n',
    ],
)
def test_rows_that_cannot_be_read_are_counted(line: str) -> None:
    trace = decode(HEADER + row("2024-01-01T00:01:00", "r", "60", "0.5") + line + "\n" + HEADER)
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "e.csv:3")
    assert [len(item) for item in gpu(trace)] == [2]


def test_quoted_cells_are_read() -> None:
    text = "timestamp,duration,emissions,gpu_energy,cpu_model,gpu_count\n"
    trace = decode(text + '2024-01-01T00:01:00,60,1,0.5,"CPU, fast",many\n')
    assert (trace.n_skipped, gpu(trace)[0].part) == (0, "tracked, tracker 1")


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEADER, HEADER + "x\n", "duration,gpu_energy\n1,2\n"])
def test_what_holds_no_run_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    assert caught.value.where.startswith("e.csv:")


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecarbon_csv, "_MOST_ROWS", 1)
    with pytest.raises(DecodeError):
        decode(HEADER + row("2024-01-01T00:01:00", "r", "60", "0.5") * 2)


@pytest.mark.parametrize(
    "head",
    [
        HEADER.encode(),
        HEADER.encode("utf-16"),
        b"run_id,rank,hostname,tracking_mode,gpu_count,duration_s,gpu_energy_kwh\n",
        b"timestamp,experiment_id,project_name,duration,emissions,energy_consumed,country_name\n",
    ],
)
def test_the_format_is_known(head: bytes) -> None:
    assert is_codecarbon_csv(head, "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"duration,gpu_energy\n",
        b"timestamp,emissions\n",
        b"gpu model,training duration (h),energy (MJ),emissions (gCO2e)\n",
        b"chip,duration_s,energy_j\n",
        b"time_s,power_w\n",
        b"x" * 100_000,
    ],
)
def test_other_files_are_not_taken(head: bytes) -> None:
    assert not is_codecarbon_csv(head, "emissions.csv")
