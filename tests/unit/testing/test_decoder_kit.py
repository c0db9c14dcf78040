"""The contract kit: it must catch each way in which a decoder can break its promise."""

from collections.abc import Iterator

import pytest

from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.testing.decoder_kit import Escape, KitReport, check_decoder, fuzz_decoder, mutant

SEEDS = (b"10\n20\n30\n", b"1\n")


def _good(data: bytes) -> int:
    if not data[:1].isdigit():
        raise DecodeError("not a number")
    return len(data)


def _letting_through(data: bytes) -> int:
    try:
        return int(data.split(b"\n")[0])
    except UnicodeDecodeError:
        raise DecodeError("not a number") from None


def _refusing_late(data: bytes) -> Iterator[int]:
    yield 1
    if len(data) > 10:
        raise DecodeError("too long")


def _letting_through_late(data: bytes) -> Iterator[int]:
    yield 1
    if len(data) > 10:
        raise KeyError("late")


def _raising_another_of_ours(data: bytes) -> int:
    if len(data) > 10:
        raise InputError("our own, but not DecodeError")
    return 1


@pytest.mark.parametrize("decode", [_good, _refusing_late])
def test_a_decoder_that_keeps_the_contract_passes(decode: object) -> None:
    assert callable(decode)
    report = check_decoder(decode, SEEDS, trials=500, seed=1)
    assert report.trials == 500
    assert report.accepted + report.refused == 500
    assert report.accepted > 0
    assert report.refused > 0
    assert report.escapes == ()


@pytest.mark.parametrize("decode", [_letting_through, _letting_through_late, _raising_another_of_ours])
def test_an_escaped_error_fails_with_the_trial_that_shows_it(decode: object) -> None:
    assert callable(decode)
    with pytest.raises(AssertionError, match=r"first: trial \d+ of seed 1, (Value|Key|Input)Error"):
        check_decoder(decode, SEEDS, trials=500, seed=1)


def test_an_escape_can_be_reproduced_from_its_number() -> None:
    report = fuzz_decoder(_letting_through, SEEDS, trials=500, seed=7)
    assert report.n_escaped >= len(report.escapes) > 0
    with pytest.raises(ValueError, match="invalid literal"):
        _letting_through(mutant(SEEDS, seed=7, trial=report.escapes[0].trial))


def _accept(data: bytes) -> int:
    return len(data)


class _AcceptOnce:
    """A decoder that takes its seed and then refuses everything."""

    def __init__(self) -> None:
        self._has_accepted = False

    def __call__(self, data: bytes) -> int:
        if self._has_accepted:
            raise DecodeError("no seed")
        self._has_accepted = True
        return len(data)


def test_trials_that_say_nothing_fail() -> None:
    with pytest.raises(AssertionError, match="0 refused"):
        check_decoder(_accept, SEEDS, trials=50, seed=1)
    with pytest.raises(AssertionError, match="0 accepted"):
        check_decoder(_AcceptOnce(), SEEDS[:1], trials=50, seed=1)


def test_a_good_input_that_is_refused_fails() -> None:
    with pytest.raises(AssertionError, match="seed 1 is refused"):
        check_decoder(_good, (b"1", b"x"), trials=1, seed=1)


def test_no_seeds_say_nothing() -> None:
    with pytest.raises(ValueError, match="no seeds"):
        fuzz_decoder(_good, (), trials=1, seed=1)


def test_a_run_in_two_parts_is_the_same_run() -> None:
    whole = fuzz_decoder(_letting_through, SEEDS, trials=100, seed=3)
    parts = fuzz_decoder(_letting_through, SEEDS, trials=60, seed=3) + fuzz_decoder(
        _letting_through, SEEDS, trials=40, seed=3, first=60
    )
    assert (whole.trials, whole.accepted, whole.refused, whole.n_escaped, whole.escapes) == (
        parts.trials,
        parts.accepted,
        parts.refused,
        parts.n_escaped,
        parts.escapes,
    )


def test_reports_keep_ten_escapes_and_the_slowest_trial() -> None:
    escapes = tuple(Escape(trial=trial, error="x") for trial in range(8))
    half = KitReport(trials=8, n_escaped=8, escapes=escapes, slowest_s=0.5)
    both = half + KitReport(trials=8, n_escaped=8, escapes=escapes, slowest_s=0.25)
    assert (both.trials, both.n_escaped, len(both.escapes), both.slowest_s) == (16, 16, 10, 0.5)
