"""Replies of a Prometheus server: exact times, named metrics, and clear refusals."""

import json
import math
from collections.abc import Sequence

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Timing, Trace
from flopwitness.measure.sources.prometheus_reply import FORMATS
from flopwitness.testing.known_decoder import read_format

(REPLY,) = FORMATS
START_S = 1_700_000_000
POWER = {"__name__": "DCGM_FI_DEV_POWER_USAGE", "UUID": "GPU-1", "gpu": "0", "instance": "n:9400"}


def _reply(*series: object, kind: str = "matrix", **others: object) -> bytes:
    return json.dumps(
        {"status": "success", "data": {"resultType": kind, "result": list(series)}, **others}
    ).encode()


def _matrix(values: Sequence[object], metric: dict[str, str] | None = None) -> dict[str, object]:
    return {"metric": POWER if metric is None else metric, "values": list(values)}


def _decode(data: bytes) -> Trace:
    return read_format(REPLY)(data)


def test_a_range_is_a_dated_series() -> None:
    trace = _decode(_reply(_matrix([[START_S, "301.5"], [START_S + 15, "302"]])))
    (series,) = trace.series
    assert (series.device, series.channel, series.timing) == ("GPU-1", Channel.POWER_W, Timing.DATED)
    assert series.utc_ns.tolist() == [START_S * 10**9, (START_S + 15) * 10**9]
    assert series.value.tolist() == [301.5, 302.0]
    assert trace.devices[0].host == "n"
    assert (trace.n_skipped, trace.findings) == (0, ())


@pytest.mark.parametrize("text", ["1700000000.123", "1700000000.781", "1700000000.999", "1700000000"])
def test_times_are_read_from_their_text(text: str) -> None:
    data = _reply(_matrix([[1, "5"]])).replace(b"[1, ", f"[{text}, ".encode())
    whole, _, fraction = text.partition(".")
    assert _decode(data).series[0].utc_ns.tolist() == [int(whole + fraction.ljust(9, "0"))]


def test_an_instant_is_one_reading_a_series() -> None:
    other = {**POWER, "UUID": "GPU-2"}
    trace = _decode(
        _reply(
            {"metric": POWER, "value": [START_S + 0.5, "301.5"]},
            {"metric": other, "value": [START_S + 0.5, "302.5"]},
            kind="vector",
        )
    )
    assert [(series.device, series.value.tolist()) for series in trace.series] == [
        ("GPU-1", [301.5]),
        ("GPU-2", [302.5]),
    ]
    assert {series.utc_ns.tolist()[0] for series in trace.series} == {START_S * 10**9 + 500_000_000}


def test_warnings_and_infos_stop_nothing() -> None:
    data = _reply(_matrix([[START_S, "5"]]), warnings=["partial response"], infos=["a counter"])
    assert _decode(data).series[0].value.tolist() == [5.0]


def test_a_device_under_two_pods_is_one_series_in_the_order_of_time() -> None:
    trace = _decode(
        _reply(
            _matrix([[START_S + 30, "3"]], {**POWER, "pod": "b"}),
            _matrix([[START_S, "1"], [START_S + 15, "2"]], {**POWER, "pod": "a"}),
        )
    )
    (series,) = trace.series
    assert series.value.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "code"), [("+Inf", "values-impossible"), ("140737488355328", "values-impossible")]
)
def test_impossible_values_are_missing_and_told(text: str, code: str) -> None:
    trace = _decode(_reply(_matrix([[START_S, text], [START_S + 1, "5"]])))
    assert math.isnan(trace.series[0].value[0])
    assert [finding.code for finding in trace.findings] == [code]


def test_nan_is_missing() -> None:
    trace = _decode(_reply(_matrix([[START_S, "NaN"], [START_S + 1, "5"]])))
    assert math.isnan(trace.series[0].value[0])
    assert trace.findings == ()


@pytest.mark.parametrize(
    "record",
    [
        [START_S, "five"],
        [START_S, 5],
        [START_S],
        [START_S, "5", "6"],
        ["NaN", "5"],
        [None, "5"],
        [0, "5"],
        [1e300, "5"],
        [-START_S, "5"],
        {"time": START_S},
        "5",
        None,
        [],
    ],
    ids=str,
)
def test_a_sample_that_is_none_is_skipped_and_the_others_count(record: object) -> None:
    trace = _decode(_reply(_matrix([[START_S, "1"], record, [START_S + 1, "2"]])))
    assert trace.series[0].value.tolist() == [1.0, 2.0]
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == "log:1"
    assert "series 1" in trace.skipped[0].expected


