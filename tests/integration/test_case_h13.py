"""Case h13: AMD's energy counter counts ticks of 15.3 uJ."""

import json
from pathlib import Path
from typing import Any

import pytest

from flopwitness.measure.samples import Channel, Trace
from flopwitness.measure.sources.rocm_smi import TICK_UJ, decode_rocm_smi
from flopwitness.measure.sources.source import ReadOptions, Source


def load(path: Path) -> Any:  # noqa: ANN401 (a case's JSON)
    return json.loads(path.read_text())


def decode(data: bytes, *, period_s: float | None = None) -> Trace:
    options = ReadOptions(period_s=period_s)
    return decode_rocm_smi(Source(blocks=[data], where="x.csv", device="host", options=options))


def energies(trace: Trace) -> dict[str, list[float]]:
    return {
        item.device: item.value.tolist() for item in trace.series if item.channel is Channel.ENERGY_COUNTER_J
    }


def without_joules(data: bytes) -> bytes:
    """The table with its counter of ticks alone."""
    return b"\n".join(line.rpartition(b",")[0] for line in data.splitlines())


@pytest.mark.parametrize("form", [bytes, without_joules])
def test_two_snapshots_differ_by_the_energy(case: Path, form: Any) -> None:  # noqa: ANN401 (a function)
    expected = load(case / "expected.json")
    meta = load(case / "meta.json")
    before, after = (
        energies(decode(form((case / name).read_bytes()))) for name in ("before.csv", "after.csv")
    )
    for card in ("card0", "card1"):
        energy_j = after[f"host/{card}"][0] - before[f"host/{card}"][0]
        assert energy_j == pytest.approx(expected["expect"][f"{card}_j"], rel=1e-6)
        mean_w = energy_j / meta["seconds_between"]
        assert mean_w == pytest.approx(expected["expect"][f"{card}_mean_w"], rel=1e-6)
    wrong_j = expected["wrong_answers"]["card0_ticks_as_uj_j"]
    assert after["host/card0"][0] - before["host/card0"][0] != pytest.approx(wrong_j, rel=0.1)
    assert meta["counter_resolution_uj"] == TICK_UJ


def test_both_snapshots_in_one_log_are_two_sweeps(case: Path) -> None:
    expected, meta = load(case / "expected.json"), load(case / "meta.json")
    data = (case / "before.csv").read_bytes() + b"\n" + (case / "after.csv").read_bytes()
    trace = decode(data, period_s=meta["seconds_between"])
    for item in trace.series:
        length_s = float(item.utc_ns[-1] - item.utc_ns[0]) / 1e9
        energy_j = float(item.value[-1] - item.value[0])
        assert length_s == meta["seconds_between"]
        card = item.device.removeprefix("host/")
        assert energy_j / length_s == pytest.approx(expected["expect"][f"{card}_mean_w"], rel=1e-6)
