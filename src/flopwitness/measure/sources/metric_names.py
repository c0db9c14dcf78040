"""Which metric of which exporter is which channel: its unit, what it covers, and whose figure it is.

Exporters name the same sensor in a dozen ways, and some names lie: DCGM's `..._TX_BYTES` are rates, its
energy is in millijoules, and a GPU cut into slices carries the whole board's power on every slice. All of
that is data here, so that a stranger can check it against the exporters' own pages.

Left out on purpose, because nobody says surely what they hold: `DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL` (KB/s
or MB/s by version, and called a counter), `DCGM_FI_DEV_PCIE_*_THROUGHPUT` (a sample of 20 ms), power
supplies and averages of unknown length of Redfish exporters, energy that old Kepler splits into modes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from flopwitness.measure.samples import Channel, Device, Scope

__all__ = ["DMON_NAMES", "Level", "Metric", "find_metric", "name_device", "name_slice"]

_INT64_BLANK_FROM: Final = 2.0**63  # as a double, where DCGM's and AMD's blank 64-bit integers end up
_INT32_BLANK_FROM: Final = 2147483632.0  # 0x7ffffff0
_AMD_BLANKS: Final = (65535.0, 4294967295.0)  # narrow fields of all ones, widened without being noticed
_MIB: Final = float(1 << 20)
_AVERAGED_S: Final = 1.0  # NVML's power reading since Ampere; AMD's average power is not said to be longer


class Level(Enum):
    """Whose figure a metric is where a GPU is cut into slices."""

    BOARD = "board"  # the whole board's, however many slices repeat it
    SLICE = "slice"  # the slice's own
    UNSLICED = "unsliced"  # nobody's: the sensor does not work then


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What one metric holds.

    Attributes:
        channel: What is read; None where the metric only describes its device.
        factor: From the exporter's unit to the channel's.
        scope: What the figure covers.
        part: What of the device it covers; "" for all of it.
        level: Whose figure it is where the GPU is cut into slices.
        is_host: Whether it is the host's and not an accelerator's.
        rank: Of several metrics for one figure the one with the lowest rank counts.
        averaged_s: Over how long it may be a mean, at most [s].
        blank_from: From here on the exporter's number is a marker for "no value".
        blanks: Further numbers that mark "no value".
        is_flag: Whether it says, by not being 0, that its device is partitioned.
    """

    channel: Channel | None
    factor: float = 1.0
    scope: Scope = Scope.GPU
    part: str = ""
    level: Level = Level.BOARD
    is_host: bool = False
    rank: int = 0
    averaged_s: float = 0.0
    blank_from: float = _INT64_BLANK_FROM
    blanks: tuple[float, ...] = ()
    is_flag: bool = False


def _power(factor: float = 1.0, *, rank: int = 0, averaged_s: float = 0.0) -> Metric:
    return Metric(channel=Channel.POWER_W, factor=factor, rank=rank, averaged_s=averaged_s)


def _energy(factor: float) -> Metric:
    return Metric(channel=Channel.ENERGY_COUNTER_J, factor=factor)


def _busy(channel: Channel, factor: float = 1.0) -> Metric:
    return Metric(channel=channel, factor=factor, level=Level.UNSLICED)


def _active(channel: Channel, factor: float = 100.0) -> Metric:
    return Metric(channel=channel, factor=factor, level=Level.SLICE)


def _memory(factor: float, *, level: Level = Level.BOARD, blank_from: float = _INT64_BLANK_FROM) -> Metric:
    return Metric(channel=Channel.MEMORY_USED_BYTE, factor=factor, level=level, blank_from=blank_from)


def _of(channel: Channel, factor: float = 1.0, *, part: str = "", rank: int = 0) -> Metric:
    return Metric(channel=channel, factor=factor, part=part, rank=rank)


