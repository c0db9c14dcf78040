"""The contract of every decoder: bytes in, an answer or DecodeError out, and nothing else.

Write a reader, hand it to `check_decoder` with a few good inputs. Each trial wounds one of them; trial
`n` of seed `s` is the same on every computer, so an escaped error can be reproduced from its number.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from flopwitness.foundation.errors import DecodeError
from flopwitness.testing.mutation import mutate

__all__ = ["Escape", "KitReport", "check_decoder", "fuzz_decoder", "mutant"]

_KEPT_ESCAPES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """An error that a decoder let through.

    Attributes:
        trial: The number with which `mutant` makes the input again.
        error: The error's class and message.
    """

    trial: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KitReport:
    """What a decoder did with its trials.

    Attributes:
        trials: How many inputs.
        accepted: How many gave an answer.
        refused: How many gave DecodeError.
        n_escaped: How many gave any other error.
        escapes: The first ten of those.
        slowest_s: The longest single trial [s].
    """

    trials: int = 0
    accepted: int = 0
    refused: int = 0
    n_escaped: int = 0
    escapes: tuple[Escape, ...] = ()
    slowest_s: float = 0.0

    def __add__(self, other: "KitReport") -> "KitReport":
        """Both runs together."""
        return KitReport(
            trials=self.trials + other.trials,
            accepted=self.accepted + other.accepted,
            refused=self.refused + other.refused,
            n_escaped=self.n_escaped + other.n_escaped,
            escapes=(self.escapes + other.escapes)[:_KEPT_ESCAPES],
            slowest_s=max(self.slowest_s, other.slowest_s),
        )


def check_decoder(
    decode: Callable[[bytes], object], seeds: Sequence[bytes], *, trials: int, seed: int
) -> KitReport:
    """Run the trials and insist on the contract.

    Args:
        decode: The decoder; an iterator that it returns is read to its end.
        seeds: Good inputs, at least one; each must be accepted as it stands.
        trials: How many wounded inputs.
        seed: Chooses the wounds.

    Raises:
        AssertionError: A good input is refused; anything but DecodeError escapes; or the trials say
            nothing, because all were accepted or all refused.
    """
    for number, good in enumerate(seeds):
        _run(decode, good, f"seed {number} is refused")
    report = fuzz_decoder(decode, seeds, trials=trials, seed=seed)
    if report.escapes:
        first = report.escapes[0]
        raise AssertionError(
            f"{report.n_escaped} of {trials} trials let another error through; first: trial {first.trial}"
            f" of seed {seed}, {first.error}"
        )
    if not report.accepted or not report.refused:
        raise AssertionError(
            f"the trials say nothing: {report.accepted} accepted and {report.refused} refused of {trials}"
        )
    return report


def fuzz_decoder(
    decode: Callable[[bytes], object], seeds: Sequence[bytes], *, trials: int, seed: int, first: int = 0
) -> KitReport:
    """Run trials `first` to `first + trials - 1` and count what happens.

    Raises:
        ValueError: There are no seeds.
    """
    if not seeds:
        raise ValueError("no seeds")
    accepted = refused = n_escaped = 0
    escapes: list[Escape] = []
    slowest_s = 0.0
    for trial in range(first, first + trials):
        data = mutant(seeds, seed=seed, trial=trial)
        start_s = time.perf_counter()
        try:
            _exhaust(decode(data))
            accepted += 1
        except DecodeError:
            refused += 1
        except Exception as error:  # noqa: BLE001 (to find those is the point)
            n_escaped += 1
            if len(escapes) < _KEPT_ESCAPES:
                escapes.append(Escape(trial=trial, error=f"{type(error).__name__}: {str(error)[:200]}"))
        slowest_s = max(slowest_s, time.perf_counter() - start_s)
    return KitReport(
        trials=trials,
        accepted=accepted,
        refused=refused,
        n_escaped=n_escaped,
        escapes=tuple(escapes),
        slowest_s=slowest_s,
    )


def mutant(seeds: Sequence[bytes], *, seed: int, trial: int) -> bytes:
    """The input of one trial, the same on every computer."""
    rng = Random(f"{seed}:{trial}")  # noqa: S311 (damage, not secrets)
    return mutate(rng.choice(seeds), rng)


def _run(decode: Callable[[bytes], object], data: bytes, complaint: str) -> None:
    try:
        _exhaust(decode(data))
    except DecodeError as error:
        raise AssertionError(f"{complaint}: {error}") from error


def _exhaust(answer: object) -> None:
    if isinstance(answer, Iterator):
        for _ in answer:
            pass
