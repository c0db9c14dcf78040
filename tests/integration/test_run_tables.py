"""Every table of runs among the real recordings is read whole, and nothing else is taken for one."""

import csv
import random
from contextlib import suppress
from pathlib import Path

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.sources.run_table import (
    EnergyOrigin,
    RunRow,
    RunTable,
    decode_run_table,
    is_run_table,
)
from flopwitness.measure.sources.selection import parse_where, select

pytestmark = pytest.mark.shared_data

HEAD_BYTES = 65_536

# table: rows, cells or rows that cannot be read
TABLES = {
    "epoch/frontier_ai_models.csv": (131, 2),
    "epoch/notable_ai_models.csv": (952, 3),
    "gaissa_keras/runs.csv": (369, 0),
    "jetson_orin_nano/runs_15w.csv": (26, 0),
    "jetson_orin_nano/runs_25w_trial1.csv": (38, 0),
    "jetson_orin_nano/runs_25w_trial2.csv": (26, 0),
    "v100_ddp/runs_benign.csv": (91, 0),
    "zeus_traces/summary_power_a40.csv": (453, 0),
    "zeus_traces/summary_power_p100.csv": (270, 0),
    "zeus_traces/summary_power_rtx6000.csv": (410, 0),
    "zeus_traces/summary_power_v100.csv": (476, 0),
}


def load(shared_data: Path, name: str) -> RunTable:
    return decode_run_table((shared_data / "data" / name).read_bytes(), where=name)


def by_name(table: RunTable) -> dict[str, RunRow]:
    return {row.run_id: row for row in table.rows}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_read(shared_data: Path, name: str) -> None:
    table = load(shared_data, name)
    assert (len(table.rows), table.n_skipped) == TABLES[name]
    assert table.provenance.path == name


@pytest.mark.parametrize("name", TABLES)
def test_cells_are_those_that_the_standard_reader_finds(shared_data: Path, name: str) -> None:
    with (shared_data / "data" / name).open(encoding="utf-8-sig", newline="") as file:
        expected = list(csv.DictReader(file))
    assert [dict(row.cells) for row in load(shared_data, name).rows] == expected


def test_only_the_tables_of_runs_are_recognised(shared_data: Path) -> None:
    found = set()
    for folder in ("data", "cases"):
        for path in (shared_data / folder).rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    head = file.read(HEAD_BYTES)
                if is_run_table(head, path.name):
                    found.add(str(path.relative_to(shared_data / folder)))
    assert found == set(TABLES)


@pytest.mark.parametrize(
    "name",
    [
        "epoch/ml_hardware.csv",
        "zeus_traces/summary_train.csv",
        "nvidia_smi/rtx4090_inference_1hz.csv",
        "gaissa_keras/rtx3070/mobilenet_v2/gpu-power-20230121T103916.csv",
        "spar_a100/gpt2_wikitext2_amp_NVIDIA_A100_SXM4_40GB_580ec1ad_20260309_182332.parquet",
    ],
)
def test_table_of_something_else_is_refused(shared_data: Path, name: str) -> None:
    with pytest.raises(DecodeError, match="1: not a table of runs"):
        load(shared_data, name)


def test_jetson_energy_is_net_plus_idle(shared_data: Path) -> None:
    row = load(shared_data, "jetson_orin_nano/runs_25w_trial1.csv").rows[0]
    assert row.net_energy_j == 1106.6203824822098
    assert row.energy_j == 1106.6203824822098 + 0.642048 * 150.73730869404972
    assert row.energy_j == pytest.approx(1203.40097, abs=1e-5)
    assert row.energy_origin is EnergyOrigin.NET_PLUS_IDLE
    assert (row.chip_name, row.count, row.power_mode) == ("jetson-orin-nano-8gb", None, "25W")
    assert (row.precisions, row.true_flop) == (("fp32",), 88_583_700_000_000)


