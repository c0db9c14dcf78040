"""The decoder: from weights by name and tokens to the loss, with nothing kept in between.

There is no key bias: a softmax ignores what is added to all of a row, so its true gradient is zero, and an
optimizer that divides by the gradient's size would blow rounding noise up to full steps.
"""

# ruff: noqa: N803, N806 (shapes in names: B rows, T tokens, D width of the stream, H query heads, K key heads,
# E width of a head, F hidden width, V vocabulary)

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from flopwitness.counting.model import FeedForward, Model, Norm, Positions, Projection
from flopwitness.counting.training import Checkpointing
from flopwitness.trainers.dropout import Dropout
from flopwitness.trainers.norms import normalise_layer, normalise_rms

__all__ = ["Decoder", "Weights"]

Weights = Mapping[str, torch.Tensor]

_ROTARY_BASE: Final = 10_000.0  # Su et al. 2021

_ACTIVATIONS: Final[dict[FeedForward, Callable[[torch.Tensor], torch.Tensor]]] = {
    FeedForward.RELU: functional.relu,
    FeedForward.GELU: functional.gelu,
    FeedForward.SWIGLU: functional.silu,
    FeedForward.GEGLU: functional.gelu,
}


class Decoder:
    """A decoder's computation; its weights are handed in with every call."""

    def __init__(self, model: Model, *, checkpointing: Checkpointing, device: torch.device) -> None:
        self._model, self._checkpointing = model, checkpointing
        self._cos_TE, self._sin_TE = _rotary_tables(model, device)
        self._mask_TT = _window_mask(model, device)

    def loss(self, weights: Weights, tokens_BT: torch.Tensor, *, dropout: Dropout) -> torch.Tensor:
        """The mean cross-entropy of every next token [nat], a scalar in fp32.

        Args:
            weights: All parameters by name.
            tokens_BT: Token numbers, shape (rows, sequence + 1).
            dropout: The masks.
        """
        logits_BTV = self.logits(weights, tokens_BT[:, :-1], dropout=dropout)
        targets_BT = tokens_BT[:, 1:]
        return functional.cross_entropy(
            logits_BTV.reshape(-1, self._model.vocabulary).float(), targets_BT.reshape(-1)
        )

    def logits(self, weights: Weights, tokens_BT: torch.Tensor, *, dropout: Dropout) -> torch.Tensor:
        """What the head gives, shape (rows, tokens, vocabulary)."""
        model = self._model
        x_BTD = functional.embedding(tokens_BT, weights["embedding.weight"])
        if model.positions is Positions.LEARNED:
            x_BTD = x_BTD + weights["positions.weight"][: tokens_BT.shape[1]]
        if model.has_embedding_norm:
            x_BTD = self._normalise(weights, x_BTD, "embedding_norm")
        x_BTD = dropout.drop(x_BTD, "embedding")
        for index in range(model.layers):
            x_BTD = self._layer(weights, x_BTD, index, dropout)
        if model.has_final_norm:
            x_BTD = self._normalise(weights, x_BTD, "final_norm")
        return functional.linear(x_BTD, weights["embedding.weight" if model.is_tied else "head.weight"])

    def _layer(self, weights: Weights, x_BTD: torch.Tensor, index: int, dropout: Dropout) -> torch.Tensor:
        def layer(x: torch.Tensor) -> torch.Tensor:
            for name, block in (("attention", self._attention), ("feed_forward", self._feed_forward)):
                place = f"layers.{index}"
                norm = f"{place}.{name}_norm"
                entering = self._normalise(weights, x, norm) if self._model.is_pre_norm else x
                x = x + dropout.drop(block(weights, entering, index), f"{place}.{name}")
                if not self._model.is_pre_norm:
                    x = self._normalise(weights, x, norm)
            return x

        if self._checkpointing is Checkpointing.LAYERS:
            return _compute_again(layer, x_BTD)
        return layer(x_BTD)

    def _normalise(self, weights: Weights, x_BTD: torch.Tensor, place: str) -> torch.Tensor:
        gain_D = weights[f"{place}.gain"]
        if self._model.norm is Norm.RMS:
            return normalise_rms(x_BTD, gain_D)
        return normalise_layer(x_BTD, gain_D, weights[f"{place}.bias"])

    def _attention(self, weights: Weights, x_BTD: torch.Tensor, index: int) -> torch.Tensor:
        model = self._model
        q_BHTE = _split(_project(weights, x_BTD, index, Projection.QUERY), model.heads)
        k_BKTE = _split(_project(weights, x_BTD, index, Projection.KEY), model.kv_heads)
        v_BKTE = _split(_project(weights, x_BTD, index, Projection.VALUE), model.kv_heads)
        if model.positions is Positions.ROTARY:
            q_BHTE, k_BKTE = self._rotate(q_BHTE), self._rotate(k_BKTE)
        groups = model.heads // model.kv_heads
        k_BHTE = k_BKTE.repeat_interleave(groups, dim=1) if groups > 1 else k_BKTE
        v_BHTE = v_BKTE.repeat_interleave(groups, dim=1) if groups > 1 else v_BKTE
        mask_TT = self._mask(tokens=x_BTD.shape[1]) if index < model.window_layers else None

        def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask_TT, is_causal=mask_TT is None
            )

        is_again = self._checkpointing is Checkpointing.ATTENTION
        mixed_BHTE = (
            _compute_again(attend, q_BHTE, k_BHTE, v_BHTE) if is_again else attend(q_BHTE, k_BHTE, v_BHTE)
        )
        mixed_BTD = mixed_BHTE.transpose(1, 2).reshape(*x_BTD.shape[:2], model.query_width)
        return _project(weights, mixed_BTD, index, Projection.OUTPUT)

    def _mask(self, *, tokens: int) -> torch.Tensor | None:
        return None if self._mask_TT is None else self._mask_TT[:tokens, :tokens]

    def _rotate(self, x_BHTE: torch.Tensor) -> torch.Tensor:
        """Rotary positions: the first half of a head turned against the second, in fp32."""
        first, second = x_BHTE.float().chunk(2, dim=-1)
        cos_TE, sin_TE = (table[: x_BHTE.shape[2]] for table in (self._cos_TE, self._sin_TE))
        turned = torch.cat((first * cos_TE - second * sin_TE, second * cos_TE + first * sin_TE), dim=-1)
        return turned.to(x_BHTE.dtype)

    def _feed_forward(self, weights: Weights, x_BTD: torch.Tensor, index: int) -> torch.Tensor:
        activate = _ACTIVATIONS[self._model.feed_forward]
        hidden_BTF = _project(weights, x_BTD, index, Projection.UP)
        if self._model.feed_forward.is_gated:
            hidden_BTF = activate(_project(weights, x_BTD, index, Projection.GATE)) * hidden_BTF
        else:
            hidden_BTF = activate(hidden_BTF)
        return _project(weights, hidden_BTF, index, Projection.DOWN)


