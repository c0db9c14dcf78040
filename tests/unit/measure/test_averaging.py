"""Averaged power on a run that is not much longer than the averaging."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from flopwitness.measure.averaging import assess_averaging
from flopwitness.measure.samples import Series

MakeSeries = Callable[..., Series]


@pytest.mark.parametrize(
    ("averaged_s", "duration_s", "is_told"),
    [(1.0, 1.0, True), (1.0, 19.9, True), (1.0, 20.0, False), (0.0, 1.0, False), (1.0, None, False)],
)
def test_a_short_run_is_told(
    make_series: MakeSeries, averaged_s: float, duration_s: float | None, *, is_told: bool
) -> None:
    late = replace(make_series([70, 80]), averaged_s=averaged_s)
    findings = assess_averaging([make_series([1, 2], device="gpu_9"), late], duration_s)
    assert [(finding.code, finding.where, finding.count) for finding in findings] == (
        [("power-averaged", "gpu_0", 1)] if is_told else []
    )
