"""Every operator that runs is counted, known or named; none passes in silence or is kept from running."""

# mypy: disable-error-code="no-untyped-call"

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from flopwitness.integrations.counting_mode import CountingMode, volume_of
from flopwitness.integrations.formulas.formula import Products
from flopwitness.integrations.module_places import ModulePlaces
from flopwitness.integrations.operation_count import OperationCount, UncountedReason
from flopwitness.integrations.tally import Tally

Count = Callable[..., OperationCount]


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[torch.library.Library]:
    """A stranger's operator with products inside, which claims to be pointwise."""
    library = torch.library.Library("mode_test", "DEF")
    library.define("gram(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
    library.impl("gram", lambda x: torch.from_numpy(x.numpy() @ x.numpy().T), "CPU")
    yield library
    library._destroy()


def _uncounted(count: OperationCount) -> dict[str, tuple[str, int, int]]:
    return {row.name: (row.reason, row.calls, row.volume) for row in count.uncounted}


def test_everything_that_ran_is_listed_with_its_volume(count: Count) -> None:
    rows = torch.ones(3, 4)
    counted = count(lambda: torch.cat([rows.relu().t(), rows.t()]).sum(0))
    assert _uncounted(counted) == {
        "aten::relu": ("elementwise", 1, 12 + 12),
        "aten::t": ("view", 2, 0),
        "aten::cat": ("movement", 1, 12 + 12 + 24),
        "aten::sum": ("reduction", 1, 24 + 3),
    }
    assert counted.is_complete


def test_volumes_of_what_is_counted(count: Count) -> None:
    (row,) = count(lambda: torch.ones(3, 4) @ torch.ones(4, 5)).by_operator
    assert row.volume == 12 + 20 + 15


def test_a_strangers_operator_is_named_whatever_it_claims(count: Count) -> None:
    counted = count(lambda: torch.ops.mode_test.gram(torch.ones(3, 4)))
    assert [(row.name, row.volume) for row in counted.unrecognised] == [("mode_test::gram", 12 + 9)]
    assert counted.completeness < 1
    assert not counted.is_complete
    assert counted.executed_flop == 0


def test_a_python_operator_is_named(count: Count) -> None:
    @torch.library.custom_op("mode_test::squared", mutates_args=())
    def squared(x: Tensor) -> Tensor:
        return x @ x

    counted = count(lambda: squared(torch.ones(3, 3)) @ torch.ones(3, 3))
    assert [row.name for row in counted.unrecognised] == ["mode_test::squared"]
    assert counted.executed_flop == 2 * 27


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (lambda: torch.linalg.inv(torch.eye(3)), "aten::linalg_inv_ex"),
        (lambda: torch.linalg.svd(torch.eye(3)), "aten::_linalg_svd"),
        (lambda: torch.linalg.cholesky(torch.eye(3)), "aten::linalg_cholesky_ex"),
        (lambda: torch.linalg.matrix_exp(torch.ones(3, 3)), "aten::linalg_matrix_exp"),
        (lambda: torch.linalg.eigh(torch.eye(3)), "aten::_linalg_eigh"),
    ],
)
def test_products_hidden_in_linear_algebra_are_named(
    count: Count, work: Callable[[], object], name: str
) -> None:
    counted = count(work)
    assert [row.name for row in counted.unrecognised] == [name]
    assert counted.completeness < 1


def test_a_declared_formula_counts_and_is_told() -> None:
    tally, places = Tally(), ModulePlaces(None)
    declared = {"mode_test::gram": lambda call: Products(flop=2 * call.tensor("x").numel() * 3)}
    with CountingMode(tally, places, declared):
        torch.ops.mode_test.gram(torch.ones(3, 4))
    counted = tally.count()
    assert counted.executed_flop == 2 * 12 * 3
    assert counted.is_complete
    assert [note.kind for note in counted.notes] == ["declared-formula"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("x"), ZeroDivisionError()])