_DCGM: Final = {
    "DCGM_FI_DEV_POWER_USAGE": _power(rank=1, averaged_s=_AVERAGED_S),
    "DCGM_FI_DEV_POWER_USAGE_INSTANT": _power(),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": _energy(1e-3),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": _of(Channel.POWER_LIMIT_W),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": _of(Channel.POWER_LIMIT_W, rank=1),
    "DCGM_FI_DEV_GPU_UTIL": _busy(Channel.UTILISATION_PCT),
    "DCGM_FI_DEV_MEM_COPY_UTIL": _busy(Channel.MEMORY_UTILISATION_PCT),
    "DCGM_FI_DEV_SM_CLOCK": _of(Channel.CLOCK_HZ, 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": _of(Channel.MEMORY_CLOCK_HZ, 1e6),
    "DCGM_FI_DEV_GPU_TEMP": _of(Channel.TEMPERATURE_C),
    "DCGM_FI_DEV_MEMORY_TEMP": _of(Channel.TEMPERATURE_C, part="memory"),
    "DCGM_FI_DEV_PSTATE": _of(Channel.PERFORMANCE_STATE),
    "DCGM_FI_DEV_FB_USED": _memory(_MIB, level=Level.SLICE, blank_from=_INT32_BLANK_FROM),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _active(Channel.ENGINE_ACTIVE_PCT),
    "DCGM_FI_PROF_SM_ACTIVE": _active(Channel.SM_ACTIVE_PCT),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": _active(Channel.TENSOR_ACTIVE_PCT),
    "DCGM_FI_PROF_DRAM_ACTIVE": _active(Channel.MEMORY_ACTIVE_PCT),
    "DCGM_FI_PROF_PCIE_TX_BYTES": _of(Channel.HOST_TRAFFIC_BYTE_PER_S, part="tx"),
    "DCGM_FI_PROF_PCIE_RX_BYTES": _of(Channel.HOST_TRAFFIC_BYTE_PER_S, part="rx"),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": _of(Channel.LINK_TRAFFIC_BYTE_PER_S, part="tx"),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": _of(Channel.LINK_TRAFFIC_BYTE_PER_S, part="rx"),
}

_OLD_DCGM: Final = {  # dcgm-exporter 1, of the gpu-monitoring-tools
    "dcgm_power_usage": _DCGM["DCGM_FI_DEV_POWER_USAGE"],
    "dcgm_total_energy_consumption": _DCGM["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"],
    "dcgm_gpu_utilization": _DCGM["DCGM_FI_DEV_GPU_UTIL"],
    "dcgm_mem_copy_utilization": _DCGM["DCGM_FI_DEV_MEM_COPY_UTIL"],
    "dcgm_sm_clock": _DCGM["DCGM_FI_DEV_SM_CLOCK"],
    "dcgm_memory_clock": _DCGM["DCGM_FI_DEV_MEM_CLOCK"],
    "dcgm_gpu_temp": _DCGM["DCGM_FI_DEV_GPU_TEMP"],
    "dcgm_memory_temp": _DCGM["DCGM_FI_DEV_MEMORY_TEMP"],
    "dcgm_fb_used": _DCGM["DCGM_FI_DEV_FB_USED"],
}

_NVIDIA_SMI: Final = {  # nvidia_gpu_exporter, whose names follow nvidia-smi's fields
    "nvidia_smi_power_draw_instant_watts": _power(),
    "nvidia_smi_power_draw_watts": _power(rank=1, averaged_s=_AVERAGED_S),
    "nvidia_smi_power_draw_average_watts": Metric(channel=Channel.POWER_AVERAGE_W, averaged_s=_AVERAGED_S),
    "nvidia_smi_energy_joules": _energy(1.0),
    "nvidia_smi_enforced_power_limit_watts": _of(Channel.POWER_LIMIT_W),
    "nvidia_smi_power_limit_watts": _of(Channel.POWER_LIMIT_W, rank=1),
    "nvidia_smi_utilization_gpu_ratio": _busy(Channel.UTILISATION_PCT, 100.0),
    "nvidia_smi_utilization_memory_ratio": _busy(Channel.MEMORY_UTILISATION_PCT, 100.0),
    "nvidia_smi_clocks_current_sm_clock_hz": _of(Channel.CLOCK_HZ),
    "nvidia_smi_clocks_current_memory_clock_hz": _of(Channel.MEMORY_CLOCK_HZ),
    "nvidia_smi_temperature_gpu": _of(Channel.TEMPERATURE_C),
    "nvidia_smi_temperature_memory": _of(Channel.TEMPERATURE_C, part="memory"),
    "nvidia_smi_pstate": _of(Channel.PERFORMANCE_STATE),
    "nvidia_smi_memory_used_bytes": _memory(1.0),
    "nvidia_smi_pcie_throughput_tx_bytes_per_second": _of(Channel.HOST_TRAFFIC_BYTE_PER_S, part="tx"),
    "nvidia_smi_pcie_throughput_rx_bytes_per_second": _of(Channel.HOST_TRAFFIC_BYTE_PER_S, part="rx"),
    "nvidia_smi_mig_memory_used_bytes": _memory(1.0, level=Level.SLICE),
    "nvidia_smi_mig_graphics_activity_ratio": _active(Channel.ENGINE_ACTIVE_PCT),
    "nvidia_smi_mig_sm_activity_ratio": _active(Channel.SM_ACTIVE_PCT),
    "nvidia_smi_mig_tensor_activity_ratio": _active(Channel.TENSOR_ACTIVE_PCT),
    "nvidia_smi_gpu_info": Metric(channel=None),
    "nvidia_smi_mig_mode_current": Metric(channel=None, is_flag=True),
    "nvidia_smi_mig_info": Metric(channel=None, is_flag=True),
}

_OTHER_NVIDIA: Final = {
    # mindprow's nvidia_gpu_prometheus_exporter
    "nvidia_gpu_power_usage_milliwatts": _power(1e-3, averaged_s=_AVERAGED_S),
    "nvidia_gpu_duty_cycle": _busy(Channel.UTILISATION_PCT),
    "nvidia_gpu_memory_used_bytes": _memory(1.0),
    "nvidia_gpu_temperature_celsius": _of(Channel.TEMPERATURE_C),
    # Triton Inference Server, and NIM behind it
    "nv_gpu_power_usage": _power(averaged_s=_AVERAGED_S),
    "nv_gpu_power_limit": _of(Channel.POWER_LIMIT_W),
    "nv_energy_consumption": _energy(1.0),
    "nv_gpu_utilization": _busy(Channel.UTILISATION_PCT, 100.0),
    "nv_gpu_memory_used_bytes": _memory(1.0),
    "gpu_power_usage_watts": _power(averaged_s=_AVERAGED_S),
    "gpu_power_limit_watts": _of(Channel.POWER_LIMIT_W),
    "gpu_total_energy_consumption_joules": _energy(1.0),
    # Zeus' power gauge
    "power_monitor_gpu_power_watts": _power(averaged_s=_AVERAGED_S),
}

_AMD: Final = {  # ROCm's device-metrics-exporter; its "MB" are mebibytes
    "gpu_package_power": replace(_power(), blanks=_AMD_BLANKS),
    "gpu_power_usage": replace(_power(rank=1), blanks=_AMD_BLANKS),
    "gpu_average_package_power": Metric(
        channel=Channel.POWER_AVERAGE_W, averaged_s=_AVERAGED_S, blanks=_AMD_BLANKS
    ),
    "gpu_energy_consumed": _energy(1e-6),
    "gpu_gfx_activity": _busy(Channel.UTILISATION_PCT),
    "gpu_umc_activity": _busy(Channel.MEMORY_UTILISATION_PCT),
    "gpu_prof_gui_util_percent": _active(Channel.ENGINE_ACTIVE_PCT, 1.0),
    "gpu_prof_tensor_active_percent": _active(Channel.TENSOR_ACTIVE_PCT, 1.0),
    "gpu_used_vram": _memory(_MIB, level=Level.SLICE),
    "gpu_junction_temperature": _of(Channel.TEMPERATURE_C, part="junction"),
    "gpu_edge_temperature": _of(Channel.TEMPERATURE_C, part="edge"),
    "gpu_memory_temperature": _of(Channel.TEMPERATURE_C, part="memory"),
    # Omnistat
    "rocm_average_socket_power_watts": Metric(channel=Channel.POWER_AVERAGE_W, averaged_s=_AVERAGED_S),
    "rocm_energy_joules": _energy(1.0),
    "rocm_utilization_percentage": _busy(Channel.UTILISATION_PCT),
    "rocm_sclk_clock_mhz": _of(Channel.CLOCK_HZ, 1e6),
    "rocm_mclk_clock_mhz": _of(Channel.MEMORY_CLOCK_HZ, 1e6),
}

_HOST: Final = {
    name: Metric(channel=Channel.POWER_W, scope=Scope.NODE, is_host=True)
    for name in ("ipmi_dcmi_power_consumption_watts", "ipmi_dcmi_power_consumption_current_watts")
}

_METRICS: Final = {**_DCGM, **_OLD_DCGM, **_NVIDIA_SMI, **_OTHER_NVIDIA, **_AMD, **_HOST}

DMON_NAMES: Final = MappingProxyType(
    {
        "POWER": "DCGM_FI_DEV_POWER_USAGE",
        "TOTEC": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "EPLMT": "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
        "PMLMT": "DCGM_FI_DEV_POWER_MGMT_LIMIT",
        "GPUTL": "DCGM_FI_DEV_GPU_UTIL",
        "MCUTL": "DCGM_FI_DEV_MEM_COPY_UTIL",
        "SMCLK": "DCGM_FI_DEV_SM_CLOCK",
        "MMCLK": "DCGM_FI_DEV_MEM_CLOCK",
        "TMPTR": "DCGM_FI_DEV_GPU_TEMP",
        "MMTMP": "DCGM_FI_DEV_MEMORY_TEMP",
        "PSTAT": "DCGM_FI_DEV_PSTATE",
        "FBUSD": "DCGM_FI_DEV_FB_USED",
        "GRACT": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "SMACT": "DCGM_FI_PROF_SM_ACTIVE",
        "TENSO": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DRAMA": "DCGM_FI_PROF_DRAM_ACTIVE",
        "PCITX": "DCGM_FI_PROF_PCIE_TX_BYTES",
        "PCIRX": "DCGM_FI_PROF_PCIE_RX_BYTES",
        "NVLTX": "DCGM_FI_PROF_NVLINK_TX_BYTES",
        "NVLRX": "DCGM_FI_PROF_NVLINK_RX_BYTES",
    }
)
"""The fields of `dcgmi dmon` by their short names, as `dcgmi dmon -l` lists them.

Source:
    NVIDIA DCGM, dcgmlib/src/dcgm_fields.cpp.
"""

_CLOCKS: Final = {"system": Channel.CLOCK_HZ, "memory": Channel.MEMORY_CLOCK_HZ}
_ZONES: Final = {
    "package": Scope.CPU,
    "dram": Scope.DRAM,
    "psys": Scope.PLATFORM,
    "core": Scope.CPU_PART,
    "uncore": Scope.CPU_PART,
}
_RAPL: Final = re.compile(r"(?:node|ceems)_rapl_(?:(package|dram|psys|core|uncore)_)?joules")
_RAPL_ROOT: Final = re.compile(r"intel-rapl:(\d{1,4})")
_ZEUS: Final = re.compile(r"energy_monitor_(gpu|cpu|dram)_energy_joules")
_ZEUS_SCOPES: Final = {"gpu": Scope.GPU, "cpu": Scope.CPU, "dram": Scope.DRAM}


def find_metric(name: str, labels: Mapping[str, str]) -> Metric | None:
    """What a metric holds; None where it is none of ours.

    A counter may carry OpenMetrics' ending `_total` or not.

    Source:
        NVIDIA/dcgm-exporter, etc/dcp-metrics-included.csv; NVIDIA/DCGM, dcgm_fields.h; ROCm
        device-metrics-exporter, docs/configuration/metricslist.md; utkuozdemir/nvidia_gpu_exporter,
        docs/METRICS.md; prometheus-community/ipmi_exporter, docs/metrics.md; prometheus/node_exporter,
        collector/rapl_linux.go; mrlhansen/idrac_exporter, README; Kepler, docs, metrics;
        ROCm/omnistat, docs; ml-energy/zeus, zeus/metric.py; laminair/jetson_stats_node_exporter.
    """
    stem = name.removesuffix("_total")
    metric = _METRICS.get(name) or _METRICS.get(stem)
    if metric is not None:
        return metric
    if stem == "gpu_clock":
        return _find_clock(labels)
    if stem in ("integrated_power", "integrated_power_mW"):
        return _find_jetson(stem, labels)
    if stem == "idrac_power_control_consumed_watts":
        part = labels.get("id", "")
        return replace(
            _HOST["ipmi_dcmi_power_consumption_watts"], part="" if part in ("0", "PowerControl") else part
        )
    if zeus := _ZEUS.fullmatch(stem):
        return Metric(
            channel=Channel.ENERGY_COUNTER_J,
            scope=_ZEUS_SCOPES[zeus[1]],
            part=labels.get("window", "") if zeus[1] == "gpu" else _zeus_part(labels),
            is_host=zeus[1] != "gpu",
        )
    return _find_rapl(stem, labels)


def _zeus_part(labels: Mapping[str, str]) -> str:
    return f"package-{labels.get('index', '')}/{labels.get('window', '')}"


def _find_clock(labels: Mapping[str, str]) -> Metric | None:
    """AMD's clocks, one of each kind for every die: their numbers tell them apart."""
    kind = labels.get("clock_type", "").lower().removeprefix("gpu_clock_type_")
    channel = _CLOCKS.get(kind)
    if channel is None:
        return None
    index = labels.get("clock_index", "")
    return Metric(channel=channel, factor=1e6, part=f"clock-{index}" if index else "", blanks=_AMD_BLANKS)


def _find_jetson(name: str, labels: Mapping[str, str]) -> Metric | None:
    """A Jetson's total and its rails; the exporter's average is of unknown length."""
    if labels.get("statistic") != "power":
        return None
    if name == "integrated_power_mW":
        return Metric(channel=Channel.POWER_W, factor=1e-3, scope=Scope.MODULE, is_host=True)
    rail = labels.get("machine_part", "")
    return Metric(channel=Channel.POWER_W, factor=1e-3, scope=Scope.RAIL, part=rail, is_host=True)


def _find_rapl(name: str, labels: Mapping[str, str]) -> Metric | None:
    """The processor's own counters; those read once more through MMIO are the same and left out."""
    channel = Channel.ENERGY_COUNTER_J
    if name in ("kepler_node_cpu_joules", "kepler_node_cpu_watts"):
        channel = Channel.POWER_W if name.endswith("watts") else channel
        zone = labels.get("zone", "")
        found = _RAPL_ROOT.search(labels.get("path", ""))
        index = found[1] if found else ""
    elif rapl := _RAPL.fullmatch(name):
        zone = rapl[1] or labels.get("rapl_zone", "")
        index = labels.get("index", "")
    else:
        return None
    scope = _ZONES.get(zone)
    if scope is None or "mmio" in labels.get("path", ""):
        return None
    return Metric(channel=channel, scope=scope, part=_zone_part(zone, index), is_host=True)


def _zone_part(zone: str, index: str) -> str:
    if zone == "psys":
        return ""
    package = f"package-{index}" if index else ""
    return package if zone == "package" else f"{package}/{zone}".removeprefix("/")


_UUIDS: Final = ("UUID", "uuid", "gpu_uuid", "GPU_UUID")
_INDICES: Final = ("gpu", "gpu_id", "gpu_index", "minor_number", "index", "card", "device_id")
_HOSTS: Final = ("Hostname", "hostname", "host", "nodename", "node_name", "node", "instance")
_CHIPS: Final = ("modelName", "card_model", "gpu_name", "name")
_DRIVERS: Final = ("DCGM_FI_DRIVER_VERSION", "driver_version")
_BARE_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PORT: Final = re.compile(r":\d{1,5}$")
_WHOLE: Final = ("", "spx", "none", "n/a")


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def name_slice(labels: Mapping[str, str]) -> str:
    """The slice of a partitioned GPU that the labels name, such as `mig-7`; "" for the whole of it."""
    instance = labels.get("GPU_I_ID") or labels.get("gpu_instance_id")
    if instance:
        return f"mig-{instance}"
    if labels.get("gpu_compute_partition_type", "").lower() not in _WHOLE:
        return f"partition-{labels.get('gpu_partition_id', '')}"
    return ""


def name_device(metric: Metric, labels: Mapping[str, str], *, file: str) -> Device:
    """The device that a metric's labels name, with what they say of it.

    A GPU is its UUID, else its index on its host; a pod, a job or a container is no part of its name,
    because they come and go. Partitions of one AMD GPU share its serial number.

    Args:
        metric: The metric.
        labels: Its labels.
        file: The name for a host that nobody names.
    """
    host = _PORT.sub("", _first(labels, _HOSTS))
    if metric.is_host:
        return Device(name=host or file, host=host)
    uuid = _first(labels, _UUIDS)
    index = _first(labels, _INDICES)
    cut = name_slice(labels)
    if uuid and not uuid.startswith("MIG-"):
        name = f"GPU-{uuid.lower()}" if _BARE_UUID.fullmatch(uuid) else uuid
    elif cut.startswith("partition-") and labels.get("serial_number"):
        name = labels["serial_number"]
    else:
        name = f"{host or file}/gpu{index}" if index else host or file
    return Device(
        name=name,
        chip_name=_first(labels, _CHIPS),
        host=host,
        driver=_first(labels, _DRIVERS),
        is_shared=bool(cut or labels.get("vgpu")),
    )
