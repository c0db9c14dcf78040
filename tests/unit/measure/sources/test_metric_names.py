"""Metric names: each one's channel, unit and scope, as its exporter documents them."""

import pytest

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.metric_names import (
    DMON_NAMES,
    Level,
    find_metric,
    name_device,
    name_slice,
)

MIB = 1 << 20


@pytest.mark.parametrize(
    ("name", "channel", "factor", "part"),
    [
        ("DCGM_FI_DEV_POWER_USAGE", Channel.POWER_W, 1, ""),
        ("DCGM_FI_DEV_POWER_USAGE_INSTANT", Channel.POWER_W, 1, ""),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Channel.ENERGY_COUNTER_J, 1e-3, ""),
        ("DCGM_FI_DEV_GPU_UTIL", Channel.UTILISATION_PCT, 1, ""),
        ("DCGM_FI_DEV_MEM_COPY_UTIL", Channel.MEMORY_UTILISATION_PCT, 1, ""),
        ("DCGM_FI_DEV_SM_CLOCK", Channel.CLOCK_HZ, 1e6, ""),
        ("DCGM_FI_DEV_MEM_CLOCK", Channel.MEMORY_CLOCK_HZ, 1e6, ""),
        ("DCGM_FI_DEV_GPU_TEMP", Channel.TEMPERATURE_C, 1, ""),
        ("DCGM_FI_DEV_MEMORY_TEMP", Channel.TEMPERATURE_C, 1, "memory"),
        ("DCGM_FI_DEV_FB_USED", Channel.MEMORY_USED_BYTE, MIB, ""),
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", Channel.POWER_LIMIT_W, 1, ""),
        ("DCGM_FI_DEV_PSTATE", Channel.PERFORMANCE_STATE, 1, ""),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Channel.ENGINE_ACTIVE_PCT, 100, ""),
        ("DCGM_FI_PROF_SM_ACTIVE", Channel.SM_ACTIVE_PCT, 100, ""),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Channel.TENSOR_ACTIVE_PCT, 100, ""),
        ("DCGM_FI_PROF_DRAM_ACTIVE", Channel.MEMORY_ACTIVE_PCT, 100, ""),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", Channel.HOST_TRAFFIC_BYTE_PER_S, 1, "tx"),
        ("DCGM_FI_PROF_PCIE_RX_BYTES", Channel.HOST_TRAFFIC_BYTE_PER_S, 1, "rx"),
        ("DCGM_FI_PROF_NVLINK_TX_BYTES", Channel.LINK_TRAFFIC_BYTE_PER_S, 1, "tx"),
        ("DCGM_FI_PROF_NVLINK_RX_BYTES", Channel.LINK_TRAFFIC_BYTE_PER_S, 1, "rx"),
        ("dcgm_power_usage", Channel.POWER_W, 1, ""),
        ("dcgm_total_energy_consumption", Channel.ENERGY_COUNTER_J, 1e-3, ""),
        ("nvidia_smi_power_draw_watts", Channel.POWER_W, 1, ""),
        ("nvidia_smi_power_draw_average_watts", Channel.POWER_AVERAGE_W, 1, ""),
        ("nvidia_smi_energy_joules_total", Channel.ENERGY_COUNTER_J, 1, ""),
        ("nvidia_smi_utilization_gpu_ratio", Channel.UTILISATION_PCT, 100, ""),
        ("nvidia_smi_clocks_current_sm_clock_hz", Channel.CLOCK_HZ, 1, ""),
        ("nvidia_gpu_power_usage_milliwatts", Channel.POWER_W, 1e-3, ""),
        ("nv_gpu_power_usage", Channel.POWER_W, 1, ""),
        ("nv_gpu_utilization", Channel.UTILISATION_PCT, 100, ""),
        ("gpu_package_power", Channel.POWER_W, 1, ""),
        ("gpu_average_package_power", Channel.POWER_AVERAGE_W, 1, ""),
        ("gpu_energy_consumed", Channel.ENERGY_COUNTER_J, 1e-6, ""),
        ("gpu_gfx_activity", Channel.UTILISATION_PCT, 1, ""),
        ("gpu_used_vram", Channel.MEMORY_USED_BYTE, MIB, ""),
        ("gpu_junction_temperature", Channel.TEMPERATURE_C, 1, "junction"),
        ("rocm_average_socket_power_watts", Channel.POWER_AVERAGE_W, 1, ""),
        ("rocm_sclk_clock_mhz", Channel.CLOCK_HZ, 1e6, ""),
    ],
)
def test_accelerator_metrics(name: str, channel: Channel, factor: float, part: str) -> None:
    metric = find_metric(name, {})
    assert metric is not None
    assert (metric.channel, metric.factor, metric.part) == (channel, factor, part)
    assert (metric.scope, metric.is_host) == (Scope.GPU, False)


