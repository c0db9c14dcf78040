"""The median of numbers in blocks is the median, however they lie and wherever the blocks end."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from flopwitness.measure.middle import middle_pair

INT64 = st.integers(-(2**63), 2**63 - 1)


def _blocks(numbers: Sequence[int], size: int) -> Iterator[NDArray[np.int64]]:
    whole = np.array(numbers, dtype=np.int64)
    return (whole[start : start + size] for start in range(0, whole.size, size))


def _expected(numbers: Sequence[int]) -> tuple[int, int]:
    ordered = sorted(numbers)
    return ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]


@given(st.lists(INT64, min_size=1, max_size=40), st.integers(1, 50))
def test_it_is_the_middle_of_any_numbers(numbers: list[int], size: int) -> None:
    assert middle_pair(lambda: _blocks(numbers, size)) == _expected(numbers)


@pytest.mark.parametrize("n", [99_999, 100_000])
@pytest.mark.parametrize(
    "spread", [1, 3, 1_000, 10**9, 2**62], ids=["one value", "few values", "many", "more", "any"]
)
def test_many_numbers_are_split_until_the_middle_is_found(n: int, spread: int) -> None:
    numbers = np.random.default_rng(n).integers(-spread // 2, spread, n).tolist()
    assert middle_pair(lambda: _blocks(numbers, 7_000)) == _expected(numbers)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 2**40), (-(2**63), 2**63 - 1), (10**9 - 1, 10**9)])
def test_two_middles_may_lie_far_apart(low: int, high: int) -> None:
    numbers = [low, high] * 70_000
    assert middle_pair(lambda: _blocks(numbers, 1_000)) == (low, high)
    assert middle_pair(lambda: _blocks([*numbers, high], 1_000)) == (high, high)


def test_a_few_odd_ones_do_not_hide_the_middle() -> None:
    numbers = [-(2**63), *[10**9] * 200_000, 2**63 - 1]
    assert middle_pair(lambda: _blocks(numbers, 1 << 12)) == (10**9, 10**9)


@pytest.mark.parametrize(
    "numbers",
    [[5], [5, 5, 5], [1, 5, 5, 9], [1, 5, 9], [5, 9], [1, 5], [1, 1, 5, 9], [1, 5, 9, 9], [5, 5, 9, 9]],
)
@pytest.mark.parametrize("first", [[5], [1, 5, 9], []])
def test_the_middle_of_the_first_block_is_taken_only_where_it_is_that_of_all(
    numbers: list[int], first: list[int]
) -> None:
    blocks = [np.array(part, dtype=np.int64) for part in (first, numbers) if part]
    assert middle_pair(lambda: blocks) == _expected([*first, *numbers])


def test_of_nothing_there_is_no_middle() -> None:
    assert middle_pair(lambda: iter([])) is None
    assert middle_pair(lambda: _blocks([], 3)) is None
