"""One scope, one figure a device."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.foundation.verdict import Finding
from flopwitness.measure.power_choice import choose_power, power_series
from flopwitness.measure.samples import Channel, Scope, Series, Trace

MakeSeries = Callable[..., Series]


def _codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_one_scope_is_chosen_and_never_added_to_another(make_series: MakeSeries) -> None:
    node = make_series([900, 900], device="node_0", scope=Scope.NODE_AC)
    gpu = make_series([600, 600])
    findings: list[Finding] = []
    choice = choose_power(Trace(series=(node, gpu)), findings)
    assert (choice.scope, choice.series) == (Scope.GPU, (gpu,))
    assert _codes(findings) == ["scopes-overlap"]


def test_switches_are_no_power_of_the_run(make_series: MakeSeries) -> None:
    findings: list[Finding] = []
    switch = make_series([900, 900], scope=Scope.SWITCH)
    choice = choose_power(Trace(series=(switch,)), findings)
    assert (choice.scope, choice.series) == (Scope.UNKNOWN, ())
    assert findings == []


def test_an_average_beside_the_instant_reading_is_not_added(make_series: MakeSeries) -> None:
    instant = make_series([600, 610])
    average = make_series([605, 606], channel=Channel.POWER_AVERAGE_W)
    other = make_series([605, 606], channel=Channel.POWER_AVERAGE_W, device="gpu_1")
    choice = choose_power(Trace(series=(average, instant, other)), [])
    assert choice.series == (instant, other)


@pytest.mark.parametrize("values", [[0.0, 0.0], [float("nan")] * 2, [-5.0, 0.0], []])
def test_a_device_that_never_reads_power_is_not_metered(make_series: MakeSeries, values: list[float]) -> None:
    dead, live = make_series(values), make_series([600, 600], device="gpu_1")
    assert choose_power(Trace(series=(dead, live)), []).series == (live,)


def test_power_series_are_those_that_hold_power(make_series: MakeSeries) -> None:
    power = make_series([1, 2])
    average = make_series([1, 2], channel=Channel.POWER_AVERAGE_W)
    others = (
        make_series([50, 50], channel=Channel.UTILISATION_PCT),
        make_series([0, 0]),
        make_series([math.nan, math.inf]),
        make_series([5, 5], scope=Scope.NODE),
    )
    assert power_series(Trace(series=(*others, power, average)), [Scope.GPU]) == (power, average)
    assert bool(np.all(power.value > 0))


def test_a_counter_stands_in_for_power_and_beside_it(make_series: MakeSeries) -> None:
    power = make_series([600, 600])
    counter = make_series([0, 600], channel=Channel.ENERGY_COUNTER_J)
    alone = make_series([0, 600], channel=Channel.ENERGY_COUNTER_J, device="gpu_1")
    choice = choose_power(Trace(series=(counter, power, alone)), [])
    assert choice.series == (power, alone)
    assert choice.counters == {"gpu_0": counter}


def test_a_counter_that_was_read_once_holds_no_energy(make_series: MakeSeries) -> None:
    counter = make_series([5], channel=Channel.ENERGY_COUNTER_J)
    assert choose_power(Trace(series=(counter,)), []).series == ()


@pytest.mark.parametrize(
    ("parts", "chosen"),
    [
        (["VDD_SOC", ""], ""),
        (["VDD_SOC", "VDD_CPU_GPU_CV"], "VDD_CPU_GPU_CV"),
        (["CPU", "GPU"], "GPU"),
        (["VDDRQ", "SYS5V"], "VDDRQ"),
    ],
)
def test_parts_of_a_device_are_never_added(make_series: MakeSeries, parts: list[str], chosen: str) -> None:
    findings: list[Finding] = []
    rails = [replace(make_series([5, 6], scope=Scope.RAIL), part=part) for part in parts]
    (series,) = choose_power(Trace(series=tuple(rails)), findings).series
    assert series.part == chosen
    assert _codes(findings) == ([] if chosen == "" else ["part-chosen"])


@pytest.mark.parametrize(("second_w", "severity"), [(595, "note"), (300, "warning"), (900, "warning")])
def test_two_recordings_of_one_gpu_at_one_time_count_once_and_the_higher(
    make_series: MakeSeries, second_w: float, severity: str
) -> None:
    findings: list[Finding] = []
    first, second = make_series([600] * 9), make_series([second_w] * 9)
    (series,) = choose_power(Trace(series=(first, second)), findings).series
    assert float(series.value.max()) == max(600, second_w)
    assert [(item.code, str(item.severity)) for item in findings] == [("device-recorded-twice", severity)]


def test_recordings_of_one_gpu_that_follow_each_other_are_one(make_series: MakeSeries) -> None:
    findings: list[Finding] = []
    first, second = make_series([600] * 9), make_series([600] * 9, time_s=range(20, 29))
    (line,) = choose_power(Trace(series=(first, second)), findings).series
    assert len(line) == 18
    assert findings == []


@pytest.mark.parametrize(
    ("gpu_w", "gpu_s", "scope", "severity"),
    [
        (2_800, 60, Scope.GPU, "note"),
        (800, 60, Scope.NODE_AC, "warning"),  # no busy node spends so little on its accelerators
        (2_800, 20, Scope.NODE_AC, "note"),  # a log of the last seconds hides no hour
    ],
)
def test_the_narrowest_scope_that_says_as_much_is_used(
    make_series: MakeSeries, gpu_w: float, gpu_s: int, scope: Scope, severity: str
) -> None:
    findings: list[Finding] = []
    gpus = make_series([gpu_w] * gpu_s)
    node = make_series([4_000] * 60, device="node_0", scope=Scope.NODE_AC)
    assert choose_power(Trace(series=(node, gpus)), findings).scope is scope
    assert [(item.code, str(item.severity)) for item in findings] == [("scopes-overlap", severity)]


def test_power_of_unknown_scope_overrules_nothing(make_series: MakeSeries) -> None:
    rack = make_series([90_000] * 60, device="rack", scope=Scope.UNKNOWN)
    assert choose_power(Trace(series=(rack, make_series([600] * 60))), []).scope is Scope.GPU
