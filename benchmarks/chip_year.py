"""One chip-year of telemetry, from its trace file to the answer: wall time and peak memory.

    python benchmarks/chip_year.py [--days N] [--seed N]

A year of one GPU at 1 Hz is made (simulated: days of training with pauses, jitter on the clock, a missing
reading now and then), once with power and utilisation and once with power alone. Then the command is run on
it as a user would, and what the kernel counted for the command and for the child process that unpacks the
file is printed: wall time, processor time of both together, peak resident memory of each.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CHANNELS: Final = (("power_w", "utilisation_pct"), ("power_w",))
_QUESTION: Final = ("--chip", "h100-sxm", "--count", "1")
_CHIP_YEAR_DAYS: Final = 365

_MAKE: Final = """
import sys
from pathlib import Path

import numpy as np

from flopwitness.measure.samples import Channel, Scope, Series, Trace
from flopwitness.measure.trace_file import encode_trace

path, days, seed, *channels = sys.argv[1:]
random, n = np.random.default_rng(int(seed)), 86_400 * int(days)
second = np.arange(n, dtype=np.int64)
utc_ns = 1_735_689_600 * 10**9 + second * 10**9 + random.integers(0, 5, n) * 10**6
is_busy = (second % 86_400 > 3_600) & (second % 1_800 > 60)
power_w = np.where(is_busy, 610.0, 95.0) + np.where(is_busy, 25.0, 3.0) * random.standard_normal(n)
power_w[random.integers(0, n, n // 100_000)] = np.nan  # a tool that now and then has no reading
made = {
    "power_w": np.round(power_w, 2),
    "utilisation_pct": np.where(is_busy, random.integers(92, 101, n), 0).astype(np.float64),
}
series = tuple(
    Series(device="GPU-0", channel=Channel(name), scope=Scope.GPU, utc_ns=utc_ns, value=made[name])
    for name in channels
)
Path(path).write_bytes(encode_trace(Trace(series=series)))
"""

# What the kernel counted is told beside the answer, when the command has ended in whatever way.
_CALL: Final = """
import json, resource, sys

from flopwitness.cli.main import run

try:
    run()
finally:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    counted = {
        "processor_s": sum(usage.ru_utime + usage.ru_stime for usage in usages),
        "peak_bytes": [usage.ru_maxrss * 1024 for usage in usages],
    }
    sys.stderr.write(json.dumps(counted) + "\\n")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call took.

    Attributes:
        wall_s: From the start of the command to its end [s].
        processor_s: Processor time of the command and of what it started [s].
        command_bytes: Peak resident memory of the command.
        child_bytes: Peak resident memory of the largest process that it started.
        answer: What it printed.
    """

    wall_s: float
    processor_s: float
    command_bytes: int
    child_bytes: int
    answer: str


def make_year(path: Path, channels: tuple[str, ...], *, days: int, seed: int) -> None:
    """Write the trace file, in a process of its own: its memory must not count for what is measured."""
    arguments = [str(path), str(days), str(seed), *channels]
    subprocess.run([sys.executable, "-c", _MAKE, *arguments], check=True)  # noqa: S603 (this text alone)


def measure_call(path: Path) -> Cost:
    """Run `flopwitness estimate` on the file."""
    command = [sys.executable, "-c", _CALL, "estimate", str(path), *_QUESTION]
    began_s = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (this text alone)
    wall_s = time.perf_counter() - began_s
    counted = json.loads(done.stderr.splitlines()[-1])
    command_bytes, child_bytes = counted["peak_bytes"]
    return Cost(
        wall_s=wall_s,
        processor_s=counted["processor_s"],
        command_bytes=command_bytes,
        child_bytes=child_bytes,
        answer=done.stdout,
    )


def main() -> None:
    """Print the table and the answers.

    Side effects:
        Makes files of a few hundred megabytes in a temporary folder, and removes them.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--days", type=int, default=_CHIP_YEAR_DAYS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    heads = ("file", "made", "wall", "processor", "command", "child")
    print(f"{'channels':26} {'samples':>11}", *(f"{head:>9}" for head in heads))
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        for channels in _CHANNELS:
            path = Path(folder) / "year.parquet"
            began_s = time.perf_counter()
            make_year(path, channels, days=options.days, seed=options.seed)
            made_s = time.perf_counter() - began_s
            cost = measure_call(path)
            answers.append(cost.answer)
            sizes = (path.stat().st_size, cost.command_bytes, cost.child_bytes)
            file, command, child = (f"{size / 1e6:6.0f} MB" for size in sizes)
            made, wall, processor = (f"{time_s:7.1f} s" for time_s in (made_s, cost.wall_s, cost.processor_s))
            n_samples = options.days * 86_400 * len(channels)
            print(f"{' + '.join(channels):26} {n_samples:11,}", file, made, wall, processor, command, child)
    print("", *answers, sep="\n")


if __name__ == "__main__":
    main()
