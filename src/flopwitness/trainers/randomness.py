"""The run's own random numbers: the same bits on every machine, from integers alone.

PyTorch's normal variates depend on the processor's instruction set, so a verifier with another one could not
make the initial weights again. Here a number is named: the run's root, a purpose and a place, hashed to a key
of Philox4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). Nothing has a state, so
nothing of it is stored in a checkpoint.
"""

import hashlib
import math
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["BELL_SD", "ROOT_BYTES", "Randomness", "derive_root"]

ROOT_BYTES: Final = 32
_BELL_TERMS: Final = 8
BELL_SD: Final = math.sqrt(_BELL_TERMS * (2**32 - 1) / 3)
"""The standard deviation of `Randomness.bells`: twice that of eight even 16-bit integers."""

_DOMAIN: Final = b"flopwitness/randomness/v1"
_LARGEST_BOUND: Final = 1 << 32


def derive_root(seed: int, *, binding: bytes = b"") -> bytes:
    """The root of a run's random numbers, 32 bytes.

    Args:
        seed: The declared seed, 0 to 2^64 - 1.
        binding: What the seed is bound to, such as a data digest and a nonce that somebody else chose; empty
            for nothing.
    """
    return hashlib.sha256(_DOMAIN + b"/root" + seed.to_bytes(8, "big") + binding).digest()


class Randomness:
    """Random numbers by name. Two calls with the same names give the same numbers."""

    def __init__(self, root: bytes) -> None:
        """Take the root.

        Args:
            root: What `derive_root` gave.

        Raises:
            ValueError: It has another length.
        """
        if len(root) != ROOT_BYTES:
            raise ValueError(f"a root of {ROOT_BYTES} bytes, not {len(root)}")
        self.root: Final = root

    def key(self, purpose: str, *place: int | str) -> bytes:
        """The 32 bytes of a name: SHA-256 over the root and every part with its kind and length."""
        state = hashlib.sha256(_DOMAIN + self.root)
        for part in (purpose, *place):
            data = part.encode() if isinstance(part, str) else part.to_bytes(8, "big")
            state.update((b"s" if isinstance(part, str) else b"i") + len(data).to_bytes(4, "big") + data)
        return state.digest()

    def words(self, count: int, purpose: str, *place: int | str) -> npt.NDArray[np.uint64]:
        """Evenly distributed 64-bit integers, shape (count,).

        Philox with the name's first 16 bytes as key (two little-endian words) and the counter at 0, which
        numpy raises before each block of four words.
        """
        key = np.frombuffer(self.key(purpose, *place)[:16], dtype="<u8")
        return np.random.Philox(key=key, counter=0).random_raw(count).astype(np.uint64, copy=False)

    def below(self, bound: int, count: int, purpose: str, *place: int | str) -> npt.NDArray[np.int64]:
        """Integers from 0 to `bound` - 1, shape (count,): the high half of a 32-bit word times the bound.

        Each word gives two, its low half first. A value's probability is off by at most 2^-32.

        Raises:
            ValueError: The bound is not from 1 to 2^32.
        """
        if not 1 <= bound <= _LARGEST_BOUND:
            raise ValueError(f"a bound from 1 to {_LARGEST_BOUND}, not {bound}")
        words = self.words((count + 1) // 2, purpose, *place)
        halves = np.stack((words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)), axis=1).reshape(-1)[:count]
        return ((halves * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)

    def permutation(self, count: int, purpose: str, *place: int | str) -> npt.NDArray[np.int64]:
        """An order of 0 to `count` - 1, shape (count,): by a random word each, equal ones by number."""
        return np.argsort(self.words(count, purpose, *place), kind="stable").astype(np.int64, copy=False)

    def bells(self, count: int, purpose: str, *place: int | str) -> npt.NDArray[np.int64]:
        """Nearly normal integers, shape (count,), mean 0 and standard deviation `BELL_SD`.

        Eight 16-bit integers (two words) are added, doubled and centred: within 4.9 standard deviations,
        symmetric, with a kurtosis of 2.85 where the normal's is 3.
        """
        words = self.words(2 * count, purpose, *place).reshape(count, 2)
        total = np.zeros(count, dtype=np.int64)
        for shift in (0, 16, 32, 48):
            total += ((words >> np.uint64(shift)) & np.uint64(0xFFFF)).sum(axis=1).astype(np.int64)
        return 2 * total - _BELL_TERMS * 0xFFFF
