"""What is told of the call: settings weaker than the defaults, and no others."""

from fractions import Fraction

import pytest

from flopwitness.cli.settings import Setting
from flopwitness.cli.told import tell_settings_used, tell_weak_settings
from flopwitness.foundation.verdict import Severity


@pytest.mark.parametrize(
    ("safety", "tolerance_ppm", "parts"),
    [
        (Fraction(1, 2), 0, ("allows for 0 %", "default 10 %")),
        (Fraction(1, 2), 99_999, ("allows for 9.9999 %",)),
        (Fraction(51, 100), 100_000, ("s = 0.51", "default 0.5")),
        (Fraction(1), 50_000, ("allows for 5 %", "s = 1 ")),
    ],
)
def test_weaker_settings_are_told(safety: Fraction, tolerance_ppm: int, parts: tuple[str, ...]) -> None:
    (finding,) = tell_weak_settings(safety=safety, tolerance_ppm=tolerance_ppm)
    assert (finding.code, finding.severity) == ("settings-weak", Severity.WARNING)
    for part in parts:
        assert part in finding.message


@pytest.mark.parametrize(("safety", "tolerance_ppm"), [(Fraction(1, 2), 100_000), (Fraction(3, 10), 200_000)])
def test_the_defaults_and_stronger_settings_are_not_told(safety: Fraction, tolerance_ppm: int) -> None:
    assert tell_weak_settings(safety=safety, tolerance_ppm=tolerance_ppm) == []


def test_what_set_options_is_told_by_origin() -> None:
    settings = [
        Setting(name="chip", origin="flopwitness.toml", words=()),
        Setting(name="rule", origin="FLOPWITNESS_ESTIMATE_RULE", words=()),
        Setting(name="count", origin="flopwitness.toml", words=()),
    ]
    (finding,) = tell_settings_used(settings)
    assert (finding.code, finding.severity, finding.count) == ("settings-used", Severity.NOTE, 3)
    assert finding.message == "flopwitness.toml sets chip, count; FLOPWITNESS_ESTIMATE_RULE sets rule"
    assert tell_settings_used([]) == []
