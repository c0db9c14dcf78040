"""Made-up training runs of known size on two V100, written as tables that the package reads.

Each run draws its power, its traffic and its time at random; what a joule computes follows from power and
traffic smoothly, with a little noise on top.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from flopwitness.catalogue.chips import ChipCatalogue, load_chips
from flopwitness.measure.calibration.calibrate import Calibrated, calibrate
from flopwitness.measure.observed import ObservedRuns
from flopwitness.measure.sources.run_table import RunTable, decode_run_table

Cells = dict[str, str]

DEVICE = "2x-v100-sxm2-16gb"
IDLE_W = 98.0
FLOP_PER_TB_TOKEN = 1.6e12
"""What the link's constant is by construction."""


@cache
def catalogue() -> ChipCatalogue:
    """The chip catalogue that ships with the package."""
    return load_chips()


def make_cells(
    n_runs: int, *, seed: int = 0, noise: float = 0.02, **columns: str | Callable[[int], str]
) -> list[Cells]:
    """Runs as cells of a table; `columns` replace or add a column, for all runs or by the run's number."""
    generator = np.random.default_rng(seed)
    made = [_make_run(number, generator, noise) for number in range(n_runs)]
    for number, cells in enumerate(made):
        cells.update(
            {name: value if isinstance(value, str) else value(number) for name, value in columns.items()}
        )
    return made


def _make_run(number: int, generator: np.random.Generator, noise: float) -> Cells:
    width = int(generator.choice([256, 384, 512, 768, 1024]))
    length = int(generator.choice([128, 256, 512]))
    batch = int(generator.choice([8, 16, 32]))
    z_power, z_memory, z_host = generator.uniform(-1, 1, size=3)
    duration_s = generator.uniform(60, 180)
    net_j = duration_s * 200 * np.exp(0.25 * z_power)
    log_tflop_per_j = np.log(0.2) + 0.12 * z_power - 0.1 * z_memory + noise * generator.normal()
    tflop = net_j * np.exp(log_tflop_per_j)
    tokens = 2 * batch * length
    link_tb = tflop * 1e12 / (FLOP_PER_TB_TOKEN * tokens * (1 + length / (6 * width)))
    return {
        "run_id": f"r{number}",
        "device": DEVICE,
        "power_mode": "300W",
        "precision": "fp16",
        "d_model": str(width),
        "seq_len": str(length),
        "batch_size": str(batch),
        "optimizer": "adamw",
        "steps": str(int(generator.integers(100, 5000))),
        "world_size": "2",
        "duration_s": f"{duration_s:.3f}",
        "idle_power_w": f"{IDLE_W}",
        "net_energy_j": f"{net_j:.3f}",
        "mean_utilisation_pct": f"{generator.uniform(85, 100):.1f}",
        "memory_traffic_tb": f"{net_j * 4e-3 * np.exp(0.3 * z_memory):.6f}",
        "link_traffic_tb": f"{link_tb * np.exp(0.02 * generator.normal()):.9f}",
        "host_traffic_tb": f"{net_j * 3e-5 * np.exp(0.3 * z_host):.6f}",
        "true_tflop": f"{tflop:.4f}",
    }


def write_table(cells: Sequence[Mapping[str, str]], *, without: Sequence[str] = ()) -> bytes:
    """The runs as comma-separated text, some columns left out."""
    columns = [name for name in cells[0] if name not in without]
    target = io.StringIO(newline="")
    writer = csv.DictWriter(target, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(cells)
    return target.getvalue().encode()


def read_table(cells: Sequence[Mapping[str, str]], *, without: Sequence[str] = ()) -> RunTable:
    """The runs as the package reads them, some columns left out."""
    return decode_run_table(write_table(cells, without=without), where="runs.csv")


def calibrate_cells(cells: Sequence[Mapping[str, str]], *, without: Sequence[str] = ()) -> Calibrated:
    """A calibration from all of the runs."""
    table = read_table(cells, without=without)
    return calibrate([(table, table.rows)], catalogue=catalogue())


def observed(**columns: ArrayLike) -> ObservedRuns:
    """Runs from their columns; the others hold NaN, and busy time is the duration where it is not given."""
    given = {name: np.atleast_1d(np.asarray(value, dtype=np.float64)) for name, value in columns.items()}
    if "duration_s" in given:
        given.setdefault("busy_s", given["duration_s"])
    n_runs = max((column.size for column in given.values()), default=0)
    missing = np.full(n_runs, np.nan)
    return ObservedRuns(
        **{
            item.name: np.broadcast_to(given.get(item.name, missing), (n_runs,)).copy()
            for item in fields(ObservedRuns)
        }
    )
