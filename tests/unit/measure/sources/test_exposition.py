"""Prometheus text: samples as they stand, with or without times, one scrape or many."""

import math

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Timing, Trace
from flopwitness.measure.sources import exposition
from flopwitness.measure.sources.exposition import FORMATS
from flopwitness.measure.sources.source import ReadOptions
from flopwitness.testing.known_decoder import read_format

(TEXT,) = FORMATS
POWER = 'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",modelName="X",Hostname="n"}'
UTILISATION = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="X",Hostname="n"}'
START_MS = 1_700_000_000_000
START_NS = START_MS * 1_000_000


def _decode(*lines: str, options: ReadOptions | None = None) -> Trace:
    return read_format(TEXT, options=options)("\n".join(lines).encode() + b"\n")


def _values(trace: Trace, number: int = 0) -> list[float]:
    return [float(value) for value in trace.series[number].value]


def test_a_dump_with_times_is_dated() -> None:
    trace = _decode(f"{POWER} 612.5 {START_MS}", f"{POWER} 618.25 {START_MS + 15_000}")
    (series,) = trace.series
    assert (series.device, series.channel, series.scope) == ("GPU-1", Channel.POWER_W, Scope.GPU)
    assert series.timing is Timing.DATED
    assert series.utc_ns.tolist() == [START_NS, START_NS + 15 * 10**9]
    assert series.value.tolist() == [612.5, 618.25]
    assert (trace.n_skipped, trace.findings) == (0, ())
    (device,) = trace.devices
    assert (device.name, device.chip_name, device.host) == ("GPU-1", "X", "n")


def test_one_scrape_without_times_is_one_reading_at_no_known_time() -> None:
    trace = _decode("# TYPE DCGM_FI_DEV_POWER_USAGE gauge", f"{POWER} 612.5", f"{UTILISATION} 97")
    assert [(series.utc_ns.tolist(), series.timing) for series in trace.series] == 2 * [([0], Timing.COUNTED)]
    assert [finding.code for finding in trace.findings] == ["period-assumed"]


def test_scrapes_one_after_the_other_are_counted() -> None:
    scrape = [f"{POWER} 612.5", f"{UTILISATION} 97"]
    trace = _decode(*scrape, *scrape, *scrape)
    minute_ns = 60 * 10**9
    assert [series.utc_ns.tolist() for series in trace.series] == 2 * [[0, minute_ns, 2 * minute_ns]]


def test_the_period_of_counted_scrapes_is_the_users() -> None:
    trace = _decode(f"{POWER} 1", f"{POWER} 2", options=ReadOptions(period_s=5.0))
    assert trace.series[0].utc_ns.tolist() == [0, 5 * 10**9]


