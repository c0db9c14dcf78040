"""Bytes that may stop a process are unpacked in a process of their own, with bounded memory and time.

A library that is not written in Python can end the whole process on bytes that lie about their lengths, and
then no exception comes back. The child's answer comes back as bytes; its refusals as one line.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from flopwitness.foundation.errors import DecodeError

__all__ = ["bound_memory", "refuse_and_end", "unpack_in_child"]

_LIMIT_S: Final = 300
_MEMORY_BYTES: Final = 8 * 1024**3
_REFUSED: Final = 3
_LONGEST_REASON: Final = 160


def unpack_in_child(unpack: Callable[[], None], data: bytes, *, where: str, expected: str) -> bytes:
    """What `unpack` writes to standard output when `data` is its standard input.

    Args:
        unpack: A module-level function of this package: the whole life of the child. It calls
            `bound_memory` first, and `refuse_and_end` on what it refuses.
        data: The bytes to unpack.
        where: The path to name in an error.
        expected: What the bytes should be, for an error.

    Raises:
        DecodeError: The child refused, was stopped, or took too long.

    Side effects:
        Starts one child process and waits for its end.
    """
    program = f"import {unpack.__module__} as m; m.{unpack.__name__}()"
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(  # noqa: S603 (this interpreter, a text made of this package's own names)
            [sys.executable, "-P", "-c", program],
            input=data,
            capture_output=True,
            env=environment,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _refusal(f"not unpacked in {_LIMIT_S} s", where, expected) from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["nothing"]
        reason = said[-1] if done.returncode == _REFUSED else f"its reader stopped, status {done.returncode}"
        raise _refusal(reason, where, expected)
    return done.stdout


def bound_memory() -> None:
    """Bound the memory of this process; for the child alone.

    Side effects:
        Lowers this process's limit on address space to 8 GiB.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, _MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def refuse_and_end(reason: str) -> None:
    """End the child with one line that tells the parent why.

    Raises:
        SystemExit: Always.
    """
    sys.stderr.write(f"\n{' '.join(reason.split())[:_LONGEST_REASON]}\n")
    raise SystemExit(_REFUSED)


def _refusal(reason: str, where: str, expected: str) -> DecodeError:
    return DecodeError("cannot be unpacked", where=where, expected=expected, found=reason)
