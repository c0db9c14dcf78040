"""Headers are understood with their units or refused; cells are read exactly or refused."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources import run_columns
from flopwitness.measure.sources.run_columns import (
    CellValue,
    Column,
    Dimension,
    is_plain_number,
    plan_columns,
    read_cell,
    split_chip,
)


def understood(header: str) -> tuple[str, Fraction] | None:
    columns = plan_columns([header], where="t.csv:1").columns
    return (columns[0].field, columns[0].factor) if columns else None


def column(dimension: Dimension, factor: Fraction = Fraction(1), *, may_be_zero: bool = True) -> Column:
    return Column(index=0, header="h", field="f", dimension=dimension, factor=factor, may_be_zero=may_be_zero)


@pytest.mark.parametrize(
    ("header", "field", "factor"),
    [
        ("run_id", "run_id", 1),
        ("Run ID", "run_id", 1),
        ("Model", "run_id", 1),
        ("chip", "chip_name", 1),
        ("device", "chip_name", 1),
        ("Training hardware", "chip_name", 1),
        ("gpu model", "chip_name", 1),
        ("count", "count", 1),
        ("Hardware quantity", "count", 1),
        ("world_size", "count", 1),
        ("duration_s", "duration_s", 1),
        ("Duration (S)", "duration_s", 1),
        ("duration_min", "duration_s", 60),
        ("duration (ms)", "duration_s", Fraction(1, 1000)),
        ("Training time (hours)", "duration_s", 3600),
        ("training duration (h)", "duration_s", 3600),
        ("time_per_epoch", "duration_s", 1),
        ("energy_j", "energy_j", 1),
        ("energy (MJ)", "energy_j", 10**6),
        ("energy_MJ", "energy_j", 10**6),
        ("energy (mJ)", "energy_j", Fraction(1, 1000)),
        ("energy_mj", "energy_j", Fraction(1, 1000)),
        ("energy_wh", "energy_j", 3600),
        ("energy_kwh", "energy_j", 3_600_000),
        ("Energy [kWh]", "energy_j", 3_600_000),
        ("energy (MWh)", "energy_j", 3_600_000_000),
        ("energy (mWh)", "energy_j", Fraction(36, 10)),
        ("net energy j", "net_energy_j", 1),
        ("idle_power_w", "idle_power_w", 1),
        ("mean_power_w", "mean_power_w", 1),
        ("average_power", "mean_power_w", 1),
        ("average power draw (W)", "mean_power_w", 1),
        ("average_power [kW]", "mean_power_w", 1000),
        ("gpu usage (%)", "utilisation_pct", 1),
        ("mean_utilisation_pct", "utilisation_pct", 1),
        ("memory_traffic_tb", "memory_traffic_tb", 1),
        ("link_traffic (GB)", "link_traffic_tb", Fraction(1, 1000)),
        ("host-traffic-bytes", "host_traffic_tb", Fraction(1, 10**12)),
        ("memory_traffic_TiB", "memory_traffic_tb", Fraction(2**40, 10**12)),
        ("true_tflop", "true_flop", 10**12),
        ("true_flop", "true_flop", 1),
        ("Training compute (FLOP)", "declared_flop", 1),
        ("declared_zflop", "declared_flop", 10**21),
        ("Finetune compute (FLOP)", "finetune_flop", 1),
        ("Base model", "base_model", 1),
        ("Numerical format", "precisions", 1),
        ("power_limit", "power_mode", 1),
        ("scope", "scope", 1),
    ],
)
def test_header_is_understood_with_its_unit(header: str, field: str, factor: Fraction | int) -> None:
    assert understood(header) == (field, factor)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("energy", "no unit"),
        ("duration", "no unit"),
        ("utilisation", "no unit"),
        ("energy (BTU)", "'BTU'"),
        ("energy_mwh", "'mwh'"),
        ("ENERGY_MJ", "'MJ'"),
        ("energy (Mj)", "'Mj'"),
        ("training duration (fortnights)", "'fortnights'"),
        ("mean_power (hp)", "'hp'"),
        ("gpu usage (ppm)", "'ppm'"),
        ("Training compute (FLOP/s)", "'FLOP/s'"),
    ],
)
def test_known_quantity_in_an_unclear_unit_is_refused_and_recorded(header: str, found: str) -> None:
    plan = plan_columns(["chip", header], where="t.csv:1")
    assert [column.field for column in plan.columns] == ["chip_name"]
    assert plan.ignored == (header,)
    (refusal,) = plan.refused
    assert refusal.where == f"t.csv:1, column {header}"
    assert refusal.found == found


@pytest.mark.parametrize(
    "header",
    [
        "Hardware utilization (MFU)",
        "Hardware utilization (HFU)",
        "Training power draw (W)",
        "Training chip-hours",
        "steps",
        "optimizer",
        "epochs",
        "power.draw [W]",
        "utilization.gpu [%]",
        "energy_efficiency",
        "gpu_energy_kwh",
        "peak_power_w",
        "chip (maker)",
        "",
        "x" * 100_000,
    ],
)
def test_column_outside_the_vocabulary_is_ignored_without_a_refusal(header: str) -> None:
    plan = plan_columns([header], where="t.csv:1")
    assert plan.columns == ()
    assert plan.ignored == (header,)
    assert plan.refused == ()


def test_precision_beside_recall_is_a_score() -> None:
    assert plan_columns(["precision", "recall"], where="t:1").columns == ()
    assert plan_columns(["precision", "accuracy"], where="t:1").has("precisions")


def test_preferred_spelling_fills_a_text_wherever_it_stands() -> None:
    plan = plan_columns(["device", "chip", "gpu model"], where="t:1")
    assert [(column.header, column.index) for column in plan.columns] == [("chip", 1)]
    assert plan.ignored == ("device", "gpu model")


def test_several_columns_may_fill_one_number() -> None:
    plan = plan_columns(["energy_kwh", "energy_j"], where="t:1")
    assert [column.field for column in plan.columns] == ["energy_j", "energy_j"]


@pytest.mark.parametrize(
    ("text", "flop"),
    [
        ("2.69000000000001e+24", 2_690_000_000_000_010_000_000_000),
        ("1.114817000000001e+24", 1_114_817_000_000_001_000_000_000),
        ("512.0", 512),
        ("1e25", 10**25),
        (" 40 ", 40),
        ("0.0", 0),
    ],
)
def test_count_of_operations_is_the_exact_decimal(text: str, flop: int) -> None:
    assert read_cell(column(Dimension.FLOP), text, where="t") == flop


def test_count_in_a_larger_unit_is_rounded_to_a_whole_operation() -> None:
    tera = column(Dimension.FLOP, Fraction(10**12))
    assert read_cell(tera, "88.5837", where="t") == 88_583_700_000_000
    assert read_cell(tera, "88.58370000000001", where="t") == 88_583_700_000_000


@pytest.mark.parametrize(
    "text",
    ["694894.9377361819", "-1", "nan", "inf", "1_000", "1,000", "٣", "1e64", "1e9999", "0x10", "+5", "-0"],
)
def test_no_whole_count_of_operations(text: str) -> None:
    with pytest.raises(DecodeError):
        read_cell(column(Dimension.FLOP), text, where="t")


@pytest.mark.parametrize("text", ["0", "0.0", "1.5", "-8", "eight", "1e70"])
def test_no_count_of_chips(text: str) -> None:
    with pytest.raises(DecodeError):
        read_cell(column(Dimension.COUNT, may_be_zero=False), text, where="t")


@pytest.mark.parametrize(
    ("dimension", "factor", "text", "value"),
    [
        (Dimension.ENERGY, Fraction(10**6), "0.4151704675", 415_170.4675),
        (Dimension.TIME, Fraction(3600), "0.833", 2998.8),
        (Dimension.TIME, Fraction(1), "150.73730869404972", 150.73730869404972),
        (Dimension.ENERGY, Fraction(1, 1000), "77300000000", 77_300_000.0),
        (Dimension.SHARE, Fraction(1), "100", 100.0),
        (Dimension.POWER, Fraction(1), ".5", 0.5),
        (Dimension.POWER, Fraction(1), "0", 0.0),
    ],
)
def test_quantity_is_the_double_next_to_the_exact_value(
    dimension: Dimension, factor: Fraction, text: str, value: float
) -> None:
    assert read_cell(column(dimension, factor), text, where="t") == value


@pytest.mark.parametrize(
    "text",
    ["-0.1", "NaN", "inf", "Infinity", "N/A", "[N/A]", "3,5", "1e101", "1e999", "5 W", "1" * 65, "1e", "."],
)
def test_no_quantity(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read_cell(column(Dimension.POWER), text, where="t.csv:3, column p")
    assert caught.value.where == "t.csv:3, column p"
    assert caught.value.expected == "a decimal number at least 0"


@pytest.mark.parametrize("text", ["0", "0.000", "1e-999"])
def test_zero_is_no_reading_where_a_run_must_have_some(text: str) -> None:
    with pytest.raises(DecodeError, match="above 0"):
        read_cell(column(Dimension.TIME, may_be_zero=False), text, where="t")


def test_share_above_the_whole_is_refused() -> None:
    with pytest.raises(DecodeError, match="at most 100"):
        read_cell(column(Dimension.SHARE), "100.1", where="t")


@pytest.mark.parametrize("dimension", list(Dimension))
@pytest.mark.parametrize("text", ["", "  ", "\t"])
def test_empty_cell_is_missing(dimension: Dimension, text: str) -> None:
    assert read_cell(column(dimension), text, where="t") is None


@pytest.mark.parametrize(
    ("dimension", "text", "value"),
    [
        (Dimension.TEXT, " NVIDIA A100 ", "NVIDIA A100"),
        (Dimension.PRECISIONS, "FP32", ("fp32",)),
        (Dimension.PRECISIONS, "bfloat16, FP8; fp8", ("bf16", "fp8")),
        (Dimension.PRECISIONS, "tf32/int8", ("tf32", "int8")),
        (Dimension.SCOPE, "node_ac", Scope.NODE_AC),
        (Dimension.SCOPE, "GPU", Scope.GPU),
    ],
)
def test_word_is_read(dimension: Dimension, text: str, value: CellValue) -> None:
    assert read_cell(column(dimension), text, where="t") == value


@pytest.mark.parametrize(
    ("dimension", "text"),
    [
        (Dimension.PRECISIONS, "Unknown"),
        (Dimension.PRECISIONS, "0.9755"),
        (Dimension.PRECISIONS, "fp32 and more"),
        (Dimension.PRECISIONS, ",;"),
        (Dimension.SCOPE, "rack"),
        (Dimension.SCOPE, "0"),
    ],
)
def test_word_outside_the_vocabulary_is_refused(dimension: Dimension, text: str) -> None:
    with pytest.raises(DecodeError):
        read_cell(column(dimension), text, where="t")


@pytest.mark.parametrize(
    ("name", "count", "chip"),
    [
        ("2x-v100-sxm2-16gb", 2, "v100-sxm2-16gb"),
        ("8 x NVIDIA H100", 8, "NVIDIA H100"),
        ("512xH100", 512, "H100"),
        ("jetson-orin-nano-8gb", None, "jetson-orin-nano-8gb"),
        ("0x1586", None, "0x1586"),
        ("4x4", None, "4x4"),
        ("x86", None, "x86"),
    ],
)
def test_count_before_a_chip(name: str, count: int | None, chip: str) -> None:
    assert split_chip(name) == (count, chip)


def test_plain_number() -> None:
    assert is_plain_number("16")
    assert is_plain_number("1.5e-3")
    assert not is_plain_number("-16")
    assert not is_plain_number("16 ")
    assert not is_plain_number("")


def test_every_field_and_unit_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "run-tables.md").read_text(encoding="utf-8")
    for field in run_columns._FIELDS:
        assert f"| `{field.name}` |" in guide
    words = {word.lower() for word in re.findall(r"[\w%]+", guide)}
    abbreviated = {"second", "seconds", "sec", "minute", "minutes", "hr", "hour", "hours", "day", "days"}
    for units in run_columns._UNITS.values():
        assert {unit.lower() for unit in units} <= words | abbreviated | {"b", "byte"}
