"""The chips: what the file holds, how a chip is found, and what the loader refuses."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from flopwitness.catalogue.chips import (
    Chip,
    ChipCatalogue,
    EpochDifference,
    Kind,
    Precision,
    decode_chips,
    load_chips,
    normalise_name,
)
from flopwitness.catalogue.sourced import Checked, Sourced
from flopwitness.foundation.errors import DecodeError, OutOfRangeError, UnknownChipError

TERA: Final = 1e12


@pytest.fixture(scope="module")
def catalogue() -> ChipCatalogue:
    return load_chips()


def one(catalogue: ChipCatalogue, name: str) -> Chip:
    (chip,) = catalogue.find(name)
    return chip


def figures(chip: Chip) -> Iterator[Sourced]:
    yield from chip.peak_flop_per_s.values()
    for figure in (
        chip.memory_byte,
        chip.memory_bandwidth_byte_per_s,
        chip.link_bandwidth_byte_per_s,
        chip.power_limit_w,
    ):
        if figure is not None:
            yield figure
    for mode in chip.power_modes.values():
        yield from (figure for figure in (mode.power_limit_w, mode.gpu_clock_hz) if figure is not None)
    if chip.reference_node is not None:
        yield chip.reference_node.power_limit_w


# What the file holds


def test_there_are_enough_chips(catalogue: ChipCatalogue) -> None:
    assert len(catalogue.chips) >= 75
    assert len({chip.id for chip in catalogue.chips}) == len(catalogue.chips)


def test_every_chip_has_peaks_and_every_figure_its_provenance(catalogue: ChipCatalogue) -> None:
    for chip in catalogue.chips:
        assert chip.peak_flop_per_s, chip.id
        for figure in figures(chip):
            assert figure.value > 0, chip.id
            assert figure.source.title, chip.id
            assert figure.source.publisher, chip.id
            assert figure.source.date.year >= 2016, chip.id
            assert figure.conditions, chip.id


def test_what_stands_in_the_named_data_set_is_epochs(catalogue: ChipCatalogue) -> None:
    for chip in catalogue.chips:
        for figure in figures(chip):
            assert (figure.checked is not Checked.TABLE) or figure.source.publisher == "Epoch AI", chip.id


@pytest.mark.parametrize(
    ("name", "precision", "tera"),
    [
        ("h100-sxm", Precision.FP8, 1979),
        ("h100-pcie", Precision.FP8, 1513),
        ("h200-sxm", Precision.FP8, 1979),
        ("gh200", Precision.FP8, 1979),
        ("a100-sxm-80gb", Precision.INT4, 1248),
        ("a100-pcie-40gb", Precision.INT4, 1248),
        ("v100-sxm2-16gb", Precision.FP16, 125),
        ("t4", Precision.INT4, 260),
        ("b200", Precision.FP4, 9000),
        ("b300", Precision.FP4, 14000),
        ("gb200", Precision.FP4, 10000),
        ("rtx-5090", Precision.FP4, 1676),
        ("mi300x", Precision.FP8, 2614.9),
        ("mi250x", Precision.FP16, 383),
        ("gaudi3", Precision.BF16, 1835),
        ("tpu-v5p", Precision.INT8, 918),
        ("tpu-v7", Precision.FP8, 4614),
        ("trainium2", Precision.FP8, 1299),
        ("gtx-580", Precision.FP32, 1.581),
    ],
)
def test_the_best_peak(catalogue: ChipCatalogue, name: str, precision: Precision, tera: float) -> None:
    best, peak = one(catalogue, name).peak_best
    assert best is precision
    assert peak.value == pytest.approx(tera * TERA, rel=1e-3)


def test_among_equal_rates_the_best_checked_one_is_the_best(catalogue: ChipCatalogue) -> None:
    chip = one(catalogue, "h20")
    assert chip.peak(Precision.FP8).value == chip.peak(Precision.INT8).value
    assert chip.peak(Precision.FP8).checked is Checked.RECALLED
    assert chip.peak_best == (Precision.INT8, chip.peak(Precision.INT8))
    assert chip.peak_best[1].checked is Checked.READ


SPARSE: Final = (  # what the data sheets print "with sparsity", in TFLOP/s or TOPS
    ("h100-sxm", {"tf32": 989.4, "fp16": 1979, "bf16": 1979, "fp8": 3958, "int8": 3958}),
    ("h100-pcie", {"tf32": 756, "fp16": 1513, "bf16": 1513, "fp8": 3026, "int8": 3026}),
    ("h100-nvl", {"tf32": 835, "fp16": 1671, "bf16": 1671, "fp8": 3341, "int8": 3341}),
    ("h200-sxm", {"tf32": 989, "fp16": 1979, "bf16": 1979, "fp8": 3958, "int8": 3958}),
    ("gh200", {"tf32": 989, "fp16": 1979, "bf16": 1979, "fp8": 3958, "int8": 3958}),
    ("a100-sxm-80gb", {"tf32": 312, "fp16": 624, "bf16": 624, "int8": 1248, "int4": 2496}),
    ("a30", {"tf32": 165, "fp16": 330, "bf16": 330, "int8": 661, "int4": 1321}),
    ("a10", {"tf32": 125, "fp16": 250, "bf16": 250, "int8": 500, "int4": 1000}),
    ("a40", {"tf32": 149.6, "fp16": 299.4, "bf16": 299.4, "int8": 598.6, "int4": 1197.4}),
    ("l4", {"tf32": 120, "fp16": 242, "bf16": 242, "fp8": 485, "int8": 485}),
    ("l40s", {"tf32": 366, "fp16": 733, "bf16": 733, "fp8": 1466, "int8": 1466}),
    ("rtx-3090", {"fp16": 284, "bf16": 142, "int8": 568}),
    ("rtx-4090", {"fp16": 660.6, "bf16": 330.4, "fp8": 1321.2, "int8": 1321.2}),
    ("rtx-5090", {"fp16": 838, "bf16": 419, "fp8": 1676, "fp4": 3352}),
    ("b200", {"tf32": 2250, "fp16": 4500, "bf16": 4500, "fp8": 9000, "fp4": 18000, "int8": 9000}),
    ("b300", {"fp16": 4500, "bf16": 4500, "fp8": 9000, "fp4": 18000, "int8": 307}),
    ("gb200", {"tf32": 2500, "fp16": 5000, "bf16": 5000, "fp8": 10000, "fp4": 20000, "int8": 10000}),
    ("mi300x", {"fp16": 2614.9, "bf16": 2614.9, "fp8": 5229.8, "int8": 5229.8}),
    ("mi355x", {"fp16": 5033, "bf16": 5033, "fp8": 10066}),
    ("trainium2", {"tf32": 2563, "fp16": 2563, "bf16": 2563, "fp8": 2563}),
    ("trainium3", {"tf32": 2517, "fp16": 2517, "bf16": 2517}),
    ("jetson-orin-nano-8gb", {"int8": 67}),
    ("jetson-agx-orin-64gb", {"int8": 275}),
    ("cerebras-cs-3", {"fp16": 125_000}),
)


@pytest.mark.parametrize(("name", "printed"), SPARSE)
def test_no_peak_is_a_sparse_figure(
    catalogue: ChipCatalogue, name: str, printed: Mapping[str, float]
) -> None:
    chip = one(catalogue, name)
    for precision, tera in printed.items():
        assert chip.peak(Precision(precision)).value < 0.8 * tera * TERA, precision


def test_fp16_accumulation_counts_on_geforce_cards(catalogue: ChipCatalogue) -> None:
    chip = one(catalogue, "GeForce RTX 4090")
    assert chip.peak(Precision.FP16).value == pytest.approx(330.3 * TERA)
    assert chip.peak(Precision.BF16).value == pytest.approx(165.2 * TERA)


def test_nodes_hold_their_chips_and_more_power_than_they(catalogue: ChipCatalogue) -> None:
    nodes = {chip.id: chip.reference_node for chip in catalogue.chips if chip.reference_node is not None}
    h100 = nodes["h100-sxm"]
    assert (h100.name, h100.chips, h100.power_limit_w.value) == ("NVIDIA DGX H100", 8, 10_200)
    assert nodes["a100-sxm-80gb"].power_limit_w.value == 6_500
    for chip in catalogue.chips:
        if chip.reference_node is not None:
            assert chip.power_limit_w is not None
            total_w = chip.reference_node.chips * chip.power_limit_w.value
            assert total_w < chip.reference_node.power_limit_w.value, chip.id


def test_a_missing_power_limit_is_missing(catalogue: ChipCatalogue) -> None:
    assert one(catalogue, "Amazon Trainium1").power_limit_w is None


def test_kinds_and_scopes(catalogue: ChipCatalogue) -> None:
    orin, tpu = one(catalogue, "jetson-orin-nano-8gb"), one(catalogue, "tpu-v4")
    assert (orin.kind, orin.power_scope) == (Kind.MODULE, "module")
    assert (tpu.kind, tpu.power_scope) == (Kind.ASIC, "unknown")


# Peaks and modes


def test_an_unknown_precision_names_those_known(catalogue: ChipCatalogue) -> None:
    with pytest.raises(OutOfRangeError, match="fp64, fp32, fp16, fp16-vector, int8") as caught:
        one(catalogue, "v100-sxm2-16gb").peak(Precision.FP8)
    assert "\n" not in str(caught.value)
    assert caught.value.found == "fp8"


def test_a_power_mode_scales_the_peaks_with_the_clock(catalogue: ChipCatalogue) -> None:
    chip = one(catalogue, "jetson-orin-nano-8gb")
    assert list(chip.power_modes) == ["7W", "15W", "25W", "MAXN_SUPER"]
    slow = chip.in_mode("25W")
    ratio = slow.peak(Precision.FP32).value / chip.peak(Precision.FP32).value
    assert ratio == pytest.approx(918 / 1020)
    assert slow.power_limit_w is not None
    assert slow.power_limit_w.value == 25
    assert slow.peak(Precision.FP32).conditions.endswith("mode 25W")
    assert chip.in_mode("MAXN_SUPER").peak_best[1].value == chip.peak_best[1].value
    assert chip.in_mode("MAXN_SUPER").power_limit_w == chip.power_limit_w


def test_a_mode_without_a_known_clock_keeps_the_peaks(catalogue: ChipCatalogue) -> None:
    chip = one(catalogue, "jetson-xavier-nx")
    slow = chip.in_mode("10W")
    assert slow.peak_best[1].value == chip.peak_best[1].value
    assert slow.power_limit_w is not None
    assert slow.power_limit_w.value == 10


@pytest.mark.parametrize(("name", "mode"), [("jetson-orin-nano-8gb", "40W"), ("h100-sxm", "25W")])
def test_an_unknown_mode_is_refused(catalogue: ChipCatalogue, name: str, mode: str) -> None:
    with pytest.raises(OutOfRangeError, match="no such power mode"):
        one(catalogue, name).in_mode(mode)


# Names


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("h100-sxm", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3 (SXM)", "h100-sxm"),
        ("NVIDIA-H100-SXM5-80GB", "h100-sxm"),
        ("nvidia h100 sxm5 80gb", "h100-sxm"),
        ("H100 PCIe", "h100-pcie"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("NVIDIA Tesla V100 SXM2 16 GB", "v100-sxm2-16gb"),
        ("V100_SXM2_16GB", "v100-sxm2-16gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA GeForce RTX 3070", "rtx-3070"),
        ("rtx3070", "rtx-3070"),
        ("GeForce RTX 2080 SUPER", "rtx-2080-super"),
        ("GTX 1080 Ti", "gtx-1080-ti"),
        ("Instinct MI300X", "mi300x"),
        ("AMD Radeon Instinct MI250X", "mi250x"),
        ("AMD INSTINCT MI250X (MCM) OAM AC MBA", "mi250x"),
        ("Intel® Gaudi® 2 AI Accelerator", "gaudi2"),
        ("Intel(R) Gaudi(TM) 2", "gaudi2"),
        ("Google TPU v6e Trillium", "tpu-v6e"),
        ("Cloud TPU v4", "tpu-v4"),
        ("tpu-v5p", "tpu-v5p"),
        ("Amazon Trainium1", "trainium1"),
        ("Huawei Ascend 910C", "ascend-910c"),
        ("Cerebras CS-2", "cerebras-cs-2"),
        ("jetson-orin-nano-8gb", "jetson-orin-nano-8gb"),
        ("NVIDIA Jetson AGX Orin Developer Kit", "jetson-agx-orin-64gb"),
        ("RTX A6000", "rtx-a6000"),
        ("A6000", "rtx-a6000"),
    ],
)
def test_a_chip_is_found(catalogue: ChipCatalogue, name: str, chip: str) -> None:
    assert one(catalogue, name).id == chip


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("A100", {"a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-40gb", "a100-pcie-80gb"}),
        ("NVIDIA H100", {"h100-sxm", "h100-pcie", "h100-nvl"}),
        ("v100", {"v100-sxm2-16gb", "v100-pcie-32gb", "v100-dgxs-32gb", "v100s-pcie-32gb"}),
        ("NVIDIA P100", {"p100-sxm2", "p100-pcie-16gb"}),
        ("Jetson Orin Nano", {"jetson-orin-nano-8gb", "jetson-orin-nano-4gb"}),
        ("H200", {"h200-sxm", "h200-nvl"}),
        ("RTX 6000", {"quadro-rtx-6000", "rtx-6000-ada"}),
        ("Huawei Ascend 910", {"ascend-910a", "ascend-910-premium-a"}),
    ],
)
def test_a_family_is_all_of_its_variants(catalogue: ChipCatalogue, name: str, least: set[str]) -> None:
    assert least <= {chip.id for chip in catalogue.find(name)}


@pytest.mark.parametrize(
    ("name", "near"),
    [("NVIDIA H1000 SXM", "H100 SXM"), ("A101", "A100"), ("GeForce RTX 4091", "RTX 4090")],
)
def test_an_unknown_chip_is_an_error_with_the_nearest_names(
    catalogue: ChipCatalogue, name: str, near: str
) -> None:
    with pytest.raises(UnknownChipError) as caught:
        catalogue.find(name)
    assert near in caught.value.expected
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", " - ", "NVIDIA", "a quantum computer of the year 2080", "2x A100"])
def test_an_unknown_chip_is_never_a_default(catalogue: ChipCatalogue, name: str) -> None:
    with pytest.raises(UnknownChipError, match="no chip of this name"):
        catalogue.find(name)


def test_a_list_of_names_is_the_union(catalogue: ChipCatalogue) -> None:
    chips = catalogue.find_all("NVIDIA GeForce GTX 580,NVIDIA GeForce GTX 480, gtx-580,")
    assert [chip.id for chip in chips] == ["gtx-580", "gtx-480"]
    assert len(catalogue.find_all("A100,NVIDIA H100 PCIe")) == 5


@pytest.mark.parametrize("names", ["", " , ", "A100,Quantum 9", "Quantum 9"])
def test_a_list_with_an_unknown_name_is_refused(catalogue: ChipCatalogue, names: str) -> None:
    with pytest.raises(UnknownChipError):
        catalogue.find_all(names)


def test_a_vendor_alone_stays() -> None:
    assert normalise_name("NVIDIA Tesla") == "tesla"
    assert normalise_name("AMD") == "amd"
    assert normalise_name("™") == ""


# What the loader refuses

SMALL: Final = """
[sources.ds]
title = "A data sheet"
publisher = "A vendor"
url = "https://example.org/ds"
date = 2026-01-31

