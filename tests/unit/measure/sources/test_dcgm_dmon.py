"""Tables of `dcgmi dmon`: entities, fields by their short names, and sweeps without times."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources import dcgm_dmon
from flopwitness.measure.sources.dcgm_dmon import FORMATS
from flopwitness.measure.sources.source import ReadOptions
from flopwitness.testing.known_decoder import read_format

(DMON,) = FORMATS
HEADER = "#Entity   POWER             GPUTL             TENSO"
UNITS = "ID                  W"


def _decode(*lines: str, options: ReadOptions | None = None) -> Trace:
    return read_format(DMON, options=options)("\n".join(lines).encode())


def test_rows_are_readings_of_their_gpu_by_sweep() -> None:
    trace = _decode(
        HEADER,
        UNITS,
        "GPU 0     301.500           97                0.512",
        "GPU 1     302.500           98                0.513",
        "GPU 0     303.500           99                0.514",
        "GPU 1     304.500           96                0.515",
    )
    by_name = {(series.device, series.channel): series for series in trace.series}
    power = by_name["log/gpu1", Channel.POWER_W]
    assert power.value.tolist() == [302.5, 304.5]
    assert power.utc_ns.tolist() == [0, 10**9]
    assert (power.timing, power.scope, power.averaged_s) == (Timing.COUNTED, Scope.GPU, 1.0)
    assert by_name["log/gpu0", Channel.UTILISATION_PCT].value.tolist() == [97.0, 99.0]
    assert by_name["log/gpu0", Channel.TENSOR_ACTIVE_PCT].value.tolist() == pytest.approx([51.2, 51.4])
    assert [finding.code for finding in trace.findings] == ["period-assumed"]
    assert trace.n_skipped == 0


def test_the_period_is_the_users() -> None:
    trace = _decode(HEADER, "GPU 0 1 2 0.3", "GPU 0 1 2 0.3", options=ReadOptions(period_s=0.1))
    assert trace.series[0].utc_ns.tolist() == [0, 100_000_000]


def test_the_older_layout_is_read_likewise() -> None:
    trace = _decode(
        "# Entity  GRACT  SMACT  DRAMA",
        "      Id",
        "    GPU 0  0.500  0.250  0.125",
        "    GPU 0  1.000  0.0  0.0",
    )
    assert [(series.channel, series.value.tolist()) for series in trace.series] == [
        (Channel.ENGINE_ACTIVE_PCT, [50.0, 100.0]),
        (Channel.SM_ACTIVE_PCT, [25.0, 0.0]),
        (Channel.MEMORY_ACTIVE_PCT, [12.5, 0.0]),
    ]


def test_instances_are_parts_of_the_gpu_above_them() -> None:
    trace = _decode(
        "# Entity  GRACT",
        "GPU 1  0.5",
        "GPU-I 0  0.6",
        "GPU-CI 0  0.7",
        "GPU 2  0.1",
        "GPU-I 3  0.2",
    )
    assert [(series.device, series.scope, series.part) for series in trace.series] == [
        ("log/gpu1", Scope.GPU, ""),
        ("log/gpu1", Scope.INSTANCE, "mig-0"),
        ("log/gpu1", Scope.INSTANCE, "mig-ci-0"),
        ("log/gpu2", Scope.GPU, ""),
        ("log/gpu2", Scope.INSTANCE, "mig-3"),
    ]
    assert [device.is_shared for device in trace.devices] == [True, True]


def test_instances_without_their_gpu_are_parts_of_the_file() -> None:
    (series,) = _decode("# Entity  GRACT", "GPU-I 0  0.6").series
    assert (series.device, series.part) == ("log", "mig-0")


def test_not_applicable_is_missing_at_its_sweep() -> None:
    trace = _decode(HEADER, "GPU 0 301.5 N/A 0.5", "GPU 0 N/A 97 0.5", "GPU-I 0 N/A N/A 0.5")
    power, utilisation, *_ = trace.series
    assert math.isnan(power.value[1])
    assert math.isnan(utilisation.value[0])
    assert power.utc_ns.tolist() == utilisation.utc_ns.tolist() == [0, 10**9]
    assert trace.n_skipped == 0
    assert {finding.code for finding in trace.findings} == {"period-assumed"}


def test_a_blank_that_an_old_version_prints_is_missing_and_told() -> None:
    trace = _decode("# Entity  TOTEC", "GPU 0  9223372036854775794", "GPU 0  1000")
    (series,) = trace.series
    assert math.isnan(series.value[0])
    assert series.value[1] == 1.0
    assert "values-impossible" in {finding.code for finding in trace.findings}


def test_units_are_those_of_the_fields() -> None:
    trace = _decode(
        "# Entity  TOTEC  SMCLK  MMCLK  FBUSD  TMPTR  PCITX", "GPU 0  5000  1980  2619  2  61  1024"
    )
    assert [(series.channel, series.part, series.value.tolist()) for series in trace.series] == [
        (Channel.ENERGY_COUNTER_J, "", [5.0]),
        (Channel.CLOCK_HZ, "", [1.98e9]),
        (Channel.MEMORY_CLOCK_HZ, "", [2.619e9]),
        (Channel.MEMORY_USED_BYTE, "", [2.0 * 1024 * 1024]),
        (Channel.TEMPERATURE_C, "", [61.0]),
        (Channel.HOST_TRAFFIC_BYTE_PER_S, "tx", [1024.0]),
    ]


def test_headers_blank_lines_and_what_the_tool_says_are_no_skips() -> None:
    trace = _decode(
        "$ dcgmi dmon -e 155,203,1004 -d 1000",
        "root@node-a:~# dcgmi dmon -e 155,203,1004",
        HEADER,
        UNITS,
        "GPU 0 1 2 0.3",
        "",
        HEADER,
        UNITS,
        "GPU 0 4 5 0.6",
        "Error setting watches. Result: -37: Requires root",
        "",
        "dmon was stopped do to receiving a signal",
    )
    assert trace.series[0].value.tolist() == [1.0, 4.0]
    assert trace.n_skipped == 0


def test_another_header_names_other_fields() -> None:
    trace = _decode("# Entity  POWER", "GPU 0  5", "# Entity  TMPTR  POWER", "GPU 0  60  6")
    power, temperature = trace.series
    assert power.value.tolist() == [5.0, 6.0]
    assert temperature.value.tolist() == [60.0]
    assert temperature.utc_ns.tolist() == [10**9]


def test_fields_of_no_channel_are_passed_over_and_told() -> None:
    trace = _decode("# Entity  FP16A  POWER  FANSP", "GPU 0  0.5  5  30")
    assert [series.channel for series in trace.series] == [Channel.POWER_W]
    told = {finding.code: finding for finding in trace.findings}
    assert "FP16A, FANSP" in told["metrics-other"].message


def test_other_entities_are_no_gpus() -> None:
    trace = _decode("# Entity  POWER", "GPU 0  5", "Switch 12  N/A", "vGPU 3  N/A", "CPU 0  90")
    assert {series.device for series in trace.series} == {"log/gpu0"}
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        "GPU 0 1 2",
        "GPU 0 1 2 0.3 4",
        "GPU 0",
        "GPU 0 NVIDIA Example 1 2 0.3",
        "GPU zero 1 2 0.3",
        "gpu 0 1 2 0.3",
        "TPU 0 1 2 0.3",
        "nonsense",
        "\x00",
    ],
)
def test_what_is_no_row_is_skipped_and_located(line: str) -> None:
    trace = _decode(HEADER, "GPU 0 1 2 0.3", line, "GPU 0 4 5 0.6")
    assert trace.series[0].value.tolist() == [1.0, 4.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "log:3")


def test_a_cell_that_is_no_number_is_skipped_alone() -> None:
    trace = _decode(HEADER, "GPU 0 one 2 0.3", "GPU 0 4 5 0.6")
    assert [series.value.tolist() for series in trace.series[:2]] == [[4.0], [2.0, 5.0]]
    assert trace.n_skipped == 1


def test_a_row_that_is_skipped_keeps_its_sweep() -> None:
    trace = _decode(HEADER, "GPU 0 1 2 0.3", "GPU 1 1 2 0.3", "GPU 0 torn", "GPU 1 4 5 0.6")
    assert trace.series[3].utc_ns.tolist() == [0, 10**9]


def test_rows_before_any_header_are_skipped() -> None:
    trace = _decode("GPU 0 1 2 0.3", HEADER, "GPU 0 4 5 0.6")
    assert trace.series[0].value.tolist() == [4.0]
    assert trace.n_skipped == 1


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (HEADER,),
        (HEADER, UNITS),
        ("GPU 0 1 2 0.3",),
        ("# Entity  FP16A", "GPU 0  0.5"),
        ("# Entity  POWER", "Switch 0  5"),
        ("Worker 0:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 (250362.2 gflops)",),
    ],
)
def test_a_table_without_a_reading_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert caught.value.where == "log:1"


def test_too_many_entities_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dcgm_dmon, "_MOST_ENTITIES", 2)
    with pytest.raises(DecodeError, match="too many entities"):
        _decode("# Entity  POWER", *(f"GPU {number}  5" for number in range(3)))


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}\n{UNITS}\nGPU 0 1 2 0.3\n",
        "$ dcgmi dmon -e 1001\n# Entity  GRACT\n      Id\n    GPU 0  0.000\n",
        "# Entity  GRACT\r\n      Id\r\n  GPU-I 0  0.000\r\n",
    ],
)
def test_the_format_is_known_by_its_content(text: str) -> None:
    assert DMON.is_it(text.encode(), "x")
    assert DMON.is_it(b"\xff\xfe" + text.encode("utf-16-le"), "x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        f"{HEADER}\n{UNITS}\n".encode(),
        b"GPU 0 1 2 0.3\n",
        b"# gpu   pwr gtemp\n# Idx     W     C\n    0    69    13\n",
        b'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 5\n',
        b"Worker 0:0[1004]: TensorEngineActive: generated ???, dcgm 0.000 (250362.2 gflops)\n",
        b"GPU 0: Example (UUID: GPU-1)\n# Entities\n",
        b"\xff\xfe\x00",
    ],
)
def test_other_files_are_none(data: bytes) -> None:
    assert not DMON.is_it(data, "dmon.txt")
