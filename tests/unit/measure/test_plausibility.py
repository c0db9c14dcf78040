"""Whether stated hardware can be what the evidence shows: attacks on count, chip and unit."""

import pytest

from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.plausibility import Power, assess_power, settle_hardware
from flopwitness.measure.samples import Scope


def _settle(
    chips: ChipCatalogue, name: str, count: int | None, declared: str, declared_count: int | None
) -> tuple[set[str], int | None, list[str]]:
    findings: list[Finding] = []
    hardware = settle_hardware(
        chips.find(name),
        count,
        declared_chips=chips.find(declared) if declared else (),
        declared_count=declared_count,
        findings=findings,
    )
    return {chip.id for chip in hardware.chips}, hardware.count, [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("declared", "declared_count", "wanted", "count", "codes"),
    [
        ("", None, {"t4"}, 8, []),
        ("Tesla T4", 8, {"t4"}, 8, []),
        ("NVIDIA H100-SXM5-80GB", 8, {"t4", "h100-sxm"}, 8, ["chip-differs"]),
        ("", 512, {"t4"}, 512, ["count-differs"]),
        ("", 4, {"t4"}, 8, ["count-differs"]),
        ("h100-sxm", 512, {"t4", "h100-sxm"}, 512, ["chip-differs", "count-differs"]),
    ],
)
def test_the_bound_covers_whatever_any_record_names(
    chips: ChipCatalogue,
    declared: str,
    declared_count: int | None,
    wanted: set[str],
    count: int,
    codes: list[str],
) -> None:
    assert _settle(chips, "t4", 8, declared, declared_count) == (wanted, count, codes)


def test_a_family_that_holds_the_declared_chip_does_not_differ(chips: ChipCatalogue) -> None:
    ids, _, codes = _settle(chips, "H100", 8, "h100-pcie", None)
    assert "h100-sxm" in ids
    assert codes == []


def test_no_count_at_all_stays_none(chips: ChipCatalogue) -> None:
    assert _settle(chips, "t4", None, "", None)[1:] == (None, [])
    assert _settle(chips, "t4", None, "", 16)[1:] == (16, [])


@pytest.mark.parametrize(
    ("working_w", "scope", "over", "expected"),
    [
        (8 * 600.0, Scope.GPU, 0.0, Power.PLAUSIBLE),
        (8 * 300.0, Scope.GPU, 0.04, Power.PLAUSIBLE),
        (8 * 600.0, Scope.GPU, 0.06, Power.TOO_HIGH),
        (8 * 69.9, Scope.GPU, 0.0, Power.TOO_LOW),
        (8 * 70.1, Scope.GPU, 0.0, Power.PLAUSIBLE),
        (7.0, Scope.NODE_AC, 0.0, Power.TOO_LOW),
        (8 * 209.0, Scope.NODE_AC, 0.0, Power.TOO_LOW),
        (8 * 211.0, Scope.NODE_DC, 0.0, Power.PLAUSIBLE),
        (1.0, Scope.RAIL, 1.0, Power.PLAUSIBLE),
        (1.0, Scope.UNKNOWN, 1.0, Power.PLAUSIBLE),
    ],
)
def test_power_is_held_against_the_stated_chips(
    chips: ChipCatalogue, working_w: float, scope: Scope, over: float, expected: Power
) -> None:
    found, told = assess_power(
        working_w, chips.find("h100-sxm"), count=8, scope=scope, limit_w=8_400.0, over_share=over
    )
    assert found is expected
    severities = [finding.severity for finding in told]
    wanted = {
        Power.PLAUSIBLE: [],
        Power.TOO_LOW: [Severity.WARNING],
        Power.TOO_HIGH: [Severity.CONTRADICTION],
    }
    assert severities == wanted[expected]


def test_without_a_known_limit_nothing_is_too_high(chips: ChipCatalogue) -> None:
    found, told = assess_power(
        1e9, chips.find("h100-sxm"), count=8, scope=Scope.NODE, limit_w=None, over_share=1.0
    )
    assert (found, told) == (Power.PLAUSIBLE, [])
