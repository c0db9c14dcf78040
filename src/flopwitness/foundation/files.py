"""Reading with a limit, writing whole or not at all."""

import errno
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from flopwitness.foundation.errors import DecodeError, FlopwitnessError, InputError

__all__ = ["FULL_ERRNOS", "check_target", "read_bounded", "write_all_whole", "write_whole"]

FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The errors of a place that takes no more bytes: nobody called wrongly, and nothing inside is broken."""


def read_bounded(path: Path, *, limit_bytes: int) -> bytes:
    """The bytes of a regular file, at most `limit_bytes` of them.

    Raises:
        InputError: There is no such regular file, or it cannot be read.
        DecodeError: The file is larger than the limit; nothing was allocated for it.
    """
    try:
        if not path.is_file():
            message = "no regular file" if path.exists() else "no such file"
            raise InputError(message, where=str(path), expected="a regular file")
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


def check_target(path: Path) -> Path:
    """The place where a file of this path is to be written: links are followed, as a reader follows them.

    Raises:
        InputError: Something that is no regular file stands there, or its folder is missing or closed.
    """
    try:
        place = Path(os.path.realpath(path))
        if os.path.lexists(place) and not stat.S_ISREG(place.lstat().st_mode):
            raise InputError(
                "cannot be written",
                where=str(path),
                expected="a regular file, or none yet",
                found=_kind(place),
            )
        if path.exists() and not path.is_file():  # a name such as /dev/stdout, which has no place of its own
            raise InputError("cannot be written", where=str(path), expected="a regular file, or none yet")
        if not place.parent.is_dir():
            raise InputError("cannot be written", where=str(path), found="no such folder")
        if not os.access(place.parent, os.W_OK | os.X_OK):
            raise InputError(
                "cannot be written", where=str(path), found="a folder that is closed for writing"
            )
    except OSError as error:
        raise _unwritable(path, error) from error
    return place


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` at `path`, so that a reader sees the old file or the new one and never a part.

    A temporary file beside the target is written, flushed to the disk and renamed over it. A link is written
    through; a device, pipe, socket or folder is refused.

    Raises:
        InputError: The place cannot be written; an older file there is untouched.
        FlopwitnessError: The disk is full; an older file there is untouched.

    Side effects:
        Creates or replaces the file; it gets the permissions that the umask allows.
    """
    write_all_whole({path: data})


def write_all_whole(files: Mapping[Path, bytes]) -> None:
    """Put every file at its place as `write_whole` does, and none where one of them cannot be written.

    All are on the disk under temporary names before the first gets its own.

    Raises:
        InputError: A place cannot be written; nothing new is left.
        FlopwitnessError: The disk is full; nothing new is left.

    Side effects:
        Creates or replaces the files. Where the last step itself fails for one of several, those that it
        had replaced are gone.
    """
    staged: list[tuple[Path, Path, Path]] = []
    placed: list[Path] = []
    try:
        for path, data in files.items():
            _stage(path, data, staged)
        for path, part, place in staged:
            try:
                part.replace(place)
            except OSError as error:
                raise _unwritable(path, error) from error
            placed.append(place)
    except BaseException:
        halfway = placed if len(placed) < len(files) else []
        for leftover in (*halfway, *(part for _, part, _ in staged)):
            leftover.unlink(missing_ok=True)
        raise


def _stage(path: Path, data: bytes, staged: list[tuple[Path, Path, Path]]) -> None:
    """Write one file under a temporary name beside its place, and note it in `staged`."""
    place = check_target(path)
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:200]}.", suffix=".part")
        staged.append((path, Path(name), place))
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> FlopwitnessError:
    kind = FlopwitnessError if error.errno in FULL_ERRNOS else InputError
    return kind("cannot be written", where=str(path), found=error.strerror or str(error))


def _kind(place: Path) -> str:
    mode = place.lstat().st_mode
    names = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a link that leads nowhere"),
    )
    return next((name for is_kind, name in names if is_kind(mode)), "a device")
