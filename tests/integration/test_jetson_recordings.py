"""Logs of Jetsons as people published them.

Counts and sums are those of `grep -o`, `wc -l` and `awk` over the files.
"""

from pathlib import Path

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, RunWindow, Scope, Series, Timing, Trace
from flopwitness.measure.sources import jetson_series, jtop_csv, tegrastats
from flopwitness.testing.known_decoder import read_format

pytestmark = pytest.mark.shared_data

(STATS,), (TABLE,), (SERIES,) = tegrastats.FORMATS, jtop_csv.FORMATS, jetson_series.FORMATS
LOGS = "data/tegrastats"
RUN = "data/jetson_orin_nano/timeseries_25w.json"


def _log(shared_data: Path, name: str) -> Trace:
    return read_format(STATS)((shared_data / LOGS / name).read_bytes())


def _one(trace: Trace, channel: Channel, part: str = "") -> Series:
    (series,) = (item for item in trace.series if item.channel is channel and item.part == part)
    return series


@pytest.mark.parametrize(
    ("name", "samples", "skipped", "series"),
    [
        ("agx_orin_jp6_root_bert.log", 15, 0, 12),
        ("nano_jp4_root_trtexec.log", 114, 0, 11),
        ("tx2_jp3_user.log", 2_660, 0, 14),
        ("tx2_root_idle_with_shell_prompts.log", 2, 2, 14),
    ],
)
def test_every_sample_of_every_log_is_read(
    name: str, samples: int, skipped: int, series: int, shared_data: Path
) -> None:
    trace = _log(shared_data, name)
    assert [len(item) for item in trace.series] == [samples] * series
    assert trace.n_skipped == skipped


@pytest.mark.parametrize(
    ("name", "channel", "part", "read", "total"),
    [
        ("agx_orin_jp6_root_bert.log", Channel.POWER_W, "VDD_GPU_SOC", 15, 40.373),
        ("agx_orin_jp6_root_bert.log", Channel.POWER_W, "VDD_CPU_CV", 15, 9.985),
        ("agx_orin_jp6_root_bert.log", Channel.POWER_W, "VIN_SYS_5V0", 15, 45.909),
        ("agx_orin_jp6_root_bert.log", Channel.UTILISATION_PCT, "", 15, 385),
        ("agx_orin_jp6_root_bert.log", Channel.MEMORY_UTILISATION_PCT, "", 15, 127),
        ("agx_orin_jp6_root_bert.log", Channel.TEMPERATURE_C, "", 15, 599.806),
        ("agx_orin_jp6_root_bert.log", Channel.MEMORY_USED_BYTE, "", 15, 269_333 * 2**20),
        ("agx_orin_jp6_root_bert.log", Channel.CPU_CORES_ON, "", 15, 15 * 8),
        ("nano_jp4_root_trtexec.log", Channel.POWER_W, "", 114, 505.788),
        ("nano_jp4_root_trtexec.log", Channel.POWER_W, "POM_5V_GPU", 114, 254.294),
        ("nano_jp4_root_trtexec.log", Channel.UTILISATION_PCT, "", 114, 8_649),
        ("nano_jp4_root_trtexec.log", Channel.MEMORY_UTILISATION_PCT, "", 114, 1_972),
        ("nano_jp4_root_trtexec.log", Channel.TEMPERATURE_C, "", 114, 3_142),
        ("tx2_jp3_user.log", Channel.POWER_W, "", 2_660, 9_724.426),
        ("tx2_jp3_user.log", Channel.POWER_W, "VDD_GPU", 2_660, 986.678),
        ("tx2_jp3_user.log", Channel.UTILISATION_PCT, "", 2_240, 37_510),
        ("tx2_jp3_user.log", Channel.MEMORY_UTILISATION_PCT, "", 2_240, 15_680),
        ("tx2_jp3_user.log", Channel.CPU_UTILISATION_PCT, "", 2_660, 186_242 / 6),
        ("tx2_jp3_user.log", Channel.MEMORY_USED_BYTE, "", 2_660, 7_003_737 * 2**20),
        ("tx2_root_idle_with_shell_prompts.log", Channel.POWER_W, "", 2, 7.011),
        ("tx2_root_idle_with_shell_prompts.log", Channel.UTILISATION_PCT, "", 0, 0),
    ],
)
def test_readings_and_their_sums_are_those_in_the_files(
    name: str, channel: Channel, part: str, read: int, total: float, shared_data: Path
) -> None:
    value = _one(_log(shared_data, name), channel, part).value
    assert np.isfinite(value).sum() == read
    assert np.nansum(value) == pytest.approx(total, rel=1e-12)


def test_the_scopes_are_those_of_the_boards(shared_data: Path) -> None:
    scopes = {
        name: {item.part: item.scope for item in trace.series if item.channel is Channel.POWER_W}
        for name in ("agx_orin_jp6_root_bert.log", "nano_jp4_root_trtexec.log")
        for trace in (_log(shared_data, name),)
    }
    rails = {"VDD_GPU_SOC": Scope.RAIL, "VDD_CPU_CV": Scope.RAIL, "VIN_SYS_5V0": Scope.RAIL}
    assert scopes["agx_orin_jp6_root_bert.log"] == rails
    assert scopes["nano_jp4_root_trtexec.log"] == {
        "": Scope.MODULE,
        "POM_5V_GPU": Scope.RAIL,
        "POM_5V_CPU": Scope.RAIL,
    }