def test_a_formula_that_fails_stops_nothing_and_is_told(error: Exception) -> None:
    def formula(_call: object) -> Products:
        raise error

    tally = Tally()
    with CountingMode(tally, ModulePlaces(None), {"aten::mm": formula}):
        product = torch.ones(2, 3) @ torch.ones(3, 4)
    assert product.shape == (2, 4)
    (row,) = tally.count().unrecognised
    assert row.name == "aten::mm"
    assert row.explanation.startswith("its formula does not fit this call")


def test_an_operator_that_fails_is_not_counted() -> None:
    tally = Tally()
    with CountingMode(tally, ModulePlaces(None), {}), pytest.raises(RuntimeError):
        torch.ones(2, 3) @ torch.ones(4, 5)
    assert tally.count().executed_flop == 0


@pytest.mark.parametrize(
    "work",
    [
        lambda out: torch.mm(torch.ones(3, 4), torch.ones(4, 5), out=out),
        lambda out: out.addmm_(torch.ones(3, 4), torch.ones(4, 5)),
        lambda out: torch.addmm(out, torch.ones(3, 4), torch.ones(4, 5)),
        lambda out: torch.matmul(torch.ones(3, 4), torch.ones(4, 5), out=out),
    ],
)
def test_every_form_of_a_product(count: Count, work: Callable[[Tensor], object]) -> None:
    out = torch.zeros(3, 5)
    assert count(lambda: work(out)).executed_flop == 2 * 3 * 4 * 5


def test_inference_mode_gives_the_same_rows(count: Count) -> None:
    model, rows = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), torch.ones(3, 4)
    with torch.no_grad():
        plain = count(lambda: model(rows))
    with torch.inference_mode():
        whole = count(lambda: model(rows))
    assert plain.by_operator == whole.by_operator
    assert plain.by_module == whole.by_module


def test_fake_and_meta_tensors_count_like_real_ones(count: Count) -> None:
    def work() -> None:
        nn.Linear(4, 5)(torch.ones(3, 4)).sum().backward()

    real = count(work)
    with FakeTensorMode():
        outside = count(work)
    with torch.device("meta"):
        meta = count(work)
    assert real.work == outside.work == meta.work
    assert outside.is_complete
    assert real.executed_flop == 2 * (2 * 3 * 4 * 5)


