"""Files, folders and archives: whole, bounded, and never led outside."""

import gzip
import io
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.measure.sources import containers
from flopwitness.measure.sources.containers import Limits, Member, decode_container, natural_key, open_members


def _tar(*members: tuple[str, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:  # noqa: A002
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def _tar_of(member: tarfile.TarInfo, data: bytes = b"") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def _zip(*members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return file.getvalue()


class _Held(NamedTuple):
    name: str
    where: str
    data: bytes


def _hold(members: Iterable[Member]) -> list[_Held]:
    return [_Held(member.name, member.where, member.read()) for member in members]


def _read(data: bytes, *, limits: Limits | None = None) -> list[_Held]:
    return _hold(decode_container(io.BytesIO(data), name="x", where="dir/x", limits=limits))


def _contents(members: list[_Held]) -> list[tuple[str, bytes]]:
    return [(member.name, member.data) for member in members]


def test_a_plain_file_is_its_own_member(tmp_path: Path) -> None:
    path = tmp_path / "node_1.txt"
    path.write_bytes(b"data")
    assert _hold(open_members(path)) == [_Held("node_1.txt", str(path), b"data")]


def test_a_folder_is_read_to_its_depths_in_natural_order(tmp_path: Path) -> None:
    for name in ("node_10.txt", "node_2.txt", "b/node_1.txt", "a/c/deep.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "empty").mkdir()
    members = _hold(open_members(tmp_path))
    assert [member.name for member in members] == [
        "a/c/deep.txt",
        "b/node_1.txt",
        "node_2.txt",
        "node_10.txt",
    ]
    assert members[0].where == str(tmp_path / "a/c/deep.txt")


def test_an_archive_in_a_folder_is_opened_and_one_in_an_archive_is_not(tmp_path: Path) -> None:
    (tmp_path / "nodes.tar.gz").write_bytes(gzip.compress(_tar(("node_1.txt", b"1"), ("inner.zip", _zip()))))
    members = _hold(open_members(tmp_path))
    assert [member.name for member in members] == ["nodes.tar.gz!node_1.txt", "nodes.tar.gz!inner.zip"]
    assert members[0].where == f"{tmp_path}/nodes.tar.gz!node_1.txt"


@pytest.mark.parametrize(
    "data",
    [
        _tar(("a/n1", b"1"), ("n2", b"22" * 400)),
        _tar(("a/n1", b"1"), ("n2", b"22" * 400), format=tarfile.GNU_FORMAT),
        _tar(("a/n1", b"1"), ("n2", b"22" * 400), format=tarfile.USTAR_FORMAT),
        gzip.compress(_tar(("a/n1", b"1"), ("n2", b"22" * 400))),
        _zip(("a/n1", b"1"), ("n2", b"22" * 400)),
        _zip(("a/n1", b"1"), ("n2", b"22" * 400), compression=zipfile.ZIP_STORED),
    ],
    ids=["pax", "gnu", "ustar", "tar.gz", "zip", "zip-stored"],
)
def test_archives_are_known_by_their_content(data: bytes) -> None:
    assert _contents(_read(data)) == [("x!a/n1", b"1"), ("x!n2", b"22" * 400)]


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_in_a_tar_are_whole(format: int) -> None:  # noqa: A002
    name = "power_ac/" + "n" * 150
    assert _contents(_read(_tar((name, b"1"), ("short", b"2"), format=format))) == [
        (f"x!{name}", b"1"),
        ("x!short", b"2"),
    ]


def test_a_gzip_file_loses_its_ending_and_may_have_several_parts() -> None:
    data = gzip.compress(b"first ") + gzip.compress(b"second")
    (member,) = _hold(decode_container(io.BytesIO(data), name="n.txt.gz", where="n.txt.gz"))
    assert (member.name, member.data) == ("n.txt", b"first second")


def test_folders_in_archives_hold_nothing() -> None:
    folder = tarfile.TarInfo("d")
    folder.type = tarfile.DIRTYPE
    assert _read(_tar_of(folder)) == []
    assert _read(_zip(("d/", b""))) == []


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../n", "a/../../n", "a/..", "\\n", "C:n", "a\nb", "a\x1b[2J"]
)
@pytest.mark.parametrize("make", [_tar, _zip])
def test_names_that_lead_outside_or_cannot_be_shown_are_refused(make: object, name: str) -> None:
    assert callable(make)
    with pytest.raises(DecodeError, match="leads outside"):
        _read(make((name, b"1")))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"S", b"Z"]
)
def test_links_and_devices_in_a_tar_are_refused(kind: bytes) -> None:
    member = tarfile.TarInfo("n")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(DecodeError, match="neither a file nor a folder"):
        _read(_tar_of(member))


def test_a_link_in_a_zip_is_refused() -> None:
    entry = zipfile.ZipInfo("n")
    entry.external_attr = 0o120777 << 16
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(DecodeError, match="neither a file nor a folder"):
        _read(file.getvalue())


@pytest.mark.parametrize("make", ["link", "dead link", "pipe", "linked folder"])
def test_links_and_pipes_in_a_folder_are_refused(tmp_path: Path, make: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "n").write_bytes(b"1")
    folder = tmp_path / "folder"
    folder.mkdir()
    if make == "pipe":
        os.mkfifo(folder / "n")
    else:
        targets = {"link": outside / "n", "dead link": outside / "none", "linked folder": outside}
        (folder / "n").symlink_to(targets[make])
    with pytest.raises(DecodeError, match="neither a file nor a folder"):
        _hold(open_members(folder))


def test_a_link_that_the_user_names_is_followed(tmp_path: Path) -> None:
    (tmp_path / "n").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "n")
    assert [member.data for member in _hold(open_members(tmp_path / "link"))] == [b"1"]


@pytest.mark.parametrize("name", ["none", "none/n", "pipe"])
def test_what_is_not_there_is_the_callers_error(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no such file") as caught:
        _hold(open_members(tmp_path / name))
    assert caught.value.where == str(tmp_path / name)


def _refuse(*args: object) -> NoReturn:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("what", ["open", "iterdir"])
def test_what_may_not_be_read_is_the_callers_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    (tmp_path / "n").write_bytes(b"1")
    monkeypatch.setattr(Path, what, _refuse)
    with pytest.raises(InputError, match=r"cannot be read.*Permission denied"):
        _hold(open_members(tmp_path / "n" if what == "open" else tmp_path))


def test_a_disk_that_fails_while_it_is_read_is_the_callers_error() -> None:
    class _Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            del size
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match="Input/output error"):
        _hold(decode_container(_Failing(b"1"), name="x", where="x"))


def test_a_file_name_that_is_no_utf_8_can_still_be_shown(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff")).write_bytes(b"1")
    (member,) = _hold(open_members(tmp_path))
    assert member.name == "n\\xff"
    member.where.encode("utf-8")


_WHOLE_TAR = _tar(("n1", b"1" * 600), ("n2", b"2" * 600))


@pytest.mark.parametrize(
    "cut", [513, 1024, 1536, 2048, 2049, 3072, len(_WHOLE_TAR) - 10_240 + 512, 3584 - 512]
)
def test_a_torn_tar_is_an_error_and_never_a_shorter_one(cut: int) -> None:
    data = _WHOLE_TAR[:cut]
    with pytest.raises(DecodeError, match="torn"):
        _read(data)


def test_a_broken_header_in_the_middle_is_an_error() -> None:
    broken = bytearray(_WHOLE_TAR)
    broken[1536 + 3] ^= 1
    with pytest.raises(DecodeError, match="bad checksum"):
        _read(bytes(broken))


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(_WHOLE_TAR)[:-20],
        gzip.compress(b"text" * 1_000)[:-4],
        gzip.compress(b"text")[:-8] + b"\0" * 8,
        b"\x1f\x8b",
        b"\x1f\x8b\x08" + b"\xff" * 40,
        b"PK\x03\x04",
        _zip(("n", b"1"))[:-5],
        _zip(("n", b"1" * 500)).replace(b"PK\x01\x02", b"PK\x01\x03"),
        b"PK\x05\x06" + b"\xff" * 18,
    ],
)
def test_torn_archives_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        _read(data)