def _compute_again(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    """The function's result; its inner ones are thrown away and all computed again in the backward pass."""
    result: torch.Tensor = checkpoint(
        function, *inputs, use_reentrant=False, preserve_rng_state=False, early_stop=False
    )
    return result


def _project(weights: Weights, x: torch.Tensor, index: int, name: Projection) -> torch.Tensor:
    place = f"layers.{index}.{name}"
    return functional.linear(x, weights[f"{place}.weight"], weights.get(f"{place}.bias"))


def _split(x_BTD: torch.Tensor, heads: int) -> torch.Tensor:
    """Heads side by side to heads one after the other: (B, T, H E) to (B, H, T, E)."""
    rows, tokens, width = x_BTD.shape
    return x_BTD.reshape(rows, tokens, heads, width // heads).transpose(1, 2)


def _rotary_tables(model: Model, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of every position and pair, shape (tokens, head_dim / 2); empty without rotary."""
    tokens = model.sequence if model.positions is Positions.ROTARY else 0
    pairs = np.arange(model.head_dim // 2, dtype=np.float64)
    angles = np.outer(np.arange(tokens, dtype=np.float64), _ROTARY_BASE ** (-2.0 * pairs / model.head_dim))
    cosines, sines = (
        torch.from_numpy(table.astype(np.float32)) for table in (np.cos(angles), np.sin(angles))
    )
    return cosines.to(device), sines.to(device)


def _window_mask(model: Model, device: torch.device) -> torch.Tensor | None:
    """Which keys a query sees, shape (tokens, tokens); None without a window."""
    if not model.window_layers:
        return None
    place = torch.arange(model.sequence, device=device)
    distance_TT = place[:, None] - place[None, :]
    return (distance_TT >= 0) & (distance_TT < model.window)
