"""Decoders of trackers, AMD's tools and plain tables, each with good inputs of our own making."""

import json
from typing import Final

import numpy as np

from flopwitness.measure.samples import Trace
from flopwitness.measure.sources import amd_smi, codecarbon_csv, plain_table, rocm_smi, zeus_csv
from flopwitness.measure.sources.parquet_table import decode_unpacked_table
from flopwitness.measure.sources.source import Source
from flopwitness.testing.known_decoder import KnownDecoder, read_format

__all__ = ["decoders"]

_ZEUS_POWER: Final = b"""\
Time,Power
2024-02-03 04:05:06.123456789,41250
2024-02-03 04:05:06.223456789,41300
2024-02-03 04:05:06.323456789,250000
"""
_ZEUS_WINDOWS: Final = b"""\
start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy
1700000000.25,step,1.5,300.5,310.25
1700000001.75,step, and more,1.5,301.0,309.0
1700000000.0,epoch,4.0,700.0,720.0
"""
_ZEUS_HOST: Final = (
    b"start_time,window_name,elapsed_time,gpu0_energy,cpu0_energy,dram0_energy\n1.7e9,w,2,3,4,5\n"
)
_CODECARBON: Final = b"""\
timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,gpu_power,ram_power,\
cpu_energy,gpu_energy,ram_energy,energy_consumed,country_name,country_iso_code,os,codecarbon_version,cpu_count,\
cpu_model,gpu_count,gpu_model,ram_total_size,tracking_mode,on_cloud,pue
2024-05-06T07:08:09,demo,run-a,e1,60.5,0.001,1e-5,42.5,250.0,6.0,0.0007,0.0042,0.0001,0.005,Nowhere,NOW,Linux,2.7.1,\
8,"CPU, fast",2,2 x Example A100,64.0,machine,N,1.0
2024-05-06T07:09:09,demo,run-a,e1,120.5,0.002,1e-5,42.5,251.0,6.0,0.0014,0.0084,0.0002,0.01,Nowhere,NOW,Linux,2.7.1,\
8,"CPU, fast",2,2 x Example A100,64.0,machine,N,1.0
2024-05-06T09:00:00,demo,run-b,e1,10.0,0.002,1e-5,42.5,251.0,6.0,0.0001,0.0007,,0.0008,Nowhere,NOW,Linux,2.7.1,\
8,"CPU, fast",2,2 x Example A100,64.0,machine,N,1.0
"""
_CODECARBON_RANKS: Final = b"""\
run_id,rank,hostname,tracking_mode,gpu_count,duration_s,gpu_energy_kwh
r,0,host-1,machine,2,3600,0.5
r,1,host-1,machine,2,3600,0.501
"""
_CODECARBON_OLD: Final = b"""\
timestamp,experiment_id,project_name,duration,emissions,energy_consumed,country_name,country_iso_code,on_cloud
2021-02-03T04:05:06Z,x,y,34,8,0.5,Nowhere,NOW,Y
"""
_ROCM_CSV: Final = b"""\
WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

device,Temperature (Sensor edge) (C),Current Socket Graphics Package Power (W),GPU use (%),\
VRAM Total Used Memory (B),Card Series
card0,51.0,120.5,97,1000000,Example Instinct
card1,41.0,N/A (Secondary die),3,2000000,Example Instinct

device,Energy counter,Accumulated Energy (uJ)
card0,1000,15300.0
card1,1001,15315.3
device,Average Graphics Package Power (W),sclk clock speed:,mclk clock speed:,Max Graphics Package Power (W)
card0,110.0,(1700Mhz),(1600Mhz),500.0
name, value
"Driver version", "6.2.4"
"""
_ROCM_JSON: Final = b"""\
{"card0": {"Card series": "Example", "GPU use (%)": "42", "Average Graphics Package Power (W)": "210.0"}, \
"system": {"Driver version": "6.1"}}
WARNING: one line of the tool
{"card0": {"GPU use (%)": 43, "Average Graphics Package Power (W)": 211.5, "Energy counter": "77"}}
"""
_ROCM_CONSOLE: Final = b"""\
============================ ROCm System Management Interface ============================
=================================== Power Consumption ====================================
GPU[0]\t\t: Average Graphics Package Power (W): 237.0
GPU[1]\t\t: Average Graphics Package Power (W): N/A (Secondary die)
==========================================================================================
================================== Concise Info ==========================================
Device  Node  IDs              Temp    Power     Partitions          SCLK    MCLK    PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Edge)  (Socket)  (Mem, Compute, ID)
==========================================================================================
0       1     0x74a1,   28851  43.0\xc2\xb0C  142.0W    NPS1, SPX, 0        133Mhz  900Mhz  750.0W  0%     7%
==========================================================================================
GPU  Temp   AvgPwr  SCLK    MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
0    31.0c  43.0W   800Mhz  1600Mhz  0%   auto  300.0W    0%   5%
================================== End of ROCm SMI Log ===================================
"""
_AMD_METRIC: Final = b"""\
'CTRL' + 'C' to stop watching output:
timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,mem_0_clk,edge,hotspot,mem
1700000000,0,97,40,"[0, 0, N/A]",512,2100,1300,N/A,71,60
1700000000,1,3,1,"[0, 0, N/A]",140,132,900,N/A,45,44

timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,mem_0_clk,edge,hotspot,mem
1700000001,0,98,41,"[0, 0, N/A]",520,2100,1300,N/A,72,60
1700000001,1,2,1,"[0, 0, N/A]",N/A,132,900,N/A,45,44
"""
_AMD_MONITOR: Final = b"""\
gpu,power_usage,hotspot_temperature,memory_temperature,gfx_clk,gfx,mem,vram_used,vram_total
0,300,70,60,2100,99,30,2048,196608
1,150,50,40,132,0,0,300,196608
gpu,power_usage,hotspot_temperature,memory_temperature,gfx_clk,gfx,mem,vram_used,vram_total
0,301,70,60,2100,98,31,2048,196608
"""
_AMD_ENERGY: Final = b"""\
timestamp,gpu,xcp,energy_accumulator,counter_resolution,gfx_util,power_usage
1700000000,0,0,1000000,15.3,80,400
1700000000,0,1,1000000,15.3,70,400
1700000005,0,0,131000000,15.3,80,400
"""
_PLAIN_GPU: Final = b"""\
# written by a laboratory's logger
time_s,gpu_index,gpu_power_w,gpu_util_pct,sm_clock_mhz,note
0.0,0,60.5,0,210,idle
0.0,1,61.5,0,210,idle
1.0,0,350.25,99,1410,"busy, very"
1.0,1,nan,98,1410,busy
2.0,0,351,99,1410,busy
"""
_PLAIN_WIDE: Final = b"""\
timestamp;gpu0_power_w;gpu1_power_w;node power (kW);total_power_w
2024-01-02T03:04:05.5+01:00;300;301;1.25;700
2024-01-02T03:04:06.5+01:00;302;303;1.26;701
"""
_PLAIN_COUNTER: Final = b"""\
epoch_ms\tgpu_uuid\tgpu_name\tdriver_version\thostname\ttotal_energy_consumption_mj\tenergy_kwh
1700000000000\tGPU-1\tExample\t550.1\tn1\t1000\t0.5
1700000001000\tGPU-1\tExample\t550.1\tn1\t601000\t0.6
"""


