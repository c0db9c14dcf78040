"""Names of columns: a quantity with its unit, or nothing."""

import pytest

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.table_times import Origin
from flopwitness.measure.sources.table_words import fold_name, read_quantity, read_subject, read_time_name

GPU, NODE, ANY = Scope.GPU, Scope.NODE, Scope.UNKNOWN


@pytest.mark.parametrize(
    ("name", "channel", "scope", "factor"),
    [
        ("power_w", Channel.POWER_W, ANY, 1.0),
        ("Power (W)", Channel.POWER_W, ANY, 1.0),
        ("power_mw", Channel.POWER_W, ANY, 1e-3),
        ("Power [mW]", Channel.POWER_W, ANY, 1e-3),
        ("power_MW", Channel.POWER_W, ANY, 1e6),
        ("power (kW)", Channel.POWER_W, ANY, 1e3),
        ("watts", Channel.POWER_W, ANY, 1.0),
        ("PowerWatts", Channel.POWER_W, ANY, 1.0),
        ("power_draw_w", Channel.POWER_W, ANY, 1.0),
        ("gpu_power_w", Channel.POWER_W, GPU, 1.0),
        ("socket_power_w", Channel.POWER_W, ANY, 1.0),
        ("node power (W)", Channel.POWER_W, NODE, 1.0),
        ("wall_power_w", Channel.POWER_W, Scope.NODE_AC, 1.0),
        ("cpu_power_w", Channel.POWER_W, Scope.CPU, 1.0),
        ("dram_power_w", Channel.POWER_W, Scope.DRAM, 1.0),
        ("avg_power_w", Channel.POWER_AVERAGE_W, ANY, 1.0),
        ("power_limit_w", Channel.POWER_LIMIT_W, ANY, 1.0),
        ("energy_j", Channel.ENERGY_COUNTER_J, ANY, 1.0),
        ("energy_uj", Channel.ENERGY_COUNTER_J, ANY, 1e-6),
        ("total_energy_consumption_mj", Channel.ENERGY_COUNTER_J, ANY, 1e-3),
        ("Energy (MJ)", Channel.ENERGY_COUNTER_J, ANY, 1e6),
        ("energy_kWh", Channel.ENERGY_COUNTER_J, ANY, 3.6e6),
        ("kwh", Channel.ENERGY_COUNTER_J, ANY, 3.6e6),
        ("gpu_utilization_pct", Channel.UTILISATION_PCT, GPU, 1.0),
        ("gpu_pct", Channel.UTILISATION_PCT, GPU, 1.0),
        ("gpu usage (%)", Channel.UTILISATION_PCT, GPU, 1.0),
        ("cpu usage (%)", Channel.CPU_UTILISATION_PCT, Scope.CPU, 1.0),
        ("cpu_percent", Channel.CPU_UTILISATION_PCT, Scope.CPU, 1.0),
        ("mem_utilization_pct", Channel.MEMORY_UTILISATION_PCT, ANY, 1.0),
        ("tensor_active_pct", Channel.TENSOR_ACTIVE_PCT, ANY, 1.0),
        ("sm_clock_mhz", Channel.CLOCK_HZ, ANY, 1e6),
        ("mem_clock (GHz)", Channel.MEMORY_CLOCK_HZ, ANY, 1e9),
        ("memory_used_mib", Channel.MEMORY_USED_BYTE, ANY, 2.0**20),
        ("gpu_temperature_c", Channel.TEMPERATURE_C, GPU, 1.0),
        ("pcie_tx_bytes_per_s", Channel.HOST_TRAFFIC_BYTE_PER_S, ANY, 1.0),
        ("nvlink_rx (MB/s)", Channel.LINK_TRAFFIC_BYTE_PER_S, ANY, 1e6),
    ],
)
def test_a_quantity_with_its_unit(name: str, channel: Channel, scope: Scope, factor: float) -> None:
    quantity = read_quantity(name)
    assert quantity is not None
    assert (quantity.channel, quantity.subject.scope, quantity.factor) == (channel, scope, factor)
    assert quantity.has_unit