@pytest.mark.parametrize("name", [name for name in TABLES if "jetson" in name or "v100_ddp" in name])
def test_both_ways_to_the_total_energy_agree(shared_data: Path, name: str) -> None:
    for row in load(shared_data, name).rows:
        assert row.energy_j is not None
        assert row.mean_power_w is not None
        assert row.duration_s is not None
        assert row.energy_j == pytest.approx(row.mean_power_w * row.duration_s, rel=0.01)


def test_frontier_runs_of_the_jetson_are_selected(shared_data: Path) -> None:
    rows = load(shared_data, "jetson_orin_nano/runs_25w_trial1.csv").rows
    selection = select(rows, [parse_where("precision=fp32")], 80)
    assert (len(selection.rows), selection.n_unmatched, selection.n_below_gate) == (21, 12, 5)


def test_v100_runs_are_of_two_chips(shared_data: Path) -> None:
    rows = load(shared_data, "v100_ddp/runs_benign.csv").rows
    assert {(row.chip_name, row.count) for row in rows} == {("v100-sxm2-16gb", 2)}
    assert rows[0].energy_j == pytest.approx(19997.299 + 97.89 * 165.389)
    assert (rows[0].link_traffic_tb, rows[0].true_flop) == (2.591452, 4_099_421_700_000_000)


def test_epoch_counts_are_exact(shared_data: Path) -> None:
    models = by_name(load(shared_data, "epoch/notable_ai_models.csv"))
    falcon, deepseek = models["Falcon-180B"], models["DeepSeek-V3"]
    assert falcon.declared_flop == 3_760_000_000_000_000_000_000_000
    assert deepseek.declared_flop == 3_407_800_000_000_000_000_000_000
    assert (falcon.count, falcon.duration_s) == (4096, 4320 * 3600.0)
    assert (deepseek.chip_name, deepseek.precisions) == ("NVIDIA H800 SXM5", ("fp8",))
    assert {row.energy_j for row in models.values()} == {None}
    assert {row.utilisation_pct for row in models.values()} == {None}
    assert sum(row.declared_flop is not None for row in models.values()) == 508
    assert sum(row.count is not None for row in models.values()) == 241


def test_epoch_fractions_of_an_operation_are_refused_by_name(shared_data: Path) -> None:
    skipped = load(shared_data, "epoch/notable_ai_models.csv").skipped
    assert [each.found for each in skipped] == ["'Unknown'", "'18232157622832.703'", "'694894.9377361819'"]
    assert all(each.where.startswith("epoch/notable_ai_models.csv:") for each in skipped)


def test_keras_energy_is_recorded_in_megajoule_and_precision_is_a_score(shared_data: Path) -> None:
    table = load(shared_data, "gaissa_keras/runs.csv")
    row = table.rows[0]
    assert (row.energy_j, row.energy_origin) == (415_170.4675, EnergyOrigin.RECORDED)
    assert row.duration_s == pytest.approx(0.7347502777777778 * 3600)
    assert (row.chip_name, row.utilisation_pct) == ("NVIDIA GeForce RTX 3090", 23.004161937192585)
    assert "precision" in table.ignored
    assert {each.precisions for each in table.rows} == {()}


def test_zeus_row_is_one_epoch(shared_data: Path) -> None:
    row = load(shared_data, "zeus_traces/summary_power_a40.csv").rows[0]
    assert (row.duration_s, row.mean_power_w) == (27.130000000000003, 106.88881213499654)
    assert row.energy_j == pytest.approx(27.13 * 106.88881213499654)
    assert row.energy_origin is EnergyOrigin.MEAN_POWER
    assert row.chip_name == ""


@pytest.mark.parametrize("name", TABLES)
def test_damaged_table_is_read_or_refused(shared_data: Path, name: str) -> None:
    whole = (shared_data / "data" / name).read_bytes()[:4_000]
    draw = random.Random(name)  # noqa: S311 (damage, not a secret)
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(len(data))] = draw.choice(b'",;\n\r\t\xff\x00 0e-')
        with suppress(DecodeError):
            assert len(decode_run_table(bytes(data), where=name).rows) <= data.count(b"\n") + 1
