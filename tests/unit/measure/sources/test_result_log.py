"""Result logs: run windows and declarations, and nothing that could feed a prediction."""

import json

import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Declaration, Mark, RunWindow, Trace
from flopwitness.measure.sources import result_log
from flopwitness.measure.sources.result_log import decode_result_log, join_extents, merge_windows
from flopwitness.measure.sources.source import Source

_S = 10**9


def _line(key: str, value: object = None, *, at_s: float = 0, status: str | None = None) -> str:
    metadata = {} if status is None else {"status": status}
    record = {"time_ms": round(at_s * 1_000), "key": key, "value": value, "metadata": metadata}
    return "0: :::MLLOG " + json.dumps(record)


def _decode(*lines: str) -> Trace:
    return decode_result_log(Source(blocks=["\n".join(lines).encode()], where="r.txt", device="r"))


def _window(start_s: float, stop_s: float | None, status: str = "") -> RunWindow:
    stop_ns = None if stop_s is None else round(stop_s * _S)
    return RunWindow(start_utc_ns=round(start_s * _S), stop_utc_ns=stop_ns, status=status)


def test_a_run_has_its_start_its_stop_and_its_status() -> None:
    trace = _decode("noise", _line("run_start", at_s=10), _line("run_stop", 0.9, at_s=200, status="success"))
    assert trace.windows == (_window(10, 200, "success"),)
    assert trace.series == ()
    assert trace.declaration is None


def test_a_run_cut_short_has_no_stop() -> None:
    assert _decode(_line("run_start", at_s=10)).windows == (_window(10, None),)


def test_a_stop_before_the_start_is_kept_for_others_to_judge() -> None:
    trace = _decode(_line("run_start", at_s=100), _line("run_stop", at_s=50, status="success"))
    assert trace.windows == (_window(100, 50, "success"),)


def test_ranks_of_one_run_collapse_to_the_earliest_start_and_the_latest_stop() -> None:
    trace = _decode(
        _line("run_start", at_s=12),
        _line("run_start", at_s=10),
        _line("run_start", at_s=69),
        _line("run_stop", at_s=500, status="success"),
        _line("run_stop", at_s=530),
        _line("run_stop", at_s=490, status="aborted"),
    )
    assert trace.windows == (_window(10, 530, "success"),)
    assert trace.n_skipped == 0


@pytest.mark.parametrize("stops_s", [(60, 1_700), (1_700, 60), (60, 900, 1_700), (1_700, 60, 61)])
def test_an_early_stop_does_not_end_a_run(stops_s: tuple[int, ...]) -> None:
    """A prover who puts a stop before the true one, or after it, does not shorten the run."""
    trace = _decode(_line("run_start"), *(_line("run_stop", at_s=stop_s) for stop_s in stops_s))
    assert trace.windows == (_window(0, 1_700),)
    assert trace.n_skipped == 0
    assert trace.marks[0] == Mark(name="run_stop", utc_ns=stops_s[1] * _S, where="r.txt:3")


def test_a_stop_of_another_rank_is_no_second_stop() -> None:
    trace = _decode(_line("run_start"), *(_line("run_stop", at_s=100 + 50 * rank) for rank in range(4)))
    assert trace.windows == (_window(0, 250),)
    assert trace.marks == ()


def test_more_stops_than_a_log_may_hold_are_counted_and_still_extend_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(result_log, "MOST_PER_LOG", 1)
    trace = _decode(_line("run_start"), *(_line("run_stop", at_s=1_000 * number) for number in range(1, 5)))
    assert trace.windows == (_window(0, 4_000),)
    assert (len(trace.marks), trace.n_skipped) == (1, 2)


def test_the_extent_holds_every_event_of_whatever_name() -> None:
    trace = _decode(
        _line("cache_clear", at_s=5),
        _line("run_start", at_s=10),
        _line("run_stop", at_s=70),
        _line("eval_accuracy", 0.9, at_s=1_700),
        _line("nobody knows", at_s=1_600),
    )
    assert trace.windows == (_window(10, 70),)
    assert trace.extent == _window(5, 1_700)


@pytest.mark.parametrize(
    "line",
    [
        ':::MLLOG {"time_ms": 9000000, "key": ',
        ':::MLLOG {"time_ms": -1, "key": "a"}',
        "9000 seconds later",
        _line("power_reading", 7_000, at_s=9_000),
        _line("interconnect_power_est", 7_000, at_s=9_000),
    ],
)
def test_the_extent_holds_no_unreadable_line_and_no_reading(line: str) -> None:
    """A reading's time stands in its series; a switch estimate is often stamped years off."""
    assert _decode(_line("run_start", at_s=10), line).extent == _window(10, 10)


def test_a_log_that_only_declares_has_an_extent() -> None:
    trace = _decode(_line("submission_benchmark", "b", at_s=3), _line("x", at_s=2))
    assert (trace.windows, trace.extent) == ((), _window(2, 3))
    assert _decode(':::SYSJSON {"number_of_nodes":"2"}').extent is None


@pytest.mark.parametrize(
    ("extents", "joined"),
    [
        ([], None),
        ([None, None], None),
        ([_window(3, 9), None, _window(1, 4)], _window(1, 9)),
        ([_window(1, 2), _window(50, 60)], _window(1, 60)),
        ([_window(0, 100), _window(40, 50)], _window(0, 100)),
    ],
)
def test_extents_join_from_the_first_to_the_last(
    extents: list[RunWindow | None], joined: RunWindow | None
) -> None:
    assert join_extents(extents) == joined