@pytest.mark.parametrize(
    ("name", "labels", "channel", "scope", "part"),
    [
        (
            "node_rapl_package_joules_total",
            {"index": "1", "path": "/sys/class/powercap/intel-rapl:1"},
            Channel.ENERGY_COUNTER_J,
            Scope.CPU,
            "package-1",
        ),
        ("node_rapl_package_joules_total", {}, Channel.ENERGY_COUNTER_J, Scope.CPU, ""),
        (
            "node_rapl_dram_joules_total",
            {"index": "0"},
            Channel.ENERGY_COUNTER_J,
            Scope.DRAM,
            "package-0/dram",
        ),
        (
            "node_rapl_core_joules_total",
            {"index": "0"},
            Channel.ENERGY_COUNTER_J,
            Scope.CPU_PART,
            "package-0/core",
        ),
        ("node_rapl_psys_joules_total", {"index": "0"}, Channel.ENERGY_COUNTER_J, Scope.PLATFORM, ""),
        (
            "node_rapl_joules_total",
            {"rapl_zone": "uncore", "index": "0"},
            Channel.ENERGY_COUNTER_J,
            Scope.CPU_PART,
            "package-0/uncore",
        ),
        ("ceems_rapl_dram_joules_total", {}, Channel.ENERGY_COUNTER_J, Scope.DRAM, "dram"),
        (
            "kepler_node_cpu_joules_total",
            {"zone": "package", "path": "/sys/class/powercap/intel-rapl:0"},
            Channel.ENERGY_COUNTER_J,
            Scope.CPU,
            "package-0",
        ),
        ("kepler_node_cpu_watts", {"zone": "dram"}, Channel.POWER_W, Scope.DRAM, "dram"),
        ("ipmi_dcmi_power_consumption_watts", {}, Channel.POWER_W, Scope.NODE, ""),
        ("ipmi_dcmi_power_consumption_current_watts", {}, Channel.POWER_W, Scope.NODE, ""),
        ("idrac_power_control_consumed_watts", {"id": "0"}, Channel.POWER_W, Scope.NODE, ""),
        ("idrac_power_control_consumed_watts", {"id": "CPU"}, Channel.POWER_W, Scope.NODE, "CPU"),
        ("integrated_power_mW", {"statistic": "power"}, Channel.POWER_W, Scope.MODULE, ""),
        (
            "integrated_power",
            {"statistic": "power", "machine_part": "VDD_CPU"},
            Channel.POWER_W,
            Scope.RAIL,
            "VDD_CPU",
        ),
        (
            "energy_monitor_cpu_energy_joules_total",
            {"window": "w", "index": "0"},
            Channel.ENERGY_COUNTER_J,
            Scope.CPU,
            "package-0/w",
        ),
    ],
)
def test_host_metrics(name: str, labels: dict[str, str], channel: Channel, scope: Scope, part: str) -> None:
    metric = find_metric(name, labels)
    assert metric is not None
    assert (metric.channel, metric.scope, metric.part) == (channel, scope, part)
    assert metric.is_host


def test_clocks_of_amd_are_told_apart_by_kind_and_number() -> None:
    system = find_metric("gpu_clock", {"clock_type": "GPU_CLOCK_TYPE_SYSTEM", "clock_index": "3"})
    memory = find_metric("gpu_clock", {"clock_type": "memory"})
    assert system is not None
    assert memory is not None
    assert (system.channel, system.factor, system.part) == (Channel.CLOCK_HZ, 1e6, "clock-3")
    assert (memory.channel, memory.part) == (Channel.MEMORY_CLOCK_HZ, "")


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("go_goroutines", {}),
        ("up", {}),
        ("", {}),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", {}),  # of disputed unit
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", {}),
        ("DCGM_FI_DEV_XID_ERRORS", {}),
        ("DCGM_FI_PROF_SM_OCCUPANCY", {}),
        ("dcgm_fi_dev_power_usage", {}),
        ("gpu_clock", {"clock_type": "video"}),
        ("gpu_clock", {}),
        ("gpu_utilization", {}),  # 0 to 1 with some, 0 to 100 with others
        ("node_rapl_package_joules_total", {"path": "/sys/class/powercap/intel-rapl-mmio:0"}),
        ("node_rapl_joules_total", {"rapl_zone": "elsewhere"}),
        ("node_rapl_joules_total", {}),
        ("kepler_node_package_joules_total", {"mode": "idle"}),  # one of two modes
        ("kepler_container_cpu_joules_total", {"zone": "package"}),
        ("idrac_power_supply_input_watts", {"id": "0"}),
        ("idrac_power_control_avg_consumed_watts", {"id": "0"}),
        ("integrated_power_mW", {"statistic": "avg_power"}),
        ("integrated_power", {"statistic": "voltage", "machine_part": "VDD_CPU"}),
        ("energy_monitor_gpu_energy_joules_bucket", {"le": "1"}),
        ("ipmi_power_watts", {"name": "Pwr"}),
    ],
)
def test_other_metrics_are_none_of_ours(name: str, labels: dict[str, str]) -> None:
    assert find_metric(name, labels) is None


def test_counters_may_carry_the_ending_of_open_metrics() -> None:
    plain = find_metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", {})
    assert find_metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total", {}) == plain
    assert find_metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total_total", {}) is None


