"""What the tests of the counters share; without PyTorch none of them is collected."""

from collections.abc import Callable
from importlib.util import find_spec

import pytest

from flopwitness.integrations.operation_count import OperationCount
from flopwitness.integrations.operation_counter import OperationCounter
from flopwitness.integrations.operator_call import OperatorCall

collect_ignore_glob = [] if find_spec("torch") else ["*"]


def _make_call(operator: str, *results: object, **arguments: object) -> OperatorCall:
    return OperatorCall(operator=operator, arguments=arguments, results=results)


def _count(work: Callable[[], object], model: object = None) -> OperationCount:
    """What a counter says of one call."""
    counter = OperationCounter(model)  # type: ignore[arg-type]
    with counter:
        work()
    return counter.count()


@pytest.fixture(scope="session")
def make_call() -> Callable[..., OperatorCall]:
    """How a test makes a call: its operator, its results, and its arguments by name."""
    return _make_call


@pytest.fixture(scope="session")
def count() -> Callable[..., OperationCount]:
    """How a test counts a call, or a whole training step."""
    return _count