def decoders() -> tuple[KnownDecoder, ...]:
    """All decoders of the family."""
    return (
        KnownDecoder(
            name="zeus-csv",
            decode=read_format(zeus_csv.FORMATS[0]),
            seeds=(_ZEUS_POWER, _ZEUS_WINDOWS, _ZEUS_HOST),
        ),
        KnownDecoder(
            name="codecarbon-csv",
            decode=read_format(codecarbon_csv.FORMATS[0]),
            seeds=(_CODECARBON, _CODECARBON_RANKS, _CODECARBON_OLD),
            recordings=("cases/h14_per_rank_trackers/*.csv",),
        ),
        KnownDecoder(
            name="rocm-smi",
            decode=read_format(rocm_smi.FORMATS[0]),
            seeds=(_ROCM_CSV, _ROCM_JSON, _ROCM_CONSOLE),
            recordings=("data/amd/rocm_smi_csv_samples.txt", "cases/h13_amd_energy_ticks/*.csv"),
        ),
        KnownDecoder(
            name="amd-smi",
            decode=read_format(amd_smi.FORMATS[0]),
            seeds=(_AMD_METRIC, _AMD_MONITOR, _AMD_ENERGY, _amd_json(), _amd_pretty()),
        ),
        KnownDecoder(
            name="plain-table",
            decode=read_format(plain_table.FORMATS[0]),
            seeds=(_PLAIN_GPU, _PLAIN_WIDE, _PLAIN_COUNTER, _PLAIN_WIDE.decode().encode("utf-16")),
            recordings=(
                "data/gaissa_keras/rtx3070/*/cpu-mem-usage-*.csv",
                "cases/h11_energy_counter_reset/*.csv",
            ),
        ),
        KnownDecoder(name="parquet-table", decode=_decode_unpacked, seeds=(_unpacked(),)),
    )


