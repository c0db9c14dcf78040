"""Readers of machines' own meters and of meters at the wall, each with good inputs of our own making."""

import json
from typing import Final

from flopwitness.measure.sources import (
    ipmi,
    loadgen_log,
    pdu_csv,
    perf_stat,
    powercap,
    ptd_log,
    redfish,
    spl_log,
    turbostat,
)
from flopwitness.measure.sources.format import Format
from flopwitness.testing.known_decoder import KnownDecoder, read_format

__all__ = ["decoders"]

_SPL: Final = "".join(
    f"Time,05-14-2025 09:00:{second:02}.250,Watts,{410 + second}.500000,Volts,230.100000,Amps,1.800000,"
    "PF,0.990000,Mark,2025-05-14_08-40-00_testing\r\n"
    for second in range(8)
).encode()
_SPL_CHANNELS: Final = "".join(
    f"Time,05-14-2025 09:00:{second:02}.250,Watts,-1.000000,Volts,-1.000000,Amps,-1.000000,PF,-1.000000,"
    f"Mark,a,Ch1,Watts,{200 + second}.0,Volts,230.1,Amps,0.9,PF,0.9,"
    f"Ch2,Watts,{210 + second}.0,Volts,230.1,Amps,0.9,PF,0.9\n"
    for second in range(4)
).encode()
_PTD: Final = b"""                               SPEC PTDaemon Tool
05-14-2025 08:59:58.000: Attempting to connect to measurement device type 8...
05-14-2025 08:59:58.500: Response to client sent: Hello, PTDaemon here!
05-14-2025 08:59:59.100: Response to client sent: Watts,410.5,230.1
05-14-2025 09:00:00.100: Go with mark '2025-05-14_08-40-00_testing'
05-14-2025 09:00:00.100: Response to client sent: Starting untimed measurement, maximum 500000 samples
Time,05-14-2025 09:00:01.250,Watts,411.500000,Volts,230.1,Amps,1.8,PF,0.99,Mark,2025-05-14_08-40-00_testing
05-14-2025 09:00:02.270: WARNING: Uncertainty unknown for the last measurement sample! channel 1
05-14-2025 09:00:09.500: Completed test
05-14-2025 09:00:09.500: Avg watts 413.250000, min watts 410.5, max watts 417.5, samples 8, errors 1, valid 7
"""
_DCMI: Final = b"""
    Instantaneous power reading:                   412 Watts
    Minimum during sampling period:                 96 Watts
    Maximum during sampling period:                830 Watts
    Average power reading over sample period:      408 Watts
    IPMI timestamp:                           Wed May 14 09:00:00 2025
    Sampling period:                          00000005 Seconds.
    Power reading state is:                   activated


    Instantaneous power reading:                   415 Watts
    Average power reading over sample period:      409 Watts
    IPMI timestamp:                           05/14/2025 09:00:05 AM CEST    Sampling period:     5_sec
    Power reading state is:                   deactivated
"""
_FREEIPMI: Final = b"""Wed May 14 09:00:00 UTC 2025
Current Power                        : 412 Watts
Minimum Power over sampling duration : 96 watts
Maximum Power over sampling duration : 830 watts
Average Power over sampling duration : 408 watts
Time Stamp                           : 05/14/2025 - 09:00:00
Statistics reporting time period     : 86400000 milliseconds
Power Measurement                    : Active
"""
_IPMIUTIL: Final = b"""ipmiutil dcmi ver 3.17
-- BMC version 1.10, IPMI version 2.0
DCMI Version:                   1.5
  Current Power:                   412 Watts
  Min Power over sample duration:  96 Watts
  Avg Power over sample duration:  408 Watts
  Timestamp:                       Wed May 14 09:00:00 2025

  Sampling period:                 1000 ms
  Power reading state is:          active
  Exception Action:  OEM defined
"""
_PDU_WIDE: Final = b"""Time;Outlet 1 Active Power (W);Outlet 2 Active Power (W);Inlet I1 Active Energy (kWh)
2025-05-14 09:00:00;410,5;0;1200,25
2025-05-14 09:01:00;412,5;-;1200,75
"""
_PDU_LONG: Final = b"""Timestamp,PDU,Outlet,Active Power (W),Apparent Power (VA),Average Power (W)
2025-05-14T09:00:00Z,rack-7,3,410,430,408
2025-05-14T09:00:00Z,rack-7,"4",395,410,393
"""
_PDU_UNIT: Final = (
    b"Name\tRack PDU\nDate\tTime\tPwr.kW\tPwr Max.kW\tEnergy.kWh\tPh I.A\n"
    b"05/14/2025\t09:00:00\t3.20\t3.40\t100.1\t14.1\n05/14/2025\t09:10:00\t3.25\t3.40\t100.6\t14.2\n"
)
_PERF: Final = b"""# started on Wed May 14 09:00:00 2025

 Performance counter stats for 'system wide' (3 runs):

  S0        1              2,412.74 Joules power/energy-pkg/           ( +-  1.24% )
  S0        1      <not counted> Joules power/energy-ram/
  S1        1              1.810,50 Joules power/energy-pkg/           ( +-  0.24% )
             12,345      cycles

      20.001965465 +- 0.000736 seconds time elapsed ( +-  0.00% )
"""
_PERF_INTERVALS: Final = b"""#           time             counts unit events
     1.001078602               9.93 Joules power/energy-pkg/
     1.001078602               0,52 Joules power/energy-cores/
     2.002387877      <not counted> Joules power/energy-pkg/
     3.003655992              10.02 Joules power/energy-pkg/
"""
_PERF_CSV: Final = b"""     1.001048308,S0,1,19.63,Joules,power/energy-pkg/,1002406532,100.00,,
     1.001048308,S1,1,18.20,Joules,power/energy-psys/,1002406532,100.00,,
     2.002369058,S0,1,19.41,Joules,power/energy-pkg/,1002617705,100.00,,
"""
_PERF_CSV_SUMMARIES: Final = (
    b"893.33;Joules;power/energy-pkg/;20005559241;100.00;;\n<not counted>;Joules;power/energy-ram/;0;;;\n"
)
_ZONES: Final = b"""zone,name,energy_uj_start,energy_uj_end,max_energy_range_uj
intel-rapl:0,package-0,120000000,132000000,262143328850
intel-rapl:0:2,dram,14000000,15800000,262143328850
intel-rapl:1,psys,200000000,221000000,262143328850
"""
_ZONE_ROWS: Final = b"time_s,name,energy_uj\n0.0,package-0,1000000\n0.5,package-0,9000000\n0.5,core,N/A\n"
_ZONE_COLUMNS: Final = (
    b"timestamp;package-0_energy_uj;package-0/dram_energy_uj;intel-rapl:1 energy_uj\n"
    b"1747213200.25;1000000;2000000;3\n1747213201.25;9000000;2500000;4\n"
)
_ZONE_FILES: Final = b"""/sys/class/powercap/intel-rapl:0/energy_uj:100000000
/sys/class/powercap/intel-rapl:0/max_energy_range_uj:262143328850
/sys/class/powercap/intel-rapl:0/name:package-0
/sys/class/powercap/intel-rapl:0/energy_uj:200000000
"""
_POWERCAP_INFO: Final = b"""intel-rapl
  enabled: 1
  Zone 0
    name: package-0
    max_energy_range_uj: 262143328850
    energy_uj: 65997277274
    Constraint 0
      name: long_term
      power_limit_uw: 65000000
    Zone 0:0
      name: core
      energy_uj: 48265700414
"""
_TURBOSTAT: Final = b"""turbostat version 2024.05.10
Time_Of_Day_Seconds\tCore\tCPU\tBusy%\tPkgWatt\tCorWatt\tRAMWatt
1747213200.25\t-\t-\t1.02\t30.55\t20.41\t3.02
1747213200.25\t0\t0\t1.02\t30.55\t20.41\t3.02
1747213200.25\t1\t1\t1.05
Time_Of_Day_Seconds\tCore\tCPU\tBusy%\tPkgWatt\tCorWatt\tRAMWatt
1747213205.25\t-\t-\t1.02\t31.55\t20.41\t3.02
"""
_TURBOSTAT_ENERGY: Final = b"Pkg_J RAM_J Sys_J\n12.5 1.5 30\n13.5 - 31\n5.004 sec\n14.5 1.5 32\n"


