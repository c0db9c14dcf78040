"""Reading with a limit, writing whole or not at all."""

import os
import tempfile
from pathlib import Path

from flopwitness.foundation.errors import DecodeError, InputError

__all__ = ["read_bounded", "write_whole"]


def read_bounded(path: Path, *, limit_bytes: int) -> bytes:
    """The bytes of a regular file, at most `limit_bytes` of them.

    Raises:
        InputError: There is no such regular file, or it cannot be read.
        DecodeError: The file is larger than the limit; nothing was allocated for it.
    """
    try:
        if not path.is_file():
            raise InputError("no such file", where=str(path), expected="a regular file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(limit_bytes + 1) if size <= limit_bytes else b""
    except OSError as error:
        raise InputError("cannot be read", where=str(path), found=error.strerror or str(error)) from error
    if size > limit_bytes or len(data) > limit_bytes:
        raise DecodeError(
            "too large",
            where=str(path),
            expected=f"at most {limit_bytes} bytes",
            found=f"{max(size, len(data))} bytes",
        )
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` at `path`, so that a reader sees the old file or the new one and never a part.

    A temporary file beside the target is written, flushed to the disk and renamed over it.

    Raises:
        InputError: The place cannot be written; an older file there is untouched.

    Side effects:
        Creates or replaces the file; it gets the permissions that the umask allows.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise InputError("cannot be written", where=str(path), found=error.strerror or str(error)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise InputError("cannot be written", where=str(path), found=error.strerror or str(error)) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