def _decode_unpacked(data: bytes) -> Trace:
    """What the child sends back is decoded here; the child itself is a process, and slow to start."""
    return decode_unpacked_table(data, Source(blocks=(), where="log.parquet", device="log"))


def _amd_json() -> bytes:
    sweeps = [
        {
            "gpu": gpu,
            "timestamp": 1_700_000_000 + sweep,
            "power_usage": {"value": 300 + sweep, "unit": "W"},
            "gfx": {"value": 99, "unit": "%"},
            "mem_clock": {"value": 1300, "unit": "MHz"},
        }
        for sweep in range(3)
        for gpu in range(2)
    ]
    return "\n".join(json.dumps(sweeps[start : start + 2]) for start in range(0, 6, 2)).encode()


def _amd_pretty() -> bytes:
    record = {
        "gpu": 0,
        "usage": {"gfx_activity": {"value": 42, "unit": "%"}, "vcn_activity": ["N/A", {"value": 0}]},
        "power": {"socket_power": {"value": 20, "unit": "W"}, "throttle_status": "N/A"},
        "clock": {"gfx_0": {"clk": {"value": 1400, "unit": "MHz"}, "clk_locked": "N/A"}},
        "temperature": {
            "edge": "N/A",
            "hotspot": {"value": 70, "unit": "C"},
            "mem": {"value": 60, "unit": "C"},
        },
        "energy": {"total_energy_consumption": {"value": 1234.5, "unit": "J"}},
    }
    documents = [json.dumps({"gpu_data": [record]}, indent=4), json.dumps([record], indent=4)]
    return "\n".join(["'CTRL' + 'C' to stop watching output:", *documents]).encode()


def _unpacked() -> bytes:
    notes = {
        "names": ["timestamp_epoch", "power_draw_w", "gpu_utilization_pct", "gpu_uuid", "label"],
        "n_rows": 3,
        "columns": [
            {"kind": "number", "texts": []},
            {"kind": "number", "texts": []},
            {"kind": "whole", "texts": []},
            {"kind": "text", "texts": ["GPU-1", "GPU-2"]},
        ],
    }
    columns = (
        np.array([1.7e9, 1.7e9 + 1, 1.7e9 + 2]),
        np.array([55.5, np.nan, 300.0]),
        np.array([0, 50, 99], dtype="<i8"),
        np.array([0, 1, 0], dtype="<u4"),
    )
    return json.dumps(notes).encode() + b"\n" + b"".join(column.tobytes() for column in columns)