def test_a_metric_that_is_missing_from_a_scrape_shifts_no_other() -> None:
    trace = _decode(f"{POWER} 1", f"{UTILISATION} 1", f"{POWER} 2", f"{POWER} 3", f"{UTILISATION} 3")
    assert (trace.series[1].utc_ns // 60_000_000_000).tolist() == [0, 2]


def test_a_type_that_is_said_again_begins_the_next_scrape() -> None:
    """So the same GPU under another pod is another reading, not a repetition."""
    kind = "# TYPE DCGM_FI_DEV_POWER_USAGE gauge"
    other = POWER.replace("}", ',pod="p"}')
    trace = _decode(kind, f"{POWER} 1", kind, f"{other} 2")
    (series,) = trace.series
    assert _values(trace) == [1.0, 2.0]
    assert len(set(series.utc_ns.tolist())) == 2
    assert "labels-repeated" not in {finding.code for finding in trace.findings}


def test_scrapes_of_several_hosts_in_turns_are_one_sweep() -> None:
    kind = "# TYPE DCGM_FI_DEV_POWER_USAGE gauge"
    other = POWER.replace("GPU-", "GPU-b")
    trace = _decode(*[kind, f"{POWER} 1", kind, f"{other} 2"] * 3)
    first, second = trace.series
    assert len(first) == len(second) == 3
    assert first.utc_ns.tolist() == second.utc_ns.tolist()


def test_types_of_other_metrics_begin_nothing() -> None:
    trace = _decode("# TYPE go_a gauge", f"{POWER} 1", "# TYPE go_a gauge", f"{UTILISATION} 5")
    assert [series.utc_ns.tolist() for series in trace.series] == [[0], [0]]


@pytest.mark.parametrize(
    "line",
    [
        'DCGM_FI_DEV_POWER_USAGE{Hostname="n",UUID="GPU-1",modelName="X",gpu="0"} 5',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",modelName="X",Hostname="n",} 5',
        'DCGM_FI_DEV_POWER_USAGE { gpu = "0" , UUID = "GPU-1" , modelName="X",Hostname="n" }  5  ',
        'DCGM_FI_DEV_POWER_USAGE\t{gpu="0",UUID="GPU-1",modelName="X",Hostname="n"}\t5',
        '{__name__="DCGM_FI_DEV_POWER_USAGE", UUID="GPU-1", gpu="0", modelName="X", Hostname="n"} 5',
        '{"DCGM_FI_DEV_POWER_USAGE",UUID="GPU-1",gpu="0",modelName="X",Hostname="n"} 5',
        POWER + ' 5 # {trace_id="a} b"} 0.67 1700000000.5',
        POWER + ' 5 # {trace_id="a"} 0.67',
        f"{POWER} +5.0e0",
        f"  {POWER} 5",
        f"{POWER} 5\r",
    ],
)
def test_one_sample_in_many_spellings(line: str) -> None:
    trace = _decode(line)
    (series,) = trace.series
    assert (series.device, series.channel, _values(trace)) == ("GPU-1", Channel.POWER_W, [5.0])
    assert trace.devices[0].host == "n"
    assert trace.n_skipped == 0


def test_spellings_of_one_set_of_labels_are_one_set() -> None:
    other = 'DCGM_FI_DEV_POWER_USAGE{ Hostname="n",modelName="X",UUID="GPU-1",gpu="0"}'
    trace = _decode(f"{POWER} 1", f"{other} 2", f"{POWER} 3")
    assert (trace.series[0].utc_ns // 60_000_000_000).tolist() == [0, 1, 2]


def test_labels_keep_quotes_braces_breaks_and_backslashes() -> None:
    line = 'DCGM_FI_DEV_POWER_USAGE{modelName="a\\"b} c\\\\\\nd, e=\\"f\\"",gpu="0"} 5'
    (device,) = _decode(line).devices
    assert device.chip_name == 'a"b} c\\\nd, e="f"'


def test_labels_that_are_no_utf8_are_readable_all_the_same() -> None:
    data = b'DCGM_FI_DEV_POWER_USAGE{gpu="0",Hostname="\xff"} 5\n'
    assert read_format(TEXT)(data).series[0].device == "\ufffd/gpu0"


@pytest.mark.parametrize("value", ["NaN", "nan"])
def test_nan_is_missing_and_no_skip(value: str) -> None:
    trace = _decode(f"{POWER} {value}", f"{POWER} 5")
    assert math.isnan(_values(trace)[0])
    assert trace.n_skipped == 0


@pytest.mark.parametrize("value", ["+Inf", "-Inf", "1e999", "140737488355328.000000", "-5"])
def test_impossible_values_are_missing_and_counted(value: str) -> None:
    trace = _decode(f"{POWER} 5 {START_MS}", f"{POWER} {value} {START_MS}")
    assert math.isnan(_values(trace)[1])
    assert trace.n_skipped == 0
    assert [(finding.code, finding.count) for finding in trace.findings] == [("values-impossible", 1)]


@pytest.mark.parametrize(
    ("stamp", "time_ns"),
    [
        ("1700000000123", 1_700_000_000_123_000_000),
        ("1700000000", 1_700_000_000_000_000_000),
        ("1700000000.123", 1_700_000_000_123_000_000),
        ("1700000000.123456789", 1_700_000_000_123_456_789),
        ("1.700000000123e+09", 1_700_000_000_123_000_000),
        ("1.700000000123e12", 1_700_000_000_123_000_000),
    ],
)
def test_times_are_milliseconds_or_the_seconds_of_open_metrics(stamp: str, time_ns: int) -> None:
    assert _decode(f"{POWER} 5 {stamp}").series[0].utc_ns.tolist() == [time_ns]


@pytest.mark.parametrize(
    "stamp",
    ["170000000", "17000000000", "170000000012", "17000000001234", "-1700000000123", "x", "1e99", "1 2"],
)
def test_a_torn_or_mad_time_is_skipped_and_located(stamp: str) -> None:
    trace = _decode(f"{POWER} 5 {START_MS}", f"{POWER} 6 {stamp}")
    assert _values(trace) == [5.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "log:2")


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "DCGM_FI_DEV_POWER_USAGE",
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"}',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"} ',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"} five',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 1_000',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 0x5',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 1,5',
        'DCGM_FI_DEV_POWER_USAGE{gpu="0 5',
        "DCGM_FI_DEV_POWER_USAGE{gpu=0} 5",
        'DCGM_FI_DEV_POWER_USAGE{gpu="0" 5',
        'DCGM_FI_DEV_POWER_USAGE{0="0"} 5',
        '{gpu="0"} 5',
        "{} 5",
        "5",
        f"{POWER} 5 {START_MS} 7",
        "\x00",
        "DCGM_FI_DEV_POWER_USAGE-X 5",
    ],
)
def test_what_is_no_sample_is_skipped_and_located(line: str) -> None:
    trace = _decode(f"{POWER} 5", line)
    assert _values(trace) == [5.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "log:2")
    assert trace.skipped[0].expected