@pytest.mark.parametrize(
    ("name", "averaged_s"),
    [
        ("DCGM_FI_DEV_POWER_USAGE", 1.0),
        ("DCGM_FI_DEV_POWER_USAGE_INSTANT", 0.0),
        ("nvidia_smi_power_draw_watts", 1.0),
        ("nvidia_smi_power_draw_instant_watts", 0.0),
        ("gpu_package_power", 0.0),
        ("gpu_average_package_power", 1.0),
    ],
)
def test_power_that_may_be_a_mean_says_so(name: str, averaged_s: float) -> None:
    metric = find_metric(name, {})
    assert metric is not None
    assert metric.averaged_s == averaged_s


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("DCGM_FI_DEV_POWER_USAGE", Level.BOARD),
        ("DCGM_FI_DEV_SM_CLOCK", Level.BOARD),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", Level.BOARD),
        ("DCGM_FI_DEV_FB_USED", Level.SLICE),
        ("DCGM_FI_PROF_SM_ACTIVE", Level.SLICE),
        ("DCGM_FI_DEV_GPU_UTIL", Level.UNSLICED),
        ("gpu_gfx_activity", Level.UNSLICED),
    ],
)
def test_whose_figure_a_metric_is_on_a_partitioned_gpu(name: str, level: Level) -> None:
    metric = find_metric(name, {})
    assert metric is not None
    assert metric.level is level


def test_every_short_name_of_dmon_is_a_known_metric() -> None:
    assert [short for short, name in DMON_NAMES.items() if find_metric(name, {}) is None] == []


# Devices


def _name(labels: dict[str, str], *, metric: str = "DCGM_FI_DEV_POWER_USAGE") -> str:
    found = find_metric(metric, labels)
    assert found is not None
    return name_device(found, labels, file="dump").name


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"UUID": "GPU-1", "gpu": "0", "Hostname": "n"}, "GPU-1"),
        ({"uuid": "GPU-2"}, "GPU-2"),
        ({"gpu_uuid": "0A1B2C3D-0000-4000-8000-00000000000f"}, "GPU-0a1b2c3d-0000-4000-8000-00000000000f"),
        ({"UUID": "MIG-1", "gpu": "0", "Hostname": "n"}, "n/gpu0"),
        ({"gpu": "3", "Hostname": "n"}, "n/gpu3"),
        ({"gpu_id": "3", "hostname": "n", "serial_number": "S"}, "n/gpu3"),
        ({"card": "3", "instance": "n:9100"}, "n/gpu3"),
        ({"gpu": "3", "instance": "10.0.0.1:9400", "Hostname": ""}, "10.0.0.1/gpu3"),
        ({"gpu": "3"}, "dump/gpu3"),
        ({"Hostname": "n"}, "n"),
        ({}, "dump"),
    ],
)
def test_a_gpu_is_its_uuid_else_its_index_on_its_host(labels: dict[str, str], name: str) -> None:
    assert _name(labels) == name


def test_a_pod_a_job_or_a_container_is_no_part_of_a_name() -> None:
    labels = {"gpu": "0", "Hostname": "n"}
    others = {"pod": "p", "job": "j", "container": "c", "exported_pod": "q", "namespace": "s"}
    assert _name({**labels, **others}) == _name(labels)


def test_a_host_has_no_index() -> None:
    assert _name({"index": "1", "instance": "n:9100"}, metric="node_rapl_package_joules_total") == "n"
    assert _name({}, metric="ipmi_dcmi_power_consumption_watts") == "dump"


def test_partitions_of_one_amd_gpu_are_one_device() -> None:
    labels = {"gpu_id": "1", "serial_number": "S", "hostname": "n", "gpu_compute_partition_type": "cpx"}
    assert _name({**labels, "gpu_partition_id": "5"}, metric="gpu_package_power") == "S"
    assert _name({**labels, "gpu_compute_partition_type": "spx"}, metric="gpu_package_power") == "n/gpu1"


def test_what_labels_say_of_a_device_is_kept() -> None:
    metric = find_metric("DCGM_FI_DEV_POWER_USAGE", {})
    assert metric is not None
    labels = {"UUID": "GPU-1", "modelName": "X", "Hostname": "n", "DCGM_FI_DRIVER_VERSION": "1.2"}
    device = name_device(metric, labels, file="dump")
    assert (device.chip_name, device.host, device.driver, device.is_shared) == ("X", "n", "1.2", False)
    assert name_device(metric, {**labels, "GPU_I_ID": "7"}, file="dump").is_shared
    assert name_device(metric, {**labels, "vgpu": "1"}, file="dump").is_shared


@pytest.mark.parametrize(
    ("labels", "cut"),
    [
        ({"GPU_I_ID": "7"}, "mig-7"),
        ({"gpu_instance_id": "2"}, "mig-2"),
        ({"gpu_compute_partition_type": "CPX", "gpu_partition_id": "3"}, "partition-3"),
        ({"GPU_I_ID": ""}, ""),
        ({"gpu_compute_partition_type": "spx", "gpu_partition_id": "0"}, ""),
        ({"gpu_partition_id": "0"}, ""),
        ({}, ""),
    ],
)
def test_slices_are_named_by_their_labels(labels: dict[str, str], cut: str) -> None:
    assert name_slice(labels) == cut
