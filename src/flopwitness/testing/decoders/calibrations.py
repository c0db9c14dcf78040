"""Calibration files: decoding them, and asking what was decoded for an estimate."""

import numpy as np

from flopwitness.catalogue.chips import load_chips
from flopwitness.measure.calibration.calibrate import calibrate
from flopwitness.measure.calibration.file import decode_calibration
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.observed import observe
from flopwitness.measure.sources.run_table import RunTable, decode_run_table
from flopwitness.testing.known_decoder import KnownDecoder

__all__ = ["decoders"]

_N_RUNS = 12
_SEED = 7
_HEADER = (
    "chip,count,power_mode,precision,duration_s,idle_power_w,net_energy_j,memory_traffic_tb,link_traffic_tb,"
    "batch_size,seq_len,d_model,true_tflop"
)


def decoders() -> tuple[KnownDecoder, ...]:
    """The reader of calibrations."""
    table = _table()
    made = calibrate([(table, table.rows)], catalogue=load_chips())
    return (KnownDecoder(name="calibration", decode=lambda data: _use(data, table), seeds=(made.data,)),)


def _use(data: bytes, table: RunTable) -> Calibration:
    """The calibration, after every estimator of it was asked."""
    calibration = decode_calibration(data, where="calibration.json")
    runs = observe(table.rows)
    for method in calibration.fitted.models:
        calibration.fitted.predict(method, runs)
    calibration.fitted.is_outside(runs)
    return calibration


def _table() -> RunTable:
    """Made-up runs of two V100."""
    draw = np.random.default_rng(_SEED).uniform
    lines = [_HEADER]
    for _ in range(_N_RUNS):
        tflop, power_w, moved = draw(500, 2_000), draw(220, 260), draw(0.01, 0.03)
        net_j = tflop * (3 + 60 * moved) * draw(0.97, 1.03)
        lines.append(
            f"v100-sxm2-16gb,2,300W,fp16,{net_j / power_w:.3f},98,{net_j:.3f},{tflop * moved:.4f},"
            f"{tflop / 2_000:.5f},8,256,1024,{tflop:.3f}"
        )
    return decode_run_table("\n".join(lines).encode(), where="runs.csv")
