"""Pairs of a query and a key: what attention costs goes by them.

Documents packed into one row do not see each other, so cost is the sum of their squares, never the square of
the row. A causal mask leaves half of a document's pairs; most conventions count them in full all the same, as
a kernel without block skipping computes them.
"""

from collections.abc import Sequence

from flopwitness.counting.model import ModelKind

__all__ = ["count_full_pairs", "count_masked_pairs"]


def count_full_pairs(documents: Sequence[int], *, kind: ModelKind, window: int = 0) -> int:
    """Pairs with the causal mask ignored: every query sees its whole document, or a whole window.

    Args:
        documents: Lengths [token], each >= 1.
        kind: Decoder or encoder.
        window: Keys that a decoder's query sees at most, itself included; an encoder's sees those less than
            so far to either side. 0 is no limit.

    Returns:
        The pairs of all documents.
    """
    if not window:
        return sum(length * length for length in documents)
    widest = window if kind is ModelKind.DECODER else 2 * window - 1
    return sum(length * min(length, widest) for length in documents)


def count_masked_pairs(documents: Sequence[int], *, kind: ModelKind, window: int = 0) -> int:
    """Pairs that the mask leaves: what the result depends on.

    A decoder's document of n tokens has n(n + 1)/2, its window of w leaves w(w + 1)/2 + (n - w) w of them.
    An encoder's has n^2; distance d < w occurs n - d times to either side.

    Args:
        documents: Lengths [token], each >= 1.
        kind: Decoder or encoder.
        window: As for `count_full_pairs`.

    Returns:
        The pairs of all documents.
    """
    return sum(_masked(length, kind, min(window or length, length)) for length in documents)


def _masked(length: int, kind: ModelKind, width: int) -> int:
    """Pairs of one document whose queries see `width` keys, at most the whole document."""
    causal = width * (width + 1) // 2 + (length - width) * width
    return causal if kind is ModelKind.DECODER else 2 * causal - length
