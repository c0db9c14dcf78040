"""Files, folders and archives as members, read within bounds and never written to a disk.

Archives come from the party that is checked. So sizes are refused before memory is taken, decompression
stops while it streams, links and devices are refused, and a torn archive is an error: a reader that ends
quietly at the first bad header would lose nodes and make a run look smaller than it was. For that reason
the tar walk is written out here; the header itself is parsed by the standard library.
"""

import gzip
import io
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from flopwitness.foundation.errors import DecodeError, InputError

__all__ = [
    "LARGEST_MEMBER_BYTES",
    "LARGEST_TOTAL_BYTES",
    "MOST_MEMBERS",
    "Limits",
    "Member",
    "decode_container",
    "natural_key",
    "open_members",
]

LARGEST_MEMBER_BYTES: Final = 64 << 30
LARGEST_TOTAL_BYTES: Final = 256 << 30
MOST_MEMBERS: Final = 100_000
_MOST_RATIO: Final = 200  # logs of one value repeated pack to a hundredth
_FREE_BYTES: Final = 64 << 20
_CHUNK_BYTES: Final = 1 << 20
_BLOCK_BYTES: Final = 512
_LARGEST_HEADER_BYTES: Final = 64 << 10  # long names and pax records
_LARGEST_ZIP_DIRECTORY_BYTES: Final = 32 << 20
_ZIP_END_BYTES: Final = 22
_ZIP64_LOCATOR_BYTES: Final = 20
_LONGEST_ZIP_COMMENT_BYTES: Final = (1 << 16) - 1
_SYMBOLIC_LINK_OR_DEVICE: Final = (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file, whose bytes can be taken once, and only until the next member is asked for.

    Attributes:
        name: Its path below what the user named, `/` between folders and `!` after an archive.
        where: Its whole path, as the user would write it.
        blocks: The bytes in order, at most a mebibyte at a time.
    """

    name: str
    where: str
    blocks: Iterator[bytes]

    def read(self) -> bytes:
        """All bytes that have not been taken yet."""
        return b"".join(self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one call may read.

    Attributes:
        member_bytes: Largest single file, uncompressed.
        total_bytes: All files together, uncompressed.
        members: Number of files.
    """

    member_bytes: int = LARGEST_MEMBER_BYTES
    total_bytes: int = LARGEST_TOTAL_BYTES
    members: int = MOST_MEMBERS


def open_members(path: Path, *, limits: Limits | None = None) -> Iterator[Member]:
    """The files at `path`: itself, those of a folder in natural order, or those of an archive in its order.

    `.tar`, `.tar.gz`, `.gz` and `.zip` are known by their content and opened one level deep, in folders
    too; an archive inside an archive comes back as it stands.

    Raises:
        InputError: There is no such file or folder, or it cannot be read.
        DecodeError: A torn archive; a link, device or name that leads outside; more than the limits allow.
    """
    budget = _Budget(limits or Limits())
    try:
        is_folder = path.is_dir()
    except OSError as error:
        raise InputError("cannot be read", where=str(path), found=error.strerror or str(error)) from error
    if is_folder:
        for file, name in _walk(path, prefix="", budget=budget):
            yield from _open_file(file, name=name, budget=budget)
    else:
        yield from _open_file(path, name=_shown(path.name), budget=budget)


def decode_container(
    file: BinaryIO, *, name: str, where: str, limits: Limits | None = None
) -> Iterator[Member]:
    """The members of one open file: of an archive its files, of any other file itself.

    Args:
        file: Readable and seekable, at its start.
        name: The file's name, for `Member.name`.
        where: The file's whole path.
        limits: How much may be read.

    Raises:
        DecodeError: As `open_members`.
    """
    yield from _decode(file, name=name, where=where, budget=_Budget(limits or Limits()))


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts `node_2` before `node_10`."""
    pieces = re.findall(r"[0-9]{1,18}|[^0-9]+", name)
    return tuple((int(piece), "") if piece.isdigit() else (-1, piece) for piece in pieces)


class _Readable(Protocol):
    """What a member's bytes come from."""

    def read(self, size: int, /) -> bytes: ...


class _Budget:
    """What may still be read in one call."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._total_bytes = 0
        self._members = 0
        self._unpacked_most: int | None = None
        self._unpacked_bytes = 0

    @contextmanager
    def unpacking(self, file: BinaryIO) -> Iterator[None]:
        """Within it, no more comes out of a packed file than logs have ever been packed to."""
        self._unpacked_most = _FREE_BYTES + _MOST_RATIO * file.seek(0, io.SEEK_END)
        self._unpacked_bytes = 0
        file.seek(0)
        yield
        self._unpacked_most = None

    def take_member(self, where: str, *, size_bytes: int = 0) -> None:
        """Count one more file, and refuse it by the size that it declares, before it is read."""
        self._members += 1
        if self._members > self._limits.members:
            raise _too_much(where, f"at most {self._limits.members} files", f"{self._members} and more")
        if size_bytes > self._limits.member_bytes:
            raise _too_much(where, f"at most {self._limits.member_bytes} bytes a file", f"{size_bytes} bytes")
        if self._total_bytes + size_bytes > self._limits.total_bytes:
            raise _too_much(where, f"at most {self._limits.total_bytes} bytes in all", "more")

    def read(self, file: _Readable, where: str, *, size_bytes: int | None = None) -> Iterator[bytes]:
        """All of `file`, or `size_bytes` of it, in pieces that never pass the limits.

        Raises:
            DecodeError: More than the limits allow; less than `size_bytes`; a torn archive.
            InputError: The file cannot be read.
        """
        most = self._limits.member_bytes if size_bytes is None else size_bytes
        read_bytes = 0
        while read_bytes <= most:
            ask_bytes = min(_CHUNK_BYTES, most + (size_bytes is None) - read_bytes)
            with _told(where):
                piece = file.read(ask_bytes) if ask_bytes else b""
            if not piece:
                break
            read_bytes += len(piece)
            self._total_bytes += len(piece)
            if self._total_bytes > self._limits.total_bytes:
                raise _too_much(where, f"at most {self._limits.total_bytes} bytes in all", "more")
            if read_bytes > most:
                raise _too_much(where, f"at most {most} bytes a file", "more")
            self._unpacked_bytes += len(piece)
            if self._unpacked_most is not None and self._unpacked_bytes > self._unpacked_most:
                raise _too_much(where, f"at most {_MOST_RATIO} times its packed size", "more")
            yield piece
        if size_bytes is not None and read_bytes != size_bytes:
            raise _torn(where, "an end inside a member")


def _too_much(where: str, expected: str, found: str) -> DecodeError:
    return DecodeError("too much to read", where=where, expected=expected, found=found)


def _walk(folder: Path, *, prefix: str, budget: _Budget) -> Iterator[tuple[Path, str]]:
    """The regular files below a folder and their names in it."""
    try:
        entries = list(islice(folder.iterdir(), MOST_MEMBERS + 1))
    except OSError as error:
        raise InputError("cannot be read", where=str(folder), found=error.strerror or str(error)) from error
    if len(entries) > MOST_MEMBERS:
        raise _too_much(str(folder), f"at most {MOST_MEMBERS} files", "more")
    for entry in sorted(entries, key=lambda entry: natural_key(entry.name)):
        name = prefix + _shown(entry.name)
        if entry.is_symlink() or not (entry.is_dir() or entry.is_file()):
            raise DecodeError(
                "neither a file nor a folder", where=str(entry), expected="no links, pipes or devices"
            )
        if entry.is_dir():
            yield from _walk(entry, prefix=f"{name}/", budget=budget)
        else:
            yield entry, name


def _shown(path: Path | str) -> str:
    """The path as text that can be printed, whatever bytes the file system holds."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _open_file(path: Path, *, name: str, budget: _Budget) -> Iterator[Member]:
    if not path.is_file():
        raise InputError("no such file", where=str(path), expected="a file, a folder or an archive")
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError("cannot be read", where=str(path), found=error.strerror or str(error)) from error
    with file:
        yield from _decode(file, name=name, where=_shown(path), budget=budget)


def _decode(file: BinaryIO, *, name: str, where: str, budget: _Budget) -> Iterator[Member]:
    """Choose by content."""
    with _told(where):
        head = file.read(_BLOCK_BYTES)
        file.seek(0)
        if head.startswith(b"\x1f\x8b"):
            with budget.unpacking(file):
                yield from _gzip_members(file, name=name, where=where, budget=budget)
        elif head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            with budget.unpacking(file):
                yield from _zip_members(file, name=name, where=where, budget=budget)
        elif _is_tar(head):
            yield from _tar_members(file, name=name, where=where, budget=budget)
        else:
            budget.take_member(where)
            yield from _whole(Member(name=name, where=where, blocks=budget.read(file, where)))


def _whole(member: Member) -> Iterator[Member]:
    """The member; what its user did not take is read behind it, so that limits and tears always show."""
    yield member
    for _ in member.blocks:
        pass


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Turn every error of a foreign decoder, and of the disk, into ours."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise _torn(where, str(error)) from None
    except OSError as error:
        raise InputError("cannot be read", where=where, found=error.strerror or str(error)) from error


def _torn(where: str, found: str) -> DecodeError:
    return DecodeError("a torn or foreign archive", where=where, expected="a whole one", found=found)


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def _gzip_members(file: BinaryIO, *, name: str, where: str, budget: _Budget) -> Iterator[Member]:
    with gzip.GzipFile(fileobj=file) as stream:
        head = stream.read(_BLOCK_BYTES)
        stream.seek(0)
        if _is_tar(head):
            yield from _tar_members(stream, name=name, where=where, budget=budget)
        else:
            budget.take_member(where)
            member = Member(name=name.removesuffix(".gz"), where=where, blocks=budget.read(stream, where))
            yield from _whole(member)


def _tar_members(file: _Readable, *, name: str, where: str, budget: _Budget) -> Iterator[Member]:
    """The regular files of a tar stream, up to its end mark."""
    seen: set[str] = set()
    long_name: str | None = None
    while (header := _tar_header(file, where)) is not None:
        if header.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE):
            extra = _tar_data(file, where, size_bytes=header.size, most_bytes=_LARGEST_HEADER_BYTES)
            if header.type == tarfile.GNUTYPE_LONGNAME:
                long_name = extra.rstrip(b"\0").decode("utf-8", "backslashreplace")
            else:
                path = _pax_path(extra, where)  # a global header names no single member
                long_name = path if path and header.type == tarfile.XHDTYPE else long_name
            budget.take_member(where)
            continue
        inner, long_name = long_name or header.name, None
        _check_name(inner, where)
        budget.take_member(f"{where}!{inner}", size_bytes=header.size)
        if header.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE):
            _check_once(inner, seen, where)
            blocks = budget.read(file, where, size_bytes=header.size)
            yield from _whole(Member(name=f"{name}!{inner}", where=f"{where}!{inner}", blocks=blocks))
            _skip_padding(file, where, read_bytes=header.size, size_bytes=header.size)
        elif header.type != tarfile.DIRTYPE or header.size:
            raise _not_a_file(inner, where)


