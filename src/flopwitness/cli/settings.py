"""Options from `flopwitness.toml` and `FLOPWITNESS_*`: below the command line, above the defaults.

    [estimate]                      FLOPWITNESS_ESTIMATE_CHIP=h100-sxm
    chip = "h100-sxm"               FLOPWITNESS_ESTIMATE_RULE=eu-ai-act-art51,us-ca-sb53
    rule = ["eu-ai-act-art51"]

An option that a verb does not have is refused: a misspelt setting must not be a silent default. A file that
lies beside the evidence may be the word of the party that is checked: it is refused, and no file says where
to write. What was set this way is named in the answer, and part of the command that gives it again.
"""

import os
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import read_bounded

__all__ = ["Setting", "check_settings_place", "find_settings_used", "read_settings", "repeat_with_settings"]

FILE_NAME: Final = "flopwitness.toml"
PREFIX: Final = "FLOPWITNESS"
_LARGEST_BYTES: Final = 1 << 20
_NEVER_IN_A_FILE: Final = ("out", "plot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One option that was set beside the command line.

    Attributes:
        name: The option's long name, without dashes.
        origin: The file's name, or the variable's.
        words: The option as it would stand on the command line.
    """

    name: str
    origin: str
    words: tuple[str, ...]

    @property
    def is_from_file(self) -> bool:
        """Whether `flopwitness.toml` set it, not a variable."""
        return self.origin == FILE_NAME


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
    for name in _NEVER_IN_A_FILE:
        if name in table:
            raise InputError(
                "a settings file does not say where to write", where=where, expected=f"--{name}", found=name
            )
    settled = {options[name].name or name: value for name, value in table.items()}
    for name, option in options.items():
        text = environment.get(f"{prefix}_{_shout(name)}")
        if text is not None:
            settled[option.name or name] = text.split(",") if option.multiple else text
    return settled


def find_settings_used(context: click.Context, *, environment: Mapping[str, str]) -> list[Setting]:
    """The options of the running verb that came from the file or the environment, in the verb's order."""
    path = context.command_path.split()[1:]
    prefix = "_".join([PREFIX, *(_shout(name) for name in path)])
    used = []
    for name, option in _options(context.command):
        key = option.name or name
        if context.get_parameter_source(key) is not ParameterSource.DEFAULT_MAP:
            continue
        variable = f"{prefix}_{_shout(name)}"
        origin = variable if variable in environment else FILE_NAME
        used.append(Setting(name=name, origin=origin, words=_words(context, name, option)))
    return used


def _words(context: click.Context, name: str, option: click.Option) -> tuple[str, ...]:
    """The option as it would stand on the command line."""
    key = option.name or name
    if option.is_flag:
        return (f"--{name}",) if context.params.get(key) else ()
    value = (context.default_map or {}).get(key)
    values = value if option.multiple and isinstance(value, Sequence) else [value]
    return tuple(word for each in values for word in (f"--{name}", str(each)))


def repeat_with_settings(command: str, settings: Sequence[Setting]) -> str:
    """The command line that gives the same answer where nothing is set beside it."""
    added = [word for setting in settings for word in setting.words]
    if not added:
        return command
    words = shlex.split(command)
    end = words.index("--") if "--" in words else len(words)
    return shlex.join([*words[:end], *added, *words[end:]])


def check_settings_place(settings: Sequence[Setting], logs: Sequence[Path], *, folder: Path) -> None:
    """Refuse what a file set that lies within the evidence, or in a folder that holds it.

    Links are followed, and the names before they are followed count too.

    Args:
        settings: What was set beside the command line.
        logs: The files and folders that the call reads.
        folder: Where `flopwitness.toml` lies.

    Raises:
        InputError: The file may have come with the evidence.
    """
    if not any(setting.is_from_file for setting in settings):
        return
    here = Path(os.path.realpath(folder))
    for log in logs:
        as_named = Path(os.path.abspath(here / log))  # noqa: PTH100 (a link that lies here counts as well)
        for place in (Path(os.path.realpath(log)), as_named):
            if here in (place, *place.parents) or place in here.parents:
                raise InputError(
                    "these settings lie with the evidence and may have come with it",
                    where=str(here / FILE_NAME),
                    expected="another working folder, with the options on the command line or in variables",
                    found=str(log),
                )


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
