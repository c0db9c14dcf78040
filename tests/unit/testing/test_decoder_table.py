"""The table of decoders: unique names, good seeds, bad bytes refused."""

from flopwitness.testing.decoder_table import known_decoders

OURS = ("mllog", "power-log", "result-log", "system-json", "containers", "any-format", "run-table", "trace")


def test_names_are_unique_and_ours_are_there() -> None:
    names = [decoder.name for decoder in known_decoders()]
    assert len(set(names)) == len(names)
    assert set(OURS) <= set(names)


def test_every_decoder_takes_its_own_seeds() -> None:
    for decoder in known_decoders():
        assert decoder.seeds, decoder.name
        for seed in decoder.seeds:
            decoder.decode(seed)
