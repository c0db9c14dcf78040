import json
from pathlib import Path

import pytest

from flopwitness.counting.model import ModelKind
from flopwitness.counting.pairs import count_full_pairs, count_masked_pairs

DECODER, ENCODER = ModelKind.DECODER, ModelKind.ENCODER


def seen(length: int, kind: ModelKind, window: int) -> int:
    """Pairs that a mask leaves, one by one."""

    def sees(query: int, key: int) -> bool:
        if kind is DECODER:
            return key <= query and (not window or query - key < window)
        return not window or abs(query - key) < window

    return sum(sees(query, key) for query in range(length) for key in range(length))


@pytest.mark.parametrize("kind", list(ModelKind))
@pytest.mark.parametrize("window", [0, 1, 2, 5, 9, 10, 50])
@pytest.mark.parametrize("length", [1, 2, 9, 10])
def test_masked_pairs_are_those_that_the_mask_leaves(length: int, kind: ModelKind, window: int) -> None:
    assert count_masked_pairs([length], kind=kind, window=window) == seen(length, kind, window)


def test_documents_of_one_row_add_up_and_do_not_see_each_other() -> None:
    assert count_full_pairs([3, 4], kind=DECODER) == 9 + 16
    assert count_masked_pairs([3, 4], kind=DECODER) == 6 + 10


@pytest.mark.parametrize(
    ("kind", "window", "expected"), [(DECODER, 4, 10 * 4), (ENCODER, 4, 10 * 7), (DECODER, 20, 100)]
)
def test_a_window_in_full_is_as_wide_for_every_query(kind: ModelKind, window: int, expected: int) -> None:
    assert count_full_pairs([10], kind=kind, window=window) == expected


@pytest.mark.parametrize("kind", list(ModelKind))
@pytest.mark.parametrize("window", [0, 1, 3, 8, 40])
def test_no_mask_leaves_more_than_all(kind: ModelKind, window: int) -> None:
    documents = [1, 7, 12]
    masked = count_masked_pairs(documents, kind=kind, window=window)
    assert masked <= count_full_pairs(documents, kind=kind, window=window)


def test_case_h18_packed_sequences(cases: Path) -> None:
    folder = cases / "h18_packed_sequences"
    rows = json.loads((folder / "rows.json").read_text())
    case = json.loads((folder / "expected.json").read_text())
    expect, wrong = case["expect"], case["wrong_answers"]
    per_pair = rows["layers"] * 2 * 2 * rows["heads"] * rows["head_dim"]
    packed, padded = rows["packed"]["document_lengths"], [rows["padded"]["real_tokens"]]
    assert sum(packed) == expect["packed"]["tokens"]
    assert count_full_pairs(packed, kind=ENCODER) == expect["packed"]["pairs_bidirectional"]
    assert count_masked_pairs(packed, kind=DECODER) == expect["packed"]["pairs_causal"]
    full, causal = (
        per_pair * count_full_pairs(packed, kind=ENCODER),
        per_pair * count_masked_pairs(packed, kind=DECODER),
    )
    assert full == expect["packed"]["attention_flops_bidirectional"]
    assert causal == expect["packed"]["attention_flops_causal"]
    assert full != wrong["packed_as_one_sequence_bidirectional"]
    assert causal != wrong["packed_as_one_sequence_causal"]
    useful = expect["padded"]
    assert per_pair * count_full_pairs(padded, kind=ENCODER) == useful["attention_flops_useful_bidirectional"]
    assert per_pair * count_masked_pairs(padded, kind=DECODER) == useful["attention_flops_useful_causal"]
    assert (
        per_pair * count_full_pairs([rows["padded"]["row_length"]], kind=ENCODER)
        == useful["attention_flops_executed_dense"]
    )
