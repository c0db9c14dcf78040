"""`flopwitness doctor` as a user meets it: what logs hold, statuses, and one line for an error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., tuple[int, str, str]]


def _record(call: Call, *arguments: object) -> dict[str, Any]:
    status, out, err = call("doctor", *arguments, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert isinstance(record, dict)
    return record


def _codes(record: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in record["findings"]]


def _power_line(at_s: float, value: object) -> str:
    record = {"time_ms": 1_700_000_000_000 + round(at_s * 1_000), "key": "power_reading", "value": value}
    return f":::MLLOG {json.dumps(record)}\n"


def test_a_folder_of_logs_is_listed(call: Call, run_folder: Path) -> None:
    status, out, err = call("doctor", run_folder)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"{run_folder}/power_ac/node_1.txt: mlperf-power, ")
    assert "  from       2023-11-14T22:13:20Z, 10 min" in lines
    power = next(line for line in lines if line.startswith("  power_w"))
    assert "good: 602 readings on 2 devices, every 2 s" in power
    assert "(node-ac)" in power
    assert "  run marked 9 min 20 s, success" in lines
    assert "  serves for an estimate from energy" in lines
    assert "findings" not in lines


def test_json_holds_every_reading(call: Call, run_folder: Path) -> None:
    record = _record(call, run_folder)
    assert record["spec"] == "flopwitness/doctor/v1"
    assert len(record["inputs"]) == 3
    assert [(each["device"], each["n_readings"], each["grade"]) for each in record["readings"]] == [
        ("node_1", 301, "good"),
        ("node_2", 301, "good"),
    ]
    assert (record["n_runs"], record["n_skipped"], record["findings"]) == (1, 0, [])


def test_a_log_without_a_reading_beside_others_is_told(call: Call, run_folder: Path) -> None:
    (run_folder / "power_ac" / "node_3.txt").write_text(_power_line(0, None).replace("null", "nil"))
    record = _record(call, run_folder)
    assert (record["n_skipped"], _codes(record)) == (1, ["lines-skipped"])


def test_missing_readings_are_told_and_the_status_is_0_all_the_same(call: Call, tmp_path: Path) -> None:
    log = tmp_path / "node_1.txt"
    log.write_text("".join(_power_line(i, 400 if i % 3 else None) for i in range(30)))
    status, out, _ = call("doctor", log)
    assert status == 0
    assert "poor: 30 readings" in out
    assert "34 % of the time covered" in " ".join(out.split())
    record = _record(call, log)
    assert "reading-missing" in _codes(record)
    assert record["readings"][0]["n_missing"] == 10


def test_findings_come_worst_first(call: Call, run_folder: Path) -> None:
    path = run_folder / "power_ac" / "node_2.txt"
    path.write_text(path.read_text() + ":::MLLOG {\n")
    record = _record(call, run_folder, "--scope", "node-dc")
    order = ["contradiction", "warning", "note"]
    ranks = [order.index(finding["severity"]) for finding in record["findings"]]
    assert ranks == sorted(ranks)
    assert set(_codes(record)) == {"lines-skipped", "scope-overruled"}


def test_the_options_for_reading_reach_the_readers(call: Call, run_folder: Path) -> None:
    plain = run_folder / "node_9.txt"
    plain.write_text("".join(_power_line(i, 400) for i in range(5)))
    record = _record(call, plain, "--scope", "module", "--timezone", "Europe/Berlin", "--period", "2")
    assert record["readings"][0]["scope"] == "module"
    assert _codes(record) == []


def test_a_format_that_is_named_is_not_guessed(call: Call, run_folder: Path) -> None:
    status, out, err = call("doctor", run_folder / "result.txt", "--format", "mlperf-power")
    assert (status, out) == (2, "")
    assert "without a reading" in err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--timezone", "Mars/Olympus"), "--timezone"),
        (("--timezone", ""), "--timezone"),
        (("--period", "0"), "--period"),
        (("--period", "nan"), "--period"),
        (("--period", "1e6"), "--period"),
        (("--columns", "power_w"), "--columns"),
        (("--scope", "galaxy"), "--scope"),
        (("--format", "run-table"), "--format"),
        (("--format", "excel"), "excel"),
        (("--count", "8"), "--count"),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    call: Call, run_folder: Path, arguments: tuple[str, ...], part: str
) -> None:
    status, out, err = call("doctor", run_folder, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert part in err


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "no known log"),
        (b"hello", "no known log"),
        (b"\x00" * 100, "no known log"),
        (b"model,chip\n", "no known log"),
        (b"PAR1", ""),
        (b"PK\x03\x04", "archive"),
        (b"\x1f\x8b", "archive"),
    ],
)
def test_what_is_no_log_is_refused(call: Call, tmp_path: Path, data: bytes, part: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(data)
    status, out, err = call("doctor", path)
    assert (status, out) == (2, "")
    assert err.startswith(f"flopwitness: {path}")
    assert err.count("\n") == 1
    assert part in err


def test_what_is_not_there_is_refused(call: Call, tmp_path: Path) -> None:
    for arguments in ((tmp_path / "none.txt",), ()):
        status, out, err = call("doctor", *arguments)
        assert (status, out) == (2, "")
        assert err


def test_a_log_cannot_steer_the_terminal(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J.txt"
    path.write_text(_power_line(0, 400) + ":::MLLOG \x1b[2J\n" + _power_line(1, 400))
    for words in ((), ("--json",)):
        status, out, _ = call("doctor", path, *words)
        assert status == 0
        assert "\x1b" not in out


def test_settings_of_a_file_are_told(call: Call, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOPWITNESS_DOCTOR_SCOPE", "node-dc")
    assert "settings-used" in _codes(_record(call, run_folder))
