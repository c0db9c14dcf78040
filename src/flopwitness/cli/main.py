"""The entry point: one line for an error and one exit status, whatever happens and whenever.

This module imports nothing that is not loaded already. An interrupt can then strike only what `run` guards,
the loading of every other module included.
"""

import os
import sys

__all__ = ["run"]

_INTERRUPTED = 130


def run() -> None:
    """Run the command line and end the process with the status that the README lists."""
    try:
        import signal  # noqa: PLC0415 (see above)

        sys.unraisablehook = _end_on_interrupt
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads cost time, and bits
        status = _main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the answer stands; the process has only to end
    except KeyboardInterrupt:  # between two steps
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
        from flopwitness.cli.group import call  # noqa: PLC0415 (see above)

        return call(arguments)
    except BaseException as error:  # noqa: BLE001 (every way to end is told in one line)
        return _tell(error, is_debug=is_debug)


def _tell(error: BaseException, *, is_debug: bool) -> int:
    """Say in one line why the call ended, and with which status."""
    if _is_interrupt(error):
        return _say("interrupted", _INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        _silence_output()
        return 0
    if is_debug:
        import traceback  # noqa: PLC0415 (only here)

        traceback.print_exception(error)
    from flopwitness.cli.group import describe_failure  # noqa: PLC0415 (see above)

    message, status = describe_failure(error)
    if isinstance(error, OSError):
        _silence_output()
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


def _end_on_interrupt(unraisable: "sys.UnraisableHookArgs") -> None:
    """End the process where an interrupt struck code that cannot pass it on, such as a weak reference's.

    The interpreter would print a traceback and go on as if nobody had interrupted it.
    """
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        os._exit(_say("interrupted", _INTERRUPTED))
    sys.__unraisablehook__(unraisable)


def _say(message: str, status: int) -> int:
    try:
        sys.stderr.write(f"flopwitness: {message}\n")
        sys.stderr.flush()
    except (OSError, AttributeError):
        pass
    return status


def _silence_output() -> None:
    """Send what is left in the buffer nowhere, so that the end of the process does not fail on it."""
    import contextlib  # noqa: PLC0415 (see above)

    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
