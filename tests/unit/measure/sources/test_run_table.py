"""A table of runs becomes rows; what cannot be read is missing and recorded, never zero and never silent."""

import io

import polars as pl
import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Provenance, Scope
from flopwitness.measure.sources import run_table
from flopwitness.measure.sources.run_table import (
    EnergyOrigin,
    RunRow,
    RunTable,
    check_run_table,
    decode_run_table,
    is_run_table,
)

OWN_HEADER = (
    "run_id,chip,count,duration_s,energy_j,net_energy_j,idle_power_w,mean_power_w,scope,power_mode,clock_limit,"
    "driver,precision,utilisation_pct,memory_traffic_tb,link_traffic_tb,host_traffic_tb,true_flop,declared_flop,finetune_flop,"
    "base_model"
)


def decode(text: str) -> RunTable:
    return decode_run_table(text.encode(), where="runs.csv")


def only_row(text: str) -> RunRow:
    (row,) = decode(text).rows
    return row


def skips(table: RunTable) -> list[tuple[str, str]]:
    assert table.n_skipped == len(table.skipped)
    return [(each.where, each.found) for each in table.skipped]


def test_own_names_fill_every_field() -> None:
    row = only_row(
        f"{OWN_HEADER}\n"
        "r1,h100,8,10,100,90,1,10,node-ac,700W,1980 MHz,570.1,bf16,99.5,1,2,3,1000,1e25,2e3,parent\n"
    )
    assert {name: getattr(row, name) for name in RunRow.__slots__ if name != "cells"} == {
        "row": 2,
        "run_id": "r1",
        "chip_name": "h100",
        "count": 8,
        "duration_s": 10.0,
        "energy_j": 100.0,
        "energy_origin": EnergyOrigin.RECORDED,
        "net_energy_j": 90.0,
        "idle_power_w": 1.0,
        "mean_power_w": 10.0,
        "scope": Scope.NODE_AC,
        "power_mode": "700W",
        "clock_limit": "1980 MHz",
        "driver": "570.1",
        "precisions": ("bf16",),
        "utilisation_pct": 99.5,
        "memory_traffic_tb": 1.0,
        "link_traffic_tb": 2.0,
        "host_traffic_tb": 3.0,
        "true_flop": 1000,
        "declared_flop": 10**25,
        "finetune_flop": 2000,
        "base_model": "parent",
    }
    assert row.cells["declared_flop"] == "1e25"


def test_empty_cells_are_missing_and_not_zero() -> None:
    row = only_row(f"{OWN_HEADER}\nr1{',' * 20}\n")
    numbers = [
        row.count, row.duration_s, row.energy_j, row.energy_origin, row.net_energy_j, row.idle_power_w,
        row.mean_power_w, row.utilisation_pct, row.memory_traffic_tb, row.link_traffic_tb,
        row.host_traffic_tb, row.true_flop, row.declared_flop, row.finetune_flop,
    ]  # fmt: skip
    assert numbers == [None] * 14
    assert (row.chip_name, row.power_mode, row.base_model, row.precisions) == ("", "", "", ())
    assert row.scope is Scope.UNKNOWN


def test_table_tells_what_it_understood_and_what_not() -> None:
    data = b"Run ID,steps,duration (h),colour\nr1,10,2,red\n"
    table = decode_run_table(data, where="runs.csv")
    assert dict(table.columns) == {"Run ID": "run_id", "duration (h)": "duration_s"}
    assert table.ignored == ("steps", "colour")
    assert table.provenance == Provenance(
        path="runs.csv", format="run-table", digest=digest_bytes(data), size_bytes=len(data)
    )
    assert table.rows[0].duration_s == 7200.0
    assert dict(table.rows[0].cells) == {"Run ID": "r1", "steps": "10", "duration (h)": "2", "colour": "red"}


def test_malformed_number_is_missing_and_recorded_with_row_and_column() -> None:
    table = decode("run_id,duration_s,energy_j\na,1,2\nb,N/A,-3\nc,0,4\n")
    assert [(row.duration_s, row.energy_j) for row in table.rows] == [(1.0, 2.0), (None, None), (None, 4.0)]
    assert skips(table) == [
        ("runs.csv:3, column duration_s", "'N/A'"),
        ("runs.csv:3, column energy_j", "'-3'"),
        ("runs.csv:4, column duration_s", "'0'"),
    ]


