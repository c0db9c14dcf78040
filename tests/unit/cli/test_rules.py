import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from flopwitness.cli.rules import command
from flopwitness.foundation.clock import FrozenClock, parse_utc
from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError, UnknownRuleError

MIDSUMMER = FrozenClock(utc_ns=parse_utc("2026-06-01T12:00:00Z"))


def call(*arguments: str, clock: FrozenClock = MIDSUMMER) -> int:
    status = command.main(args=list(arguments), standalone_mode=False, obj={"clock": clock})
    assert isinstance(status, int)
    return status


def record(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    status = call(*arguments, "--json")
    return status, json.loads(capsys.readouterr().out)


def test_the_list_is_for_the_day_of_the_clock(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list") == 0
    assert capsys.readouterr().out.startswith("Compute rules on 1 June 2026\n")
    status, found = record(capsys, "list", "--on", "2024-06-01")
    assert status == 0
    assert found["on"] == "2024-06-01"
    standing = {rule["id"]: rule["standing"] for rule in found["rules"]}
    assert standing["us-eo14110-model"] == "in force"
    assert standing["eu-ai-act-art51"] == "not yet in force"


def test_the_list_holds_back_what_is_no_law_until_all_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, short = record(capsys, "list")
    _, full = record(capsys, "list", "--all")
    assert {rule["status"] for rule in short["rules"]} == {"law", "guidance"}
    assert {rule["status"] for rule in full["rules"]} == {
        "law",
        "guidance",
        "rescinded",
        "vetoed",
        "proposal",
    }


def test_one_rule_is_shown_with_decimal_strings(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = record(capsys, "show", "eu-gpai-modifier")
    assert status == 0
    assert found["thresholds"] == [
        {
            "comparison": ">",
            "threshold_share": "1/3",
            "of": "the training compute of the original model",
            "fallbacks": [
                {"name": "original with systemic risk", "flop": "10000000000000000000000000"},
                {"name": "any other original", "flop": "100000000000000000000000"},
            ],
        }
    ]
    _, cluster = record(capsys, "show", "us-eo14110-cluster")
    assert cluster["thresholds"] == [{"comparison": ">=", "threshold_flop_per_s": "100000000000000000000"}]
    assert (cluster["in_force_until"], cluster["adopted"]) == ("2025-01-20", "2023-10-30")
    assert call("show", "eu-gpai-counting") == 0
    assert "not verified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "position", "verdict"),
    [
        (["--flop", "3.5e21"], 0, "below", "consistent"),
        (["--flop", "9.6e24"], 3, "cannot-tell", "inconclusive"),
        (["--flop", "9.6e24", "--exact"], 0, "below", "consistent"),
        (["--flop", "1e25", "--exact"], 0, "below", "consistent"),
        (["--flop", "2e25"], 3, "likely-above", "inconclusive"),
        (["--flop", "2e25", "--low", "1e24"], 3, "cannot-tell", "inconclusive"),
        (["--flop", "2e25", "--exact"], 1, "likely-above", "inconsistent"),
        (["--flop", "10000000000000000000000001", "--exact"], 1, "likely-above", "inconsistent"),
        (["--flop", "9e24", "--other-flop", "9e24"], 3, "likely-above", "inconclusive"),
    ],
)
def test_a_total_beside_the_ai_act(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, position: str, verdict: str
) -> None:
    found_status, found = record(capsys, "assess", *arguments, "--rule", "eu-ai-act-art51")
    (rule,) = found["rules"]
    assert (found_status, rule["position"], rule["verdict"]) == (status, position, verdict)
    assert rule["threshold_flop"] == "10000000000000000000000000"
    assert (rule["id"], rule["status"], rule["comparison"]) == ("eu-ai-act-art51", "law", ">")


def test_without_a_name_the_laws_in_force_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = record(capsys, "assess", "--flop", "1e20")
    assert [rule["id"] for rule in found["rules"]] == ["eu-ai-act-art51", "us-ca-sb53", "kr-ai-basic-act"]
    _, later = record(capsys, "assess", "--flop", "1e20", "--on", "2027-01-01")
    assert "us-ny-raise" in [rule["id"] for rule in later["rules"]]
    _, earlier = record(capsys, "assess", "--flop", "1e20", "--on", "2024-06-01")
    assert [rule["id"] for rule in earlier["rules"]] == ["us-eo14110-model", "us-eo14110-bio"]


def test_where_no_law_is_in_force_nothing_is_shown_to_be_below(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("assess", "--flop", "1", "--on", "2020-01-01") == 3
    assert capsys.readouterr().out.startswith("No compute rule in this catalogue was in force")


def test_a_rule_that_is_not_in_force_must_be_named_and_says_so_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("assess", "--flop", "1e24", "--rule", "us-ca-sb1047") == 0
    assert capsys.readouterr().out.splitlines()[0] == "Not in force: vetoed, never law (us-ca-sb1047)."


def test_each_level_of_a_rule_is_reported_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = record(capsys, "assess", "--flop", "5e22", "--rule", "miri-draft-treaty")
    assert status == 3
    assert [(rule["level"], rule["position"]) for rule in found["rules"]] == [
        ("monitored", "likely-above"),
        ("prohibited", "below"),
    ]


@pytest.mark.parametrize(
    ("original", "status"),
    [(["--original-flop", "9e24"], 1), (["--original-flop", "1e25"], 0), ([], 3)],
)
def test_a_modification_beside_its_original(
    capsys: pytest.CaptureFixture[str], original: list[str], status: int
) -> None:
    arguments = ["assess", "--flop", "3.2e24", "--exact", "--rule", "eu-gpai-modifier", *original]
    found_status, found = record(capsys, *arguments)
    assert found_status == status
    assert found["rules"][0]["standing"] == "guidance, not law"


def test_a_rate_beside_the_cluster_rule(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["assess", "--rate", "2e20", "--rule", "us-eo14110-cluster"]
    status, found = record(capsys, *arguments)
    assert (status, found["rules"][0]["threshold_flop_per_s"]) == (1, "100000000000000000000")
    assert call("assess", "--rate", "1e19", "--on", "2024-06-01") == 0
    assert "a rate of 1e19 operations per second" in capsys.readouterr().out.replace("\n", " ")


def test_a_lineage_is_summed_and_its_gaps_are_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "lineage.json"
    tuned = {"id": "tuned", "parents": ["base"], "runs": [{"id": "t", "flop": "6000000000000000000000000"}]}
    base = {"id": "base", "runs": [{"id": "p", "flop": "6000000000000000000000000"}]}
    path.write_text(json.dumps({"version": 1, "models": [tuned, base]}))
    assert call("assess", "--lineage", str(path), "--rule", "eu-ai-act-art51") == 1
    assert "1.2e25 FLOP, stated as exact (over 2 models of the lineage)" in capsys.readouterr().out
    assert call("assess", "--lineage", str(path), "--model", "base", "--rule", "eu-ai-act-art51") == 0
    path.write_text(json.dumps({"version": 1, "models": [tuned]}))
    capsys.readouterr()
    status, found = record(capsys, "assess", "--lineage", str(path), "--rule", "eu-ai-act-art51")
    assert (status, found["rules"][0]["position"]) == (3, "cannot-tell")
    assert [(each["code"], each["found"]) for each in found["findings"]] == [("lineage-open", "base")]


def test_a_run_is_added_to_a_lineage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "lineage.json"
    path.write_text('{"runs":[{"name":"p","flops":"9000000000000000000000000"}]}')
    arguments = ["assess", "--lineage", str(path), "--rule", "eu-ai-act-art51"]
    assert call(*arguments) == 0
    assert call(*arguments, "--flop", "2e24") == 3
    assert call(*arguments, "--flop", "2e24", "--exact") == 1
    capsys.readouterr()


def test_an_error_in_a_lineage_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "lineage.json"
    base = {"id": "base", "runs": [{"id": "p", "flop": "6"}]}
    loop = {"id": "loop", "parents": ["loop"], "runs": []}
    for models, words in (([base], ["--model", "nobody"]), ([base, {**base, "id": "b"}], []), ([loop], [])):
        path.write_text(json.dumps({"version": 1, "models": models}))
        with pytest.raises(InputError) as caught:
            call("assess", "--lineage", str(path), "--rule", "eu-ai-act-art51", *words)
        assert caught.value.where.startswith(str(path))


def test_a_lineage_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "lineage.json"
    tuned = {"id": "t", "parents": ["x\x1b[2J\x9b31m\nbelow"], "runs": [{"id": "r", "flop": "6"}]}
    path.write_text(json.dumps({"version": 1, "models": [tuned]}))
    for words in ((), ("--json",)):
        call("assess", "--lineage", str(path), "--rule", "eu-ai-act-art51", *words)
        out = capsys.readouterr().out
        assert not {"\x1b", "\x9b"} & set(out)
        assert "\nbelow" not in out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["assess"], InputError),
        (["assess", "--low", "1"], InputError),
        (["assess", "--exact"], InputError),
        (["assess", "--flop", "5", "--low", "6"], InputError),
        (["assess", "--flop", "5", "--low", "4", "--exact"], InputError),
        (["assess", "--flop", "1.5"], DecodeError),
        (["assess", "--flop", "-1"], DecodeError),
        (["assess", "--flop", "much"], DecodeError),
        (["assess", "--flop", "1_000"], DecodeError),
        (["assess", "--flop", "\u0661"], DecodeError),
        (["assess", "--flop", "1", "--model", "m"], InputError),
        (["assess", "--flop", "1", "--original-flop", "3"], InputError),
        (["assess", "--flop", "1", "--rate", "3"], InputError),
        (["assess", "--flop", "1", "--rule", "us-eo14110-cluster"], InputError),
        (["assess", "--flop", "1", "--rule", "eu-gpai-counting"], InputError),
        (["assess", "--flop", "1", "--rule", "eu-ai-act-art51", "--rule", "eu-gpai-counting"], InputError),
        (["assess", "--rate", "1", "--rule", "eu-ai-act-art51"], InputError),
        (["assess", "--rate", "1", "--rule", "us-eo14110-cluster", "--rule", "us-ca-sb53"], InputError),
        (["assess", "--flop", "1", "--rate", "1", "--rule", "us-eo14110-cluster"], InputError),
        (["assess", "--lineage", "/nonexistent.json"], InputError),
        (["assess", "--flop", "1", "--rule", "nobody"], UnknownRuleError),
        (["show", "nobody"], UnknownRuleError),
        (["list", "--on", "2026-02-30"], InputError),
        (["list", "--on", "20260201"], InputError),
    ],
)
def test_wrong_use_is_refused_with_status_two(arguments: list[str], error: type[FlopwitnessError]) -> None:
    with pytest.raises(error) as caught:
        call(*arguments)
    assert caught.value.exit_status == 2


def test_the_day_is_counted_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FrozenClock(utc_ns=parse_utc("2026-12-31T23:59:59Z"))
    assert call("list", clock=clock) == 0
    assert "31 December 2026" in capsys.readouterr().out
    clock.advance(elapsed_ns=1_000_000_000)
    assert call("list", clock=clock) == 0
    assert "1 January 2027" in capsys.readouterr().out


def test_without_a_clock_the_computers_own_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(args=["list", "--json"], standalone_mode=False) == 0
    found = json.loads(capsys.readouterr().out)
    assert abs((dt.date.fromisoformat(found["on"]) - dt.datetime.now(dt.UTC).date()).days) <= 1
