"""The names of all formats, in the order in which they are tried: for help texts, which load no reader."""

from typing import Final

__all__ = ["FORMAT_NAMES"]

FORMAT_NAMES: Final = (
    "flopwitness-trace",
    "parquet-table",
    "loadgen-log",
    "mlperf-system",
    "mlperf-power",
    "mlperf-result",
    "nvidia-smi-xml",
    "nvidia-smi-query",
    "nvidia-smi-csv",
    "nvidia-smi-dmon",
    "dcgmi-dmon",
    "prometheus-text",
    "prometheus-reply",
    "tegrastats",
    "jetson-series",
    "jtop-csv",
    "spec-ptd",
    "ptd-log",
    "ipmi-dcmi",
    "redfish-power",
    "perf-energy",
    "turbostat",
    "powercap",
    "rocm-smi",
    "amd-smi",
    "codecarbon-csv",
    "zeus-csv",
    "pdu-csv",
    "plain-table",
)
