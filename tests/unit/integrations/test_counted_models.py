"""Small models against arithmetic from their shapes, and beside the counter that ships with PyTorch.

Every expected figure is written out from the shapes: rows x inputs x outputs x 2, and never from a formula of
ours. Each model says where the other counter agrees, and where it does not.
"""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn
from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from flopwitness.integrations.operation_count import OperationCount, Work

Count = Callable[..., OperationCount]


def _other(work: Callable[[], object]) -> int:
    """What PyTorch's own counter says."""
    with FlopCounterMode(display=False) as mode:
        work()
    return int(mode.get_total_flops())


def _works(count: OperationCount) -> tuple[int, int, int]:
    assert count.is_complete, count.unrecognised
    assert count.completeness == 1
    assert sum((row.work for row in count.by_module), Work()) == count.work
    return count.work.forward_flop, count.work.backward_flop, count.work.recomputed_flop


def test_lstm(count: Count) -> None:
    """Two layers, 10 tokens: 4 gates of 6 from 8 and 6, then from 6 and 6. Backward is twice that."""
    model, inputs = nn.LSTM(8, 6, num_layers=2), torch.randn(5, 2, 8)
    forward = 2 * 10 * 24 * (8 + 6) + 2 * 10 * 24 * (6 + 6)
    assert forward == 12_480
    assert _works(count(lambda: model(inputs)[0].sum().backward())) == (forward, 2 * forward, 0)
    assert _other(lambda: model(inputs)[0].sum().backward()) == 0


def test_lstm_in_inference_mode(count: Count) -> None:
    model, inputs = nn.LSTM(8, 6, num_layers=2), torch.randn(5, 2, 8)
    with torch.inference_mode():
        assert _works(count(lambda: model(inputs))) == (12_480, 0, 0)


def test_gru(count: Count) -> None:
    """One layer, 10 tokens of 8 to 3 gates of 6; the inputs want no gradient, nor does the first state."""
    model, inputs = nn.GRU(8, 6), torch.randn(5, 2, 8)
    by_input, by_state = 2 * 10 * 18 * 8, 2 * 10 * 18 * 6
    state_gradients = 2 * (10 - 2) * 18 * 6
    works = _works(count(lambda: model(inputs)[0].sum().backward()))
    assert works == (by_input + by_state, by_input + by_state + state_gradients, 0)
    assert _other(lambda: model(inputs)[0].sum().backward()) == sum(works)