def decoders() -> tuple[KnownDecoder, ...]:
    """Every reader of a meter."""
    return (
        _known(spl_log.FORMATS[0], (_SPL, _SPL_CHANNELS), "data/inference/*/run_1/spl.txt"),
        _known(ptd_log.FORMATS[0], (_PTD,), "data/inference/*/power/ptd_logs.txt"),
        _known(loadgen_log.FORMATS[0], (_loadgen(),), "data/inference/*/run_1/mlperf_log_detail.txt"),
        _known(ipmi.FORMATS[0], (_DCMI, _FREEIPMI, _IPMIUTIL)),
        _known(redfish.FORMATS[0], (_power(), _environment(), _report())),
        _known(pdu_csv.FORMATS[0], (_PDU_WIDE, _PDU_LONG, _PDU_UNIT)),
        _known(
            perf_stat.FORMATS[0],
            (_PERF, _PERF_INTERVALS, _PERF_CSV, _PERF_CSV_SUMMARIES),
            "data/rapl_perf/perf_stat_samples.txt",
        ),
        _known(
            powercap.FORMATS[0],
            (_ZONES, _ZONE_ROWS, _ZONE_COLUMNS, _ZONE_FILES, _POWERCAP_INFO),
            "cases/h12_rapl_zone_tree/rapl.csv",
        ),
        _known(turbostat.FORMATS[0], (_TURBOSTAT, _TURBOSTAT_ENERGY)),
    )


