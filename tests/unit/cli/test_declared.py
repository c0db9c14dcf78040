"""What the logs declare: every chip that one of them names, and where they contradict each other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.cli.declared import find_declared_chips, tell_differences
from flopwitness.measure.samples import Declaration

if TYPE_CHECKING:
    from flopwitness.foundation.verdict import Finding

ABACUS = "Abacus 3000 (rev B)"


@pytest.mark.parametrize(
    ("declared", "ids", "codes"),
    [
        (None, set(), []),
        (Declaration(nodes=8), set(), []),
        (Declaration(chip_name="t4"), {"t4"}, []),
        (Declaration(chip_name="t4", other_chip_names=("h100-sxm", "T4")), {"t4", "h100-sxm"}, []),
        (Declaration(chip_name=ABACUS), set(), ["chip-unknown"]),
        (Declaration(chip_name=ABACUS, other_chip_names=("t4", "x")), {"t4"}, ["chip-unknown"]),
    ],
)
def test_every_declared_chip_is_found(
    chips: ChipCatalogue, declared: Declaration | None, ids: set[str], codes: list[str]
) -> None:
    findings: list[Finding] = []
    assert {chip.id for chip in find_declared_chips(declared, chips, findings)} == ids
    assert [finding.code for finding in findings] == codes


def test_unknown_names_are_told_once_with_their_number(chips: ChipCatalogue) -> None:
    findings: list[Finding] = []
    find_declared_chips(Declaration(chip_name=ABACUS, other_chip_names=("x", "y")), chips, findings)
    assert findings[0].count == 3
    assert f"{ABACUS!r} and 2 more" in findings[0].message


@pytest.mark.parametrize(
    "declared",
    [
        None,
        Declaration(chip_name="h100-sxm"),
        Declaration(chip_name="NVIDIA H100-SXM5-80GB", other_chip_names=("h100-sxm", ABACUS)),
    ],
)
def test_other_spellings_are_no_difference(chips: ChipCatalogue, declared: Declaration | None) -> None:
    assert tell_differences(declared, chips) == []


def test_differences_are_named(chips: ChipCatalogue) -> None:
    declared = Declaration(
        chip_name="t4", other_chip_names=("h100-sxm",), differing=("1 and 64 nodes", "8 and 512 chips", "x")
    )
    (finding,) = tell_differences(declared, chips)
    assert (finding.code, finding.count) == ("declarations-differ", 4)
    assert "'t4' and 'h100-sxm', 1 and 64 nodes, 8 and 512 chips, and 1 more" in finding.message


def test_the_bound_covers_the_faster_and_larger_declaration(
    call: Callable[..., tuple[int, str, str]], run_folder: Path
) -> None:
    (run_folder / "a").mkdir()
    smaller = {"number_of_nodes": 1, "accelerators_per_node": 8, "accelerator_model_name": "NVIDIA T4"}
    (run_folder / "a" / "system.json").write_text(json.dumps(smaller))
    status, out, _ = call("estimate", run_folder / "a", run_folder / "result.txt", "--json")
    record = json.loads(out)
    assert status == 0
    assert (record["chips"], record["count"]) == (["t4"], 16)
    assert (record["upper_bound"]["chip"], record["upper_bound"]["count"]) == ("h100-sxm", 16)
    told = {finding["code"]: finding["message"] for finding in record["findings"]}
    assert "8 and 16 chips" in told["declarations-differ"]
    assert "lines-skipped" not in told