class _Mixture(nn.Module):
    """Each token goes to the best of four experts; how many go where depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4, bias=False)
        self.experts = nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in range(4))

    def forward(self, tokens: Tensor) -> Tensor:
        weights, chosen = self.router(tokens).softmax(-1).topk(2)
        out = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            row, place = torch.where(chosen == index)
            if len(row):
                out = out.index_add(0, row, expert(tokens[row]) * weights[row, place, None])
        return out


def test_mixture_of_experts(count: Count) -> None:
    """Twelve tokens through the router, and each through two experts, whoever they are."""
    model, tokens = _Mixture(), torch.randn(12, 8, generator=torch.Generator().manual_seed(1))
    router, experts = 2 * 12 * 8 * 4, 12 * 2 * (2 * 8 * 8)
    counted = count(lambda: model(tokens).sum().backward())
    assert _works(counted) == (router + experts, router + experts, 0)
    assert _other(lambda: model(tokens).sum().backward()) == 2 * (router + experts)
    by_module = {row.name: row.work.forward_flop for row in counted.by_module}
    assert by_module["_Mixture.router"] == router
    assert sum(flop for name, flop in by_module.items() if ".experts." in name) == experts


def test_grouped_query_attention(count: Count) -> None:
    """Six heads share two heads of keys: as many scores as with six."""
    query = torch.randn(2, 6, 10, 8, requires_grad=True)
    key = torch.randn(2, 2, 10, 8, requires_grad=True)

    def work() -> None:
        F.scaled_dot_product_attention(query, key, key, enable_gqa=True).sum().backward()

    product = 2 * (2 * 6 * 10 * 10) * 8
    assert _works(count(work)) == (2 * product, 4 * product, product)
    assert _other(work) == 0


def test_attention_spelt_out_recomputes_nothing(count: Count) -> None:
    query = torch.randn(2, 6, 10, 8, requires_grad=True)

    def work() -> None:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            F.scaled_dot_product_attention(query, query, query).sum().backward()

    product = 2 * (2 * 6 * 10 * 10) * 8
    assert _works(count(work)) == (2 * product, 4 * product, 0)
    assert _other(work) == 6 * product


def test_values_of_another_size(count: Count) -> None:
    query, key = (torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(2))
    value = torch.randn(1, 2, 5, 4, requires_grad=True)
    scores, values = 2 * (2 * 25) * 8, 2 * (2 * 25) * 4
    counted = count(lambda: F.scaled_dot_product_attention(query, key, value).sum().backward())
    assert (counted.work.forward_flop, counted.work.backward_flop) == (
        scores + values,
        2 * scores + 2 * values,
    )


class _Block(nn.Module):
    def __init__(self, *, is_checkpointed: bool) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 32), nn.Linear(32, 8)
        self.is_checkpointed = is_checkpointed

    def _inner(self, tokens: Tensor) -> Tensor:
        hidden: Tensor = self.down(self.up(tokens).relu())
        return hidden

    def forward(self, tokens: Tensor) -> Tensor:
        if self.is_checkpointed:
            kept: Tensor = checkpoint(self._inner, tokens, use_reentrant=False)
            return kept
        return self._inner(tokens)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointed_layers(count: Count, *, use_reentrant: bool) -> None:
    """Up and down, 5 rows of 8 and 32. The newer form stops before the last layer, which nobody needs."""
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    inputs = torch.randn(5, 8, requires_grad=True)
    layer = 2 * 5 * 8 * 32

    def work() -> None:
        checkpoint(model, inputs, use_reentrant=use_reentrant).sum().backward()

    again = 2 * layer if use_reentrant else layer
    counted = count(work)
    assert _works(counted) == (2 * layer, 4 * layer, again)
    assert (counted.model_flop, counted.executed_flop) == (6 * layer, 6 * layer + again)
    assert _other(work) == counted.executed_flop


def test_checkpointing_leaves_the_model_count_alone(count: Count) -> None:
    inputs = torch.randn(5, 8, requires_grad=True)
    models = [_Block(is_checkpointed=flag) for flag in (False, True)]
    plain, kept = (count(lambda model=model: model(inputs).sum().backward()) for model in models)
    assert plain.model_flop == plain.executed_flop == kept.model_flop == 6 * 2 * 5 * 8 * 32
    assert kept.recomputed_flop == 2 * 5 * 8 * 32


def test_quantised_linear_layer(count: Count) -> None:
    product = torch.ones(32, 16, dtype=torch.int8), torch.ones(16, 8, dtype=torch.int8)
    assert _works(count(lambda: torch._int_mm(*product))) == (2 * 32 * 16 * 8, 0, 0)
    assert _other(lambda: torch._int_mm(*product)) == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif("fbgemm" not in torch.backends.quantized.supported_engines, reason="no quantised kernels")
def test_dynamically_quantised_layers(count: Count) -> None:
    """A layer of 8 to 4 on 3 rows; an LSTM of 8 to 6 in both directions on 10 tokens."""
    layer = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 4)), {nn.Linear})
    lstm = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.LSTM(8, 6, bidirectional=True)), {nn.LSTM})
    rows, sequence = torch.randn(3, 8), torch.randn(5, 2, 8)
    assert _works(count(lambda: layer(rows))) == (2 * 3 * 8 * 4, 0, 0)
    assert _works(count(lambda: lstm(sequence))) == (2 * 10 * 2 * 24 * (8 + 6), 0, 0)
    assert _other(lambda: (layer(rows), lstm(sequence))) == 0


def test_convolutional_net(count: Count) -> None:
    """3 to 8 channels on 6 x 6 points, 8 to 8 in 4 groups on 4 x 4, and back up to 9 x 9 from 4 x 4.

    The images want no gradient. The other counter takes the gradient of grouped filters as if there were
    no groups.
    """
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=4), nn.ConvTranspose2d(8, 2, 3, stride=2)
    )
    images = torch.randn(2, 3, 8, 8)
    first = 2 * (2 * 8 * 6 * 6) * (3 * 9)
    grouped = 2 * (2 * 8 * 4 * 4) * (2 * 9)
    transposed = 2 * (2 * 8 * 4 * 4) * (2 * 9)
    works = _works(count(lambda: model(images).sum().backward()))
    assert works == (first + grouped + transposed, first + 2 * grouped + 2 * transposed, 0)
    assert _other(lambda: model(images).sum().backward()) > sum(works)


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_convolutions_of_every_dimension(count: Count, n_axes: int) -> None:
    """Kernels of 3, dilated twice, on a side of 9: five places on each axis."""
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[n_axes - 1]
    model, images = kind(2, 4, 3, dilation=2), torch.randn(1, 2, *([9] * n_axes), requires_grad=True)
    forward = 2 * (4 * 5**n_axes) * (2 * 3**n_axes)
    assert _works(count(lambda: model(images).sum().backward())) == (forward, 2 * forward, 0)
    assert _other(lambda: model(images).sum().backward()) == 3 * forward


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_encoder_fast_path(count: Count, context: Callable[[], torch.no_grad]) -> None:
    """Two layers of width 16 and 32 on two sequences of five: one operator each, which the other misses."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model, tokens = nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 5, 16)
    one = 10 * 2 * (4 * 16 * 16 + 2 * 16 * 32) + 2 * (2 * 2 * 5 * 5 * 16)
    with context():
        counted = count(lambda: model(tokens))
        assert _other(lambda: model(tokens)) == 0
    assert _works(counted) == (2 * one, 0, 0)
    assert [row.name for row in counted.by_operator] == ["aten::_transformer_encoder_layer_fwd"]