def _tar_header(file: _Readable, where: str) -> tarfile.TarInfo | None:
    """The next header; None at the end mark."""
    block = file.read(_BLOCK_BYTES)
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
    except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # a block of zeros
        return None
    except (tarfile.HeaderError, ValueError) as error:
        raise _torn(where, str(error)) from None
    if header.size < 0:
        raise _torn(where, "a negative size")
    return header


def _tar_data(file: _Readable, where: str, *, size_bytes: int, most_bytes: int) -> bytes:
    if size_bytes > most_bytes:
        raise _too_much(where, f"a header of at most {most_bytes} bytes", f"{size_bytes} bytes")
    data = file.read(size_bytes)
    _skip_padding(file, where, read_bytes=len(data), size_bytes=size_bytes)
    return data


def _skip_padding(file: _Readable, where: str, *, read_bytes: int, size_bytes: int) -> None:
    padding_bytes = -size_bytes % _BLOCK_BYTES
    if read_bytes != size_bytes or len(file.read(padding_bytes)) != padding_bytes:
        raise _torn(where, "an end inside a member")


def _pax_path(records: bytes, where: str) -> str | None:
    """The path that pax records give a member; those that change its size or nature are refused.

    Source:
        POSIX.1-2017, pax, extended header: `length key=value` with a line feed, the length of it all.
    """
    path = None
    while records:
        length_text, space, _ = records.partition(b" ")
        length = int(length_text) if length_text.isdigit() and len(length_text) <= 5 else 0  # noqa: PLR2004
        record = records[len(length_text) + 1 : length - 1]
        if not space or records[length - 1 : length] != b"\n" or length <= len(length_text) + 1:
            raise _torn(where, "a pax header that cannot be read")
        key, _, value = record.partition(b"=")
        if key in (b"size", b"linkpath") or key.startswith(b"GNU.sparse"):
            raise _torn(where, f"a pax header that changes a member: {key[:40]!r}")
        if key == b"path":
            path = value.decode("utf-8", "backslashreplace")
        records = records[length:]
    return path


