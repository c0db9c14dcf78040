"""The readers of Jetson logs: tegrastats of every JetPack, the table of jtop, and a run's time series."""

import json
from typing import Final

from flopwitness.measure.sources import jetson_series, jtop_csv, tegrastats
from flopwitness.testing.known_decoder import KnownDecoder, read_format

__all__ = ["decoders"]

_TX1: Final = (
    "RAM {0}/3983MB (lfb 61x4MB) SWAP 12/8192MB (cached 3MB) cpu [1{1}%,7%,3{1}%,0%]@1326 "
    "EMC {1}%@1331 APE 25 GR3D 5{1}%@614\n"
)
_TX2: Final = (
    "RAM {0}/7859MB (lfb 26x4MB) SWAP 0/3929MB (cached 0MB) CPU [4{1}%@1881,off,off,3%@345,2{1}%@345,1%@345] "
    "EMC_FREQ 0% GR3D_FREQ 9{1}% PLL@3{1}.5C MCPU@33C GPU@3{1}C BCPU@33C thermal@32.8C "
    "VDD_SYS_GPU 415{1}/3900 VDD_SYS_SOC 38{1}/380 VDD_4V0_WIFI 0/0 VDD_IN 884{1}/8100 "
    "VDD_SYS_CPU 30{1}/300\n"
)
_NANO: Final = (
    "RAM {0}/3964MB (lfb 12x2MB) SWAP 0/4096MB (cached 0MB) IRAM 0/252kB(lfb 252kB) "
    "CPU [2{1}%@1036,3%@1036,off,0%@1036] EMC_FREQ 1{1}%@1600 GR3D_FREQ 8{1}%@844 APE 25 PLL@24C CPU@27.5C "
    "GPU@2{1}.5C AO@29C thermal@28C POM_5V_IN 452{1}/4400 POM_5V_GPU 181{1}/1800 POM_5V_CPU 71{1}/700\n"
)
_XAVIER: Final = (
    "RAM {0}/31918MB (lfb 21x4MB) SWAP 0/15959MB (cached 0MB) CPU [1{1}%@1190,2%@1190,off,off] "
    "EMC_FREQ {1}%@2133 GR3D_FREQ @0 VIC_FREQ 115 APE 150 AUX@36C GPU@-256C Tboard@37C "
    "GPU 61{1}mW/600mW CPU 51{1}mW/500mW SOC 124{1}mW/1200mW CV 0mW/0mW VDDRQ 31{1}mW/300mW NC 0mW/0mW "
    "SYS5V 276{1}mW/2700mW\n"
)
_ORIN: Final = (
    "05-14-2025 09:00:0{1} RAM {0}/62841MB (lfb 9x4MB) SWAP 0/31420MB (cached 0MB) "
    "CPU [7{1}%@1728,31%@1036,off,off] EMC_FREQ 1{1}%@2133 GR3D_FREQ 9{1}%@[1109,1107] NVENC off VIC off "
    "OFA off PVA0_FREQ off APE 174 cpu@43.{1}06C soc2@40C gpu@51.{1}93C tj@51.5C "
    "VDD_GPU_SOC 279{1}mW/2700mW VDD_CPU_CV 79{1}mW/700mW VIN_SYS_5V0 331{1}mW/3300mW\n"
)
_THOR: Final = (
    "08-08-2026 21:00:3{1} RAM {0}/125749MB (lfb 31x4MB) CPU [9{1}%@2601,75%@2601,off] EMC_FREQ 3{1}%@4266 "
    "GR3D_FREQ @[1574,1572,157{1}] NVENC0_FREQ @1691 VIC off cpu@58.25C/61.75C gpu@56.9{1}7C/66.625C "
    "VDD_GPU 3790{1}mW/8660mW/38000mW VDD_CPU_SOC_MSS 3000{1}mW/12281mW/30100mW "
    "VIN_SYS_5V0 1540{1}mW/7424mW/15500mW VIN 12440{1}mW/36487mW/124500mW FUTURE_TOKEN value\n"
)
_SHELL: Final = "user@board:~$ tegrastats\n[sudo] password for user: \n\nWed May 14 09:00:00 UTC 2025\n"
_JTOP_4: Final = (
    "time,uptime,CPU1,CPU2,CPU3,RAM,SWAP,EMC,GPU,APE,NVDEC,Fan pwmfan0,Temp CPU,Temp GPU,"
    "Power VDD_CPU_GPU_CV,Power VDD_SOC,Power TOT,jetson_clocks,nvp model\r\n"
    '2025-05-14 09:00:00.250000,"3 days, 6:10:46.370000",41,OFF,7,0.41,0.0,12,97,174,OFF,30.5,48.5,51.0,'
    "8216,2716,14632,OFF,25W\r\n"
    "2025-05-14 09:00:01,0:10:47.370000,12,OFF,9,0.42,0.0,14,98,174,OFF,30.5,48.5,-256,"
    "8604,2790,15104,OFF,25W\r\n"
)
_JTOP_SUM: Final = (
    "time,uptime,CPU1,GPU,EMC,Temp GPU,Power CPU,Power GPU,Power SYS5V,Power TOT\n"
    "2025-05-14 09:00:00.5,0:10:46,41,97,3,44.5,1520,9001,3020,13541\n"
    "2025-05-14 09:00:01.5,0:10:47,42,98,4,44.5,1530,9101,3030,13661\n"
)
_JTOP_3: Final = (
    "time,uptime,jetson_clocks,nvp model,CPU1,CPU2,GPU,RAM,EMC,SWAP,APE,fan,Temp GPU,power cur,power avg\n"
    '2022-05-30 16:37:20.547814,"33 days, 6:10:46.370000",OFF,MAXN,41,54,99,3656268,3656268,1982,25,31.3,'
    "39.5,4664,2852\n"
)


