"""What must load no PyTorch loads none."""

import subprocess
import sys

import pytest

LIGHT = [
    "flopwitness",
    "flopwitness.integrations",
    "flopwitness.integrations.operation_counter",
    "flopwitness.integrations.operation_count",
    "flopwitness.integrations.run_counter",
    "flopwitness.integrations.run_count",
    "flopwitness.integrations.module_table",
    "flopwitness.integrations.known_operators",
    "flopwitness.integrations.formulas.registry",
]


def test_counts_and_formulas_load_no_torch() -> None:
    code = (
        f"import sys, importlib; [importlib.import_module(n) for n in {LIGHT}]; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", ["counting_mode", "module_places", "operator_kind", "recomputation"])
def test_what_needs_torch_is_not_needed_for_the_front(name: str) -> None:
    front = "import flopwitness.integrations.operation_counter, flopwitness.integrations.run_counter"
    code = f"import sys; {front}; print('flopwitness.integrations.{name}' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