@pytest.mark.parametrize(
    "name",
    [
        "power",
        "Power",
        "power_usage",
        "gpu_power",
        "POWER_MW",
        "ENERGY (MJ)",
        "energy",
        "energy_mwh",
        "w",
        "power_factor",
        "peak_power_w",
        "power_w_std",
        "energy_per_token_j",
        "mean_loss",
        "usage",
        "load",
        "memory usage (MB)",
        "memory usage (%)",
        "disk_usage_pct",
        "encoder_util_pct",
        "fan_speed_pct",
        "temperature",
        "clock",
        "pcie_tx_mbps",
        "nvlink_rx (Mb/s)",
        "pcie_tx_mb_per_s",
        "gpu_cpu_power_w",
        "cpu_clock_mhz",
        "dcgm_power_usage_w",
        "dcgm_gpu_util",
        "outlet 3 power (W)",
        "zone",
        "duration_s",
        "",
        "%",
        "x" * 10_000,
        "\x00power_w\x00x",
    ],
)
def test_a_name_that_leaves_anything_open_says_nothing(name: str) -> None:
    assert read_quantity(name) is None


@pytest.mark.parametrize("name", ["utilization", "gpu_util", "Utilisation"])
def test_a_bare_share_says_no_unit(name: str) -> None:
    quantity = read_quantity(name)
    assert quantity is not None
    assert not quantity.has_unit


@pytest.mark.parametrize(
    ("name", "scope", "device", "is_total"),
    [
        ("gpu0_power_w", GPU, "gpu0", False),
        ("GPU 3 Power [W]", GPU, "gpu3", False),
        ("power_gpu12_w", GPU, "gpu12", False),
        ("GPU[1] power (W)", GPU, "gpu1", False),
        ("node7", NODE, "node7", False),
        ("total_power_w", ANY, "", True),
        ("total_gpu_power_w", GPU, "", True),
        ("total_energy_j", ANY, "", False),
        ("anything", ANY, "", False),
        ("gpu_and_cpu", ANY, "", False),
    ],
)
def test_whose_it_is(name: str, scope: Scope, device: str, is_total: bool) -> None:
    subject = read_subject(name)
    assert (subject.scope, subject.device, subject.is_total) == (scope, device, is_total)


@pytest.mark.parametrize(
    ("name", "unit_ns", "origin", "is_utc", "rank"),
    [
        ("timestamp", None, Origin.OPEN, False, 3),
        ("Timestamp", None, Origin.OPEN, False, 3),
        ("timestamp_utc", None, Origin.EPOCH, True, 1),
        ("epoch_ms", 10**6, Origin.EPOCH, False, 2),
        ("timestamp_epoch", None, Origin.EPOCH, False, 2),
        ("timestamp_ns", 1, Origin.OPEN, False, 3),
        ("time_s", 10**9, Origin.OPEN, False, 4),
        ("t_s", 10**9, Origin.OPEN, False, 4),
        ("Time (s)", 10**9, Origin.OPEN, False, 4),
        ("elapsed_ms", 10**6, Origin.START, False, 5),
        ("seconds", None, Origin.START, False, 5),
        ("# time [us]", 10**3, Origin.OPEN, False, 4),
    ],
)
def test_times(name: str, unit_ns: int | None, origin: Origin, is_utc: bool, rank: int) -> None:
    header, found = read_time_name(name)
    assert (header.unit_ns, header.origin, header.is_utc, found) == (unit_ns, origin, is_utc, rank)


@pytest.mark.parametrize(
    "name", ["time_per_epoch", "training_time", "timezone", "duration_s", "step", "runtime", ""]
)
def test_other_names_are_no_times(name: str) -> None:
    assert read_time_name(name)[1] == 0


def test_names_fold() -> None:
    assert fold_name("  GPU-0  Power (mW) ") == "gpu_0_power_mw"
