"""The family's decoders keep the contract on a small share of trials, and know their own logs alone."""

import pytest

from flopwitness.measure.sources import nvidia_csv, nvidia_dmon, nvidia_query, nvidia_xml
from flopwitness.testing.decoder_kit import check_decoder
from flopwitness.testing.decoders.nvidia import decoders
from flopwitness.testing.known_decoder import KnownDecoder

FORMATS = (*nvidia_csv.FORMATS, *nvidia_dmon.FORMATS, *nvidia_query.FORMATS, *nvidia_xml.FORMATS)


@pytest.mark.parametrize("decoder", decoders(), ids=lambda decoder: decoder.name)
def test_nothing_but_a_refusal_escapes(decoder: KnownDecoder) -> None:
    report = check_decoder(decoder.decode, decoder.seeds, trials=300, seed=7)
    assert report.n_escaped == 0


@pytest.mark.parametrize("decoder", decoders(), ids=lambda decoder: decoder.name)
def test_each_seed_is_known_as_its_own_format_and_no_other_of_the_family(decoder: KnownDecoder) -> None:
    assert len(decoder.seeds) >= 2
    for seed in decoder.seeds:
        assert [known.name for known in FORMATS if known.is_it(seed, "log")] == [decoder.name]
