"""nvidia-smi's text: readings below the right headings, of every driver's words for them."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.sources.nvidia_query import decode_nvidia_query, is_nvidia_query
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp

UUID = "GPU-0a1b2c3d-0000-4000-8000-00000000000{}"
TITLE = "==============NVSMI LOG=============="


def _snapshot(*gpus: str, time: str = "Wed May 14 09:00:00 2025") -> str:
    head = ("", TITLE, "", f"Timestamp : {time}", "Driver Version : 550.54.15", "CUDA Version : 12.4", "")
    return "\n".join((*head, f"Attached GPUs : {len(gpus)}", *gpus, ""))


def _gpu(*lines: str, bus: str = "00000000:3B:00.0") -> str:
    return "\n".join((f"GPU {bus}", *lines))


POWER = ("    GPU Power Readings", "        Instantaneous Power Draw : 300.25 W")


OLD_POWER = ("    Power Readings", "        Power Draw : 300.25 W")


def _decode(text: str, size_bytes: int = 1_000) -> Trace:
    data = text.encode()
    blocks = [data[start : start + size_bytes] for start in range(0, len(data), size_bytes)]
    return decode_nvidia_query(Source(blocks=blocks, where="q.txt", device="host"))


def _one(trace: Trace, channel: Channel, scope: Scope = Scope.GPU) -> Series:
    (found,) = (
        item for item in trace.series if (item.channel, item.scope, item.part) == (channel, scope, "")
    )
    return found


def _values(trace: Trace) -> dict[tuple[Channel, Scope, str], list[float]]:
    return {(item.channel, item.scope, item.part): item.value.tolist() for item in trace.series}


def test_every_reading_of_a_current_driver_is_found() -> None:
    trace = _decode(
        _snapshot(
            _gpu(
                "    Product Name : NVIDIA H100 80GB HBM3",
                "    MIG Mode",
                "        Current : Disabled",
                f"    GPU UUID : {UUID.format(1)}",
                "    Performance State : P0",
                "    FB Memory Usage",
                "        Total : 81559 MiB",
                "        Used : 3 MiB",
                "    BAR1 Memory Usage",
                "        Used : 1 MiB",
                "    Utilization",
                "        GPU : 98 %",
                "        Memory : 40 %",
                "    Temperature",
                "        GPU Current Temp : 61 C",
                "        GPU T.Limit Temp : 26 C",
                "        Memory Current Temp : 70 C",
                "    GPU Power Readings",
                "        Average Power Draw : 631.95 W",
                "        Instantaneous Power Draw : 625.68 W",
                "        Current Power Limit : 650.00 W",
                "        Requested Power Limit : 700.00 W",
                "    GPU Memory Power Readings ",
                "        Average Power Draw : 43.19 W",
                "        Instantaneous Power Draw : N/A",
                "    Module Power Readings",
                "        Average Power Draw : N/A",
                "        Instantaneous Power Draw : 900.00 W",
                "    Clocks",
                "        Graphics : 1980 MHz",
                "        SM : 1965 MHz",
                "        Memory : 2619 MHz",
                "    Max Clocks",
                "        SM : 2000 MHz",
                "        Memory : 3000 MHz",
                "    Processes : None",
            )
        )
    )
    assert _values(trace) == {
        (Channel.PERFORMANCE_STATE, Scope.GPU, ""): [0],
        (Channel.MEMORY_USED_BYTE, Scope.GPU, ""): [3 * 2**20],
        (Channel.UTILISATION_PCT, Scope.GPU, ""): [98],
        (Channel.MEMORY_UTILISATION_PCT, Scope.GPU, ""): [40],
        (Channel.TEMPERATURE_C, Scope.GPU, ""): [61],
        (Channel.TEMPERATURE_C, Scope.GPU, "memory"): [70],
        (Channel.POWER_AVERAGE_W, Scope.GPU, ""): [631.95],
        (Channel.POWER_W, Scope.GPU, ""): [625.68],
        (Channel.POWER_LIMIT_W, Scope.GPU, ""): [650],
        (Channel.POWER_AVERAGE_W, Scope.RAIL, "memory"): [43.19],
        (Channel.POWER_W, Scope.MODULE, ""): [900],
        (Channel.CLOCK_HZ, Scope.GPU, ""): [1.965e9],
        (Channel.MEMORY_CLOCK_HZ, Scope.GPU, ""): [2.619e9],
    }
    (device,) = trace.devices
    assert (device.name, device.chip_name) == (UUID.format(1), "NVIDIA H100 80GB HBM3")
    assert (device.driver, device.is_shared) == ("550.54.15", False)
    assert trace.n_skipped == 0


@pytest.mark.parametrize(
    ("lines", "channel", "averaged_s"),
    [
        (OLD_POWER, Channel.POWER_W, 1.0),
        (("    GPU Power Readings", "        Power Draw : 300.25 W"), Channel.POWER_W, 1.0),
        (("    GPU Power Readings", "        Average Power Draw : 300.25 W"), Channel.POWER_AVERAGE_W, 1.0),
        (POWER, Channel.POWER_W, 0.0),
        (("    Product Name : NVIDIA L4", *OLD_POWER), Channel.POWER_AVERAGE_W, 1.0),
        (("    Product Name : Tesla T4", *OLD_POWER), Channel.POWER_W, 0.0),
    ],
)
def test_power_has_another_name_in_each_driver(
    lines: tuple[str, ...], channel: Channel, averaged_s: float
) -> None:
    (power,) = _decode(_snapshot(_gpu(*lines))).series
    assert (power.channel, power.averaged_s, power.value.tolist()) == (channel, averaged_s, [300.25])
    assert power.device == "host/00000000:3B:00.0"


def test_snapshots_follow_each_other() -> None:
    text = "".join(
        _snapshot(
            _gpu(*POWER, bus="00000000:01:00.0"),
            _gpu(*POWER, bus="00000000:02:00.0"),
            time=f"Wed May 14 09:00:{second:02d} 2025",
        )
        for second in range(5)
    )
    trace = _decode(text, size_bytes=37)
    assert [item.device for item in trace.series] == ["host/00000000:01:00.0", "host/00000000:02:00.0"]
    start = parse_stamp(b"2025/05/14 09:00:00")
    assert [item.utc_ns.tolist() for item in trace.series] == [[start + s * 10**9 for s in range(5)]] * 2


@pytest.mark.parametrize(
    ("lines", "is_shared"),
    [
        (("    MIG Mode", "        Current : Enabled"), True),
        (("    GPU Virtualization Mode", "        Virtualization Mode : Host VGPU"), True),
        (("    GPU Virtualization Mode", "        Virtualization Mode : VGPU"), True),
        (("    MIG Mode", "        Current : N/A", "        Pending : Enabled"), False),
        (("    GPU Virtualization Mode", "        Virtualization Mode : Pass-Through"), False),
        (("    GPU Virtualization Mode", "        Virtualization Mode : None"), False),
        (("    ECC Mode", "        Current : Enabled"), False),
    ],
)
def test_a_partitioned_or_lent_gpu_is_known(lines: tuple[str, ...], is_shared: bool) -> None:
    trace = _decode(_snapshot(_gpu(*lines, *POWER)))
    assert [device.is_shared for device in trace.devices] == [is_shared]


@pytest.mark.parametrize(
    "lines",
    [
        ("    MIG Device", "        Shared FB Memory Usage", "            Used : 5 MiB"),
        ("    Applications Clocks", "        SM : 5 MHz"),
        ("    Utilization", "            GPU : 5 %"),
        ("            GPU : 5 %",),
        ("    Power Samples", "        Power Draw : 5 W"),
        ("    Processes", "        Process ID : 5", "            Used : 5 MiB"),
        ("    Utilization : 5 %",),
        ("Utilization", "    GPU : 5 %"),
    ],
)
def test_what_stands_below_another_heading_is_no_reading(lines: tuple[str, ...]) -> None:
    trace = _decode(_snapshot(_gpu(*POWER, *lines)))
    assert _values(trace) == {(Channel.POWER_W, Scope.GPU, ""): [300.25]}


@pytest.mark.parametrize(
    "text", ["N/A", "Unknown Error", "GPU is lost", "Requested functionality has been deprecated"]
)
def test_a_marker_is_a_missing_reading(text: str) -> None:
    trace = _decode(_snapshot(_gpu("    Power Readings", f"        Power Draw : {text}")))
    assert math.isnan(_one(trace, Channel.POWER_W).value[0])
    assert trace.n_skipped == 0


@pytest.mark.parametrize("text", ["300.2", "3", "300.25 mW", "many W", "1e999 W"])
def test_a_reading_that_is_cut_off_or_garbled_is_missing_and_located(text: str) -> None:
    trace = _decode(_snapshot(_gpu("    Power Readings", f"        Power Draw : {text}")))
    assert math.isnan(_one(trace, Channel.POWER_W).value[0])
    assert trace.n_skipped == 1


@pytest.mark.parametrize(
    "line",
    [
        "Unable to determine the device handle",
        "Error: x",
        "\x00",
        "]" * 5_000,
        "Segmentation fault (core dumped)",
    ],
    ids=lambda line: repr(line)[:20],
)
def test_a_line_that_the_tool_does_not_write_is_skipped_and_located(line: str) -> None:
    trace = _decode(_snapshot(_gpu(*POWER)) + line + "\n" + _snapshot(_gpu(*POWER)))
    assert trace.n_skipped == 1
    assert len(_one(trace, Channel.POWER_W)) == 2


@pytest.mark.parametrize(
    "time", ["", "yesterday", "Wed May 14 09:00:00 99999", "Wed May 44 09:00:00 2025", "0"]
)
def test_a_snapshot_without_a_time_is_skipped(time: str) -> None:
    trace = _decode(_snapshot(_gpu(*POWER)) + _snapshot(_gpu(*POWER), time=time))
    assert len(_one(trace, Channel.POWER_W)) == 1
    assert trace.n_skipped == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        TITLE,
        _snapshot(),
        _snapshot(_gpu("    Product Name : NVIDIA L4")),
        _snapshot(_gpu(*POWER), time="never"),
        "\n".join(POWER),
    ],
)
def test_a_text_without_a_reading_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(text)
    assert caught.value.where == "q.txt:1"
    assert "nvidia-smi -q" in caught.value.expected


def test_its_text_is_known_by_its_title() -> None:
    assert is_nvidia_query(b"\n" + TITLE.encode() + b"\n", "x")
    assert is_nvidia_query(b"\xff\xfe" + f"chatter\r\n{TITLE}\r\n".encode("utf-16-le"), "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"NVSMI LOG",
        b"== NVSMI LOG ==",
        b"timestamp, power.draw [W]\n",
        b"<nvidia_smi_log>",
        b"we read the ====NVSMI LOG==== of it",
        b"\n" * (70 << 10) + TITLE.encode(),
    ],
    ids=lambda head: repr(head)[:20],
)
def test_other_files_are_not_taken_for_its_text(head: bytes) -> None:
    assert not is_nvidia_query(head, "nvidia-smi-q.txt")
