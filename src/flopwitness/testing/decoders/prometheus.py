"""The readers of Prometheus and DCGM: scrapes, replies of a server, and tables of `dcgmi dmon`."""

import json
from typing import Final

from flopwitness.measure.sources import dcgm_dmon, exposition, prometheus_reply
from flopwitness.testing.known_decoder import KnownDecoder, read_format

__all__ = ["decoders"]

_START_S: Final = 1_700_000_000
_GPU: Final = (
    'gpu="{0}",UUID="GPU-00000000-0000-4000-8000-00000000000{0}",device="nvidia{0}",'
    'modelName="Example 1",Hostname="node-a",DCGM_FI_DRIVER_VERSION="1.2.3"'
)
_SLICE: Final = _GPU + ',GPU_I_PROFILE="1g.10gb",GPU_I_ID="{1}"'

_SCRAPES: Final = """\
# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{{{gpu}}} 301.500000
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{gpu}}} 1234567
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{gpu},pod="a b",container="c\\"d\\\\e\\n"}} 1234569
# TYPE DCGM_FI_PROF_PIPE_TENSOR_ACTIVE gauge
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{gpu}}} 0.512345
go_goroutines 12
"""

_DUMP: Final = """\
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{{gpu}}} 97 {ms}000
DCGM_FI_DEV_GPU_UTIL{{{gpu}}} 2147483632 {ms}500
DCGM_FI_DEV_GPU_UTIL{{{gpu}}} NaN {ms}900
DCGM_FI_DEV_POWER_USAGE{{{gpu}}} 140737488355328 {ms}900
{{__name__="DCGM_FI_DEV_POWER_USAGE_INSTANT", {gpu}}} 350 {ms}900
node_rapl_package_joules_total{{index="0",path="/sys/class/powercap/intel-rapl:0"}} 262143.328 {ms}900
ipmi_dcmi_power_consumption_current_watts 740 {ms}900
"""

_SLICES: Final = """\
DCGM_FI_DEV_POWER_USAGE{{{one}}} 181.4
DCGM_FI_DEV_POWER_USAGE{{{two}}} 181.9
DCGM_FI_DEV_GPU_UTIL{{{one}}} 0
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{one}}} 0.97
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{two}}} 0.02
"""

_OPEN_METRICS: Final = """\
# TYPE nvidia_smi_energy_joules counter
# UNIT nvidia_smi_energy_joules joules
nvidia_smi_energy_joules_total{uuid="00000000-0000-4000-8000-000000000000"} 52.5 1700000000.123
nvidia_smi_energy_joules_total{uuid="00000000-0000-4000-8000-000000000000"} 99.5 1.70000001545e+09 # {a="b"} 1
# TYPE nvidia_smi_gpu_info gauge
nvidia_smi_gpu_info{uuid="00000000-0000-4000-8000-000000000000",name="Example 1",driver_version="1.2"} 1
# EOF
"""

_AMD: Final = """\
# TYPE gpu_package_power gauge
gpu_package_power{gpu_id="0",card_model="Example 2",serial_number="S0",hostname="node-b"} 701
gpu_package_power{gpu_id="1",card_model="Example 2",serial_number="S1",hostname="node-b"} 65535
# TYPE gpu_energy_consumed gauge
gpu_energy_consumed{gpu_id="0",card_model="Example 2",serial_number="S0",hostname="node-b"} 1.25e+12
# TYPE gpu_clock gauge
gpu_clock{gpu_id="0",clock_type="system",clock_index="0",hostname="node-b"} 2100
"""

_DMON: Final = """\
$ dcgmi dmon -e 155,156,203,1001,1004
#Entity   POWER             TOTEC                   GPUTL             GRACT        TENSO
ID                  W                 mJ
GPU 0     301.500           1234567                 97                0.970        0.512
GPU-I 0   N/A               N/A                     N/A               0.990        0.600
GPU 0     303.250           1237000                 98                0.971        0.514
GPU-I 0   N/A               N/A                     N/A               0.991        0.601

#Entity   POWER             TOTEC                   GPUTL             GRACT        TENSO
ID                  W                 mJ
GPU 0     N/A               9223372036854775794     98                0.972        0.515
GPU-I 0   N/A               N/A                     N/A               0.992        0.602

dmon was stopped do to receiving a signal
"""

_OLD_DMON: Final = """\
# Entity  GRACT  TENSO  DRAMA
      Id
    GPU 0  0.000  0.000  0.000
    GPU 1  0.451  0.402  0.250
    GPU 0  0.963  0.911  0.251
    GPU 1  0.964  0.912  0.252
"""


def decoders() -> tuple[KnownDecoder, ...]:
    """The three readers with good inputs."""
    (text,), (reply,), (dmon,) = exposition.FORMATS, prometheus_reply.FORMATS, dcgm_dmon.FORMATS
    return (
        KnownDecoder(
            name=text.name,
            decode=read_format(text),
            seeds=_texts(),
            recordings=("data/dcgm/*.prom", "data/amd/*.prom", "cases/h08*/*.prom", "cases/h09*/*.prom"),
        ),
        KnownDecoder(name=reply.name, decode=read_format(reply), seeds=_replies()),
        KnownDecoder(
            name=dmon.name,
            decode=read_format(dmon),
            seeds=(_DMON.encode(), _OLD_DMON.replace("\n", "\r\n").encode()),
            recordings=("data/dcgm/*dmon*.txt",),
        ),
    )


def _texts() -> tuple[bytes, ...]:
    scrapes = "".join(_SCRAPES.format(gpu=_GPU.format(gpu)) for gpu in (0, 1, 0, 1))
    dump = _DUMP.format(gpu=_GPU.format(0), ms=_START_S)
    slices = _SLICES.format(one=_SLICE.format(0, 7), two=_SLICE.format(0, 8))
    texts = (scrapes, dump, slices, _OPEN_METRICS, _AMD)
    return (*(text.encode() for text in texts), b"\xff\xfe" + slices.encode("utf-16-le"))


def _replies() -> tuple[bytes, ...]:
    labels = {"UUID": "GPU-1", "gpu": "0", "Hostname": "node-a", "instance": "10.0.0.1:9400", "job": "gpu"}
    matrix = [
        {
            "metric": {"__name__": "DCGM_FI_DEV_POWER_USAGE", **labels},
            "values": [[_START_S, "301.5"], [_START_S + 15.123, "NaN"], [_START_S + 30, "140737488355328"]],
        },
        {
            "metric": {"__name__": "DCGM_FI_PROF_SM_ACTIVE", **labels, "GPU_I_ID": "7"},
            "values": [[_START_S, "0.5"], [_START_S + 15, "+Inf"]],
        },
        {"metric": {"__name__": "up", **labels}, "values": [[_START_S, "1"]]},
    ]
    vector = [
        {"metric": {"__name__": "gpu_package_power", "gpu_id": "0"}, "value": [_START_S + 0.5, "700"]},
        {"metric": {"gpu_id": "0"}, "value": [_START_S, "1"]},
    ]
    replies = (
        {"status": "success", "data": {"resultType": "matrix", "result": matrix}, "warnings": ["partial"]},
        {"status": "success", "data": {"resultType": "vector", "result": vector}, "infos": ["counter"]},
    )
    compact = json.dumps(replies[0], separators=(",", ":")).encode()
    return (compact, json.dumps(replies[1], indent=2).encode())
