"""Copies among many recordings are found without comparing each with each."""

from collections.abc import Callable

import numpy as np
import pytest

from flopwitness.measure.copies import assess_copies
from flopwitness.measure.samples import Series

MakeSeries = Callable[..., Series]


def _many(make_series: MakeSeries, count: int, n: int) -> list[Series]:
    rng = np.random.default_rng(20_261_130)
    return [make_series(rng.uniform(300, 700, n).tolist(), device=f"gpu_{k}") for k in range(count)]


@pytest.mark.parametrize("count", [10, 64, 65, 200])
@pytest.mark.parametrize("n", [12, 600])
def test_touched_up_copies_are_found_among_many(make_series: MakeSeries, count: int, n: int) -> None:
    series = _many(make_series, count, n)
    touched = series[3].value.copy()
    touched[5::12] += 1.0
    copy = make_series(touched.tolist(), device="copy", time_s=range(50, 50 + n))
    (finding,) = assess_copies([*series, copy])
    assert (finding.where, finding.count) == ("copy", 1)
    assert "copy of gpu_3" in finding.message
    assert assess_copies(series) == []


def test_a_shorter_copy_is_found_among_many(make_series: MakeSeries) -> None:
    series = _many(make_series, 100, 600)
    copy = make_series(series[7].value[:550].tolist(), device="copy")
    assert [item.where for item in assess_copies([*series, copy])] == ["copy"]


def test_idle_devices_alike_are_copies_only_at_the_same_times(make_series: MakeSeries) -> None:
    idle = [make_series([65.0] * 30, time_s=range(k, k + 30), device=f"gpu_{k}") for k in range(100)]
    assert assess_copies(idle) == []
    same = [make_series([65.0] * 30, device=f"gpu_{k}") for k in range(100)]
    assert [item.count for item in assess_copies(same)] == [99]
