"""How fast tegrastats logs are read, beside the plain way: one search per field and line.

    python benchmarks/tegrastats_reading.py [--lines 100000]

Both read the same generated lines (AGX Orin, JetPack 6, twelve cores) in one run; the plain way knows this
one layout and nothing else. Prints lines per second and their ratio, each the best of three.
"""

import argparse
import re
import time
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Final

import numpy as np

from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.tegrastats import decode_tegrastats

__all__ = ["generate_log", "main", "read_by_search"]

_BLOCK_BYTES: Final = 1 << 20
_ROUNDS: Final = 3
_FIELDS: Final = {
    "ram_mb": re.compile(rb"RAM (\d+)/\d+MB"),
    "emc_pct": re.compile(rb"EMC_FREQ (\d+)%"),
    "emc_mhz": re.compile(rb"EMC_FREQ \d+%@(\d+)"),
    "gpu_pct": re.compile(rb"GR3D_FREQ (\d+)%"),
    "gpu_mhz": re.compile(rb"GR3D_FREQ \d+%@\[(\d+)"),
    "gpu_c": re.compile(rb"gpu@(-?[\d.]+)C"),
    "gpu_soc_mw": re.compile(rb"VDD_GPU_SOC (\d+)mW"),
    "cpu_cv_mw": re.compile(rb"VDD_CPU_CV (\d+)mW"),
    "sys_5v0_mw": re.compile(rb"VIN_SYS_5V0 (\d+)mW"),
}
_CORES: Final = re.compile(rb"CPU \[(.*?)\]")
_CORE: Final = re.compile(rb"(\d+)%@")


def generate_log(n_lines: int, rng: Random) -> bytes:
    """A log with one sample a second."""
    lines = []
    for second in range(n_lines):
        minutes, seconds = divmod(second, 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        cores = ",".join(f"{rng.randrange(101)}%@{rng.choice((729, 1036, 1728))}" for _ in range(8))
        rails = " ".join(
            f"{name} {rng.randrange(500, 9_000)}mW/{rng.randrange(500, 9_000)}mW"
            for name in ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0")
        )
        zones = " ".join(
            f"{name}@{rng.randrange(35_000, 60_000) / 1_000:g}C"
            for name in ("cpu", "soc2", "soc0", "gpu", "tj", "soc1")
        )
        lines.append(
            f"01-{1 + days % 28:02}-2025 {hours:02}:{minutes:02}:{seconds:02} "
            f"RAM {rng.randrange(9_000, 20_000)}/62841MB (lfb {rng.randrange(1, 30)}x4MB) "
            f"SWAP 0/31420MB (cached 0MB) CPU [{cores},off,off,off,off] "
            f"EMC_FREQ {rng.randrange(60)}%@{rng.choice((204, 2133, 3199))} "
            f"GR3D_FREQ {rng.randrange(101)}%@[{rng.randrange(305, 1_300)},0] "
            f"NVENC off NVDEC off NVJPG off VIC off OFA off APE 174 {zones} {rails}\n"
        )
    return "".join(lines).encode()


def read_by_search(log: bytes) -> dict[str, list[float]]:
    """The same readings by one search per field and line."""
    readings: dict[str, list[float]] = defaultdict(list)
    for line in log.splitlines():
        month, day, year = int(line[:2]), int(line[3:5]), int(line[6:10])
        days = np.datetime64(f"{year:04}-{month:02}-{day:02}").astype(int)
        readings["time_s"].append(
            float(days * 86_400 + int(line[11:13]) * 3_600 + int(line[14:16]) * 60 + int(line[17:19]))
        )
        for name, pattern in _FIELDS.items():
            found = pattern.search(line)
            readings[name].append(float(found[1]) if found else np.nan)
        cores = _CORES.search(line)
        loads = [float(load) for load in _CORE.findall(cores[1])] if cores else []
        readings["cpu_pct"].append(sum(loads) / len(loads) if loads else np.nan)
        readings["cores_on"].append(len(loads))
    return readings


def _read(log: bytes) -> int:
    blocks = [log[start : start + _BLOCK_BYTES] for start in range(0, len(log), _BLOCK_BYTES)]
    return len(decode_tegrastats(Source(blocks=blocks, where="log", device="orin")).series[0])


def _best_s(work: Callable[[], object]) -> float:
    lengths_s = []
    for _ in range(_ROUNDS):
        start_s = time.process_time()
        work()
        lengths_s.append(time.process_time() - start_s)
    return min(lengths_s)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    n_lines = parser.parse_args().lines
    log = generate_log(n_lines, Random(1))  # noqa: S311 (test data)
    if _read(log) != n_lines or len(read_by_search(log)["gpu_pct"]) != n_lines:
        raise SystemExit("the two ways do not read the same lines")
    plain_s, ours_s = _best_s(lambda: read_by_search(log)), _best_s(lambda: _read(log))
    print(f"{'one search per field':24} {n_lines / plain_s:12,.0f} lines/s")
    print(f"{'flopwitness':24} {n_lines / ours_s:12,.0f} lines/s {plain_s / ours_s:6.2f} times as fast")


if __name__ == "__main__":
    main()
