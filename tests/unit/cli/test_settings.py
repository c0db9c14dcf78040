"""Settings from a file and the environment: flags win, misspelt names are refused."""

from pathlib import Path

import click
import pytest

from flopwitness.cli.settings import read_settings
from flopwitness.foundation.errors import InputError


@click.command()
@click.option("--chip")
@click.option("--rule", "rule_ids", multiple=True)
@click.option("--other-flop")
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
