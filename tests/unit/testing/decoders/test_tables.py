"""The family's decoders keep the contract on a small share of trials."""

import pytest

from flopwitness.measure.sources import amd_smi, codecarbon_csv, plain_table, rocm_smi, zeus_csv
from flopwitness.testing.decoder_kit import check_decoder
from flopwitness.testing.decoders.tables import decoders
from flopwitness.testing.known_decoder import KnownDecoder

FORMATS = (
    *amd_smi.FORMATS,
    *codecarbon_csv.FORMATS,
    *plain_table.FORMATS,
    *rocm_smi.FORMATS,
    *zeus_csv.FORMATS,
)


@pytest.mark.parametrize("decoder", decoders(), ids=lambda decoder: decoder.name)
def test_nothing_but_a_refusal_escapes(decoder: KnownDecoder) -> None:
    report = check_decoder(decoder.decode, decoder.seeds, trials=300, seed=7)
    assert report.n_escaped == 0


def test_each_seed_is_known_as_its_own_format_and_no_other_of_the_family() -> None:
    for decoder in decoders():
        for seed in decoder.seeds:
            known = [item.name for item in FORMATS if item.is_it(seed, "log")]
            assert known == ([decoder.name] if decoder.name != "parquet-table" else [])
