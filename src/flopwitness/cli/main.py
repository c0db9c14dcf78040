"""The entry point: one line for an error and one exit status, whatever happens and whenever.

This module imports nothing that takes time. An interrupt can then strike only what `run` already guards, the
loading of the other modules included.
"""

import contextlib
import os
import signal
import sys
from typing import Final, TextIO

__all__ = ["run"]

_INTERRUPTED: Final = 130


def run() -> None:
    """Run the command line and end the process with the status of DESIGN section 5."""
    try:
        status = _main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the answer stands; the process only has to end
    except KeyboardInterrupt:  # between the guarded steps
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = _say("interrupted", _INTERRUPTED)
    sys.exit(status)


def _main(arguments: list[str]) -> int:
    """The exit status of one call; every failure becomes one line on standard error.

    `--debug` may stand anywhere before a `--`; it adds the traceback and changes no status.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    is_debug = "--debug" in arguments[:end]
    arguments = [word for word in arguments[:end] if word != "--debug"] + arguments[end:]
    try:
        from flopwitness.cli.group import call  # noqa: PLC0415 (an interrupt while modules load is told too)

        return call(arguments)
    except BaseException as error:  # noqa: BLE001 (every end of the process is told in one line)
        return _tell(error, is_debug=is_debug)


def _tell(error: BaseException, *, is_debug: bool) -> int:
    """Say in one line why the call ended, and with which status."""
    if _is_interrupt(error):
        return _say("interrupted", _INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        _silence(sys.stdout)
        return 0
    if is_debug:
        import traceback  # noqa: PLC0415 (only here)

        traceback.print_exception(error)
    from flopwitness.cli.group import describe_failure  # noqa: PLC0415 (it may be what failed to load)

    message, status = describe_failure(error)
    if isinstance(error, OSError):
        _silence(sys.stdout)
    return _say(message, status)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is behind an error: what it strikes may turn it into another one."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _say(message: str, status: int) -> int:
    with contextlib.suppress(OSError, AttributeError):  # full or closed: the status still tells
        sys.stderr.write(f"flopwitness: {message}\n")
        sys.stderr.flush()
    return status


def _silence(stream: TextIO) -> None:
    """Send what is left in a stream's buffer nowhere, so that the end of the process does not fail on it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