def test_a_zip_member_that_fails_its_checksum_is_refused() -> None:
    data = _zip(("n", b"text to change"), compression=zipfile.ZIP_STORED).replace(b"change", b"chance")
    with pytest.raises(DecodeError, match="CRC"):
        _read(data)


@pytest.mark.parametrize("make", [_tar, _zip])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(DecodeError, match="stands twice"):
        _read(make(("n", b"1"), ("n", b"2")))


def test_an_encrypted_or_foreign_zip_member_is_refused() -> None:
    data = bytearray(_zip(("n", b"1")))
    directory = data.index(b"PK\x01\x02")
    data[directory + 8] |= 1
    with pytest.raises(DecodeError, match="cannot be read"):
        _read(bytes(data))
    with pytest.raises(DecodeError, match="cannot be read"):
        _read(_zip(("n", b"1"), compression=zipfile.ZIP_BZIP2))


def test_a_zip64_directory_is_refused() -> None:
    data = _zip(("n", b"1"))
    end = data.index(b"PK\x05\x06")
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, 0, 1)
    with pytest.raises(DecodeError, match="zip64"):
        _read(data[:end] + locator + data[end:])


def test_a_zip_directory_too_large_to_hold_is_refused_before_it_is_read() -> None:
    data = bytearray(_zip(("n", b"1")))
    end = data.index(b"PK\x05\x06")
    data[end + 12 : end + 16] = struct.pack("<L", 1 << 30)
    with pytest.raises(DecodeError, match="too much"):
        _read(bytes(data))


