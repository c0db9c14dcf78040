"""Without PyTorch one line says what to do."""

import sys
from types import ModuleType

import pytest

from flopwitness.foundation.errors import InputError
from flopwitness.integrations.operation_counter import OperationCounter
from flopwitness.integrations.requirement import require_torch
from flopwitness.integrations.run_counter import RunCounter


def test_the_module_itself_is_returned() -> None:
    assert isinstance(require_torch(), ModuleType)
    assert require_torch().__name__ == "torch"


@pytest.mark.parametrize("make", [require_torch, OperationCounter, RunCounter])
def test_a_missing_torch_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch, make: type) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'flopwitness\[torch\]'") as caught:
        make()
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)
