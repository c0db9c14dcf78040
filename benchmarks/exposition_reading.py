"""Lines a second of the Prometheus text reader, beside prometheus_client's parser on the same text.

    python benchmarks/exposition_reading.py [LINES]

Both read the same synthetic dump of eight GPUs with milliseconds in one run. Where prometheus_client is not
installed, that is said, and only our own figure is printed.
"""

import importlib
import sys
import time
from collections.abc import Callable
from functools import partial

from flopwitness.measure.sources.exposition import FORMATS
from flopwitness.measure.sources.source import Source

_LINES = 200_000
_GPUS = 8
_METRICS = (
    ("DCGM_FI_DEV_POWER_USAGE", "gauge"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter"),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge"),
    ("DCGM_FI_DEV_SM_CLOCK", "gauge"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge"),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter"),
)
_LABELS = (
    'gpu="{0}",UUID="GPU-00000000-0000-4000-8000-00000000000{0}",pci_bus_id="00000000:31:00.0",'
    'device="nvidia{0}",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",namespace="ml",pod="train-0"'
)
_START_MS = 1_700_000_000_000
_BLOCK_BYTES = 1 << 20
_REPEATS = 3


def make_text(n_lines: int, *, is_stamped: bool) -> bytes:
    """A dump of about so many samples, metric by metric, or scrapes without times, one after the other."""
    n_sweeps = max(1, n_lines // (_GPUS * len(_METRICS)))
    heads = [[f"{name}{{{_LABELS.format(gpu)}}}" for gpu in range(_GPUS)] for name, _ in _METRICS]
    lines = []
    if is_stamped:
        for (name, kind), of_metric in zip(_METRICS, heads, strict=True):
            lines.append(f"# TYPE {name} {kind}")
            lines += [
                f"{head} {500 + (sweep * 7919 + gpu) % 1999 / 8:.6f} {_START_MS + 15_000 * sweep}"
                for gpu, head in enumerate(of_metric)
                for sweep in range(n_sweeps)
            ]
    else:
        for sweep in range(n_sweeps):
            for (name, kind), of_metric in zip(_METRICS, heads, strict=True):
                lines.append(f"# TYPE {name} {kind}")
                lines += [
                    f"{head} {500 + (sweep * 7919 + gpu) % 1999 / 8:.6f}"
                    for gpu, head in enumerate(of_metric)
                ]
    return ("\n".join(lines) + "\n").encode()


def best_s(work: Callable[[], object]) -> float:
    """The shortest of a few runs [s]."""
    lengths_s = []
    for _ in range(_REPEATS):
        start_s = time.perf_counter()
        work()
        lengths_s.append(time.perf_counter() - start_s)
    return min(lengths_s)


def read_ours(text: bytes) -> int:
    """How many readings this package takes from the text."""
    blocks = [text[start : start + _BLOCK_BYTES] for start in range(0, len(text), _BLOCK_BYTES)]
    (known,) = FORMATS
    return sum(map(len, known.decode(Source(blocks=blocks, where="dump", device="dump")).series))


def read_theirs(text: bytes) -> int | None:
    """How many samples prometheus_client takes from the text; None where it is not installed."""
    try:
        parser = importlib.import_module("prometheus_client.parser")
    except ImportError:
        return None
    return sum(len(family.samples) for family in parser.text_string_to_metric_families(text.decode()))


def main() -> None:
    """Print both speeds and their ratio, for a dump with times and for scrapes without."""
    n_lines = int(sys.argv[1]) if len(sys.argv) > 1 else _LINES
    print("| text | lines | ours [lines/s] | prometheus_client [lines/s] | ratio |")
    print("|---|---:|---:|---:|---:|")
    for title, is_stamped in (("dump with times", True), ("scrapes without times", False)):
        text = make_text(n_lines, is_stamped=is_stamped)
        count = text.count(b"\n")
        ours = count / best_s(partial(read_ours, text))
        if read_theirs(text) is None:
            print(f"| {title} | {count:,} | {ours:,.0f} | prometheus_client is not installed | - |")
            continue
        theirs = count / best_s(partial(read_theirs, text))
        print(f"| {title} | {count:,} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.1f} |")


if __name__ == "__main__":
    main()
