"""nvidia-smi's XML: documents one behind the other, cut off or hostile."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.nvidia_xml import decode_nvidia_xml, is_nvidia_xml
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp

DECLARATION = '<?xml version="1.0" ?>\n'
DOCTYPE = '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
POWER = "<gpu_power_readings>\n<instant_power_draw>300.25 W</instant_power_draw>\n</gpu_power_readings>"
START_NS = parse_stamp(b"2025/05/14 09:00:00")


def _gpu(*inner: str, bus: str = "00000000:3B:00.0") -> str:
    return f'<gpu id="{bus}">\n' + "\n".join(inner) + "\n</gpu>\n"


def _document(*gpus: str, second: int = 0, doctype: str = DOCTYPE, declaration: str = DECLARATION) -> str:
    head = (
        f"{declaration}{doctype}<nvidia_smi_log>\n<timestamp>Wed May 14 09:00:{second:02d} 2025</timestamp>\n"
    )
    return head + "<driver_version>550.54.15</driver_version>\n" + "".join(gpus) + "</nvidia_smi_log>\n"


def _decode(text: str, *, size_bytes: int = 1_000) -> Trace:
    data = text.encode()
    blocks = [data[start : start + size_bytes] for start in range(0, len(data), size_bytes)]
    return decode_nvidia_xml(Source(blocks=blocks, where="q.xml", device="host"))


def _power(trace: Trace) -> list[float]:
    return [
        value for item in trace.series if item.channel is Channel.POWER_W for value in item.value.tolist()
    ]


def test_every_reading_of_a_document_is_found() -> None:
    trace = _decode(
        _document(
            _gpu(
                "<product_name>NVIDIA H100 80GB HBM3</product_name>",
                "<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>",
                "<mig_devices><mig_device><fb_memory_usage><used>9 MiB</used></fb_memory_usage></mig_device>",
                "</mig_devices>",
                "<uuid>GPU-0a1b2c3d-0000-4000-8000-000000000001</uuid>",
                "<performance_state>P0</performance_state>",
                "<fb_memory_usage><total>81559 MiB</total><used>3 MiB</used></fb_memory_usage>",
                "<utilization><gpu_util>98 %</gpu_util><memory_util>40 %</memory_util></utilization>",
                "<temperature><gpu_temp>61 C</gpu_temp><memory_temp>70 C</memory_temp></temperature>",
                "<gpu_power_readings><power_state>P0</power_state>",
                "<average_power_draw>631.95 W</average_power_draw>",
                "<instant_power_draw>625.68 W</instant_power_draw>",
                "<current_power_limit>650.00 W</current_power_limit>",
                "<requested_power_limit>700.00 W</requested_power_limit></gpu_power_readings>",
                "<gpu_memory_power_readings><average_power_draw>43.19 W</average_power_draw>",
                "</gpu_memory_power_readings>",
                "<module_power_readings><average_power_draw>N/A</average_power_draw></module_power_readings>",
                "<clocks><graphics_clock>1980 MHz</graphics_clock><sm_clock>1965 MHz</sm_clock>",
                "<mem_clock>2619 MHz</mem_clock></clocks>",
                "<max_clocks><sm_clock>2000 MHz</sm_clock></max_clocks>",
            )
        )
    )
    assert {(item.channel, item.scope, item.part): item.value.tolist() for item in trace.series} == {
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
        (Channel.CLOCK_HZ, Scope.GPU, ""): [1.965e9],
        (Channel.MEMORY_CLOCK_HZ, Scope.GPU, ""): [2.619e9],
    }
    (device,) = trace.devices
    assert (device.chip_name, device.driver, device.is_shared) == ("NVIDIA H100 80GB HBM3", "550.54.15", True)
    assert trace.n_skipped == 0


@pytest.mark.parametrize("name", ["power_readings", "gpu_power_readings"])
def test_older_drivers_have_one_power_figure(name: str) -> None:
    inner = f"<product_name>NVIDIA L4</product_name><{name}><power_draw>70.00 W</power_draw></{name}>"
    (power,) = _decode(_document(_gpu(inner))).series
    assert (power.channel, power.averaged_s, power.value.tolist()) == (Channel.POWER_AVERAGE_W, 1.0, [70])


@pytest.mark.parametrize("between", ["", "\n", "\n\n  \n"])
@pytest.mark.parametrize("size_bytes", [7, 100, 100_000])
def test_documents_follow_each_other(between: str, size_bytes: int) -> None:
    documents = [_document(_gpu(POWER), second=second).strip() for second in range(5)]
    trace = _decode(between.join(documents), size_bytes=size_bytes)
    (power,) = trace.series
    assert power.device == "host/00000000:3B:00.0"
    assert power.utc_ns.tolist() == [START_NS + second * 10**9 for second in range(5)]
    assert trace.n_skipped == 0


@pytest.mark.parametrize("doctype", ["", DOCTYPE, DOCTYPE.replace("SYSTEM", 'PUBLIC "-//x"')])
@pytest.mark.parametrize("declaration", ["", DECLARATION, '<?xml version="1.0" encoding="utf-16"?>'])
def test_a_document_type_may_be_named_or_not(doctype: str, declaration: str) -> None:
    assert _power(_decode(_document(_gpu(POWER), doctype=doctype, declaration=declaration))) == [300.25]


@pytest.mark.parametrize(
    "inner",
    [
        "",
        '<!ENTITY a "aaaaaaaaaa">',
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % p SYSTEM "http://example.org/x"> %p;',
        "<!ELEMENT gpu ANY>",
    ],
)
def test_a_document_type_that_defines_something_is_refused(inner: str) -> None:
    doctype = f"<!DOCTYPE nvidia_smi_log [{inner}]>\n"
    with pytest.raises(DecodeError, match="document type") as caught:
        _decode(_document(_gpu("<product_name>&c;</product_name>", POWER), doctype=doctype))
    assert caught.value.where == "q.xml:2"


@pytest.mark.parametrize(
    "stop", ["</gpu_power_readings>", "</gpu>\n", "</nvidia_smi_log>", "<instant_power_draw>300"]
)
def test_a_document_that_is_cut_off_keeps_the_gpus_before_the_cut(stop: str) -> None:
    whole = _document(_gpu(POWER, bus="0:1:0.0"), _gpu(POWER, bus="0:2:0.0"))
    cut = whole[: whole.rindex(stop)]
    trace = _decode(_document(_gpu(POWER)) + cut)
    assert {item.device for item in trace.series} - {"host/0:2:0.0"} == {
        "host/00000000:3B:00.0",
        "host/0:1:0.0",
    }
    assert _power(trace) == [300.25] * len(trace.series)
    assert trace.n_skipped == 1


@pytest.mark.parametrize("cut", [150, 200, 260, 300])
def test_a_run_that_begins_in_a_cut_document_is_read(cut: int) -> None:
    trace = _decode(_document(_gpu(POWER))[:cut] + _document(_gpu(POWER), second=9))
    assert _power(trace) == [300.25]
    assert trace.series[0].utc_ns.tolist() == [START_NS + 9 * 10**9]
    assert trace.n_skipped == 1


@pytest.mark.parametrize(
    "garbage",
    ["Unable to determine the device handle", "<html></html>", "\x00\x01", "&lt;", "\ufffd"],
)
def test_lines_between_documents_are_skipped_and_located(garbage: str) -> None:
    text = _document(_gpu(POWER)) + garbage + "\n" + _document(_gpu(POWER), second=1)
    trace = _decode(text)
    assert _power(trace) == [300.25, 300.25]
    assert trace.n_skipped == 1
    line = _document(_gpu(POWER)).count("\n") + 1
    assert trace.skipped[0].where == f"q.xml:{line}"


@pytest.mark.parametrize(
    "inner",
    [
        "<a>" * 40,
        "<power_readings></gpu_power_readings>",
        "<a b='" + "x" * 100,
        "<\x01>",
        "</nvidia_smi_log>" * 3,
    ],
    ids=lambda inner: repr(inner)[:20],
)
def test_a_document_that_is_no_xml_is_skipped_and_the_next_one_read(inner: str) -> None:
    trace = _decode(_document(_gpu(inner)) + _document(_gpu(POWER), second=1))
    assert _power(trace) == [300.25]
    assert trace.n_skipped >= 1


def test_a_tag_that_never_ends_does_not_fill_the_memory() -> None:
    start = _document(_gpu(POWER)) + DECLARATION + "<nvidia_smi_log>\n<gpu id='"
    trace = _decode(start + ("x" * 1_000 + "\n") * 6_000, size_bytes=1 << 20)
    assert _power(trace) == [300.25]
    assert trace.n_skipped == 1


@pytest.mark.parametrize("text", ["N/A", "Unknown Error", "Requested functionality has been deprecated", ""])
def test_a_marker_is_a_missing_reading(text: str) -> None:
    trace = _decode(_document(_gpu(f"<power_readings><power_draw>{text}</power_draw></power_readings>")))
    assert math.isnan(_power(trace)[0])
    assert trace.n_skipped == 0


@pytest.mark.parametrize("text", ["300", "300.25", "W", "1e999 W", "x" * 1_000])
def test_a_reading_without_its_unit_is_missing_and_located(text: str) -> None:
    trace = _decode(_document(_gpu(f"<power_readings><power_draw>{text}</power_draw></power_readings>")))
    assert math.isnan(_power(trace)[0])
    assert trace.n_skipped == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        _document(),
        _document(_gpu("<uuid>GPU-1</uuid>")),
        _document(_gpu(POWER)).replace("timestamp", "time"),
        _document(_gpu(POWER)).replace("2025", "99999"),
        _document(_gpu(POWER)).replace("nvidia_smi_log", "nvidia_smi"),
        DECLARATION + "<nvidia_smi_log/>",
    ],
    ids=range(7),
)
def test_a_log_without_a_reading_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(text)
    assert caught.value.where == "q.xml:1"


def test_its_documents_are_known() -> None:
    assert is_nvidia_xml(_document().encode(), "x")
    assert is_nvidia_xml(b"\xff\xfe" + _document().encode("utf-16-le"), "x")
    assert is_nvidia_xml(b"<nvidia_smi_log>", "x")
    assert is_nvidia_xml(b"Unable to determine\n" + _document().encode(), "x")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"<?xml version='1.0'?><html/>",
        b"nvidia_smi_log",
        b"see <nvidia_smi_log> there",
        b"<nvidia_smi_logs>",
        b"{'a': '<nvidia_smi_log>'}",
        b"==============NVSMI LOG==============",
    ],
)
def test_other_files_are_not_taken_for_its_documents(head: bytes) -> None:
    assert not is_nvidia_xml(head, "nvidia-smi.xml")
