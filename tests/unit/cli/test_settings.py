"""Settings from a file and the environment: flags win, misspelt names are refused, what was set is told."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from flopwitness.cli.settings import Setting, check_settings_place, read_settings, repeat_with_settings
from flopwitness.foundation.errors import InputError


@click.command()
@click.option("--chip")
@click.option("--rule", "rule_ids", multiple=True)
@click.option("--other-flop")
@click.option("--out", expose_value=False)
@click.option("--json", "as_json", is_flag=True)
def verb(chip: str, rule_ids: tuple[str, ...], other_flop: str, *, as_json: bool) -> None:
    click.echo(f"{chip} {','.join(rule_ids)} {other_flop} {as_json}")


@click.group()
def group() -> None:
    pass


group.add_command(verb, "verb")


def _settings(folder: Path, text: str = "", **environment: str) -> dict[str, object]:
    if text:
        (folder / "flopwitness.toml").write_text(text)
    return read_settings(verb, "verb", folder=folder, environment=environment)


def _run(folder: Path, words: list[str], text: str = "", **environment: str) -> str:
    with verb.make_context("verb", words, default_map=_settings(folder, text, **environment)) as context:
        assert verb.invoke(context) is None
        return " ".join(str(value) for _, value in sorted(context.params.items()))


def test_nothing_set_is_nothing(tmp_path: Path) -> None:
    assert _settings(tmp_path) == {}


def test_file_gives_options_by_their_written_names(tmp_path: Path) -> None:
    text = '[verb]\nchip = "a"\nrule = ["x", "y"]\nother-flop = "1"\njson = true\n'
    assert _settings(tmp_path, text) == {
        "chip": "a",
        "rule_ids": ["x", "y"],
        "other_flop": "1",
        "as_json": True,
    }


def test_environment_wins_over_the_file_and_flags_over_both(tmp_path: Path) -> None:
    text = '[verb]\nchip = "file"\n'
    assert _run(tmp_path, [], text).startswith("False file")
    assert _run(tmp_path, [], text, FLOPWITNESS_VERB_CHIP="env").startswith("False env")
    assert _run(tmp_path, ["--chip", "flag"], text, FLOPWITNESS_VERB_CHIP="env").startswith("False flag")


def test_environment_splits_what_may_repeat(tmp_path: Path) -> None:
    found = _settings(tmp_path, FLOPWITNESS_VERB_RULE="x,y", FLOPWITNESS_VERB_OTHER_FLOP="7")
    assert found == {"rule_ids": ["x", "y"], "other_flop": "7"}


def test_verbs_of_a_group_have_tables_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "flopwitness.toml").write_text('[group.verb]\nchip = "a"\n')
    assert read_settings(group, "group", folder=tmp_path, environment={}) == {"verb": {"chip": "a"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[verb]\nchp = "a"\n', r"\[verb\]: no such option .*found chp"),
        ("verb = 3\n", "not a table of options"),
        ("[verb\n", "not TOML"),
        ('[verb]\nout = "a.json"\n', "does not say where to write .*--out"),
        ('[verb]\nrule_ids = ["x"]\n', "found rule_ids"),
    ],
)
def test_what_is_misspelt_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        _settings(tmp_path, text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "flopwitness.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not TOML"):
        _settings(tmp_path)


def test_unknown_verb_of_a_group_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flopwitness.toml").write_text("[group.other]\n")
    with pytest.raises(InputError, match="found other"):
        read_settings(group, "group", folder=tmp_path, environment={})


FROM_FILE = Setting(name="chip", origin="flopwitness.toml", words=("--chip", "t4"))
FROM_VARIABLE = Setting(name="count", origin="FLOPWITNESS_ESTIMATE_COUNT", words=("--count", "8"))


@pytest.mark.parametrize("log", [".", "a.txt", "logs/deep/a.txt", "..", "../..", "link.txt", "../outer.txt"])
def test_a_file_that_lies_with_the_evidence_is_refused(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "case" / "here"
    here.mkdir(parents=True)
    (here / "link.txt").symlink_to(tmp_path / "elsewhere.txt")
    (here.parent / "outer.txt").symlink_to(here / "a.txt")
    monkeypatch.chdir(here)
    with pytest.raises(InputError, match=r"flopwitness\.toml: these settings lie with the evidence"):
        check_settings_place([FROM_VARIABLE, FROM_FILE], [Path("/else"), Path(log)], folder=here)
    check_settings_place([FROM_VARIABLE], [Path(log)], folder=here)


def test_a_file_beside_the_evidence_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    logs = [Path("../there"), Path("../here2/a.txt"), tmp_path / "a.txt"]
    check_settings_place([FROM_FILE], logs, folder=tmp_path / "here")


@pytest.mark.parametrize(
    ("command", "repeated"),
    [
        ("flopwitness estimate 'a b'", "flopwitness estimate 'a b' --chip t4 --count 8"),
        ("flopwitness estimate -- -a", "flopwitness estimate --chip t4 --count 8 -- -a"),
    ],
)
def test_the_command_is_repeated_with_what_was_set(command: str, repeated: str) -> None:
    assert repeat_with_settings(command, [FROM_FILE, FROM_VARIABLE]) == repeated
    assert repeat_with_settings(command, []) == command


def _answer(call: Callable[..., tuple[int, str, str]], *words: object) -> dict[str, Any]:
    status, out, err = call(*words)
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert isinstance(record, dict)
    return record


def test_the_answer_names_what_was_set_and_its_command_gives_it_again(
    call: Callable[..., tuple[int, str, str]], run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[estimate]\nchip = "h100-sxm"\ncount = 24\nlevel = 0.8\n'
    Path("flopwitness.toml").write_text(text)
    rules = "eu-ai-act-art51,us-ca-sb53"
    monkeypatch.setenv("FLOPWITNESS_ESTIMATE_RULE", rules)
    monkeypatch.setenv("FLOPWITNESS_ESTIMATE_JSON", "true")
    answer = _answer(call, "estimate", run_folder, "--count", 16)
    (told,) = (finding for finding in answer["findings"] if finding["code"] == "settings-used")
    assert told["message"] == (
        "flopwitness.toml sets chip, level; FLOPWITNESS_ESTIMATE_RULE sets rule; "
        "FLOPWITNESS_ESTIMATE_JSON sets json"
    )
    Path("flopwitness.toml").unlink()
    monkeypatch.delenv("FLOPWITNESS_ESTIMATE_RULE")
    monkeypatch.delenv("FLOPWITNESS_ESTIMATE_JSON")
    again = _answer(call, *shlex.split(told["reproduce"])[1:])
    for key in ("chips", "count", "estimate", "upper_bound", "rules", "energy_j"):
        assert again[key] == answer[key]
    assert "settings-used" not in {finding["code"] for finding in again["findings"]}


def test_settings_within_the_evidence_stop_every_verb_that_reads_it(
    call: Callable[..., tuple[int, str, str]], run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[estimate]\nchip = "t4"\n[import]\nscope = "gpu"\n[rules.assess]\nrate = "1"\n'
    (run_folder / "flopwitness.toml").write_text(text)
    monkeypatch.chdir(run_folder)
    for words in (
        ("estimate", "result.txt"),
        ("import", "power_ac", "--out", run_folder.parent / "t.parquet"),
        ("rules", "assess", "--lineage", "l.json"),
    ):
        status, out, err = call(*words)
        assert (status, out) == (2, "")
        assert "these settings lie with the evidence" in err


def test_import_and_assess_tell_what_was_set(
    call: Callable[..., tuple[int, str, str]], run_folder: Path
) -> None:
    Path("flopwitness.toml").write_text('[import]\nscope = "node-ac"\n[rules.assess]\nflop = "1e20"\n')
    assert "settings-used: flopwitness.toml sets scope" in call("import", run_folder, "--out", "t.parquet")[1]
    assert "flopwitness.toml sets flop" in call("rules", "assess")[1]