def _zip_members(file: BinaryIO, *, name: str, where: str, budget: _Budget) -> Iterator[Member]:
    """The regular files of a zip archive; stored or deflated only."""
    _check_zip_end(file, where)
    seen: set[str] = set()
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                inner = entry.orig_filename
                _check_name(inner, where)
                budget.take_member(f"{where}!{inner}", size_bytes=entry.file_size)
                if entry.is_dir():
                    continue
                _check_zip_entry(entry, where)
                _check_once(inner, seen, where)
                with archive.open(entry) as stream:
                    blocks = budget.read(stream, where, size_bytes=entry.file_size)
                    yield from _whole(Member(name=f"{name}!{inner}", where=f"{where}!{inner}", blocks=blocks))
                    if stream.read(1):
                        raise _torn(where, f"another size than declared: {inner[:80]!r}")
    except (NotImplementedError, RuntimeError, ValueError, OverflowError) as error:
        raise _torn(where, str(error)) from None


def _check_zip_end(file: BinaryIO, where: str) -> None:
    """Refuse a directory too large to hold, and zip64, whose count could be anything.

    Source:
        PKWARE APPNOTE 6.3.10, sections 4.3.15 and 4.3.16.
    """
    size_bytes = file.seek(0, io.SEEK_END)
    file.seek(max(0, size_bytes - _ZIP_END_BYTES - _LONGEST_ZIP_COMMENT_BYTES - _ZIP64_LOCATOR_BYTES))
    tail = file.read(_ZIP_END_BYTES + _LONGEST_ZIP_COMMENT_BYTES + _ZIP64_LOCATOR_BYTES)
    file.seek(0)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + _ZIP_END_BYTES:
        raise _torn(where, "no end of a zip directory")
    if b"PK\x06\x07" in tail[max(0, end - _ZIP64_LOCATOR_BYTES) : end]:
        raise DecodeError("a zip64 archive", where=where, expected="a zip of at most 65,535 files")
    directory_bytes = int.from_bytes(tail[end + 12 : end + 16], "little")
    if directory_bytes > _LARGEST_ZIP_DIRECTORY_BYTES:
        raise _too_much(
            where, f"a directory of at most {_LARGEST_ZIP_DIRECTORY_BYTES} bytes", f"{directory_bytes} bytes"
        )