def test_dates_are_read_where_there_are_dates(shared_data: Path) -> None:
    power = _one(_log(shared_data, "agx_orin_jp6_root_bert.log"), Channel.POWER_W, "VDD_GPU_SOC")
    assert power.timing is Timing.DATED
    assert str(power.utc_ns.astype("datetime64[ns]")[0]) == "2025-07-21T16:33:42.000000000"
    assert power.utc_ns[-1] - power.utc_ns[0] == 15 * 10**9
    counted = _one(_log(shared_data, "tx2_jp3_user.log"), Channel.POWER_W)
    assert counted.timing is Timing.COUNTED
    assert counted.utc_ns.tolist() == [n * 10**9 for n in range(2_660)]


def test_unread_memory_load_is_told_where_there_is_some(shared_data: Path) -> None:
    unread = {
        name: [
            finding.count
            for finding in _log(shared_data, name).findings
            if finding.code == "memory-traffic-unread"
        ]
        for name in ("tx2_jp3_user.log", "nano_jp4_root_trtexec.log", "agx_orin_jp6_root_bert.log")
    }
    assert unread == {
        "tx2_jp3_user.log": [2_660 - 2_240],
        "nano_jp4_root_trtexec.log": [],
        "agx_orin_jp6_root_bert.log": [],
    }


LINES = {
    "real-01": {(Scope.MODULE, ""): 3.624, (Scope.RAIL, "VDD_GPU"): 0.371, (Scope.RAIL, "VDD_DDR"): 0.881},
    "real-02": {
        (Scope.MODULE, ""): 1.84,
        (Scope.RAIL, "VDD_SYS_GPU"): 0.153,
        (Scope.RAIL, "VDD_SYS_DDR"): 0.269,
    },
    "real-03": {(Scope.MODULE, ""): 0.92, (Scope.RAIL, "POM_5V_GPU"): 0, (Scope.RAIL, "POM_5V_CPU"): 0.119},
    "real-04": {(Scope.MODULE, ""): 3.566, (Scope.RAIL, "VDD_4V0_WIFI"): 0.038},
    "thor-load": {
        (Scope.NODE_DC, ""): 124.486,
        (Scope.RAIL, "VDD_GPU"): 37.939,
        (Scope.RAIL, "VDD_CPU_SOC_MSS"): 30.059,
        (Scope.RAIL, "VIN_SYS_5V0"): 15.486,
    },
    "xavier-jp5": {
        (Scope.RAIL, "GPU"): 0.467,
        (Scope.RAIL, "CPU"): 0.467,
        (Scope.RAIL, "SOC"): 1.245,
        (Scope.RAIL, "CV"): 0,
        (Scope.RAIL, "VDDRQ"): 0.311,
        (Scope.RAIL, "SYS5V"): 2.768,
    },
    "tx1-old": {},
}
LOADS = {
    "real-01": None,
    "real-02": 0,
    "real-03": 0,
    "real-04": np.nan,
    "thor-load": 87,
    "xavier-jp5": 0,
    "tx1-old": 39,
}


def test_one_line_of_every_generation_is_read(shared_data: Path) -> None:
    table = (shared_data / LOGS / "line_formats.tsv").read_bytes().splitlines()
    lines = {line.split(b"\t")[0].decode(): line.split(b"\t")[2] for line in table[1:]}
    assert set(lines) == set(LINES) == set(LOADS)
    for name, line in lines.items():
        assert STATS.is_it(line, "")
        trace = read_format(STATS)(line)
        assert trace.n_skipped == 0
        powers = {
            (item.scope, item.part): item.value.tolist()[0]
            for item in trace.series
            if item.channel is Channel.POWER_W
        }
        assert powers.items() >= LINES[name].items()
        loads = [item.value.tolist() for item in trace.series if item.channel is Channel.UTILISATION_PCT]
        np.testing.assert_array_equal(loads, [] if LOADS[name] is None else [[LOADS[name]]])


def test_the_series_of_the_orin_nano_is_read_whole(shared_data: Path) -> None:
    trace = read_format(SERIES)((shared_data / RUN).read_bytes())
    found = {item.channel: (item.scope, item.part, len(item), item.timing) for item in trace.series}
    assert found == {
        Channel.POWER_W: (Scope.RAIL, "VDD_CPU_GPU_CV", 1_296, Timing.RELATIVE),
        Channel.UTILISATION_PCT: (Scope.GPU, "", 1_284, Timing.RELATIVE),
        Channel.MEMORY_TRAFFIC_BYTE_PER_S: (Scope.MODULE, "", 1_294, Timing.RELATIVE),
    }
    assert _one(trace, Channel.POWER_W, "VDD_CPU_GPU_CV").value.sum() == pytest.approx(9_051.090944)
    assert trace.windows == (RunWindow(start_utc_ns=65_473_834_904, stop_utc_ns=590_419_570_346),)
    assert [mark.name for mark in trace.marks] == ["t_launch", "t_start", "t_end"]
    assert trace.n_skipped == 0


def test_each_file_is_of_one_format(shared_data: Path) -> None:
    paths = [*sorted((shared_data / LOGS).glob("*.log")), shared_data / RUN]
    known = {
        path.name: [one.name for one in (STATS, TABLE, SERIES) if one.is_it(path.read_bytes(), path.name)]
        for path in paths
    }
    assert known == {
        path.name: ["tegrastats" if path.suffix == ".log" else "jetson-series"] for path in paths
    }


def test_no_other_recording_is_taken_for_one_of_a_jetson(shared_data: Path) -> None:
    others = [
        path
        for path in sorted((shared_data / "data").rglob("*"))
        if path.is_file() and path.parent.name != "tegrastats" and path.name != "timeseries_25w.json"
    ]
    assert len(others) > 80
    for path in others:
        with path.open("rb") as file:
            head = file.read(4 << 20)
        assert not any(one.is_it(head, path.name) for one in (STATS, TABLE, SERIES)), path
