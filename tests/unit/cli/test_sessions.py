"""`flopwitness sessions` and `flopwitness collect` on a small made-up recording."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from flopwitness.cli.group import cli
from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.trace_file import decode_trace, encode_trace

Call = Callable[..., tuple[int, str, str]]

START_NS = 1_700_000_000 * 10**9
IDLE_W, BUSY_W = 60.0, 460.0


def _series(channel: Channel, values: Sequence[float]) -> Series:
    return Series(
        device="gpu_0",
        channel=channel,
        scope=Scope.GPU,
        utc_ns=START_NS + np.arange(len(values), dtype=np.int64) * 10**9,
        value=np.array(values, dtype=np.float64),
    )


def _write(path: Path, share: Sequence[float], *, idle_w: float = IDLE_W, channels: int = 2) -> Path:
    power_w = [BUSY_W if value else idle_w for value in share]
    series = (_series(Channel.UTILISATION_PCT, share), _series(Channel.POWER_W, power_w))
    path.write_bytes(encode_trace(Trace(series=series[:channels])))
    return path


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    """Two bursts of work, 200 s and 100 s, between stretches of idle."""
    return _write(tmp_path / "t.parquet", [0] * 120 + [90] * 200 + [0] * 60 + [90] * 100 + [0] * 120)


def test_sessions_are_listed_beside_totals(call: Call, trace_file: Path) -> None:
    status, text, err = call("sessions", trace_file)
    assert (status, err) == (0, "")
    assert text.startswith("sessions start above 5 % at 2 polls, stop below 5 % at 3, polled every 1.5 s\n")
    assert "gpu_0: 2 sessions" in text
    assert "2023-11-14 22:15:21" in text
    assert "over 60 W idle" in text


def test_json_holds_every_session_and_the_totals(call: Call, trace_file: Path) -> None:
    record = json.loads(call("sessions", trace_file, "--json")[1])
    (device,) = record["devices"]
    assert record["rule"]["start_polls"] == 2
    assert len(device["sessions"]) == 2
    assert not any(session["is_open"] for session in device["sessions"])
    assert device["idle_w"] == IDLE_W
    assert device["totals"]["net_energy_j"] == pytest.approx(300 * 400)
    assert device["totals"]["working_net_w"] == pytest.approx(400)
    assert device["totals"]["busy_s"] == pytest.approx(300)
    assert 0.97 < device["share_in_sessions"] < 1


def test_work_in_short_pieces_escapes_sessions_and_not_the_ledger(call: Call, tmp_path: Path) -> None:
    pieces = _write(tmp_path / "cut.parquet", [0] * 120 + ([90] * 4 + [0] * 10) * 40 + [0] * 60)
    record = json.loads(call("sessions", pieces, "--json")[1])
    (device,) = record["devices"]
    assert device["totals"]["net_energy_j"] == pytest.approx(160 * 400)
    assert device["share_in_sessions"] < 0.9
    assert "sessions-short" in {finding["code"] for finding in record["findings"]}


@pytest.mark.parametrize(
    ("options", "n_sessions"),
    [
        (["--stop-polls", "60"], 1),
        (["--start-above", "95"], 0),
        (["--start-polls", "100"], 1),
        (["--poll", "30"], 1),
    ],
)
def test_every_parameter_of_the_rule_counts(
    call: Call, trace_file: Path, options: list[str], n_sessions: int
) -> None:
    record = json.loads(call("sessions", trace_file, "--json", *options)[1])
    assert len(record["devices"][0]["sessions"]) == n_sessions


def test_idle_power_may_be_stated(call: Call, trace_file: Path) -> None:
    (device,) = json.loads(call("sessions", trace_file, "--json", "--idle", 160)[1])["devices"]
    assert device["idle_w"] == 160
    assert device["totals"]["net_energy_j"] == pytest.approx(300 * 300 - 300 * 100, rel=0.01)


def test_a_recording_that_never_idles_says_so(call: Call, tmp_path: Path) -> None:
    record = json.loads(call("sessions", _write(tmp_path / "b.parquet", [90] * 100), "--json")[1])
    (device,) = record["devices"]
    assert device["idle_w"] is None
    assert device["totals"]["net_energy_j"] == 0
    assert device["totals"]["unnetted_j"] == pytest.approx(99 * BUSY_W)
    assert "idle-unseen" in {finding["code"] for finding in record["findings"]}


def test_utilisation_alone_gives_sessions_without_energy(call: Call, tmp_path: Path) -> None:
    path = _write(tmp_path / "u.parquet", [0] * 9 + [90] * 20, channels=1)
    status, text, _ = call("sessions", path)
    assert status == 0
    assert "gpu_0: 1 session" in text
    assert "not ended" in text
    assert "no power was recorded" in text


def test_no_utilisation_is_told(call: Call, run_folder: Path) -> None:
    status, text, _ = call("sessions", run_folder)
    assert status == 0
    assert "utilisation-unrecorded" in text


@pytest.mark.parametrize(
    "options",
    [
        ["--start-above", "3"],
        ["--longest-gap", "1"],
        ["--poll", "0"],
        ["--poll", "nan"],
        ["--start-polls", "0"],
        ["--stop-below", "101"],
    ],
)
def test_what_is_no_rule_is_refused(call: Call, trace_file: Path, options: list[str]) -> None:
    status, text, err = call("sessions", trace_file, *options)
    assert (status, text) == (2, "")
    assert err.count("\n") == 1


def test_collect_plays_a_log_into_the_trace_that_import_makes(
    call: Call, trace_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.parquet"
    status, text, err = call("collect", "--replay", trace_file, "--out", out, "--speed", 0)
    assert (status, err) == (0, "")
    lines = text.splitlines()
    assert [line.split(": ")[-1] for line in lines[:-1]] == ["started", "stopped"] * 2
    assert lines[-1] == f"{out}: 1,200 readings in 2 series, 2 sessions"
    played, kept = (decode_trace(path.read_bytes(), where="x") for path in (trace_file, out))
    for ours, theirs in zip(kept.series, played.series, strict=True):
        assert ours.utc_ns.tolist() == theirs.utc_ns.tolist()
        assert ours.value.tolist() == theirs.value.tolist()
        assert (ours.device, ours.channel, ours.scope) == (theirs.device, theirs.channel, theirs.scope)


def test_collect_keeps_the_pace_and_speaks_json(call: Call, trace_file: Path, tmp_path: Path) -> None:
    naps: list[float] = []
    runner = CliRunner()
    out = tmp_path / "c.parquet"
    arguments = ["collect", "--replay", str(trace_file), "--out", str(out), "--speed", "4", "--json"]
    result = runner.invoke(cli, arguments, obj={"sleep": naps.append}, standalone_mode=False)
    assert result.exception is None
    assert json.loads(result.output)["n_readings"] == 1_200
    assert sum(naps) == pytest.approx(599 / 4)
    assert max(naps) <= 0.5


def test_an_interrupt_keeps_what_was_collected(trace_file: Path, tmp_path: Path) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "c.parquet"
    arguments = ["collect", "--replay", str(trace_file), "--out", str(out)]
    with pytest.raises(click.Abort):
        cli.main(arguments, obj={"sleep": interrupt}, standalone_mode=False)
    assert sum(len(series) for series in decode_trace(out.read_bytes(), where="x").series) == 2


def test_nothing_to_play_is_refused(call: Call, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.parquet"
    status, _, err = call("collect", "--replay", run_folder / "result.txt", "--out", out)
    assert status == 2
    assert "no reading to play" in err
    assert not out.exists()
    assert call("collect", "--out", out)[0] == 2


@pytest.fixture
def torn_log(tmp_path: Path) -> Path:
    """Power alone, with a line that is no row."""
    log = tmp_path / "smi.csv"
    rows = "".join(f"2025/05/14 09:00:0{second}.000, 0, 100.0 W\n" for second in range(3))
    log.write_text(f"timestamp, index, power.draw [W]\n{rows}junk\n")
    return log


def test_collecting_tells_what_is_odd_about_the_log(call: Call, torn_log: Path, tmp_path: Path) -> None:
    status, text, err = call("collect", "--replay", torn_log, "--out", tmp_path / "o.parquet", "--speed", "0")
    assert (status, err) == (0, "")
    assert f"  lines-skipped: 1 record could not be read; the first is at {torn_log}:5\n" in text


def test_sessions_that_nobody_can_tell_are_not_none(call: Call, torn_log: Path, tmp_path: Path) -> None:
    options = ("collect", "--replay", torn_log, "--out", tmp_path / "o.parquet", "--speed", "0")
    assert "3 readings in 1 series, no utilisation to tell sessions by\n" in call(*options)[1]
    record = json.loads(call(*options, "--json")[1])
    assert record["n_sessions"] is None
    codes = {finding["code"]: finding["reproduce"] for finding in record["findings"]}
    assert {"lines-skipped", "zone-assumed"} == set(codes)
    assert all(command.startswith("flopwitness") for command in codes.values())
