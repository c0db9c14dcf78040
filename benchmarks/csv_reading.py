"""How fast nvidia-smi's CSV is read, beside polars and pandas doing the same conversions to the same file.

The file is made here: rows of eight GPUs with units, a marker for a missing reading here and there. All three
strip units, turn text into numbers and time stamps into nanoseconds; only ours also tells the GPUs apart and
counts what it cannot read. polars uses all processors, ours one. The best of several runs counts, of each in
turn, so that a machine that is busy for a while slows all of them. A peer that is not installed is left out,
and said so.

    python benchmarks/csv_reading.py --rows 2000000
"""

import argparse
import importlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from flopwitness.measure.sources.formats import HEAD_BYTES
from flopwitness.measure.sources.nvidia_csv import decode_nvidia_csv
from flopwitness.measure.sources.source import Source

__all__: list[str] = []

_GPUS = 8
_SEED = 20_250_514
_BLOCK_BYTES = 1 << 20
_UNITS = {
    "power.draw [W]": " W",
    "utilization.gpu [%]": " %",
    "utilization.memory [%]": " %",
    "temperature.gpu": "",
    "memory.used [MiB]": " MiB",
}


def main() -> None:
    """Make the file, read it with each, and print rows a second and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "smi.csv"
        _make_log(path, arguments.rows)
        size_mb = path.stat().st_size / 1e6
        print(f"{arguments.rows:,} rows of {_GPUS} GPUs, {size_mb:.0f} MB, best of {arguments.repeats}")
        readers: dict[str, Callable[[Path], int]] = {"flopwitness": _read_ours, "polars": _read_polars}
        if importlib.util.find_spec("pandas"):
            readers["pandas"] = _read_pandas
        else:
            print("pandas is not installed and left out")
        best_s = dict.fromkeys(readers, float("inf"))
        for _ in range(arguments.repeats):
            for name, read in readers.items():
                best_s[name] = min(best_s[name], _time(read, path, arguments.rows))
        for name, took_s in best_s.items():
            print(
                f"{name:12} {arguments.rows / took_s:12,.0f} rows/s {size_mb / took_s:7.0f} MB/s"
                f"   ours is {took_s / best_s['flopwitness']:.2f} times as fast"
            )


def _time(read: Callable[[Path], int], path: Path, n_rows: int) -> float:
    start_s = time.perf_counter()
    n_read = read(path)
    took_s = time.perf_counter() - start_s
    if n_read != n_rows:
        sys.exit(f"{read.__name__} read {n_read} of {n_rows} rows")
    return took_s


def _make_log(path: Path, n_rows: int) -> None:
    rng = np.random.default_rng(_SEED)
    power = rng.integers(6_000, 70_000, n_rows)
    percent = rng.integers(0, 101, (n_rows, 2))
    celsius, used = rng.integers(30, 85, n_rows), rng.integers(1_000, 80_000, n_rows)
    start = datetime(2025, 5, 14, 9, tzinfo=UTC)
    with path.open("w") as file:
        file.write(f"timestamp, index, uuid, {', '.join(_UNITS)}\n")
        for row in range(n_rows):
            sweep, gpu = divmod(row, _GPUS)
            if gpu == 0:
                moment = start + timedelta(milliseconds=100 * sweep)
                stamp = f"{moment:%Y/%m/%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
            watts = "[N/A]" if row % 997 == 0 else f"{power[row] / 100:.2f} W"
            file.write(
                f"{stamp}, {gpu}, GPU-0{gpu}1b2c3d-0000-4000-8000-00000000000{gpu}, {watts}, "
                f"{percent[row, 0]} %, {percent[row, 1]} %, {celsius[row]}, {used[row]} MiB\n"
            )


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _read_ours(path: Path) -> int:
    source = Source(blocks=_blocks(path), where=str(path), device="host")
    source.peek(HEAD_BYTES)  # as for every file, to know its format
    trace = decode_nvidia_csv(source)
    return sum(map(len, trace.series)) // len(_UNITS)


def _read_polars(path: Path) -> int:
    table = pl.read_csv(path, infer_schema=False)
    table = table.rename({name: name.strip() for name in table.columns})
    numbers = [
        pl.col(name).str.strip_chars().str.strip_suffix(unit).cast(pl.Float64, strict=False)
        for name, unit in _UNITS.items()
    ]
    stamp = pl.col("timestamp").str.strptime(pl.Datetime("ns"), "%Y/%m/%d %H:%M:%S%.3f")
    return table.select(stamp, pl.col("uuid").str.strip_chars(), *numbers).height


def _read_pandas(path: Path) -> int:
    pd = importlib.import_module("pandas")
    table = pd.read_csv(path, skipinitialspace=True)
    table["timestamp"] = pd.to_datetime(table["timestamp"], format="%Y/%m/%d %H:%M:%S.%f")
    for name, unit in _UNITS.items():
        if unit:
            table[name] = pd.to_numeric(table[name].str.removesuffix(unit), errors="coerce")
    return len(table)


if __name__ == "__main__":
    main()