@pytest.mark.parametrize(
    "data",
    [
        b"a" * 101,
        gzip.compress(b"a" * 101),
        _tar(("n", b"a" * 101)),
        gzip.compress(_tar(("n", b"a" * 101))),
        _zip(("n", b"a" * 101)),
    ],
    ids=["file", "gz", "tar", "tar.gz", "zip"],
)
def test_a_member_beyond_its_limit_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="at most 100 bytes a file"):
        _read(data, limits=Limits(member_bytes=100))
    assert [len(member.data) for member in _read(data, limits=Limits(member_bytes=101))] in (
        [101],
        [len(data)],
    )


@pytest.mark.parametrize(
    "data", [_tar(("n", b"a" * 60), ("m", b"a" * 60)), _zip(("n", b"a" * 60), ("m", b"a" * 60))]
)
def test_a_total_beyond_its_limit_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="at most 100 bytes in all"):
        _read(data, limits=Limits(total_bytes=100))
    assert len(_read(data, limits=Limits(total_bytes=120))) == 2


@pytest.mark.parametrize(
    "data", [_tar(*[(str(n), b"") for n in range(4)]), _zip(*[(str(n), b"") for n in range(4)])]
)
def test_more_members_than_the_limit_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="at most 3 files"):
        _read(data, limits=Limits(members=3))
    assert len(_read(data, limits=Limits(members=4))) == 4


def test_the_limits_hold_across_a_folder(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"a" * 30)
    with pytest.raises(DecodeError, match="at most 3 files"):
        _hold(open_members(tmp_path, limits=Limits(members=3)))
    with pytest.raises(DecodeError, match="at most 100 bytes in all"):
        _hold(open_members(tmp_path, limits=Limits(total_bytes=100)))


def test_a_folder_with_too_many_entries_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MOST_MEMBERS", 2)
    for number in range(3):
        (tmp_path / str(number)).write_bytes(b"")
    with pytest.raises(DecodeError, match="too much"):
        _hold(open_members(tmp_path))


