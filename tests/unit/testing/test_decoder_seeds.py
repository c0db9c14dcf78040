"""Every good input is guessed as what it is, whatever other formats there are."""

import pytest

from flopwitness.measure.sources.formats import FORMATS, guess_format
from flopwitness.testing.decoder_table import known_decoders

FORMAT_NAMES = {known.name for known in FORMATS}
UNPACKED = {"parquet-table"}  # what its child process sends back, not the file
SEEDS = [
    pytest.param(decoder.name, seed, id=f"{decoder.name}-{number}")
    for decoder in known_decoders()
    if decoder.name in FORMAT_NAMES - UNPACKED
    for number, seed in enumerate(decoder.seeds)
]


@pytest.mark.parametrize(("name", "seed"), SEEDS)
def test_a_seed_is_guessed_as_its_own_format(name: str, seed: bytes) -> None:
    assert guess_format(seed, "log.txt") == name


def test_every_format_but_a_few_old_ones_has_a_decoder_of_its_name() -> None:
    others = {"flopwitness-trace", "mlperf-system", "mlperf-power", "mlperf-result"}
    assert FORMAT_NAMES - others <= {decoder.name for decoder in known_decoders()}