@pytest.mark.parametrize("values", [{}, "text", 5, None])
def test_samples_that_are_no_list_are_skipped(values: object) -> None:
    trace = _decode(_reply({"metric": POWER, "values": values}, _matrix([[START_S, "1"]])))
    assert trace.series[0].value.tolist() == [1.0]
    assert trace.n_skipped == 1


def test_a_series_without_a_name_is_skipped_beside_named_ones() -> None:
    trace = _decode(_reply(_matrix([[START_S, "1"]]), _matrix([[START_S, "2"]], {"UUID": "GPU-1"})))
    assert trace.series[0].value.tolist() == [1.0]
    assert trace.n_skipped == 1
    assert "__name__" in trace.skipped[0].expected


@pytest.mark.parametrize("metric", [{}, {"UUID": "GPU-1", "gpu": "0"}])
def test_a_reply_to_an_expression_is_refused_and_told_what_to_ask(metric: dict[str, str]) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(_reply(_matrix([[START_S, "2"]], metric)))
    assert "rate()" in caught.value.expected
    assert caught.value.found == "1 series without one"


@pytest.mark.parametrize(
    "data",
    [
        _reply(),
        _reply(_matrix([])),
        _reply(_matrix([[START_S, "1"]], {"__name__": "up"})),
        _reply([START_S, "5"], kind="scalar"),
        _reply(kind="string"),
        _reply(_matrix([[START_S, "1"]], {"__name__": "up"})).replace(b'"up"', b"5"),
        b'{"status": "success"}',
        b'{"status": "success", "data": null}',
        b'{"status": "success", "data": {"resultType": "matrix", "result": {}}}',
        b'{"status": "success", "data": {"resultType": "matrix", "result": [5]}}',
        b'{"status": 5}',
        b"[]",
        b"{",
        b"",
        b"\xff",
        b'{"status":' + b"[" * 100_000,
        b'{"status": "success", "data": {"resultType": "matrix", "result": ' + b"[" * 100_000,
    ],
    ids=lambda data: data[:60].decode("utf-8", "replace"),
)
def test_what_holds_no_reading_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(data)
    assert caught.value.where == "log:1"


def test_the_servers_refusal_is_passed_on() -> None:
    data = b'{"status": "error", "errorType": "bad_data", "error": "parse error at char 5"}'
    assert REPLY.is_it(data, "")
    with pytest.raises(DecodeError) as caught:
        _decode(data)
    assert caught.value.found == "bad_data: parse error at char 5"


def test_a_torn_reply_is_refused() -> None:
    with pytest.raises(DecodeError):
        _decode(_reply(_matrix([[START_S, "5"]]))[:-20])


# Recognition


def _sorted_reply() -> bytes:
    return json.dumps(json.loads(_reply(_matrix([[START_S, "5"]]))), sort_keys=True, indent=1).encode()


@pytest.mark.parametrize(
    "data",
    [
        _reply(_matrix([[START_S, "5"]])),
        b"\xef\xbb\xbf" + _reply(kind="vector"),
        b"\n " + _reply(),
        _sorted_reply(),
        b"\xff\xfe" + _reply().decode().encode("utf-16-le"),
    ],
)
def test_a_reply_is_known_by_its_content(data: bytes) -> None:
    assert REPLY.is_it(data, "x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"status": "success"}',
        b'{"resultType": "matrix"}',
        b'{"status": "running", "resultType": "matrix"}',
        b'{"result": []}',
        b'{"metric": {}}',
        b'[{"metric": {}, "result": 5}]',
        b'{"number_of_nodes": 2}',
        b'up{a="resultType"} 5',
        b"\xff" * 50,
    ],
)
def test_other_files_are_none(data: bytes) -> None:
    assert not REPLY.is_it(data, "reply.json")


def test_a_reply_in_any_order_of_its_keys_reads_the_same() -> None:
    assert _decode(_sorted_reply()).series[0].value.tolist() == [5.0]
