"""Sharded models: each process counts what it computes itself, and communication is no product."""

from collections.abc import Callable, Iterator

# mypy: disable-error-code="no-untyped-call"
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

from flopwitness.integrations.operation_count import OperationCount, Work

Count = Callable[..., OperationCount]

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    """Two processes, of which this is one and the other is pretended."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield init_device_mesh("cpu", (2,))
    dist.destroy_process_group()


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def test_half_of_each_layer(count: Count, mesh: DeviceMesh, model: nn.Module) -> None:
    """Columns of the first layer and rows of the second: half of the products of both."""
    half = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    counted = count(lambda: half(torch.randn(3, 8)).sum().backward())
    first, second = 2 * 3 * 8 * 8, 2 * 3 * 8 * 4
    assert counted.work == Work(forward_flop=first + second, backward_flop=first + 2 * second)
    assert counted.is_complete
    assert "communication" in {row.reason for row in counted.uncounted}


def test_all_of_each_layer_gathered(count: Count, mesh: DeviceMesh, model: nn.Module) -> None:
    fully_shard(model, mesh=mesh)
    counted = count(lambda: model(torch.randn(3, 8)).sum().backward())
    first, second = 2 * 3 * 8 * 16, 2 * 3 * 16 * 4
    assert counted.work == Work(forward_flop=first + second, backward_flop=first + 2 * second)
    assert counted.is_complete