def test_comments_and_blank_lines_are_no_skips() -> None:
    lines = ["# HELP DCGM_FI_DEV_POWER_USAGE Power } 5", "# UNIT a watts", "#", "", "  ", "# EOF"]
    assert _decode(*lines, f"{POWER} 5", *lines).n_skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        f"{POWER} {'1' * 2_000_000}",
        f"{POWER} 7{' ' * 70_000}",
        'DCGM_FI_DEV_POWER_USAGE{gpu="0"' + ',a="b"' * 20_000 + "} 7",
    ],
    ids=len,
)
def test_a_line_beyond_the_limit_is_skipped(line: str) -> None:
    trace = _decode(f"{POWER} 5", line, f"{POWER} 6")
    assert _values(trace) == [5.0, 6.0]
    assert (trace.n_skipped, trace.skipped[0].where) == (1, "log:2")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(f"{POWER} 5", f"{POWER} 6 {START_MS}", "no time"), (f"{POWER} 5 {START_MS}", f"{POWER} 6", "a time")],
)
def test_samples_with_and_without_times_do_not_mix(first: str, second: str, expected: str) -> None:
    trace = _decode(first, second)
    assert _values(trace) == [5.0]
    assert trace.n_skipped == 1
    assert trace.skipped[0].expected.startswith(expected)


def test_the_usual_way_and_the_careful_way_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{POWER} {number}.5 {START_MS + number}" for number in range(9)]
    lines += [f"go_a {number}" for number in range(3)] + ['go_b{a="b"} 1'] * 3
    usual = _decode(*lines)
    monkeypatch.setattr(exposition, "_MOST_KNOWN_HEADS", 0)
    careful = _decode(*lines)
    assert usual.series[0].utc_ns.tolist() == careful.series[0].utc_ns.tolist()
    assert _values(usual) == _values(careful)
    assert usual.findings == careful.findings


def test_slices_and_boards_go_their_own_ways() -> None:
    sliced = POWER.replace("}", ',GPU_I_ID="7"}')
    engine = sliced.replace("DEV_POWER_USAGE", "PROF_GR_ENGINE_ACTIVE")
    busy = sliced.replace("POWER_USAGE", "GPU_UTIL")
    trace = _decode(f"{POWER} 100", f"{sliced} 101", f"{engine} 0.5", f"{busy} 0")
    assert [
        (series.scope, series.part, _values(trace, number)) for number, series in enumerate(trace.series)
    ] == [
        (Scope.GPU, "", [101.0]),
        (Scope.INSTANCE, "mig-7", [50.0]),
    ]
    codes = {finding.code for finding in trace.findings}
    assert codes == {"mig-power-repeated", "mig-utilisation", "period-assumed"}


def test_a_scrape_without_a_known_metric_is_refused() -> None:
    with pytest.raises(DecodeError) as caught:
        _decode("# TYPE go_a gauge", "go_a 5", 'go_b{c="d"} 6')
    assert caught.value.where == "log:1"
    assert "go_a, go_b" in caught.value.found


@pytest.mark.parametrize("data", [b"", b"\n", b"# EOF\n", b"\xff\xfe", b"nonsense\n"])
def test_a_file_without_a_sample_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_format(TEXT)(data)


def test_utf16_with_a_mark_is_read() -> None:
    text = f"{POWER} 5\r\n{POWER} 6\r\n"
    data = b"\xff\xfe" + text.encode("utf-16-le")
    assert TEXT.is_it(data, "")
    assert _values(read_format(TEXT)(data)) == [5.0, 6.0]


# Recognition


@pytest.mark.parametrize(
    "text",
    [
        f"{POWER} 5\n",
        f"\n\n{POWER} 5 {START_MS}\n",
        "# HELP go_a A.\n# TYPE go_a gauge\ngo_a 5\n",
        '{__name__="up", job="a"} 1 1700000000000\n',
        f"# a remark\n{POWER} NaN\n# EOF\n",
        f"{POWER} 5\n" * 5_000,
        f"{POWER} 5\nTraceback\n{POWER} 6\n",
    ],
)
def test_the_format_is_known_by_its_content(text: str) -> None:
    assert TEXT.is_it(text.encode(), "x")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# TYPE go_a gauge\n",
        "go_a 5\ngo_b 6\n",
        "# Entity  GRACT  TENSO\n      Id\n    GPU 0  0.000  0.000\n",
        "# gpu   pwr gtemp\n# Idx     W     C\n    0    69    13\n",
        "timestamp, power.draw [W]\n2026/01/01 00:00:00.000, 71.2 W\n",
        '{"status": "success", "data": {"resultType": "matrix"}}\n',
        ':::MLLOG {"key": "power_reading", "value": 5}\n',
        "Time,03-17-2021 12:56:13.954,Watts,1578.9\n",
        f"Traceback\n{POWER} 5\n",
        f"{POWER} 5\nTraceback\nTraceback\n",
        'fn main() { println!("{} 5") }\n',
        "RAM 2/4 CPU [5%@6]\n",
        "\x00\x01\x02",
    ],
)
def test_other_files_are_none(text: str) -> None:
    assert not TEXT.is_it(text.encode(), "metrics.prom")


@pytest.mark.parametrize("head", [b"\xff\xfe\x00", b"\xff" * 100, b"{" * 100_000, b'a{b="' + b"\\" * 100_000])
def test_recognition_never_raises(head: bytes) -> None:
    assert not TEXT.is_it(head, "")