def _known(format: Format, seeds: tuple[bytes, ...], *recordings: str) -> KnownDecoder:  # noqa: A002 (its name)
    return KnownDecoder(name=format.name, decode=read_format(format), seeds=seeds, recordings=recordings)


def _loadgen() -> bytes:
    events: tuple[tuple[str, object], ...] = (
        ("loadgen_version", "4.0 @ 0123456789"),
        ("sut_name", "EXAMPLE"),
        ("power_begin", "05-14-2025 09:00:01.000"),
        ("power_end", "05-14-2025 09:00:07.500"),
        ("result_validity", "VALID"),
    )
    lines = [
        ":::MLLOG " + json.dumps({"key": key, "value": value, "time_ms": 0.25 * number})
        for number, (key, value) in enumerate(events)
    ]
    return "\n".join(lines).encode()


def _power() -> bytes:
    """An old document as it stands, twice."""
    control = {
        "MemberId": "0",
        "PowerConsumedWatts": 412,
        "PowerMetrics": {"IntervalInMin": 5, "AverageConsumedWatts": 408},
        "PowerLimit": {"LimitInWatts": 900},
    }
    document = {"@odata.id": "/redfish/v1/Chassis/1U/Power", "PowerControl": [control]}
    return json.dumps(document, indent=1).encode() * 2


def _environment() -> bytes:
    """New documents, one a line, in wrappers that add a time and a host."""
    lines = []
    for second in range(2):
        document = {
            "@odata.id": "/redfish/v1/Chassis/1U/EnvironmentMetrics",
            "PowerWatts": {"Reading": 412.5 + second},
            "EnergykWh": {"Reading": 100.25},
        }
        sensor = {"Id": "TotalPower", "Reading": None, "ReadingUnits": "W", "PhysicalContext": "Chassis"}
        record = {"timestamp": 1_747_213_200 + second, "host": "node-1", "data": [document, sensor]}
        lines.append(json.dumps(record))
    return "\n".join(lines).encode()


def _report() -> bytes:
    properties = (
        "/redfish/v1/Chassis/1U/Power#/PowerControl/0/PowerConsumedWatts",
        "/redfish/v1/Chassis/HGX_GPU_SXM_1/Sensors/HGX_GPU_SXM_1_Power_0",
        "/redfish/v1/Chassis/HGX_GPU_SXM_1/Sensors/HGX_GPU_SXM_1_TEMP_0",
    )
    values = [
        {
            "MetricId": "m",
            "MetricValue": "412.5",
            "Timestamp": "2025-05-14T09:00:00+02:00",
            "MetricProperty": p,
        }
        for p in properties
    ]
    return json.dumps({"@odata.type": "#MetricReport.v1_3_0.MetricReport", "MetricValues": values}).encode()
