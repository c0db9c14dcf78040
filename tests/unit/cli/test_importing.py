"""`flopwitness import`: logs in, one trace file out, whole or not at all."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from flopwitness.measure.samples import Scope
from flopwitness.measure.trace_file import decode_trace

Call = Callable[..., tuple[int, str, str]]


def test_logs_become_one_trace_file(call: Call, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    status, text, err = call("import", run_folder, "--out", out)
    assert (status, err) == (0, "")
    assert text == f"{out}: 602 readings in 2 series from 3 files\n"
    trace = decode_trace(out.read_bytes(), where="x")
    assert [series.device for series in trace.series] == ["node_1", "node_2"]
    assert {series.scope for series in trace.series} == {Scope.NODE_AC}
    assert len(trace.windows) == 1
    assert len(trace.provenance) == 3


def test_json_tells_what_came_from_where(call: Call, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    status, text, _ = call("import", run_folder, "--out", out, "--json")
    record = json.loads(text)
    assert status == 0
    assert record["spec"] == "flopwitness/import/v1"
    assert (record["n_series"], record["n_readings"], record["n_runs"], record["n_skipped"]) == (2, 602, 1, 0)
    assert record["size_bytes"] == out.stat().st_size
    assert all(part["digest"].startswith("sha256:") for part in record["inputs"])


def test_what_was_skipped_is_told(call: Call, run_folder: Path, tmp_path: Path) -> None:
    log = run_folder / "power_ac" / "node_1.txt"
    log.write_bytes(log.read_bytes() + b":::MLLOG {torn\n")
    _, text, _ = call("import", run_folder, "--out", tmp_path / "run.parquet")
    assert "  lines-skipped: 1 record could not be read" in text
    record = json.loads(call("import", run_folder, "--out", tmp_path / "run.parquet", "--json")[1])
    assert "lines-skipped" in {finding["code"] for finding in record["findings"]}


def test_an_imported_trace_gives_the_same_estimate(call: Call, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    assert call("import", run_folder, "--out", out)[0] == 0
    direct, imported = (json.loads(call("estimate", log, "--json")[1]) for log in (run_folder, out))
    for key in ("estimate", "upper_bound", "energy_j", "coverage", "duration_s", "chips", "count"):
        assert direct[key] == imported[key]


def test_a_result_log_alone_can_be_imported(call: Call, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    assert call("import", run_folder / "result.txt", "--out", out)[0] == 0
    status, text, _ = call("estimate", out, "--json")
    assert status == 0
    assert json.loads(text)["duration_s"] == 560


@pytest.mark.parametrize("place", ["no/such/folder/run.parquet", "a-folder"])
def test_where_it_cannot_be_written_nothing_is_left(
    call: Call, run_folder: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "a-folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    status, text, err = call("import", run_folder, "--out", tmp_path / place)
    assert (status, text) == (2, "")
    assert err.count("\n") == 1
    assert place in err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x00\xff", b"PAR1", b"{}"])
def test_what_is_no_log_is_refused_and_nothing_written(call: Call, tmp_path: Path, content: bytes) -> None:
    log, out = tmp_path / "x.txt", tmp_path / "run.parquet"
    log.write_bytes(content)
    status, text, err = call("import", log, "--out", out)
    assert (status, text) == (2, "")
    assert err.startswith(f"flopwitness: {log}")
    assert err.count("\n") == 1
    assert not out.exists()


def test_the_evidence_is_never_written_over(call: Call, run_folder: Path, tmp_path: Path) -> None:
    result = run_folder / "result.txt"
    before = result.read_bytes()
    (tmp_path / "link").symlink_to(result)
    for logs, out in ((result, result), (run_folder, result), (run_folder, tmp_path / "link")):
        status, text, err = call("import", logs, "--out", out)
        assert (status, text) == (2, "")
        assert "write into the evidence" in err
    assert result.read_bytes() == before


def test_a_log_cannot_steer_the_terminal(call: Call, run_folder: Path, tmp_path: Path) -> None:
    log = run_folder / "power_ac" / "node\x1b[2J\n_3.txt"
    log.write_bytes((run_folder / "power_ac" / "node_1.txt").read_bytes() + b":::MLLOG {torn\n")
    for words in ((), ("--json",)):
        status, text, _ = call("import", run_folder, "--out", tmp_path / "run\x9b31m.parquet", *words)
        assert status == 0
        assert not {"\x1b", "\x9b"} & set(text)
        assert "\n_3.txt" not in text


def test_an_older_file_stays_when_the_import_fails(call: Call, tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    out.write_bytes(b"old")
    assert call("import", tmp_path / "missing.txt", "--out", out)[0] == 2
    assert out.read_bytes() == b"old"


def test_a_name_too_long_for_any_file_is_refused(call: Call, tmp_path: Path) -> None:
    status, _, err = call("import", "a" * 300, "--out", tmp_path / "run.parquet")
    assert status == 2
    assert err.count("\n") == 1