def _check_zip_entry(entry: zipfile.ZipInfo, where: str) -> None:
    if stat.S_IFMT(entry.external_attr >> 16) in _SYMBOLIC_LINK_OR_DEVICE:
        raise _not_a_file(entry.orig_filename, where)
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DecodeError(
            "a member that cannot be read",
            where=f"{where}!{entry.orig_filename}",
            expected="stored or deflated, not encrypted",
        )


def _check_name(name: str, where: str) -> None:
    """Refuse names that lead outside, although nothing is ever written under them."""
    parts = re.split(r"[/\\]", name)
    if not name or name[0] in "/\\" or ".." in parts or re.match(r"[A-Za-z]:|.*[\0-\x1f\x7f]", name):
        raise DecodeError(
            "a member's name that leads outside or cannot be shown",
            where=where,
            expected="a relative path without `..`",
            found=repr(name[:80]),
        )


def _check_once(name: str, seen: set[str], where: str) -> None:
    if name in seen:
        raise DecodeError(
            "a name that stands twice in one archive",
            where=where,
            expected="each once",
            found=repr(name[:80]),
        )
    seen.add(name)


def _not_a_file(name: str, where: str) -> DecodeError:
    return DecodeError(
        "neither a file nor a folder",
        where=where,
        expected="no links, devices or sparse files",
        found=repr(name[:80]),
    )
