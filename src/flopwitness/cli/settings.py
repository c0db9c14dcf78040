"""Options from `flopwitness.toml` and `FLOPWITNESS_*`: below the command line, above the defaults.

    [estimate]                      FLOPWITNESS_ESTIMATE_CHIP=h100-sxm
    chip = "h100-sxm"               FLOPWITNESS_ESTIMATE_RULE=eu-ai-act-art51,us-ca-sb53
    rule = ["eu-ai-act-art51"]

An option that a verb does not have is refused: a misspelt setting must not be a silent default.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import read_bounded

__all__ = ["read_settings"]

FILE_NAME: Final = "flopwitness.toml"
PREFIX: Final = "FLOPWITNESS"
_LARGEST_BYTES: Final = 1 << 20


def read_settings(
    command: click.Command, verb: str, *, folder: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """What the file and the environment say for one verb, by click's own names.

    Args:
        command: The verb's command; a group's commands are settled below their own names.
        verb: Its name.
        folder: Where `flopwitness.toml` may lie.
        environment: The environment's variables.

    Raises:
        InputError: A file that cannot be read or is no TOML, or an option that the verb does not have.
    """
    tables = _read_file(folder / FILE_NAME)
    return _settle(
        command, tables.get(verb, {}), f"{PREFIX}_{_shout(verb)}", environment, where=f"{FILE_NAME} [{verb}]"
    )


def _read_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(read_bounded(path, limit_bytes=_LARGEST_BYTES).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("not TOML", where=str(path), found=str(error)[:120]) from None


def _settle(
    command: click.Command, table: object, prefix: str, environment: Mapping[str, str], *, where: str
) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise InputError("not a table of options", where=where, found=repr(table)[:80])
    if isinstance(command, click.Group):
        unknown = [name for name in table if name not in command.commands]
        _refuse(unknown, list(command.commands), where)
        return {
            name: _settle(
                each, table.get(name, {}), f"{prefix}_{_shout(name)}", environment, where=f"{where}.{name}"
            )
            for name, each in command.commands.items()
        }
    options = dict(_options(command))
    _refuse([name for name in table if name not in options], list(options), where)
    settled = {options[name].name or name: value for name, value in table.items()}
    for name, option in options.items():
        text = environment.get(f"{prefix}_{_shout(name)}")
        if text is not None:
            settled[option.name or name] = text.split(",") if option.multiple else text
    return settled


def _options(command: click.Command) -> Iterator[tuple[str, click.Option]]:
    """The command's options by their long names, without dashes in front."""
    for option in command.params:
        if isinstance(option, click.Option):
            for name in option.opts:
                if name.startswith("--"):
                    yield name.removeprefix("--"), option


def _refuse(unknown: list[str], known: list[str], where: str) -> None:
    if unknown:
        raise InputError("no such option", where=where, expected=", ".join(known), found=unknown[0][:80])


def _shout(name: str) -> str:
    return name.upper().replace("-", "_")
