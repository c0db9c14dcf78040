"""However a chip's name is written, it means the same chip."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.catalogue.chips import Chip, decode_chips, load_chips, normalise_name
from flopwitness.foundation.errors import DecodeError, UnknownChipError

CATALOGUE: Final = load_chips()
NAMES: Final = [(chip, name) for chip in CATALOGUE.chips for name in (chip.id, chip.name, *chip.aliases)]
PREFIXES: Final = ("", "NVIDIA ", "nvidia-", "Tesla ", "AMD Instinct ", "Google ", "GeForce_", "Intel(R) ")
SEPARATORS: Final = (" ", "-", "_", "  ", ", ", "/", ".")


@given(named=st.sampled_from(NAMES), prefix=st.sampled_from(PREFIXES), upper=st.booleans(), data=st.data())
def test_case_vendor_and_separators_do_not_matter(
    named: tuple[Chip, str], prefix: str, *, upper: bool, data: st.DataObject
) -> None:
    chip, name = named
    words = name.replace("-", " ").replace("_", " ").split()
    text = words[0]
    for word in words[1:]:
        text += data.draw(st.sampled_from(SEPARATORS)) + word
    written = prefix + (text.upper() if upper else text.lower())
    assert CATALOGUE.find(written) == (chip,)


@given(named=st.sampled_from(NAMES))
def test_a_family_holds_every_chip_that_names_it(named: tuple[Chip, str]) -> None:
    chip, _ = named
    for family in chip.families:
        assert chip in CATALOGUE.find(family)


@given(name=st.text(max_size=40))
def test_any_text_is_a_chip_or_an_unknown_chip(name: str) -> None:
    try:
        chips = CATALOGUE.find(name)
    except UnknownChipError as error:
        assert "\n" not in str(error)  # noqa: PT017 (either outcome is right; the error must be one line)
    else:
        assert normalise_name(name)
        assert chips


@given(names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6))
def test_a_list_is_the_union_of_its_names(names: list[tuple[Chip, str]]) -> None:
    plain = [(chip, name) for chip, name in names if "," not in name]
    if plain:
        chips = CATALOGUE.find_all(",".join(name for _, name in plain))
        assert {chip.id for chip in chips} == {chip.id for chip, _ in plain}
        assert len({chip.id for chip in chips}) == len(chips)


@given(name=st.text(alphabet=st.characters(codec="ascii"), max_size=40))
def test_normalising_twice_changes_nothing(name: str) -> None:
    once = normalise_name(name)
    assert normalise_name(once) == once


@given(data=st.binary(max_size=200))
def test_the_decoder_raises_only_decode_errors(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_chips(data)