class _Decoder(nn.Module):
    """One token table for both ends, and a bag of hashed words beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.bag = nn.EmbeddingBag(30, 16, mode="sum")
        self.attention_in, self.attention_out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.table(tokens) + self.bag(tokens)[:, None]
        query, key, value = self.attention_in(self.norm(hidden)).unflatten(-1, (3, 2, 8)).unbind(-3)
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        logits: Tensor = self.head(hidden + self.attention_out(mixed.transpose(1, 2).flatten(-2)))
        return logits


@pytest.mark.parametrize("is_fused", [False, True])
def test_decoder_step_with_a_tied_head(count: Count, *, is_fused: bool) -> None:
    """Three sequences of seven. Embedding and optimizer do no products; causal scores count in full."""
    model = _Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), fused=is_fused)
    tokens = torch.randint(20, (3, 7), generator=torch.Generator().manual_seed(0))

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()

    linear = 2 * 21 * 16 * 48 + 2 * 21 * 16 * 16 + 2 * 21 * 16 * 20
    score = 2 * (3 * 2 * 7 * 7) * 8
    counted = count(step)
    assert _works(counted) == (linear + 2 * score, 2 * linear + 4 * score, score)
    assert [note.kind for note in counted.notes] == ["masks-not-discounted"]
    assert _other(step) == 3 * linear


def test_a_head_with_its_loss_in_chunks(count: Count) -> None:
    """The operator takes the gradients with the logits, in the forward pass: the same three products."""
    rows = torch.randn(12, 8, requires_grad=True)
    weight, target = torch.randn(20, 8, requires_grad=True), torch.arange(12)

    def work(options: LinearCrossEntropyOptions | None) -> None:
        F.linear_cross_entropy(rows, weight, target, options=options).backward()

    product = 2 * 12 * 8 * 20
    assert _works(count(lambda: work(None))) == (product, 2 * product, 0)
    chunked = LinearCrossEntropyOptions(batch_chunk_size=4)
    assert _works(count(lambda: work(chunked))) == (3 * product, 0, 0)
    assert _other(lambda: work(chunked)) == 0


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")
@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr"])
def test_sparse_by_dense(count: Count, layout: str) -> None:
    """Three stored values by six columns, forward and for the gradient; the other counts all or none."""
    dense = torch.tensor([[0.0, 1, 0, 0, 2], [0] * 5, [0, 0, 3, 0, 0], [0] * 5])
    matrix, factor = getattr(dense, layout)(), torch.randn(5, 6, requires_grad=True)
    assert _works(count(lambda: (matrix @ factor).sum().backward())) == (2 * 3 * 6, 2 * 3 * 6, 0)
    assert _other(lambda: matrix @ factor) != 2 * 3 * 6


def test_fourier_transform(count: Count) -> None:
    """Four transforms of 8 x 8 complex points: 5 x 64 x 6 each."""
    signal = torch.randn(4, 8, 8, dtype=torch.complex64)
    assert _works(count(lambda: torch.fft.fft2(signal))) == (4 * 5 * 64 * 6, 0, 0)
    assert _other(lambda: torch.fft.fft2(signal)) == 0


def test_complex_product(count: Count) -> None:
    left, right = torch.randn(2, 3, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64)
    assert _works(count(lambda: left @ right)) == (8 * 2 * 3 * 4, 0, 0)
    assert _other(lambda: left @ right) == 2 * 2 * 3 * 4


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention(count: Count) -> None:
    """One batch, two heads, 128 positions of 16; a block mask is told and not discounted."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: PLC0415 (slow)

    query = torch.randn(1, 2, 128, 16)
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 128, 128, device="cpu")
    full = 2 * 2 * (2 * 128 * 128) * 16
    plain, masked = (
        count(lambda m=m: flex_attention(query, query, query, block_mask=m)) for m in (None, mask)
    )
    assert _works(plain) == _works(masked) == (full, 0, 0)
    assert [note.kind for note in masked.notes if "masks" in note.kind] == ["masks-not-discounted"]
    assert not [note for note in plain.notes if "masks" in note.kind]