[[chip]]
id = "one"
vendor = "A vendor"
name = "Chip One"
kind = "gpu"
power_scope = "gpu"
aliases = ["No 1"]
families = ["Chips"]
power_limit_w = { value = 300, source = "ds", checked = "read", conditions = "design" }
[chip.peak_flop_per_s]
fp16 = { value = 100e12, source = "ds", checked = "read", conditions = "dense" }
[chip.power_modes.slow]
gpu_clock_hz = { value = 1e9, source = "ds", checked = "read", conditions = "highest" }
[chip.reference_node]
name = "A box"
chips = 8
power_limit_w = { value = 4000, source = "ds", checked = "read", conditions = "maximum" }

[[chip]]
id = "two"
vendor = "A vendor"
name = "Chip Two"
kind = "asic"
power_scope = "unknown"
aliases = []
families = ["Chips"]
[chip.peak_flop_per_s]
int8 = { value = 200e12, source = "ds", checked = "recalled", conditions = "dense" }

[[epoch_difference]]
chip = "one"
field = "fp16"
epoch = 200e12
ours = 100e12
reason = "Epoch lists a sparse figure"
"""


def test_a_small_catalogue_is_read() -> None:
    small = decode_chips(SMALL.encode())
    assert [chip.id for chip in small.find("chips")] == ["one", "two"]
    assert one(small, "NO.1").power_modes["slow"].power_limit_w is None
    assert small.epoch_differences == (
        EpochDifference(
            chip="one", field="fp16", epoch=200e12, ours=100e12, reason="Epoch lists a sparse figure"
        ),
    )
    assert len({*small.chips}) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[sources.ds]", "[sources.ds", "not TOML"),
        ('id = "two"', 'id = "one"', "one name for two chips"),
        ("aliases = []", 'aliases = ["Chip-One"]', "one name for two chips"),
        ("aliases = []", 'aliases = ["NVIDIA no 1"]', "one name for two chips"),
        ('families = ["Chips"]\n[chip.peak', 'families = ["Chip One"]\n[chip.peak', "family"),
        ('id = "two"', 'id = "Two"', "not an id"),
        ('power_scope = "unknown"', 'power_scope = "rack"', "not a scope"),
        ('kind = "asic"', 'kind = "abacus"', "kind"),
        ('name = "Chip Two"\n', "", "name"),
        ('name = "Chip Two"', 'name = "---"', "without a letter"),
        ("aliases = []", 'aliases = ["..."]', "without a letter"),
        ("aliases = []", "aliases = [2]", "aliases"),
        ("int8 =", "int9 =", "bad precisions"),
        ("int8 =", "int1 =", "bad precisions"),
        (
            'int8 = { value = 200e12, source = "ds", checked = "recalled", conditions = "dense" }\n',
            "",
            "bad precisions",
        ),
        ("value = 200e12", "value = -200e12", "finite number > 0"),
        ("value = 200e12", "value = inf", "finite number > 0"),
        ('vendor = "A vendor"\nname = "Chip Two"', 'maker = "A vendor"\nname = "Chip Two"', "vendor"),
        ('kind = "asic"', 'kind = "asic"\ncolour = "red"', "colour"),
        ('source = "ds", checked = "recalled"', 'source = "xy", checked = "recalled"', "no such source"),
        ("gpu_clock_hz", "gpu_clock", "unknown key"),
        ("chips = 8", "chips = 0", "count of chips"),
        ("chips = 8", "chips = 8.5", "chips"),
        ('name = "A box"\n', "", "name"),
        ("epoch = 200e12", "epoch = 0.0", "finite number > 0"),
        ('reason = "Epoch lists a sparse figure"\n', "", "reason"),
        ("[[epoch_difference]]", "[[difference]]", "unknown key"),
    ],
)
def test_a_catalogue_is_refused(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(DecodeError, match=message):
        decode_chips(SMALL.replace(old, new).encode())


@pytest.mark.parametrize("data", [b"", b"\xff", b"chip = 3", b"[sources]\n", b"[[chip]]\nid = 'x'\n"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_chips(data)


# The case of the sparse peak


def test_case_h19_sparse_peak(catalogue: ChipCatalogue, cases: Path) -> None:
    folder = cases / "h19_sparse_peak"
    given = json.loads((folder / "runs.json").read_text())
    case = json.loads((folder / "expected.json").read_text())
    expect, wrong = case["expect"], case["wrong_answers"]
    used = {}
    for run in given["runs"]:
        peak = one(catalogue, run["gpu"]).peak(Precision(run["dtype"])).value
        used[run["run"]] = run["tokens_per_s_per_gpu"] * run["flops_per_token"] / peak
    assert used == pytest.approx(expect["mfu"], rel=2e-3)
    assert used["a"] != pytest.approx(wrong["a_with_sparse_peak"], rel=0.1)
    assert used["b"] != pytest.approx(wrong["b_with_624"], rel=0.1)
    assert (used["b"] <= 1) is expect["b_possible"]
    claim = given["claim"]
    peak = one(catalogue, claim["gpu"]).peak(Precision(claim["dtype"])).value
    ceiling = claim["gpus"] * claim["seconds"] * peak
    assert ceiling == pytest.approx(expect["claim_ceiling_flops"], rel=2e-3)
    assert (claim["flops"] <= ceiling) is expect["claim_possible"]


# Epoch AI's table

COLUMNS: Final = {
    "fp64": "FP64 (double precision) performance (FLOP/s)",
    "fp32": "FP32 (single precision) performance (FLOP/s)",
    "tf32": "TF32 (TensorFloat-32) performance (FLOP/s)",
    "fp16": "Tensor-FP16/BF16 performance (FLOP/s)",
    "fp16-vector": "FP16 (half precision) performance (FLOP/s)",
    "fp8": "FP8 performance (FLOP/s)",
    "fp4": "FP4 performance (FLOP/s)",
    "int8": "INT8 performance (OP/s)",
    "int4": "INT4 performance (OP/s)",
    "power_limit_w": "TDP (W)",
    "memory_byte": "Memory (bytes)",
    "memory_bandwidth_byte_per_s": "Memory bandwidth (byte/s)",
    "link_bandwidth_byte_per_s": "Intranode bandwidth (byte/s)",
}
TOLERANCE: Final = 0.05


def epoch_rows(shared_data: Path, name: str) -> list[dict[str, str]]:
    with (shared_data / "data" / "epoch" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def figure_of(chip: Chip, name: str) -> float | None:
    """The figure that Epoch's column of this name is compared with."""
    peaks = chip.peak_flop_per_s
    if name == "fp16":
        rates = [peaks[p].value for p in (Precision.FP16, Precision.BF16) if p in peaks]
        return max(rates, default=None)
    if name == "fp16-vector":
        half = (Precision.FP16_VECTOR, Precision.FP16, Precision.BF16)
        return next((peaks[p].value for p in half if p in peaks), None)
    if name in list(Precision):
        return peaks[Precision(name)].value if Precision(name) in peaks else None
    figure: Sourced | None = getattr(chip, name)
    return None if figure is None else figure.value


