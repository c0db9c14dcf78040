from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.digest import Digest, digest_bytes, digest_file, digest_stream, is_same_secret
from flopwitness.foundation.errors import DecodeError

ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-4 example
EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_known_digests_carry_their_algorithm() -> None:
    assert str(digest_bytes(b"abc")) == ABC
    assert str(digest_bytes(b"")) == EMPTY
    assert str(digest_stream([])) == EMPTY


@given(st.lists(st.binary()))
def test_chunks_do_not_change_the_digest(chunks: list[bytes]) -> None:
    assert digest_stream(chunks) == digest_bytes(b"".join(chunks))


@given(st.binary())
def test_a_written_digest_comes_back(data: bytes) -> None:
    digest = digest_bytes(data)
    assert Digest.parse(str(digest)) == digest


@pytest.mark.parametrize(
    "text",
    [
        "",
        ABC[7:],
        ABC.upper(),
        "sha256:" + ABC[7:].upper(),
        "sha512:" + ABC[7:],
        ABC[:-1],
        ABC + "0",
        ABC + "\n",
        " " + ABC,
        ABC.replace("ba", "xx"),
    ],
)
def test_another_written_form_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="not a digest"):
        Digest.parse(text, where="entry 3")


def test_a_file_is_read_in_pieces(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5_000
    path = tmp_path / "big"
    path.write_bytes(data)
    assert digest_file(path) == digest_bytes(data)
    with pytest.raises(OSError, match="nothing"):
        digest_file(tmp_path / "nothing")


def test_secrets_are_compared_whole() -> None:
    assert is_same_secret(b"key", b"key")
    assert not is_same_secret(b"key", b"kez")
    assert not is_same_secret(b"key", b"key\x00")