def test_matrix_by_vector_and_inner_product(count: Count) -> None:
    matrix, vector = torch.randn(6, 4), torch.randn(4)
    assert _works(count(lambda: matrix @ vector)) == (2 * 6 * 4, 0, 0)
    assert _works(count(lambda: vector @ vector)) == (2 * 4, 0, 0)
    assert _other(lambda: (matrix @ vector, vector @ vector)) == 0


def test_products_by_other_names(count: Count) -> None:
    """Einstein sums, bilinear layers, chains: whatever they come down to."""
    a, b = torch.randn(3, 4, 5), torch.randn(3, 5, 6)
    assert _works(count(lambda: torch.einsum("bij,bjk->bik", a, b))) == (3 * 2 * 4 * 5 * 6, 0, 0)
    assert (
        _works(count(lambda: torch.linalg.multi_dot([a[0], b[0], b[0].t()])))[0]
        == 2 * 4 * 5 * 6 + 2 * 4 * 6 * 5
    )
    model = nn.Bilinear(3, 4, 5)
    forward = 2 * (2 * 5 * 3 * 4) + 2 * (2 * 5 * 4)
    assert _works(count(lambda: model(torch.randn(2, 3), torch.randn(2, 4)))) == (forward, 0, 0)


@pytest.mark.filterwarnings("ignore")
def test_jagged_sequences(count: Count) -> None:
    """Sequences of three and five through a layer of 8 to 4, in both of PyTorch's forms."""
    model = nn.Linear(8, 4)
    parts = [torch.randn(3, 8), torch.randn(5, 8)]
    for layout in (torch.jagged, torch.strided):
        nested = torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)
        works = _works(count(lambda nested=nested: model(nested).to_padded_tensor(0.0).sum().backward()))
        assert works == (2 * 8 * 8 * 4, 2 * (2 * 8 * 8 * 4), 0)


@dataclass(frozen=True)
class _Frozen:
    """A frozen layer with an adapter of rank four, as case h16 has them."""

    inputs: int
    outputs: int

    def build(self) -> nn.ModuleDict:
        return nn.ModuleDict(
            {
                "base": nn.Linear(self.inputs, self.outputs, bias=False).requires_grad_(requires_grad=False),
                "a": nn.Linear(self.inputs, 4, bias=False),
                "b": nn.Linear(4, self.outputs, bias=False),
            }
        )


def test_adapters_on_a_frozen_base(count: Count) -> None:
    """The base costs its input's gradient where anything below trains, and never its own."""
    first, second = _Frozen(6, 10).build(), _Frozen(10, 3).build()
    rows = torch.randn(7, 6)

    def work() -> None:
        hidden = (first["base"](rows) + first["b"](first["a"](rows))).relu()
        (second["base"](hidden) + second["b"](second["a"](hidden))).sum().backward()

    small = [2 * 7 * 6 * 4, 2 * 7 * 4 * 10, 2 * 7 * 10 * 4, 2 * 7 * 4 * 3]
    bases = 2 * 7 * 6 * 10 + 2 * 7 * 10 * 3
    backward = small[0] + 2 * sum(small[1:]) + 2 * 7 * 10 * 3
    assert _works(count(work)) == (sum(small) + bases, backward, 0)
    assert _other(work) == sum(small) + bases + backward