def test_unreadable_row_is_skipped_and_recorded() -> None:
    table = decode('run_id,duration_s\na,1\nb\nc,1,2\n5" x,3\n\n,\nd,4\n')
    assert [(row.row, row.run_id) for row in table.rows] == [(2, "a"), (8, "d")]
    assert skips(table) == [
        ("runs.csv:3", "1 cells"),
        ("runs.csv:4", "3 cells"),
        ("runs.csv:5", "a quotation mark inside a cell"),
    ]


def test_row_after_a_quoted_line_break_keeps_its_line() -> None:
    assert [row.row for row in decode('run_id,duration_s\n"a\nb",1\nc,2\n').rows] == [2, 4]


def test_refused_column_is_recorded() -> None:
    table = decode("chip,energy\nh100,5\n")
    assert table.rows[0].energy_j is None
    assert skips(table) == [("runs.csv:1, column energy", "no unit")]


def test_only_the_first_thousand_skips_are_kept_and_all_are_counted() -> None:
    table = decode("duration_s\n" + "x\n" * 1_500)
    assert len(table.rows) == 1_500
    assert len(table.skipped) == 1_000
    assert table.n_skipped == 1_500


@pytest.mark.parametrize(
    ("header", "cells", "energy_j", "origin"),
    [
        ("duration_s,energy_j,mean_power_w", "10,100,99", 100.0, EnergyOrigin.RECORDED),
        ("duration_s,net_energy_j,idle_power_w", "10,100,5", 150.0, EnergyOrigin.NET_PLUS_IDLE),
        (
            "duration_s,net_energy_j,idle_power_w,mean_power_w",
            "10,100,5,16",
            150.0,
            EnergyOrigin.NET_PLUS_IDLE,
        ),
        ("duration_s,mean_power_w", "10,16", 160.0, EnergyOrigin.MEAN_POWER),
        ("duration_s,net_energy_j,mean_power_w", "10,100,16", 160.0, EnergyOrigin.MEAN_POWER),
        ("duration_s,net_energy_j", "10,100", None, None),
        ("net_energy_j,idle_power_w,mean_power_w", "100,5,16", None, None),
        ("duration_s,net_energy_j,idle_power_w", "10,0,0", None, None),
        ("duration_s,idle_power_w", "10,5", None, None),
    ],
)
def test_total_energy_is_recorded_or_derived_and_says_which(
    header: str, cells: str, energy_j: float | None, origin: EnergyOrigin | None
) -> None:
    row = only_row(f"{header}\n{cells}\n")
    assert (row.energy_j, row.energy_origin) == (energy_j, origin)


def test_columns_for_one_number_may_differ_by_rounding_only() -> None:
    table = decode("energy_kwh,energy_j\n1.0,3600001\n1.0,3700000\n,5\n")
    assert [row.energy_j for row in table.rows] == [3_600_000.0, None, 5.0]
    assert skips(table) == [("runs.csv:3, column energy_j", "3700000.0")]


def test_count_in_the_chip_must_agree_with_the_count() -> None:
    table = decode("device,world_size,duration_s\n2x-v100,2,1\n2x-v100,4,1\n2x-v100,,1\nv100,,1\n")
    assert [(row.chip_name, row.count) for row in table.rows] == [
        ("v100", 2),
        ("v100", None),
        ("v100", 2),
        ("v100", None),
    ]
    assert table.n_skipped == 1


def test_cells_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        only_row("duration_s\n1\n").cells["duration_s"] = "2"  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("colour,size\nred,1\n", "runs.csv:1"),
        ("\n\nrun_id,count,true_flop\na,1,2\n", "runs.csv:3"),
        ("Hardware name,TDP (W)\nA100,400\n", "runs.csv:1"),
        ("timestamp,gpu_name,average_power\n2026,A100,5\n", "runs.csv:1"),
    ],
)
def test_table_in_which_no_run_can_be_known_is_refused_in_one_line(text: str, where: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(text)
    error = caught.value
    assert error.where == where
    assert "duration_s" in error.expected
    assert error.found == ", ".join(text.strip().splitlines()[0].split(","))
    assert "\n" not in str(error)


@pytest.mark.parametrize("data", [b"", b"\x00\x01", b"\xff\xfe", b"PAR1", b"PAR1junkPAR1", b'duration_s\n"1'])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"runs\.csv"):
        decode_run_table(data, where="runs.csv")


