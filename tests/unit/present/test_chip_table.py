"""The table of chips, and that the one in the documentation is it."""

from dataclasses import replace
from pathlib import Path

from flopwitness.catalogue.chips import load_chips
from flopwitness.present.chip_table import render_chip_table

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "chips.md"


def test_the_documented_table_is_the_catalogue() -> None:
    _, begin, rest = DOCUMENT.read_text(encoding="utf-8").partition("<!-- chips: begin -->\n")
    shown, end, _ = rest.partition("<!-- chips: end -->")
    assert begin
    assert end
    assert shown == render_chip_table(load_chips().chips)


def test_a_row_shows_the_best_peak_and_how_it_was_checked() -> None:
    (chip,) = load_chips().find("a100-sxm-80gb")
    head, rule, row = render_chip_table([chip]).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|")
    assert row == "| `a100-sxm-80gb` | NVIDIA A100 SXM4 80GB | 1.248 PFLOP/s | int4 | read | 400 W | read |"


def test_a_missing_power_limit_is_not_a_number() -> None:
    (chip,) = load_chips().find("a100-sxm-80gb")
    row = render_chip_table([replace(chip, power_limit_w=None)]).splitlines()[-1]
    assert row.endswith("| not known |  |")
    assert "0 W" not in row


def test_rates_are_shown_in_the_unit_that_fits() -> None:
    catalogue = load_chips()
    chips = [catalogue.find(name)[0] for name in ("jetson-nano", "gtx-580", "b200")]
    shown = [row.split(" | ")[2] for row in render_chip_table(chips).splitlines()[2:]]
    assert shown == ["471.9 GFLOP/s", "1.581 TFLOP/s", "9 PFLOP/s"]


def test_no_chips_are_an_empty_table() -> None:
    assert len(render_chip_table([]).splitlines()) == 2
