"""What a calibration is tied to: a field that differs is told, one that nobody recorded is not."""

from dataclasses import replace
from typing import Any

import pytest

from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.foundation.encoding import encode_signable
from flopwitness.foundation.errors import NotCalibratedError
from flopwitness.measure.calibration.fingerprint import (
    Difference,
    Fingerprint,
    fingerprint_of,
    name_chips,
    settle_fingerprint,
)
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_table import RunRow

FULL = Fingerprint(
    chips=("v100-sxm2-16gb",),
    count=2,
    scope="gpu",
    power_mode="300W",
    clock_limit="1380MHz",
    driver="550.1",
    precisions=("fp16",),
)
OTHER: dict[str, Any] = {
    "chips": ("h100-sxm",),
    "count": 3,
    "scope": "node-ac",
    "power_mode": "250W",
    "clock_limit": "1200MHz",
    "driver": "551.0",
    "precisions": ("fp32",),
}
ROW = RunRow(
    row=2,
    cells={},
    chip_name="Tesla V100-SXM2-16GB",
    count=2,
    scope=Scope.GPU,
    power_mode=" 300W ",
    clock_limit="1380MHz",
    driver="550.1",
    precisions=("fp16",),
)


def changed(**values: Any) -> Fingerprint:  # noqa: ANN401 (the fields of a fingerprint)
    return replace(FULL, **values)


def test_what_a_row_records_is_taken_over(chips: ChipCatalogue) -> None:
    assert fingerprint_of(ROW, chips) == FULL


def test_what_a_row_does_not_record_is_not_known(chips: ChipCatalogue) -> None:
    empty = fingerprint_of(RunRow(row=2, cells={}), chips)
    assert empty == Fingerprint()
    assert empty.unrecorded() == (
        "chips",
        "count",
        "scope",
        "power_mode",
        "clock_limit",
        "driver",
        "precisions",
    )
    assert FULL.unrecorded() == ()


@pytest.mark.parametrize("name", sorted(OTHER))
def test_a_field_that_differs_is_told(name: str) -> None:
    (difference,) = FULL.differences(changed(**{name: OTHER[name]}))
    assert difference.name == name
    assert difference.calibrated != difference.found
    assert difference.calibrated
    assert difference.found


@pytest.mark.parametrize("name", sorted(OTHER))
def test_a_field_that_nobody_recorded_is_no_difference(name: str) -> None:
    unknown = getattr(Fingerprint(), name)
    assert FULL.differences(changed(**{name: unknown})) == ()
    assert changed(**{name: unknown}).differences(FULL) == ()


def test_all_differences_are_told_at_once() -> None:
    assert {each.name for each in FULL.differences(Fingerprint(**OTHER))} == set(OTHER)


@pytest.mark.parametrize("mode", ["300w", " 300 W", "300W"])
def test_case_and_white_space_carry_no_meaning(mode: str) -> None:
    assert FULL.differences(changed(power_mode=mode)) == ()


def test_names_that_may_mean_the_same_chip_agree() -> None:
    open_name = changed(chips=("v100-pcie-16gb", "v100-sxm2-16gb"))
    assert FULL.differences(open_name) == ()
    assert open_name.differences(FULL) == ()
    assert open_name.differences(changed(chips=("v100-sxm2-32gb",))) == (
        Difference("chips", "v100-pcie-16gb or v100-sxm2-16gb", "v100-sxm2-32gb"),
    )


def test_a_precision_must_be_among_the_calibrated_ones() -> None:
    mixed = changed(precisions=("fp16", "fp32"))
    assert mixed.differences(FULL) == ()
    assert [each.name for each in FULL.differences(mixed)] == ["precisions"]
    assert [each.name for each in mixed.differences(changed(precisions=("bf16",)))] == ["precisions"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", ()),
        ("  ", ()),
        ("v100-sxm2-16gb", ("v100-sxm2-16gb",)),
        ("NVIDIA Tesla V100-SXM2-16GB", ("v100-sxm2-16gb",)),
        ("Abacus 9000", ("abacus9000",)),
    ],
)
def test_names_become_ids_or_stand_folded(name: str, expected: tuple[str, ...], chips: ChipCatalogue) -> None:
    assert name_chips(name, chips) == expected


def test_a_name_that_leaves_the_variant_open_names_all_of_them(chips: ChipCatalogue) -> None:
    ids = name_chips("V100", chips)
    assert len(ids) > 1
    assert list(ids) == sorted(ids)
    assert "v100-sxm2-16gb" in ids


@pytest.mark.parametrize("text", ["e\u0301", "ΐ x", "İ", "ǰ", "\u212b" * 300, "a\u0301" * 300])
def test_every_text_of_a_row_has_a_form_that_can_be_signed(text: str, chips: ChipCatalogue) -> None:
    found = fingerprint_of(
        replace(ROW, chip_name=text, power_mode=text, clock_limit=text, driver=text), chips
    )
    encode_signable([*found.chips, found.power_mode, found.clock_limit, found.driver])
    assert len(found.power_mode) <= 200


def test_runs_of_one_device_settle_on_it() -> None:
    assert settle_fingerprint([FULL, FULL, FULL]) == FULL


@pytest.mark.parametrize("name", sorted(set(OTHER) - {"precisions"}))
def test_runs_that_differ_are_refused(name: str) -> None:
    with pytest.raises(NotCalibratedError, match=f"differ in {name}") as refusal:
        settle_fingerprint([FULL, changed(**{name: OTHER[name]})])
    assert ", " in refusal.value.found


def test_many_values_are_not_all_told() -> None:
    with pytest.raises(NotCalibratedError) as refusal:
        settle_fingerprint([changed(count=n) for n in range(1, 100)])
    assert refusal.value.found == "1, 2, 3, 4"


def test_what_one_run_records_holds_for_all() -> None:
    assert settle_fingerprint([Fingerprint(), FULL, Fingerprint(count=2)]) == FULL
    assert settle_fingerprint([Fingerprint()]) == Fingerprint()


def test_one_mode_in_two_spellings_is_one_mode() -> None:
    settled = settle_fingerprint([FULL, changed(power_mode="300 w")])
    assert settled.power_mode in ("300W", "300 w")


def test_precisions_are_gathered() -> None:
    settled = settle_fingerprint([FULL, changed(precisions=("fp32", "bf16")), changed(precisions=())])
    assert settled.precisions == ("bf16", "fp16", "fp32")


def test_the_settled_fingerprint_refuses_none_of_its_runs() -> None:
    prints = [FULL, changed(power_mode="300w", driver=""), changed(precisions=("fp32",)), Fingerprint()]
    settled = settle_fingerprint(prints)
    assert [settled.differences(each) for each in prints] == [()] * 4
