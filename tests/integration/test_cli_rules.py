"""The command as a user starts it: status, one line for an error, no traceback."""

import json
import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).resolve().parent.parent / "cases"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flopwitness", "rules", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_case_of_many_runs_in_one_model_contradicts_stays_below() -> None:
    lineage = CASES / "h32_cumulative_threshold" / "lineage.json"
    done = run("assess", "--lineage", str(lineage), "--on", "2026-06-01", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    first = json.loads(done.stdout)["rules"][0]
    assert (first["id"], first["verdict"]) == ("eu-ai-act-art51", "inconsistent")
    assert first["threshold_flop"] == "10000000000000000000000000"


def test_below_every_law_ends_with_zero() -> None:
    done = run("assess", "--flop", "3.5e21", "--on", "2026-06-01")
    assert done.returncode == 0
    assert done.stdout.startswith("EU AI Act Art. 51(2), more than 1e25 FLOP: below.")


def test_what_nobody_can_tell_ends_with_three() -> None:
    assert run("assess", "--flop", "2e25", "--low", "1", "--on", "2026-06-01").returncode == 3


def test_wrong_use_is_one_line_on_standard_error() -> None:
    for arguments in (
        ("show", "eu-ai-act-art15"),
        ("assess", "--flop", "x"),
        ("assess", "--bogus"),
        ("lists",),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert "Traceback" not in done.stderr


def test_list_and_show_end_with_zero() -> None:
    assert run("list", "--all").returncode == 0
    assert run("show", "kr-ai-basic-act").returncode == 0