def test_several_runs_in_a_file_are_several_windows() -> None:
    trace = _decode(
        _line("run_start", at_s=0),
        _line("run_stop", at_s=20, status="success"),
        _line("run_start", at_s=30),
        _line("run_stop", at_s=45, status="aborted"),
        _line("run_start", at_s=1_000),
    )
    assert trace.windows == (_window(0, 20, "success"), _window(30, 45, "aborted"), _window(1_000, None))


@pytest.mark.parametrize(
    "lines",
    [
        [_line("submission_benchmark", "b"), _line("run_stop", at_s=5)],
        [_line("submission_benchmark", "b"), _line("cache_clear", at_s=900), _line("run_stop", at_s=5)],
    ],
)
def test_a_stop_without_its_start_is_counted(lines: list[str]) -> None:
    trace = _decode(*lines)
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == f"r.txt:{len(lines)}"
    assert "run_start" in trace.skipped[0].expected


@pytest.mark.parametrize(
    ("platform", "nodes"),
    [
        ("64xSUBMISSION_PLATFORM_PLACEHOLDER", 64),
        ("1xMI300X", 1),
        ("gaudi-8", None),
        ("tpu-v5p", None),
        ("x64", None),
        ("99999999xH100", None),
        ("", None),
    ],
)
def test_a_platform_stands_as_it_is_and_may_say_how_many_nodes(platform: str, nodes: int | None) -> None:
    trace = _decode(_line("submission_benchmark", "gpt3"), _line("submission_platform", platform))
    assert trace.declaration == Declaration(benchmark="gpt3", platform=platform, nodes=nodes)


def test_a_system_line_is_read_once_although_a_shell_trace_repeats_it() -> None:
    fields = {"number_of_nodes": "2", "accelerators_per_node": "8", "accelerator_model_name": "NVIDIA H100"}
    system = f":::SYSJSON {json.dumps(fields)}"
    trace = _decode(f"+ echo '{system}'", system, _line("run_start"))
    assert trace.declaration == Declaration(nodes=2, chips=16, chip_name="NVIDIA H100")
    assert trace.n_skipped == 0


def test_events_declare_a_system_as_well_and_beat_the_platform() -> None:
    trace = _decode(
        _line("submission_platform", "3xH100"),
        _line("number_of_nodes", 4),
        _line("accelerators_per_node", "8"),
        _line("accelerator_model_name", "MI300X"),
    )
    assert trace.declaration == Declaration(platform="3xH100", nodes=4, chips=32, chip_name="MI300X")


def test_a_platform_and_a_system_line_give_chips_together() -> None:
    trace = _decode(_line("submission_platform", "3xH100"), ':::SYSJSON {"accelerators_per_node":"8"}')
    assert trace.declaration == Declaration(platform="3xH100", nodes=3, chips=24)


@pytest.mark.parametrize(
    "line",
    [
        ':::SYSJSON {"number_of_nodes":"many"}',
        ':::SYSJSON {"number_of_nodes":}',
        ':::SYSJSON {"number_of_nodes":1,"number_of_nodes":2}',
        _line("number_of_nodes", "many"),
        _line("accelerators_per_node", 1.5),
        _line("accelerator_model_name", 7),
        ":::MLLOG {",
    ],
)
def test_what_cannot_be_read_is_counted_with_its_place(line: str) -> None:
    trace = _decode(_line("run_start"), line)
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == "r.txt:2"
    assert trace.declaration is None


@pytest.mark.parametrize("line", [":::SYSJSON", ":::SYSJSON nothing", ":::SYSJSON [1]"])
def test_a_system_line_without_an_object_says_nothing(line: str) -> None:
    trace = _decode(_line("run_start"), line)
    assert (trace.n_skipped, trace.declaration) == (0, None)


def test_hyperparameters_and_quality_leave_no_trace() -> None:
    with_them = _decode(
        _line("run_start"),
        _line("global_batch_size", 1536),
        _line("train_samples", 10**9),
        _line("eval_accuracy", 2.7),
    )
    assert with_them == _decode(_line("run_start"))


@pytest.mark.parametrize("value", [7, None, ["b"], "b" * 2_000])
def test_a_benchmark_that_is_no_short_text_is_not_taken(value: object) -> None:
    assert _decode(_line("run_start"), _line("submission_benchmark", value)).declaration is None


@pytest.mark.parametrize(
    "lines", [[], ["noise"], [_line("cache_clear")], [_line("run_stop")], [":::MLLOG {"]]
)
def test_a_log_that_marks_no_run_and_declares_nothing_is_refused(lines: list[str]) -> None:
    with pytest.raises(DecodeError, match=r"r\.txt:1: a result log that marks no run"):
        _decode(*lines)


def test_more_runs_than_a_log_may_hold_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_log, "MOST_PER_LOG", 2)
    trace = _decode(*(_line("run_start", at_s=1_000 * number) for number in range(4)))
    assert (len(trace.windows), trace.n_skipped) == (2, 2)


@pytest.mark.parametrize(
    ("windows", "merged"),
    [
        ([], ()),
        ([_window(5, 90), _window(0, 100, "success")], (_window(0, 100, "success"),)),
        ([_window(0, 90, "success"), _window(5, 100)], (_window(0, 100, "success"),)),
        ([_window(0, None), _window(5, 100, "aborted")], (_window(0, 100, "aborted"),)),
        ([_window(0, 100), _window(5, None)], (_window(0, 100),)),
        ([_window(0, 10), _window(20, 30)], (_window(0, 10), _window(20, 30))),
        ([_window(70, 100), _window(0, 100)], (_window(0, 100), _window(70, 100))),
    ],
)
def test_windows_of_several_logs_become_one_for_each_run(
    windows: list[RunWindow], merged: tuple[RunWindow, ...]
) -> None:
    assert merge_windows(windows) == merged
