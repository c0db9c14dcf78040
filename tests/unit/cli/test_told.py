"""What is told of the call: settings weaker than the defaults, and no others."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from flopwitness.cli.settings import Setting
from flopwitness.cli.told import tell_scope_overruled, tell_settings_used, tell_weak_settings
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.samples import Channel, Scope, Series, Trace


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


@pytest.mark.parametrize(
    ("stated", "own", "told"),
    [
        (None, (Scope.NODE_AC,), []),
        (Scope.NODE_AC, (Scope.NODE_AC, Scope.SWITCH), []),
        (Scope.MODULE, (Scope.NODE_AC, Scope.MODULE, Scope.NODE_AC, Scope.NODE_DC), [3]),
    ],
)
def test_a_stated_scope_that_is_not_used_is_told(
    stated: Scope | None, own: tuple[Scope, ...], told: list[int]
) -> None:
    empty = np.zeros(0, dtype=np.int64)
    series = (
        Series(device="d", channel=Channel.POWER_W, scope=scope, utc_ns=empty, value=empty.astype(np.float64))
        for scope in own
    )
    findings = tell_scope_overruled(Trace(series=tuple(series)), stated)
    assert [finding.count for finding in findings] == told
    assert all("says node-ac and node-dc" in finding.message for finding in findings)


def test_both_readers_tell_of_it(call: Callable[..., tuple[int, str, str]], run_folder: Path) -> None:
    for words in (("estimate",), ("import", "--out", "t.parquet")):
        assert "scope-overruled" in call(*words, run_folder, "--scope", "module")[1]
