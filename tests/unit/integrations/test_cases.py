"""Cases h15, h16 and h34: fused attention on a CPU, frozen bases, rows that must not be added."""

# mypy: disable-error-code="no-untyped-call"

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from flopwitness.foundation.errors import InputError
from flopwitness.integrations.module_table import total_of_module_table
from flopwitness.integrations.operation_count import OperationCount

Count = Callable[..., OperationCount]


def _load(cases: Path, number: str, name: str) -> dict[str, Any]:
    (folder,) = cases.glob(f"{number}_*")
    loaded: dict[str, Any] = json.loads((folder / name).read_text())
    return loaded


def test_h15_fused_attention_is_counted(cases: Path, count: Count) -> None:
    spec, expect = (_load(cases, "h15", name) for name in ("spec.json", "expected.json"))
    query, key, value = (
        torch.randn(
            spec["batch"],
            spec["heads"],
            spec[length],
            spec["head_dim"],
            dtype=torch.float32,
            requires_grad=True,
        )
        for length in ("seq_q", "seq_k", "seq_k")
    )

    def work() -> None:
        F.scaled_dot_product_attention(query, key, value, is_causal=spec["causal"]).sum().backward()

    counted, right = count(work), expect["expect"]
    assert counted.work.forward_flop == right["forward_flops"]
    assert counted.work.backward_flop == right["backward_flops_algorithmic"]
    assert counted.model_flop == right["forward_plus_backward_algorithmic"]
    assert counted.executed_flop == right["forward_plus_backward_if_scores_recomputed"]
    assert counted.is_complete
    with FlopCounterMode(display=False) as other:
        work()
    assert other.get_total_flops() == expect["wrong_answers"]["torch_2.13_cpu_default"]


class _Adapted(nn.Module):
    """`base(x) + B(A(x))`, relu in between."""

    def __init__(self, layers: list[dict[str, Any]]) -> None:
        super().__init__()
        self.bases = nn.ModuleList(
            nn.Linear(layer["in"], layer["out"], bias=layer["bias"]).requires_grad_(not layer["base_frozen"])
            for layer in layers
        )
        self.downs = nn.ModuleList(nn.Linear(layer["in"], layer["lora_rank"], bias=False) for layer in layers)
        self.ups = nn.ModuleList(nn.Linear(layer["lora_rank"], layer["out"], bias=False) for layer in layers)

    def forward(self, rows: Tensor) -> Tensor:
        for base, down, up in zip(self.bases, self.downs, self.ups, strict=True):
            rows = (base(rows) + up(down(rows))).relu()
        return rows


def test_h16_frozen_bases_have_no_gradient(cases: Path, count: Count) -> None:
    spec, expect = (_load(cases, "h16", name) for name in ("spec.json", "expected.json"))
    model, right = _Adapted(spec["layers"]), expect["expect"]
    rows = torch.randn(spec["tokens"], spec["layers"][0]["in"], requires_grad=spec["input_requires_grad"])
    counted = count(lambda: model(rows).sum().backward())
    assert counted.work.forward_flop == right["forward_flops"]
    assert counted.work.backward_flop == right["backward_flops"]
    assert counted.model_flop == counted.executed_flop == right["step_flops"]
    assert counted.is_complete
    assert counted.model_flop not in expect["wrong_answers"].values()


def test_h34_rows_are_not_added(cases: Path) -> None:
    table, expect = (_load(cases, "h34", name) for name in ("flops.json", "expected.json"))
    total = total_of_module_table(table["rows"])
    assert total == expect["expect"]["total_flops"] == expect["expect"]["by_hand"]
    assert total not in expect["wrong_answers"].values()
    without = {name: flop for name, flop in table["rows"].items() if name != "Global"}
    assert total_of_module_table(without) == total


def test_h34_half_of_the_table_is_refused(cases: Path) -> None:
    rows = _load(cases, "h34", "flops.json")["rows"]
    leaves = {name: flop for name, flop in rows.items() if name not in ("Global", "Sequential")}
    with pytest.raises(InputError, match="several roots"):
        total_of_module_table(leaves)
    with pytest.raises(InputError, match="exceeds the row Global"):
        total_of_module_table({**rows, "Global": 4000})


def test_h34_our_own_rows_add_up(count: Count) -> None:
    """The case's model: one layer, applied at three places."""
    shared = nn.Linear(20, 20, bias=False)
    model = nn.Sequential(nn.Sequential(shared), nn.Sequential(shared), nn.Sequential(shared))
    counted = count(lambda: model(torch.randn(5, 20)))
    assert counted.executed_flop == 12_000
    assert [(row.name, row.work.executed_flop) for row in counted.by_module] == [("Sequential.0.0", 12_000)]