def test_too_many_rows_or_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_table, "MOST_ROWS", 2)
    assert len(decode("duration_s\n1\n2\n").rows) == 2
    with pytest.raises(DecodeError, match=r"runs\.csv:4: too large \(expected at most 2 rows"):
        decode("duration_s\n1\n2\n3\n")
    monkeypatch.setattr(run_table, "LARGEST_TABLE_BYTES", 10)
    with pytest.raises(DecodeError, match="at most 10 bytes"):
        decode("duration_s\n1\n2\n")


def test_parquet_is_read_like_text() -> None:
    target = io.BytesIO()
    pl.DataFrame(
        {
            "device": ["2x-v100", None],
            "duration (h)": [0.5, float("nan")],
            "energy_kwh": [2, None],
            "declared_flop": [1e25, 2.5e24],
        }
    ).write_parquet(target)
    table = decode_run_table(target.getvalue(), where="runs.parquet")
    assert [(r.row, r.chip_name, r.count, r.duration_s, r.energy_j, r.declared_flop) for r in table.rows] == [
        (1, "v100", 2, 1800.0, 7_200_000.0, 10**25),
        (2, "", None, None, None, 25 * 10**23),
    ]
    assert skips(table) == [("runs.parquet:2, column duration (h)", "'nan'")]
    assert is_run_table(target.getvalue(), "runs.parquet")
    assert not is_run_table(target.getvalue()[:-1], "runs.parquet")


@pytest.mark.parametrize(
    "head",
    [
        b"run_id,chip,duration_s\nr1,h1",
        b"\xef\xbb\xbfModel;Training compute (FLOP)\nx;",
        b"time_per_epoch\taverage_power\n",
        b"run_id,duration_s\nr\xc3",
    ],
)
def test_table_of_runs_is_recognised(head: bytes) -> None:
    assert is_run_table(head, "runs.csv")


@pytest.mark.parametrize(
    ("head", "where", "found"),
    [
        (b"chip,count\nh100,8\n", "f:1", "chip, count"),
        (b"duration_s,duration_s\n1,1\n", "f:1", "'duration_s'"),
        (b"\n\nchip;count;duration\nh;8;3\n", "f:3, column duration", "no unit"),
        (b"timestamp,run_id,duration_s,energy_kwh\n1,a,2,3\n", "f:1", "a column timestamp"),
        (b"t_s,gpu_uuid,total_energy_consumption_mj,duration\n0,G,7,1\n", "f:1", "a column t_s"),
    ],
)
def test_nearly_a_table_of_runs_is_told_why_not(head: bytes, where: str, found: str) -> None:
    with pytest.raises(DecodeError) as caught:
        check_run_table(head, where="f")
    assert (caught.value.where, caught.value.found) == (where, found)
    assert not is_run_table(head, "f")


@pytest.mark.parametrize(
    "head", [b"", b"duration_s\n1\n", b"a,b\n1,2\n", b"A duration, and an energy.\n", b"PAR1", b"\xff\n"]
)
def test_what_has_nothing_of_a_table_of_runs_is_told_nothing(head: bytes) -> None:
    assert not check_run_table(head, where="f")


def test_the_delimiter_that_fits_decides_and_not_the_first() -> None:
    assert check_run_table(b"chip;x,a,a,y;duration_s\nh100;1;3\n", where="f")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"duration_s,energy_j",
        b"duration_s\n1\n",
        b"chip,count\nh100,8\n",
        b"timestamp, index, power.draw [W], utilization.gpu [%]\n2025/05/14 09:00:00.000, 0, 70.00 W, 9 %\n",
        b"timestamp,run_id,duration_s,energy_kwh\n1,a,2,3\n",
        b"run_id,rank,hostname,gpu_count,duration_s,gpu_energy_kwh\nrun-7,0,node-a,4,14400,2.9\n",
        b"device,Energy counter,Accumulated Energy (uJ)\ncard0,1,2\n",
        b"t_s,gpu_uuid,total_energy_consumption_mj\n0,GPU-0,77300000000\n",
        b':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "run_start"}\n',
        b'{"run_id": "a", "duration_s": 1, "energy_j": 2}\n',
        b'["run_id", "duration_s", "energy_j"]\n',
        b"The model ran for a duration of ten hours, and its energy was low.\n",
        b"duration_s,duration_s\n1,1\n",
        b'run_id,"duration_s\n',
        b"\x89PNG\r\n\x1a\n",
        b"PAR1\x15\x04\n",
    ],
)
def test_anything_else_is_not_taken_for_a_table_of_runs(head: bytes) -> None:
    assert not is_run_table(head, "file")
