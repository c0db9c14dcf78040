"""What a user names as evidence, read: the logs of one run, or a table of runs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from flopwitness.cli.options import TABLE_FORMAT, known_formats
from flopwitness.cli.settings import Setting, check_settings_place, find_settings_used
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.foundation.files import read_bounded
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.run_records import is_parquet
from flopwitness.measure.sources.run_table import RunTable, check_run_table, decode_run_table
from flopwitness.measure.sources.source import ReadOptions
from flopwitness.measure.trace_file import holds_trace

__all__ = ["read_logs", "read_logs_or_table"]

_LARGEST_TABLE_BYTES: Final = 512 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"
_HEAD_BYTES: Final = 64 * 1024


def read_logs(
    context: click.Context, logs: Sequence[Path], format_name: str | None, options: ReadOptions
) -> tuple[Trace, list[Setting]]:
    """What the logs of one run hold, and what was set beside the command line.

    Args:
        context: The running verb's.
        logs: The files, folders and archives that the user named.
        format_name: Their format, where the user says so.
        options: What the user says of the logs.

    Raises:
        InputError: Settings that may have come with the logs, or logs that are missing.
        DecodeError: Logs that no reader can read.
    """
    from flopwitness.measure.sources.formats import read_evidence  # noqa: PLC0415 (help loads no reader)

    settings = find_settings_used(context, environment=os.environ)
    check_settings_place(settings, logs, folder=Path.cwd())
    return read_evidence(logs, format=format_name, options=options), settings


def read_logs_or_table(
    logs: Sequence[Path], format_name: str | None, options: ReadOptions | None = None
) -> RunTable | Trace:
    """The table of runs, where the one file handed over is one, or what the logs of one run hold.

    Args:
        logs: The files, folders and archives that the user named.
        format_name: Their format, where the user says so.
        options: What the user says of the logs.

    Raises:
        InputError: A table among several files, or what no reader can read; a file that is nearly a table
            of runs is told what it lacks.
    """
    near_miss: DecodeError | None = None
    for path in logs:
        if not _is_file(path) or format_name not in (None, TABLE_FORMAT):
            continue
        try:
            is_table = format_name == TABLE_FORMAT or (
                not _is_trace(path) and check_run_table(_head(path), where=str(path))
            )
        except DecodeError as error:
            near_miss = near_miss or error
            continue
        if is_table:
            if len(logs) > 1:
                raise InputError("a table of runs stands alone", where=str(path), expected="one file")
            return decode_run_table(read_bounded(path, limit_bytes=_LARGEST_TABLE_BYTES), where=str(path))
    if format_name == TABLE_FORMAT:
        raise InputError("no table of runs", where=str(logs[0]), expected="one file")
    from flopwitness.measure.sources.formats import read_evidence  # noqa: PLC0415 (help loads no reader)

    try:
        return read_evidence(logs, format=format_name, options=options)
    except DecodeError as error:
        if format_name is not None:
            raise
        _explain_unread(logs, error, near_miss)


def _explain_unread(logs: Sequence[Path], error: DecodeError, near_miss: DecodeError | None) -> NoReturn:
    """Tell why no reader took a file that might have been a table of runs as well as a log.

    Raises:
        DecodeError: Always: of a near miss its own reason, else the reader's with both possibilities.
    """
    if near_miss is not None:
        raise near_miss from None
    from flopwitness.measure.sources.formats import guess_format  # noqa: PLC0415 (loaded by now)

    for path in logs:
        if not _is_file(path) or not error.where.startswith(str(path)):
            continue
        head = _head(path)
        if is_parquet(head):
            expected = f"{error.expected}, or a table of runs with columns such as chip and duration_s"
        elif head.startswith(_GZIP):  # a table is read where it lies, not in an archive
            continue
        elif error.message == "no known log" and guess_format(head, path.name) is None:
            expected = f"one of {', '.join(known_formats(tables=True))}"
        else:
            continue
        raise DecodeError(error.message, where=error.where, expected=expected, found=error.found) from None
    raise error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise InputError("cannot be read", where=str(path), found=error.strerror or str(error)) from error


def _is_trace(path: Path) -> bool:
    """Whether the file is a trace of this package, which need not be unpacked to be told from a table."""
    try:
        with path.open("rb") as file:
            return holds_trace(file)
    except OSError as error:
        raise InputError("cannot be read", where=str(path), found=error.strerror or str(error)) from error


def _head(path: Path) -> bytes:
    """How the file begins; a Parquet file whole, because its columns stand at its end."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError("cannot be read", where=str(path), found=error.strerror or str(error)) from error
    return read_bounded(path, limit_bytes=_LARGEST_TABLE_BYTES) if is_parquet(head) else head
