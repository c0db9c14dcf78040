"""Samples on their way to a recording: one value a figure and time, and everything repeated is told."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources import metric_readings
from flopwitness.measure.sources.metric_readings import MetricReadings, parse_sample_value, place_seconds
from flopwitness.measure.sources.recording import Recording, Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.values import Unreadable

POWER = "DCGM_FI_DEV_POWER_USAGE"
INSTANT = "DCGM_FI_DEV_POWER_USAGE_INSTANT"
UTILISATION = "DCGM_FI_DEV_GPU_UTIL"
GPU: dict[str, str] = {"UUID": "GPU-1", "gpu": "0"}
Given = tuple[str, Mapping[str, str], Sequence[tuple[int, float]]]


def _settle(*given: Given) -> Trace:
    source = Source(blocks=[], where="dump", device="dump")
    recording = Recording(source, times=Times.UTC)
    readings = MetricReadings(source, recording)
    for name, labels, points in given:
        samples = readings.find(name, labels)
        if samples is None:
            continue
        for time, value in points:
            samples.times.append(time)
            samples.values.append(value)
    readings.check_size()
    readings.settle()
    return recording.trace()


def _codes(trace: Trace) -> dict[str, int]:
    return {finding.code: finding.count for finding in trace.findings}


def test_values_are_turned_into_the_channels_unit() -> None:
    trace = _settle(
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", GPU, [(1, 2_000.0)]),
        ("DCGM_FI_DEV_FB_USED", GPU, [(1, 3.0)]),
        ("DCGM_FI_PROF_SM_ACTIVE", GPU, [(1, 0.5)]),
        ("DCGM_FI_DEV_SM_CLOCK", GPU, [(1, 1_500.0)]),
    )
    assert [(series.channel, series.value.tolist()) for series in trace.series] == [
        (Channel.ENERGY_COUNTER_J, [2.0]),
        (Channel.MEMORY_USED_BYTE, [3.0 * 1024 * 1024]),
        (Channel.SM_ACTIVE_PCT, [50.0]),
        (Channel.CLOCK_HZ, [1.5e9]),
    ]
    assert {series.device for series in trace.series} == {"GPU-1"}
    assert _codes(trace) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (POWER, 140737488355328.0),
        (POWER, 2147483632.0),
        (POWER, math.inf),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 9223372036854775792.0),
        ("DCGM_FI_DEV_GPU_UTIL", 2147483632.0),
        ("DCGM_FI_DEV_FB_USED", 2147483632.0),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", 9223372036854775793.0),
        ("DCGM_FI_PROF_SM_ACTIVE", 140737488355328.0),
        ("DCGM_FI_DEV_GPU_TEMP", 2147483632.0),
        ("gpu_package_power", 65535.0),
        ("gpu_package_power", 4294967295.0),
        ("gpu_energy_consumed", 18446744073709551615.0),
        ("gpu_used_vram", 18446744073709551615.0),
    ],
)
def test_a_blank_is_missing_and_told_never_a_reading(name: str, value: float) -> None:
    trace = _settle((name, GPU, [(1, 1.0), (2, value)]))
    (series,) = trace.series
    assert not math.isnan(series.value[0])
    assert math.isnan(series.value[1])
    assert _codes(trace) == {"values-impossible": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 2147483632.0),  # two megajoules, and no blank
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 65535.0),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", 4294967295.0),
        ("gpu_energy_consumed", 4294967295.0),
        ("gpu_package_power", 255.0),
        (POWER, 0.0),
    ],
)
def test_a_number_that_only_looks_like_a_blank_is_a_reading(name: str, value: float) -> None:
    trace = _settle((name, GPU, [(1, value)]))
    assert math.isfinite(trace.series[0].value[0])
    assert _codes(trace) == {}


def test_a_missing_value_is_missing_and_no_finding() -> None:
    trace = _settle((POWER, GPU, [(1, math.nan), (2, 5.0)]))
    assert math.isnan(trace.series[0].value[0])
    assert _codes(trace) == {}


# Several sets of labels


def test_another_pod_is_the_same_device_at_another_time() -> None:
    trace = _settle(
        (POWER, {**GPU, "pod": "b"}, [(3, 30.0), (4, 40.0)]),
        (POWER, {**GPU, "pod": "a"}, [(1, 10.0), (2, 20.0)]),
    )
    (series,) = trace.series
    assert series.utc_ns.tolist() == [1, 2, 3, 4]
    assert series.value.tolist() == [10.0, 20.0, 30.0, 40.0]
    assert _codes(trace) == {}


def test_one_time_under_two_pods_is_one_reading_and_told() -> None:
    trace = _settle(
        (POWER, {**GPU, "pod": "a"}, [(1, 10.0), (2, 21.0)]),
        (POWER, {**GPU, "pod": "b"}, [(1, 10.0), (2, 20.0), (3, 30.0)]),
    )
    assert trace.series[0].value.tolist() == [10.0, 21.0, 30.0]
    assert _codes(trace) == {"labels-repeated": 2}
    assert not trace.devices[0].is_shared


def test_times_of_one_set_of_labels_stay_as_they_stand() -> None:
    trace = _settle((POWER, GPU, [(2, 1.0), (2, 2.0), (1, 3.0)]))
    assert trace.series[0].utc_ns.tolist() == [2, 2, 1]
    assert trace.series[0].value.tolist() == [1.0, 2.0, 3.0]


def test_the_order_of_labels_makes_no_other_set() -> None:
    trace = _settle((POWER, GPU, [(1, 1.0)]), (POWER, dict(reversed(GPU.items())), [(1, 2.0)]))
    assert trace.series[0].value.tolist() == [1.0, 2.0]


def test_two_devices_stay_two() -> None:
    trace = _settle((POWER, GPU, [(1, 1.0)]), (POWER, {"UUID": "GPU-2"}, [(1, 2.0)]))
    assert [(series.device, series.value.tolist()) for series in trace.series] == [
        ("GPU-1", [1.0]),
        ("GPU-2", [2.0]),
    ]


# Slices


def test_slices_carry_the_boards_power_once_and_the_highest_counts() -> None:
    slices = [
        (POWER, {**GPU, "GPU_I_ID": "7"}, [(1, 181.4), (2, 190.0)]),
        (POWER, {**GPU, "GPU_I_ID": "8"}, [(1, 181.9), (2, 190.0)]),
        (POWER, GPU, [(1, 181.0)]),
    ]
    trace = _settle(*slices)
    (series,) = trace.series
    assert (series.device, series.scope, series.part) == ("GPU-1", Scope.GPU, "")
    assert series.value.tolist() == [181.9, 190.0]
    (finding,) = trace.findings
    assert (finding.code, finding.count) == ("mig-power-repeated", 3)
    assert finding.found == "power that differs by up to 0.9 W"
    assert trace.devices[0].is_shared


def test_one_slice_alone_repeats_nothing_and_is_shared_all_the_same() -> None:
    trace = _settle((POWER, {**GPU, "GPU_I_ID": "7"}, [(1, 181.4)]))
    assert _codes(trace) == {}
    assert trace.devices[0].is_shared


def test_a_slice_without_a_value_repeats_nothing() -> None:
    trace = _settle(
        (POWER, GPU, [(1, 181.4)]),
        (POWER, {**GPU, "GPU_I_ID": "7"}, [(1, math.nan)]),
    )
    assert trace.series[0].value.tolist() == [181.4]
    assert _codes(trace) == {}


def test_what_a_slice_has_of_its_own_is_a_part() -> None:
    trace = _settle(
        ("DCGM_FI_PROF_SM_ACTIVE", {**GPU, "GPU_I_ID": "7"}, [(1, 0.25)]),
        ("DCGM_FI_PROF_SM_ACTIVE", {**GPU, "GPU_I_ID": "8"}, [(1, 0.75)]),
        ("DCGM_FI_PROF_SM_ACTIVE", GPU, [(1, 0.5)]),
    )
    assert [(series.scope, series.part, series.value.tolist()) for series in trace.series] == [
        (Scope.INSTANCE, "mig-7", [25.0]),
        (Scope.INSTANCE, "mig-8", [75.0]),
        (Scope.GPU, "", [50.0]),
    ]


def test_utilisation_of_a_slice_is_no_series_and_told() -> None:
    trace = _settle(
        (UTILISATION, {**GPU, "GPU_I_ID": "7"}, [(1, 0.0), (2, 0.0), (3, math.nan)]),
        (POWER, GPU, [(1, 5.0)]),
    )
    assert [series.channel for series in trace.series] == [Channel.POWER_W]
    assert _codes(trace) == {"mig-utilisation": 2}


def test_utilisation_of_slices_alone_is_a_refusal() -> None:
    with pytest.raises(DecodeError):
        _settle((UTILISATION, {**GPU, "GPU_I_ID": "7"}, [(1, 0.0)]))


@pytest.mark.parametrize(("value", "is_shared"), [(1.0, True), (0.0, False), (math.nan, False)])
def test_a_gpu_says_itself_that_it_is_partitioned(value: float, *, is_shared: bool) -> None:
    trace = _settle(("nvidia_smi_mig_mode_current", GPU, [(1, value)]), (POWER, GPU, [(1, 5.0)]))
    assert [device.is_shared for device in trace.devices] == [is_shared]


def test_an_info_metric_describes_its_device_and_is_no_series() -> None:
    info = {"uuid": "GPU-1", "name": "X", "driver_version": "1.2"}
    trace = _settle(("nvidia_smi_gpu_info", info, [(1, 1.0)]), (POWER, GPU, [(1, 5.0)]))
    (device,) = trace.devices
    assert (device.chip_name, device.driver, device.is_shared) == ("X", "1.2", False)
    assert len(trace.series) == 1
    assert _codes(trace) == {}


# Several metrics for one figure


def test_instant_power_counts_before_power_that_may_be_a_mean() -> None:
    trace = _settle((POWER, GPU, [(1, 10.0), (2, 20.0)]), (INSTANT, GPU, [(1, 11.0), (2, 21.0)]))
    (series,) = trace.series
    assert series.value.tolist() == [11.0, 21.0]
    assert series.averaged_s == 0.0
    (finding,) = trace.findings
    assert finding.code == "metrics-other"
    assert POWER in finding.message


def test_the_other_metric_fills_what_lies_before_and_after() -> None:
    trace = _settle(
        (INSTANT, GPU, [(3, 31.0), (4, 41.0)]),
        (POWER, GPU, [(1, 10.0), (3, 30.0), (5, 50.0)]),
    )
    (series,) = trace.series
    assert series.utc_ns.tolist() == [1, 3, 4, 5]
    assert series.value.tolist() == [10.0, 31.0, 41.0, 50.0]
    assert series.averaged_s == 1.0


def test_a_metric_without_a_value_gives_way() -> None:
    trace = _settle((INSTANT, GPU, [(1, 140737488355328.0)]), (POWER, GPU, [(1, 10.0)]))
    assert trace.series[0].value.tolist() == [10.0]


def test_average_power_is_a_channel_of_its_own() -> None:
    trace = _settle(
        ("nvidia_smi_power_draw_average_watts", GPU, [(1, 10.0)]),
        ("nvidia_smi_power_draw_instant_watts", GPU, [(1, 11.0)]),
    )
    assert [series.channel for series in trace.series] == [Channel.POWER_AVERAGE_W, Channel.POWER_W]


# What is none of ours, and limits


def test_other_metrics_are_counted_by_name() -> None:
    trace = _settle(
        *((name, {}, [(1, 1.0)]) for name in ("go_a", "go_b", "go_b", "go_c", "go_d")),
        (POWER, GPU, [(1, 5.0)]),
    )
    (finding,) = trace.findings
    assert (finding.code, finding.count) == ("metrics-other", 4)
    assert finding.message == "passed over: 4 other metrics (go_a, go_b, go_c, ...)"


def test_other_metrics_alone_are_a_refusal_that_names_a_few() -> None:
    with pytest.raises(DecodeError) as caught:
        _settle(("go_a", {}, [(1, 1.0)]), ("up", {}, [(1, 1.0)]))
    assert caught.value.where == "dump:1"
    assert caught.value.found == "2 other metrics (go_a, up)"


@pytest.mark.parametrize("given", [(), ((POWER, GPU, ()),)])
def test_nothing_at_all_is_a_refusal(given: tuple[Given, ...]) -> None:
    with pytest.raises(DecodeError) as caught:
        _settle(*given)
    assert caught.value.expected


def test_names_beyond_the_limit_are_counted_as_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_readings, "_MOST_OTHERS", 2)
    trace = _settle(*((name, {}, ()) for name in ("go_a", "go_b", "go_c")), (POWER, GPU, [(1, 5.0)]))
    assert trace.findings[0].message == "passed over: at least 2 other metrics (go_a, go_b)"


@pytest.mark.parametrize("limit", ["_MOST_LABEL_SETS", "MOST_SERIES", "MOST_READINGS"])
def test_too_much_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_readings, limit, 2)
    given = [(POWER, {"UUID": f"GPU-{number}"}, [(1, 1.0)]) for number in range(4)]
    _settle(*given[:2])
    with pytest.raises(DecodeError, match="too many"):
        _settle(*given)


# Numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"1", 1.0),
        (b"-1.5", -1.5),
        (b"+1e3", 1000.0),
        (b".5", 0.5),
        (b"5.", 5.0),
        (b"1.4e+17", 1.4e17),
        (b"+Inf", math.inf),
        (b"-inf", -math.inf),
        (b"1e999", math.inf),
    ],
)
def test_numbers_as_prometheus_writes_them(text: bytes, value: float) -> None:
    assert parse_sample_value(text) == value


def test_nan_is_a_missing_value() -> None:
    assert math.isnan(parse_sample_value(b"NaN"))


@pytest.mark.parametrize(
    "text", [b"", b"-", b"1_0", b"0x1p3", b"1,5", b"infinity", b"1 2", b"\xb2", b"1e", b"1e10000", b"9" * 81]
)
def test_what_is_no_number_is_unreadable(text: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_sample_value(text)


def test_times_are_exact_to_the_nanosecond() -> None:
    assert place_seconds(Decimal("1700000000.123456789")) == 1_700_000_000_123_456_789
    assert place_seconds(Decimal("1.520879607789e+09")) == 1_520_879_607_789_000_000


@pytest.mark.parametrize(
    "text", ["0", "-1", "999999999", "4000000000", "1e300", "NaN", "Infinity", "-Infinity"]
)
def test_times_of_no_exporter_are_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        place_seconds(Decimal(text))
