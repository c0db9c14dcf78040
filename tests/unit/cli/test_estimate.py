"""`flopwitness estimate` as a user meets it: statuses, one line for an error, files whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from flopwitness.catalogue.chips import load_chips
from flopwitness.cli import estimate
from flopwitness.foundation.units import decode_flop

Call = Callable[..., tuple[int, str, str]]

ART51 = ("--rule", "eu-ai-act-art51")


def _record(call: Call, *arguments: object) -> dict[str, Any]:
    status, out, err = call("estimate", *arguments, "--json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert isinstance(record, dict)
    return record


def _codes(record: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in record["findings"]}


def _check_refused(found: tuple[int, str, str], *parts: str) -> None:
    status, out, err = found
    assert (status, out) == (2, "")
    assert err.startswith("flopwitness: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err


def test_a_folder_of_logs_gives_the_whole_answer(call: Call, run_folder: Path) -> None:
    status, out, err = call("estimate", run_folder)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "16 x NVIDIA H100 SXM5 80GB, 2 nodes, 9 min 20 s"
    assert lines[1].startswith("  energy      ")
    assert "on the AC side, 100.0 % of the time covered" in lines[1]
    assert "declared-hardware" in out


def test_json_carries_counts_as_decimal_strings(call: Call, run_folder: Path) -> None:
    record = _record(call, run_folder, "--chip", "h100-sxm", "--count", 16)
    estimate, upper = record["estimate"], record["upper_bound"]
    low, flop, high = (decode_flop(estimate[name]) for name in ("low", "flop", "high"))
    assert low <= flop <= high <= decode_flop(upper["flop"])
    assert record["duration_s"] == 560
    assert record["recorded_s"] == 600
    assert _codes(record) == {"scope", "precision-assumed"}
    assert {rule["position"] for rule in record["rules"]} == {"below"}
    assert all(finding["reproduce"].startswith("flopwitness estimate ") for finding in record["findings"])


def test_the_files_in_any_order_give_the_same_answer(call: Call, run_folder: Path) -> None:
    files = sorted(path for path in run_folder.rglob("*.txt"))
    one, other = (_record(call, *order) for order in (files, files[::-1]))
    for key in ("estimate", "upper_bound", "duration_s"):
        assert one[key] == other[key]
    assert one["energy_j"] == pytest.approx(other["energy_j"])


def test_below_a_named_rule_is_status_0(call: Call, run_folder: Path) -> None:
    status, out, _ = call("estimate", run_folder, *ART51)
    assert status == 0
    assert ": below. Even the bound is" in " ".join(out.split())


def test_what_cannot_be_told_is_status_3(call: Call, run_folder: Path) -> None:
    status, out, err = call("estimate", run_folder, *ART51, "--other-flop", "9.99999e24")
    assert (status, err) == (3, "")
    assert "cannot tell" in " ".join(out.split())
    likely, out, _ = call("estimate", run_folder, *ART51, "--other-flop", "2e25")
    assert likely == 3
    assert "likely above" in " ".join(out.split())


def test_one_rule_of_several_that_cannot_be_told_is_status_3(call: Call, run_folder: Path) -> None:
    rules = (*ART51, "--rule", "us-ca-sb53")
    assert call("estimate", run_folder, *rules, "--other-flop", "2e25")[0] == 3
    assert call("estimate", run_folder, *rules)[0] == 0


def test_without_a_named_rule_the_status_is_0(call: Call, run_folder: Path) -> None:
    assert call("estimate", run_folder, "--other-flop", "1e27")[0] == 0


def test_rules_of_another_day(call: Call, run_folder: Path) -> None:
    assert _record(call, run_folder, "--on", "2020-01-01")["rules"] == []
    assert _record(call, run_folder, "--on", "2026-06-01")["rules"] != []


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("/no/such/log.txt",), ("/no/such/log.txt", "no such file")),
        (("a" * 300,), ("cannot be read",)),
    ],
)
def test_files_that_are_not_there_are_refused(
    call: Call, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    _check_refused(call("estimate", *arguments), *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--chip", "abacus-3000"), ("--chip", "abacus-3000", "expected")),
        (("--chip", "v100-sxm2-16gb", "--precision", "fp8"), ("fp8", "expected")),
        (("--precision", "fp3"), ("--precision", "fp3", "bf16")),
        (("--rule", "no-such-rule"), ("no-such-rule",)),
        (("--rule", "eu-gpai-modifier"), ("--rule eu-gpai-modifier", "threshold")),
        (("--on", "yesterday"), ("--on", "yesterday")),
        (("--count", "0"), ("--count",)),
        (("--count", "many"), ("--count",)),
        (("--safety", "2"), ("--safety",)),
        (("--safety", "nan"), ("--safety",)),
        (("--level", "0"), ("--level",)),
        (("--level", "nan"), ("--level",)),
        (("--tolerance", "7"), ("--tolerance",)),
        (("--tolerance", "nan"), ("--tolerance",)),
        (("--other-flop", "much"), ("--other-flop", "much")),
        (("--other-flop", "1.5"), ("--other-flop",)),
        (("--other-flop", "-1"), ("--other-flop",)),
        (("--scope", "galaxy"), ("--scope",)),
        (("--format", "excel"), ("excel",)),
        (("--workload", "poetry"), ("--workload",)),
        (("--where", "a=b"), ("--where", "a table of runs")),
        (("--gate", "80"), ("--gate", "a table of runs")),
        (("--gate", "nan"), ("--gate",)),
        (("--level", "inf"), ("--level",)),
        (("--tolerance", "-inf"), ("--tolerance",)),
        (("--safety", "1e-999999999"), ("--safety",)),
        (("--safety", "1e999999999"), ("--safety",)),
        (("--count", "1_6"), ("--count",)),
        (("--rows", "\u0663"), ("--rows",)),
        (("--other-flop", "1_000"), ("--other-flop",)),
        (("--other-flop", "1e999999999"), ("--other-flop",)),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    call: Call, run_folder: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    _check_refused(call("estimate", run_folder, *arguments), *parts)


@pytest.mark.parametrize("content", [b"", b"Total Power Usage: 5 kWh\n", b"\x00\xff" * 50, b"[1, 2]"])
def test_what_is_no_log_is_refused_with_its_place(call: Call, tmp_path: Path, content: bytes) -> None:
    log = tmp_path / "notes.txt"
    log.write_bytes(content)
    _check_refused(call("estimate", log), f"{log}:1", "expected", "mlperf-power")


def test_power_alone_asks_for_chip_and_count(call: Call, run_folder: Path) -> None:
    power = run_folder / "power_ac"
    _check_refused(call("estimate", power), "--chip NAME")
    _check_refused(call("estimate", power, "--chip", "h100-sxm"), "--count N")
    record = _record(call, power, "--chip", "h100-sxm", "--count", 16)
    assert record["run_start"] is None
    assert record["duration_s"] == 600


def test_a_name_that_several_chips_share_is_told(call: Call, run_folder: Path) -> None:
    record = _record(call, run_folder, "--chip", "H100", "--count", 16)
    assert len(record["chips"]) > 1
    assert "chip-variants" in _codes(record)


def test_shorter_marks_never_lower_the_bound(call: Call, run_folder: Path) -> None:
    result = run_folder / "result.txt"
    honest = _record(call, run_folder)
    text = result.read_text()
    start, stop = (1_700_000_000_000 + at_ms for at_ms in (20_000, 580_000))
    result.write_text(text.replace(str(stop), str(start + 1_000)))
    short = _record(call, run_folder)
    assert short["duration_s"] == 1
    assert short["upper_bound"]["flop"] == honest["upper_bound"]["flop"]
    result.write_text(text.replace(str(stop), str(start - 5_000)))
    reversed_run = _record(call, run_folder)
    assert decode_flop(reversed_run["upper_bound"]["flop"]) >= decode_flop(honest["upper_bound"]["flop"])
    assert reversed_run["findings"][0]["code"] == "run-reversed"


@pytest.mark.parametrize("factor", ["0.01", "1e-300", "1e300"])
def test_a_conversion_factor_never_lowers_the_bound(call: Call, run_folder: Path, factor: str) -> None:
    honest = _record(call, run_folder)
    for log in (run_folder / "power_ac").iterdir():
        event = f':::MLLOG {{"time_ms": 1700000000000, "key": "conversion_eff", "value": {factor}}}\n'
        log.write_text(event + log.read_text())
    lowered = _record(call, run_folder)
    assert decode_flop(lowered["upper_bound"]["flop"]) >= decode_flop(honest["upper_bound"]["flop"])
    assert lowered["energy_j"] == honest["energy_j"]
    assert "conversion-odd" in _codes(lowered)


def test_a_copied_node_log_bounds_nothing(call: Call, run_folder: Path) -> None:
    first, second = sorted((run_folder / "power_ac").iterdir())
    second.write_text(first.read_text() + "\n")
    record = _record(call, run_folder)
    assert record["upper_bound"]["by"] == "time"
    assert "recording-copied" in _codes(record)


def test_a_node_kept_back_raises_the_bound(call: Call, run_folder: Path) -> None:
    whole = _record(call, run_folder)
    (run_folder / "power_ac" / "node_2.txt").unlink()
    part = _record(call, run_folder)
    assert decode_flop(part["upper_bound"]["flop"]) >= decode_flop(whole["upper_bound"]["flop"])
    assert "nodes-differ" in _codes(part)
    (run_folder / "result.txt").unlink()
    undeclared = _record(call, run_folder, "--chip", "h100-sxm", "--count", 16)
    assert decode_flop(undeclared["upper_bound"]["flop"]) >= decode_flop(whole["upper_bound"]["flop"])
    assert "nodes-differ" in _codes(undeclared)


def test_odd_readings_raise_nothing(call: Call, run_folder: Path) -> None:
    odd = ["NaN", "-5", "1e308", "null", '"12"', "true", "0", "1e9", "[1]"]
    log = run_folder / "power_ac" / "node_1.txt"
    times = (1_700_000_000_000, 1_700_000_000_000, 1_699_999_990_000, 7_258_118_400_000, 0)
    log.write_text(
        log.read_text()
        + "".join(
            f':::MLLOG {{"time_ms": {time}, "key": "power_reading", "value": {value}}}\n'
            for value in odd
            for time in times
        )
    )
    record = _record(call, run_folder)
    assert {"clock-backwards", "reading-missing"} <= _codes(record)
    assert call("estimate", run_folder, "--plot", run_folder.parent / "power.svg")[0] == 0


def test_out_and_plot_are_written_whole(call: Call, run_folder: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "answer.json", tmp_path / "power.png"
    status, text, err = call("estimate", run_folder, "--out", out, "--plot", plot)
    assert (status, err) == (0, "")
    assert text.startswith("16 x ")
    record = json.loads(out.read_text())
    assert record["spec"] == "flopwitness/estimate/v1"
    assert plot.read_bytes().startswith(b"\x89PNG")
    svg = tmp_path / "power.SVG"
    assert call("estimate", run_folder, "--plot", svg)[0] == 0
    assert b"</svg>" in svg.read_bytes()


@pytest.mark.parametrize("option", ["--out", "--plot"])
@pytest.mark.parametrize("place", ["no/such/folder/x.png", "a-folder.png"])
def test_where_it_cannot_be_written_nothing_is_left(
    call: Call, run_folder: Path, tmp_path: Path, option: str, place: str
) -> None:
    (tmp_path / "a-folder.png").mkdir()
    before = sorted(tmp_path.rglob("*"))
    _check_refused(call("estimate", run_folder, option, tmp_path / place), place, "cannot be written")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_picture_that_cannot_be_drawn_is_refused(call: Call, run_folder: Path, tmp_path: Path) -> None:
    _check_refused(call("estimate", run_folder, "--plot", tmp_path / "x.pdf"), "png or svg", "pdf")
    _check_refused(
        call("estimate", run_folder / "result.txt", "--plot", tmp_path / "x.png"), "no power reading"
    )
    assert not list(tmp_path.glob("x.*"))


def test_a_file_whose_name_is_no_utf8_can_be_read(call: Call, run_folder: Path, tmp_path: Path) -> None:
    log = run_folder / "power_ac" / "node_1.txt"
    log.rename(os.fsdecode(os.fsencode(log.parent) + b"/node_\xff.txt"))
    out = tmp_path / "answer.json"
    status, text, err = call("estimate", run_folder, "--json", "--out", out)
    assert (status, err) == (0, "")
    assert json.loads(text) == json.loads(out.read_bytes())
    assert call("estimate", run_folder)[0] == 0


def test_a_table_gives_a_record_a_run(call: Call, table_file: Path) -> None:
    record = _record(call, table_file, *ART51)
    assert [run["run_id"] for run in record["runs"]] == ["small", "huge", "odd"]
    positions = [run["rules"][0]["position"] for run in record["runs"]]
    assert positions == ["below", "likely-above", "cannot-tell"]
    status, out, err = call("estimate", table_file, *ART51, "--rows", 1)
    assert (status, err) == (0, "")
    assert "1 more row (" in out
    assert "1 likely above, 1 cannot tell, 1 below" in out


def test_rows_can_be_chosen(call: Call, table_file: Path) -> None:
    record = _record(call, table_file, "--where", "model=small")
    assert [run["run_id"] for run in record["runs"]] == ["small"]
    assert [finding["message"] for finding in record["findings"]] == ["2 rows miss a condition"]
    gated = _record(call, table_file, "--gate", 80)
    assert [run["run_id"] for run in gated["runs"]] == ["small"]
    assert len(gated["findings"]) == 2


def test_the_calls_chip_and_count_estimate_and_the_bound_covers_the_tables_too(
    call: Call, table_file: Path
) -> None:
    record = _record(call, table_file, "--chip", "a100-sxm-80gb", "--count", 4, "--precision", "bf16")
    for run in record["runs"]:
        assert {"chip-differs", "count-differs"} & _codes(run)
    assert {tuple(run["estimate"]["precisions"]) for run in record["runs"]} == {("bf16",)}


def test_unreadable_cells_are_told(call: Call, table_file: Path) -> None:
    table_file.write_text(table_file.read_text() + "torn,H100 SXM,eight,3600,\n")
    assert "cells-skipped" in _codes(_record(call, table_file))


def test_what_a_table_cannot_do_is_refused(
    call: Call, table_file: Path, run_folder: Path, tmp_path: Path
) -> None:
    _check_refused(call("estimate", table_file, run_folder), "stands alone")
    _check_refused(call("estimate", table_file, "--plot", tmp_path / "x.png"), "--plot")
    _check_refused(call("estimate", table_file, "--where", "colour=red"), "colour")
    _check_refused(call("estimate", table_file, "--where", "model"), "--where", "column=value")
    _check_refused(call("estimate", table_file, "--gate", "101"), "--gate")
    _check_refused(call("estimate", table_file, "--gate", "nan"), "--gate")
    _check_refused(call("estimate", table_file, "--chip", "abacus"), "--chip")
    _check_refused(call("estimate", run_folder / "result.txt", "--format", "run-table"), "result.txt")


def test_a_table_of_which_no_row_can_be_read_is_refused_with_the_first_reason(
    call: Call, table_file: Path
) -> None:
    header = table_file.read_text().splitlines()[0] + "\n"
    table_file.write_text(header)
    _check_refused(call("estimate", table_file), str(table_file), "without runs")
    table_file.write_text(f"{header}a,h100\nb,h100\n")
    _check_refused(
        call("estimate", table_file), f"{table_file}:2: no row could be read", "5 cells", "2 cells"
    )
    table_file.write_text(f"{header}a,h100\nb,H100 SXM,8,60,\n")
    assert len(_record(call, table_file)["runs"]) == 1


def test_a_judged_table_ends_with_0_and_the_help_says_so(call: Call, table_file: Path) -> None:
    assert call("estimate", table_file, *ART51)[0] == 0
    assert "For a table it is 0 once the rows are judged" in " ".join(call("estimate", "--help")[1].split())


def test_what_is_no_law_says_so_before_its_verdict(call: Call, run_folder: Path, table_file: Path) -> None:
    vetoed = ("--rule", "us-ca-sb1047", "--on", "2026-06-01")
    for log in (run_folder, table_file):
        out = " ".join(call("estimate", log, *vetoed)[1].split())
        assert "Not in force: vetoed, never law. California SB 1047, more than 1e26 FLOP" in out
    assert _record(call, run_folder, *vetoed)["rules"][0]["standing"] == "vetoed, never law"
    assert _record(call, table_file, *vetoed)["runs"][0]["rules"][0]["status"] == "vetoed"


def test_a_day_without_law_is_said(call: Call, run_folder: Path, table_file: Path) -> None:
    for log in (run_folder, table_file):
        out = call("estimate", log, "--on", "1900-01-01")[1]
        assert out.count("No compute rule in this catalogue was in force on 1 January 1900.") == 1


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_the_evidence_is_never_written_over(
    call: Call, run_folder: Path, tmp_path: Path, option: str
) -> None:
    result = run_folder / "result.txt"
    (tmp_path / "link.png").symlink_to(result)
    before = {path: path.read_bytes() for path in run_folder.rglob("*.txt")}
    for target in (result, tmp_path / "link.png", run_folder / "new.png"):
        _check_refused(call("estimate", run_folder, option, target), option, "write into the evidence")
    assert {path: path.read_bytes() for path in run_folder.rglob("*") if path.is_file()} == before


def test_two_answers_never_share_a_file(call: Call, run_folder: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.png"
    _check_refused(call("estimate", run_folder, "--plot", same, "--out", same), "two answers in one file")
    assert not same.exists()


def test_targets_are_checked_before_the_work(
    call: Call, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("work was done")

    monkeypatch.setattr(estimate, "read_logs_or_table", fail)
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "pipe", tmp_path, tmp_path / "missing" / "x.json", Path("/dev/null")):
        _check_refused(
            call("estimate", run_folder, "--out", target, "--plot", tmp_path / "p.png"), "cannot be written"
        )


def test_where_the_second_file_cannot_be_written_the_first_is_not_left(
    call: Call, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Path.replace

    def fail(path: Path, target: Path) -> Path:
        if target.name == "x.json":
            raise PermissionError(1, "Operation not permitted")
        return usual(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    before = sorted(tmp_path.rglob("*"))
    found = call("estimate", run_folder, "--plot", tmp_path / "p.png", "--out", tmp_path / "x.json")
    _check_refused(found, "x.json", "cannot be written")
    assert sorted(tmp_path.rglob("*")) == before


def test_json_is_encoded_only_where_it_is_asked_for(
    call: Call, run_folder: Path, table_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[object] = []

    def encode(record: object) -> str:
        encoded.append(record)
        return "{}"

    monkeypatch.setattr(estimate, "encode_answer", encode)
    for log in (run_folder, table_file):
        assert call("estimate", log)[0] == 0
    assert encoded == []
    assert call("estimate", table_file, "--json")[1] == "{}\n"
    assert call("estimate", table_file, "--out", tmp_path / "x.json")[0] == 0
    assert len(encoded) == 2


@pytest.mark.parametrize(
    ("name", "near"), [("H100 SXN", "H100 SXM"), ("gaudi", "Gaudi"), ("abacus", "h100-sxm")]
)
def test_an_unknown_chip_is_told_names_that_are_known(
    call: Call, run_folder: Path, name: str, near: str
) -> None:
    _check_refused(call("estimate", run_folder, "--chip", name), "--chip", near)
    assert "docs/" not in call("estimate", run_folder, "--chip", name)[2]
    known = load_chips()
    assert all(known.find(usual) for usual in estimate._USUAL_CHIPS)


def test_a_table_cannot_steer_the_terminal(call: Call, table_file: Path) -> None:
    name = "x\x1b[2J\x9b31m\nEU AI Act Art. 51(2): below"
    table_file.write_text(f'model,chip,count,duration_s\n"{name}",H100 SXM,8,60\n"{name}",{name!r},8,60\n')
    for words in ((), ("--json",)):
        out = call("estimate", table_file, *words)[1]
        assert not {"\x1b", "\x9b"} & set(out)
        assert "\nEU AI Act Art. 51(2): below" not in out


def test_a_log_that_may_not_be_read_is_refused(
    call: Call, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual: Callable[..., IO[Any]] = Path.open

    def refuse(path: Path, *arguments: str, **options: str) -> IO[Any]:
        if path.name == "result.txt":
            raise PermissionError(13, "Permission denied")
        return usual(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    _check_refused(call("estimate", run_folder / "result.txt"), "result.txt", "Permission denied")


def test_scope_fills_a_table(call: Call, tmp_path: Path) -> None:
    table = tmp_path / "scopeless.csv"
    table.write_text("run_id,chip,count,duration_s,energy_j\na,H100 SXM,8,3600,1.2e7\n")
    bare, stated = _record(call, table), _record(call, table, "--scope", "gpu")
    assert _codes(bare) == {"scope-unrecorded"}
    assert _codes(stated) == set()
    assert bare["runs"][0]["upper_bound"]["by"] == "time"
    assert stated["runs"][0]["energy_scope"] == "gpu"
    assert stated["runs"][0]["estimate"]["method"] == "prior-energy"


@pytest.mark.parametrize("name", ["run_folder", "table_file"])
def test_weaker_settings_stand_in_the_answer(call: Call, name: str, request: pytest.FixtureRequest) -> None:
    evidence = request.getfixturevalue(name)
    usual = _record(call, evidence)
    assert (usual["safety"], usual["tolerance"]) == ("1/2", 0.1)
    assert "settings-weak" not in _codes(usual)
    weak = _record(call, evidence, "--safety", "1", "--tolerance", "0")
    assert (weak["safety"], weak["tolerance"]) == ("1", 0)
    assert "settings-weak" in _codes(weak)
    assert "settings-weak" in call("estimate", evidence, "--tolerance", "0")[1]
