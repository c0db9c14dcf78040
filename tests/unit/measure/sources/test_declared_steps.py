"""What a table declares of training steps, under the names that tables use."""

import numpy as np
import pytest

from flopwitness.measure.estimators.link_operations import DeclaredSteps
from flopwitness.measure.sources.declared_steps import declare_steps
from flopwitness.measure.sources.run_table import RunRow


def declare(count: int | None = 1, /, **cells: str) -> tuple[float, float, float]:
    (tokens,), (length,), (width,) = _arrays(declare_steps([RunRow(row=2, cells=cells, count=count)]))
    return tokens, length, width


def _arrays(declared: DeclaredSteps) -> tuple[list[float], list[float], list[float]]:
    return declared.tokens.tolist(), declared.sequence_length.tolist(), declared.width.tolist()


PLAIN = {"batch_size": "16", "seq_len": "128", "d_model": "256"}


def test_tokens_are_batch_times_length() -> None:
    assert declare(**PLAIN) == (16 * 128, 128, 256)


@pytest.mark.parametrize(
    ("count", "more", "tokens"),
    [
        (2, {}, 2 * 2_048),
        (8, {"data_parallel_size": "4"}, 4 * 2_048),
        (None, {"data_parallel_size": "4"}, 4 * 2_048),
        (1, {"gradient_accumulation_steps": "8"}, 8 * 2_048),
        (2, {"accumulation": "3"}, 6 * 2_048),
        (2, {"data_parallel_size": "", "accumulation": "x"}, 2 * 2_048),
        (2, {"data_parallel_size": "0"}, 2 * 2_048),
    ],
)
def test_chips_and_accumulation_multiply(count: int | None, more: dict[str, str], tokens: float) -> None:
    assert declare(count, **PLAIN, **more) == (tokens, 128, 256)


def test_without_a_number_of_chips_a_step_is_not_known() -> None:
    tokens, length, width = declare(None, **PLAIN)
    assert np.isnan(tokens)
    assert (length, width) == (128, 256)
    (told,), _, _ = _arrays(declare_steps([RunRow(row=2, cells=PLAIN)], count=3))
    assert told == 3 * 2_048
    (both,), _, _ = _arrays(declare_steps([RunRow(row=2, cells=PLAIN, count=2)], count=3))
    assert both == 3 * 2_048


@pytest.mark.parametrize("batch", ["batch_size", "micro_batch_size", "per_device_batch_size"])
@pytest.mark.parametrize("length", ["seq_len", "sequence_length", "seq_length"])
@pytest.mark.parametrize("width", ["d_model", "hidden_size", "n_embd"])
def test_every_spelling_is_known(batch: str, length: str, width: str) -> None:
    assert declare(**{batch: "16", length: " 128 ", width: "256.0"}) == (2_048, 128, 256)


def test_the_first_spelling_that_holds_a_number_counts() -> None:
    assert declare(**{**PLAIN, "batch_size": "", "micro_batch_size": "4"}) == (512, 128, 256)
    assert declare(**{**PLAIN, "micro_batch_size": "4"}) == (2_048, 128, 256)


@pytest.mark.parametrize("name", ["batch_size", "seq_len"])
@pytest.mark.parametrize("text", ["", "0", "-16", "nan", "inf", "1e", "sixteen", "16 x"])
def test_tokens_are_unknown_where_a_factor_is(name: str, text: str) -> None:
    tokens, _, width = declare(**{**PLAIN, name: text})
    assert np.isnan(tokens)
    assert width == 256


def test_a_missing_column_leaves_its_part_unknown() -> None:
    tokens, length, width = declare(batch_size="16", seq_len="128")
    assert (tokens, length) == (2_048, 128)
    assert np.isnan(width)
    assert np.isnan(declare(run_id="a")).all()


@pytest.mark.parametrize("text", ["1e999", "1e300"])
def test_a_number_beyond_any_training_declares_nothing_to_calculate_with(text: str) -> None:
    declared = declare_steps(
        [RunRow(row=2, cells={**PLAIN, "batch_size": text, "data_parallel_size": "1e300"}, count=1)]
    )
    assert np.isnan(declared.work(np.array([1.0]))).all()


def test_each_row_declares_for_itself() -> None:
    rows = [
        RunRow(row=2, cells=PLAIN, count=1),
        RunRow(row=3, cells={}),
        RunRow(row=4, cells={**PLAIN, "d_model": "8"}, count=1),
    ]
    tokens, _, width = _arrays(declare_steps(rows))
    np.testing.assert_array_equal(tokens, [2_048, np.nan, 2_048])
    np.testing.assert_array_equal(width, [256, np.nan, 8])


def test_no_rows_declare_nothing() -> None:
    assert _arrays(declare_steps([])) == ([], [], [])
