"""Bytes that may stop a process are unpacked in a process of their own, with bounded memory and time.

A library that is not written in Python can end the whole process on bytes that lie about their lengths, and
then no exception comes back. The child's answer comes back as bytes, or in a file where it may be long; its
refusals come back as one line.
"""

import contextlib
import mmap
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import IO, Any, Final

from flopwitness.foundation.errors import DecodeError

__all__ = ["bound_memory", "map_from_child", "refuse_and_end", "spool", "unpack_in_child"]

_LIMIT_S: Final = 300
_MEMORY_BYTES: Final = 8 * 1024**3
_FILE_BYTES: Final = 8 * 1024**3
_THREADS: Final = "2"
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
    done = _run(unpack, where, expected, input=data, stdout=subprocess.PIPE)
    return bytes(done.stdout)


def map_from_child(unpack: Callable[[], None], file: IO[bytes], *, where: str, expected: str) -> mmap.mmap:
    """What `unpack` writes to standard output, kept in a file and not in memory.

    The file never has a name, and the child has ended before anything of it is looked at. Its pages come
    into memory as they are used.

    Args:
        unpack: As for `unpack_in_child`; standard output is a file that it may read, write and seek.
        file: The bytes to unpack, as `spool` keeps them; the child's standard input.
        where: As for `unpack_in_child`.
        expected: As for `unpack_in_child`.

    Raises:
        DecodeError: As `unpack_in_child`; no room for what the child writes.

    Side effects:
        Starts one child process and waits for its end.
    """
    try:
        with _unnamed_file() as answer:
            _run(unpack, where, expected, stdin=file, stdout=answer)
            return mmap.mmap(answer.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # no file can be made, or nothing was written
        raise _refusal(str(error), where, expected) from None


def spool(blocks: Iterable[bytes], *, limit_bytes: int, where: str) -> IO[bytes]:
    """The blocks in a file that has no name and goes when it is closed.

    Args:
        blocks: The bytes in order.
        limit_bytes: The most that is kept.
        where: The path to name in an error.

    Raises:
        DecodeError: More bytes than that, or no room for them.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(_unnamed_file())
            size_bytes = 0
            for block in blocks:
                size_bytes += len(block)
                if size_bytes > limit_bytes:
                    raise DecodeError(
                        "too large", where=where, expected=f"at most {limit_bytes} bytes", found="more"
                    )
                file.write(block)
            file.seek(0)
        except OSError as error:
            raise _refusal(str(error), where, "room to unpack it") from None
        stack.pop_all()
    return file


def _unnamed_file() -> IO[bytes]:
    """A file without a name, in memory where the system has such: no disk to fill, and none to wait for."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("flopwitness"), "w+b")
    return tempfile.TemporaryFile()


def _run(
    unpack: Callable[[], None],
    where: str,
    expected: str,
    **streams: Any,  # noqa: ANN401 (as `subprocess.run`)
) -> "subprocess.CompletedProcess[bytes]":
    """The child's whole life."""
    program = f"import {unpack.__module__} as m; m.{unpack.__name__}()"
    environment = {**os.environ, "POLARS_MAX_THREADS": _THREADS, "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(  # noqa: S603 (this interpreter, a text made of this package's own names)
            [sys.executable, "-P", "-c", program],
            stderr=subprocess.PIPE,
            env=environment,
            timeout=_LIMIT_S,
            check=False,
            **streams,
        )
    except subprocess.TimeoutExpired:
        raise _refusal(f"not unpacked in {_LIMIT_S} s", where, expected) from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", errors="replace").strip().splitlines() or ["nothing"]
        reason = said[-1] if done.returncode == _REFUSED else f"its reader stopped, status {done.returncode}"
        raise _refusal(reason, where, expected)
    return done


def bound_memory() -> None:
    """Bound the memory of this process, and the files that it writes; for the child alone.

    Side effects:
        Lowers this process's limits: 8 GiB of address space, 8 GiB a file, no core dump.
    """
    for what, most in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        limit = most if hard == resource.RLIM_INFINITY else min(hard, most)
        resource.setrlimit(what, (limit, limit))


def refuse_and_end(reason: str) -> None:
    """End the child with one line that tells the parent why.

    Raises:
        SystemExit: Always.
    """
    sys.stderr.write(f"\n{' '.join(reason.split())[:_LONGEST_REASON]}\n")
    raise SystemExit(_REFUSED)


def _refusal(reason: str, where: str, expected: str) -> DecodeError:
    return DecodeError("cannot be unpacked", where=where, expected=expected, found=reason)
