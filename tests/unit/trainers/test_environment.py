"""What a carrying out records of its surroundings."""

from collections.abc import Callable

import torch

from flopwitness.foundation.encoding import encode_signable
from flopwitness.trainers.config import RunConfig
from flopwitness.trainers.environment import describe_environment


def test_it_holds_what_decides_bits_and_no_more(make_run: Callable[..., RunConfig]) -> None:
    variables = {"ONEDNN_MAX_CPU_ISA": "AVX2", "HOME": "/home/somebody", "SECRET": "x"}
    record = describe_environment(make_run(training__threads=2), torch.device("cpu"), variables=variables)
    assert record["variables"] == {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    assert record["torch"] == torch.__version__
    assert record["threads"] == 2
    assert record["device"] == "cpu"
    assert record["torch_build"].startswith("sha256:")
    assert encode_signable(record)