def differences(catalogue: ChipCatalogue, shared_data: Path) -> dict[tuple[str, float], tuple[Chip, ...]]:
    """(field, Epoch's figure) -> the chips of a row of which none comes within 5 % of it."""
    found = {}
    for row in epoch_rows(shared_data, "ml_hardware.csv"):
        try:
            chips = catalogue.find(row["Hardware name"])
        except UnknownChipError:
            continue
        for name, column in COLUMNS.items():
            if row[column]:
                epoch = float(row[column])
                ours = [figure_of(chip, name) for chip in chips]
                if not any(value is not None and abs(value / epoch - 1) <= TOLERANCE for value in ours):
                    found[name, epoch] = chips
    return found


@pytest.mark.shared_data
def test_every_difference_from_epoch_is_explained(catalogue: ChipCatalogue, shared_data: Path) -> None:
    explained = {(item.field, item.epoch, item.chip) for item in catalogue.epoch_differences}
    for (name, epoch), chips in differences(catalogue, shared_data).items():
        assert any((name, epoch, chip.id) in explained for chip in chips), (chips[0].id, name, epoch)


@pytest.mark.shared_data
def test_no_explanation_is_stale(catalogue: ChipCatalogue, shared_data: Path) -> None:
    found = differences(catalogue, shared_data)
    for item in catalogue.epoch_differences:
        chips = found.get((item.field, item.epoch), ())
        chip = next((chip for chip in chips if chip.id == item.chip), None)
        assert chip is not None, item
        assert figure_of(chip, item.field) == item.ours, item


@pytest.mark.shared_data
def test_a_figure_marked_table_stands_in_the_table(catalogue: ChipCatalogue, shared_data: Path) -> None:
    rows = epoch_rows(shared_data, "ml_hardware.csv")
    listed = {float(row[column]) for row in rows for column in COLUMNS.values() if row[column]}
    for chip in catalogue.chips:
        for figure in figures(chip):
            if figure.checked is Checked.TABLE:
                assert any(figure.value == pytest.approx(value, rel=1e-6) for value in listed), chip.id


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["notable_ai_models.csv", "frontier_ai_models.csv"])
def test_every_training_hardware_of_epoch_is_found(
    catalogue: ChipCatalogue, shared_data: Path, name: str
) -> None:
    named = {row["Training hardware"] for row in epoch_rows(shared_data, name) if row["Training hardware"]}
    assert len(named) >= 20
    for hardware in named:
        assert catalogue.find_all(hardware)
