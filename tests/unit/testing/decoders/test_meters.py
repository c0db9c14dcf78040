"""The meters' good inputs: each is read whole, and only by the reader that it is for."""

from itertools import chain

import pytest

from flopwitness.measure.samples import Trace
from flopwitness.measure.sources import (
    ipmi,
    loadgen_log,
    pdu_csv,
    perf_stat,
    powercap,
    ptd_log,
    redfish,
    spl_log,
    turbostat,
)
from flopwitness.testing.decoder_kit import check_decoder
from flopwitness.testing.decoders.meters import decoders
from flopwitness.testing.known_decoder import KnownDecoder

FORMATS = tuple(
    chain.from_iterable(
        module.FORMATS
        for module in (
            spl_log,
            ptd_log,
            loadgen_log,
            ipmi,
            redfish,
            pdu_csv,
            perf_stat,
            powercap,
            turbostat,
        )
    )
)
TRIALS = 300
SEEDS = [(decoder.name, number) for decoder in decoders() for number in range(len(decoder.seeds))]


def test_every_format_has_a_decoder() -> None:
    assert [decoder.name for decoder in decoders()] == [known.name for known in FORMATS]


@pytest.mark.parametrize(("name", "number"), SEEDS)
def test_a_good_input_is_read_whole_by_one_reader(name: str, number: int) -> None:
    decoder = next(decoder for decoder in decoders() if decoder.name == name)
    seed = decoder.seeds[number]
    assert [known.name for known in FORMATS if known.is_it(seed, "log")] == [name]
    trace = decoder.decode(seed)
    assert isinstance(trace, Trace)
    assert trace.n_skipped == 0
    assert trace.series or trace.windows


@pytest.mark.parametrize("decoder", decoders(), ids=lambda decoder: decoder.name)
def test_nothing_but_a_refusal_escapes(decoder: KnownDecoder) -> None:
    assert check_decoder(decoder.decode, decoder.seeds, trials=TRIALS, seed=7).trials == TRIALS