def test_shapes_found_out_on_the_way_are_no_work(count: Count) -> None:
    """As sharded tensors do: they ask fake ones what shape a result will have."""

    class Asking(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            with FakeTensorMode():
                torch.ones(3, 4) @ torch.ones(4, 5)
            return func(*args, **(kwargs or {}))

    def work() -> None:
        rows, columns = torch.ones(3, 4), torch.ones(4, 5)
        with Asking():
            torch.mm(rows, columns)

    counted = count(work)
    assert counted.executed_flop == 2 * 3 * 4 * 5
    assert counted.is_complete
    assert ("shapes", 0) in {(row.reason, row.volume) for row in counted.uncounted}


def test_work_among_fake_tensors_inside_is_told(count: Count) -> None:
    fake = FakeTensorMode()
    rows = fake.from_tensor(torch.ones(3, 4))

    def inside() -> None:
        with FakeTensorMode():
            torch.ones(3, 4) @ torch.ones(4, 5)

    for work in (inside, inside, lambda: rows @ rows.t()):
        counted = count(work)
        assert not counted.is_complete
        assert {row.name for row in counted.unrecognised} == {"fake tensors: nothing was computed"}


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.LSTM(7, 11, 2, bidirectional=True).bfloat16(), (5, 3, 7)),
        (lambda: nn.LSTM(7, 11, 2, dropout=0.5), (5, 3, 7)),
        (lambda: nn.GRU(7, 11, 2, dropout=0.5), (5, 3, 7)),
        (lambda: nn.RNN(7, 11, 2, dropout=0.5), (5, 3, 7)),
        (lambda: nn.Upsample(scale_factor=1.7, mode="bilinear"), (1, 2, 9, 9)),
        (lambda: nn.Upsample(scale_factor=1.7, mode="bicubic"), (1, 2, 9, 9)),
    ],
)
def test_inference_mode_changes_no_result(
    count: Count, make: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    model = make()
    rows = torch.randn(shape).to(next((p.dtype for p in model.parameters()), torch.float32))
    results = []

    def work() -> None:
        torch.manual_seed(1)
        with torch.inference_mode():
            result = model(rows)
        results.append(result[0] if isinstance(result, tuple) else result)

    work()
    assert count(work).is_complete
    assert torch.equal(*results)


class _Wrapped(Tensor):
    """A tensor class that takes operators apart itself."""

    held: Tensor

    @staticmethod
    def of(inner: Tensor) -> "_Wrapped":
        made: _Wrapped = Tensor._make_wrapper_subclass(_Wrapped, inner.shape, dtype=inner.dtype)
        made.held = inner
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # PyTorch writes its own form without the class
        cls,
        func: Callable[..., object],
        _types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        plain = tree_map(lambda value: value.held if isinstance(value, _Wrapped) else value, args)
        result = func(*plain, **(kwargs or {}))
        return tree_map(lambda value: _Wrapped.of(value) if isinstance(value, Tensor) else value, result)


def test_tensor_classes_are_counted_by_what_they_make_of_a_call(count: Count) -> None:
    wrapped = _Wrapped.of(torch.ones(3, 4))
    counted = count(lambda: wrapped @ torch.ones(4, 5))
    assert counted.executed_flop == 2 * 3 * 4 * 5
    assert [row.calls for row in counted.by_operator] == [1]


def test_parameters_are_plain_tensors(count: Count) -> None:
    weight = nn.Parameter(torch.ones(4, 4))
    assert [row.calls for row in count(lambda: weight @ weight).by_operator] == [1]


@pytest.mark.filterwarnings("ignore")
def test_control_flow_counts_what_it_runs(count: Count) -> None:
    square = torch.ones(3, 3)

    def branch(condition: bool) -> object:
        return torch.cond(torch.tensor(condition), lambda x: x @ x @ x, lambda x: x @ x, (square,))

    assert count(lambda: branch(True)).executed_flop == 2 * (2 * 27)
    assert count(lambda: branch(False)).executed_flop == 2 * 27


@pytest.mark.filterwarnings("ignore")
def test_operators_over_functions_that_hide_theirs_are_named(count: Count) -> None:
    from torch._higher_order_ops import scan  # noqa: PLC0415 (loads the compiler)

    with torch.no_grad():
        counted = count(lambda: scan(lambda c, x: (c @ x, c @ x), torch.ones(3, 3), torch.ones(4, 3, 3)))
    assert "higher_order::scan" in [row.name for row in counted.unrecognised]


def test_transformed_functions(count: Count) -> None:
    """A gradient for each of five rows: one product forward, one back, for all rows at once."""
    model = nn.Linear(8, 4)
    counted = count(lambda: torch.func.vmap(torch.func.grad(lambda x: model(x).sum()))(torch.ones(5, 8)))
    assert counted.executed_flop == 2 * (2 * 5 * 8 * 4)


def test_volumes() -> None:
    assert volume_of([torch.ones(3, 4), [torch.ones(2), (torch.ones(5),)], 7, None, "text"]) == 12 + 2 + 5
    assert volume_of([torch.eye(3).to_sparse_coo()]) == 3
    assert volume_of([]) == 0


def test_hidden_code_inside_an_operator_belongs_to_it() -> None:
    tally = Tally()
    mode = CountingMode(tally, ModulePlaces(None), {})
    library = torch.library.Library("mode_inside", "DEF")
    library.define("op(Tensor x) -> Tensor")

    def kernel(x: Tensor) -> Tensor:
        mode.note_hidden("kernel", (x,))
        return x.clone()

    library.impl("op", kernel, "CPU")
    with mode:
        torch.ops.mode_inside.op(torch.ones(3))
        mode.note_hidden("kernel", (torch.ones(4),))
    assert {row.name: row.volume for row in tally.count().unrecognised} == {"mode_inside::op": 6, "kernel": 4}
    assert all(row.reason is UncountedReason.UNRECOGNISED for row in tally.count().unrecognised)
    library._destroy()