def decoders() -> tuple[KnownDecoder, ...]:
    """The readers of this family."""
    (stats,), (table,), (series,) = tegrastats.FORMATS, jtop_csv.FORMATS, jetson_series.FORMATS
    return (
        KnownDecoder(
            name=stats.name,
            decode=read_format(stats),
            seeds=_logs(),
            recordings=("data/tegrastats/*.log", "data/tegrastats/*.tsv", "cases/h0[123]_*/tegrastats.log"),
        ),
        KnownDecoder(
            name=table.name,
            decode=read_format(table),
            seeds=tuple(text.encode() for text in (_JTOP_4, _JTOP_SUM, _JTOP_3)),
        ),
        KnownDecoder(
            name=series.name,
            decode=read_format(series),
            seeds=(_series(),),
        ),
    )


def _logs() -> tuple[bytes, ...]:
    """One log of each generation, one with a shell in between, one of several generations, one in UTF-16."""
    kinds = (_TX1, _TX2, _NANO, _XAVIER, _ORIN, _THOR)
    logs = ["".join(kind.format(900 + n, n) for n in range(5)) for kind in kinds]
    with_shell = _SHELL + _SHELL.join(_TX2.format(900 + n, n) for n in range(4))
    mixed = "".join(kind.format(900 + n, n) for n in range(3) for kind in kinds)
    return (*(log.encode() for log in (*logs, with_shell, mixed)), b"\xff\xfe" + logs[4].encode("utf-16-le"))


def _series() -> bytes:
    record = {
        "power_mw": [[0.0, 990.5], [0.502, 8120.0], [1.004, None], [1.506, 8230.25]],
        "gpu_pct": [[0.502, 0.0], [1.004, 97.5]],
        "dram_bytes_s": [[0.14, 90680.5], [0.643, 4.2e8]],
        "t_launch": 0.25,
        "t_start": 0.5,
        "t_end": 1.25,
        "board": {"name": "example"},
    }
    return json.dumps(record).encode()
