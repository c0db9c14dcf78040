"""A fixed small share of the fuzzing; `campaigns/fuzz_decoders.py` runs the large one."""

import pytest

from flopwitness.testing.decoder_kit import check_decoder
from flopwitness.testing.decoder_table import known_decoders
from flopwitness.testing.known_decoder import KnownDecoder

_TRIALS = 2_000
_SEED = 20_240_607


@pytest.mark.parametrize(
    "decoder", [decoder for decoder in known_decoders() if decoder.seeds], ids=lambda decoder: decoder.name
)
def test_nothing_but_a_decode_error_escapes(decoder: KnownDecoder) -> None:
    report = check_decoder(decoder.decode, decoder.seeds, trials=_TRIALS, seed=_SEED)
    assert report.trials == _TRIALS