def test_a_compression_bomb_is_stopped_while_it_streams() -> None:
    bomb = gzip.compress(b"\0" * (64 << 20))
    assert len(bomb) < 100_000
    with pytest.raises(DecodeError, match="too much"):
        _read(bomb, limits=Limits(member_bytes=1 << 20))


def test_a_tar_that_declares_a_huge_member_is_refused_before_memory_is_taken() -> None:
    member = tarfile.TarInfo("n")
    member.size = 1 << 40
    with pytest.raises(DecodeError, match="1099511627776 bytes"):
        _read(member.tobuf(tarfile.GNU_FORMAT))


def test_a_negative_size_is_refused() -> None:
    block = bytearray(tarfile.TarInfo("n").tobuf(tarfile.GNU_FORMAT))
    block[124:136] = b"\xff" * 12  # base-256, two's complement
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    with pytest.raises(DecodeError, match="negative size"):
        _read(bytes(block))


def _pax(records: bytes, *, size: int | None = None, kind: bytes = tarfile.XHDTYPE) -> bytes:
    header = tarfile.TarInfo("p")
    header.type, header.size = kind, len(records) if size is None else size
    return header.tobuf(tarfile.USTAR_FORMAT) + records + b"\0" * (-len(records) % 512) + _tar(("n", b"1"))


def test_pax_records_that_say_nothing_of_interest_are_passed_over() -> None:
    assert _contents(_read(_pax(b"13 mtime=1.5\n14 path=other\n"))) == [("x!other", b"1")]


@pytest.mark.parametrize(
    "records",
    [
        b"9 size=1\n",
        b"11 path=abc\n",
        b"14 linkpath=a\n",
        b"22 GNU.sparse.major=1\n",
        b"x path=a\n",
        b"99 path=a\n",
        b"0 path=a\n",
        b"-1 path=a\n",
        b"2 path=a\n",
        b"path",
        b"999999 path=a\n",
        b"18 path=../../etc\n",
    ],
)
def test_pax_records_that_change_a_member_or_cannot_be_read_are_refused(records: bytes) -> None:
    with pytest.raises(DecodeError):
        _read(_pax(records))


def test_a_global_pax_header_names_no_member_and_changes_none() -> None:
    assert _contents(_read(_pax(b"14 path=other\n", kind=tarfile.XGLTYPE))) == [("x!n", b"1")]
    with pytest.raises(DecodeError, match="changes a member"):
        _read(_pax(b"9 size=1\n", kind=tarfile.XGLTYPE))


def test_a_pax_header_too_large_is_refused() -> None:
    with pytest.raises(DecodeError, match="a header of at most"):
        _read(_pax(b"", size=1 << 20))


def test_numbers_in_names_sort_as_numbers() -> None:
    names = ["node_10", "node_2", "node_2b", "a", "node_", "10", "9"]
    assert sorted(names, key=natural_key) == ["a", "node_", "node_2", "node_2b", "node_10", "9", "10"]
    assert natural_key("") == ()


@pytest.mark.parametrize("make", [gzip.compress, lambda data: _zip(("n", data))])
def test_more_than_logs_pack_to_is_refused(make: Callable[[bytes], bytes]) -> None:
    fine, bomb = make(b"\n" * (60 << 20)), make(b"\n" * (90 << 20))
    assert len(_read(fine)[0].data) == 60 << 20
    with pytest.raises(DecodeError, match="at most 200 times its packed size"):
        _read(bomb)


def test_a_log_that_packs_well_is_read() -> None:
    lines = b"".join(
        b"2026/01/31 09:%02d:%02d.000, 0, 300.00 W\n" % divmod(k % 3600, 60) for k in range(40_000)
    )
    assert len(lines * 50) > 64 << 20
    assert len(_read(gzip.compress(lines * 50))[0].data) == len(lines * 50)
