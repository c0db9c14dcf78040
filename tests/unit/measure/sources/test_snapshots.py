"""Two files of one reading each are one recording where the user says how far apart they are."""

from pathlib import Path

import pytest

from flopwitness.measure.samples import Channel, Timing
from flopwitness.measure.sources.formats import read_evidence
from flopwitness.measure.sources.source import ReadOptions

HEAD = "device,Energy counter,Accumulated Energy (uJ)\n"


def _write(folder: Path, **cards: str) -> list[Path]:
    for name, text in cards.items():
        (folder / f"{name}.csv").write_text(HEAD + text)
    return [folder / f"{name}.csv" for name in cards]


def test_snapshots_in_the_order_named(tmp_path: Path) -> None:
    paths = _write(tmp_path, before="card0,100,1000000.00\n", after="card0,300,7000000.00\n")
    trace = read_evidence(paths, options=ReadOptions(period_s=60.0))
    (counter,) = [item for item in trace.series if item.channel is Channel.ENERGY_COUNTER_J]
    assert counter.device == "card0"
    assert counter.value.tolist() == [1.0, 7.0]
    assert counter.utc_ns.tolist() == [0, 60 * 10**9]
    assert counter.timing is Timing.RELATIVE
    assert "snapshots-joined" in {finding.code for finding in trace.findings}
    assert len(trace.provenance) == 2


@pytest.mark.parametrize("period_s", [None, 60.0])
def test_files_of_unlike_devices_or_without_a_period_are_not_joined(
    tmp_path: Path, period_s: float | None
) -> None:
    other = "card0,1,1.00\n" if period_s is None else "card1,1,1.00\n"
    paths = _write(tmp_path, a="card0,100,1000000.00\n", b=other)
    trace = read_evidence(paths, options=ReadOptions(period_s=period_s))
    assert all(len(item) == 1 for item in trace.series)
    assert "snapshots-joined" not in {finding.code for finding in trace.findings}


def test_files_with_more_readings_are_no_snapshots(tmp_path: Path) -> None:
    twice = "card0,100,1000000.00\n\n" + HEAD + "card0,200,2000000.00\n"
    paths = _write(tmp_path, a=twice, b=twice)
    trace = read_evidence(paths, options=ReadOptions(period_s=60.0))
    assert "snapshots-joined" not in {finding.code for finding in trace.findings}
    assert {item.device for item in trace.series} == {"a/card0", "b/card0"}
