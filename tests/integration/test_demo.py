"""The demo, from made-up logs to the answer, without any recording."""

import json
from pathlib import Path

from click.testing import CliRunner

from flopwitness.cli.group import cli


def test_demo_writes_logs_picture_and_answer_and_says_that_it_is_a_simulation(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["demo", "--out", str(tmp_path / "demo")], standalone_mode=False)
    assert done.return_value == 0
    assert done.output.startswith("A simulated run")
    answer = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert answer["count"] == 16
    assert answer["energy_j"] / 3.6e6 > 4
    assert {item["position"] for item in answer["rules"]} == {"below"}
    assert "gap" in {item["code"] for item in answer["findings"]}
    assert (tmp_path / "demo" / "power.png").read_bytes().startswith(b"\x89PNG")


def test_demo_into_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("a file")
    done = CliRunner().invoke(cli, ["demo", "--out", str(tmp_path / "demo")])
    assert done.exit_code != 0


def test_the_same_seed_gives_the_same_answer(tmp_path: Path) -> None:
    for name in ("a", "b"):
        CliRunner().invoke(cli, ["demo", "--out", str(tmp_path / name)], standalone_mode=False)
    first, second = ((tmp_path / name / "logs/power_ac/node_1.txt").read_bytes() for name in ("a", "b"))
    assert first == second
