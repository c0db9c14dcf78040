"""Case h14: every rank's tracker logged the whole machine."""

import json
from pathlib import Path

import pytest

from flopwitness.foundation.units import JOULE_PER_KWH
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.codecarbon_csv import decode_codecarbon_csv, is_codecarbon_csv
from flopwitness.measure.sources.source import Source
from flopwitness.measure.trackers import add_tracked_hosts, records_of


@pytest.fixture
def merged(case: Path) -> Trace:
    """All eight files as one trace, as they would be merged: series behind series."""
    traces = []
    for path in sorted(case.glob("*.csv")):
        data = path.read_bytes()
        assert is_codecarbon_csv(data, path.name)
        traces.append(decode_codecarbon_csv(Source(blocks=[data], where=path.name, device=path.stem)))
    assert len(traces) == 8
    return Trace(series=tuple(series for trace in traces for series in trace.series))


def test_one_figure_a_host(case: Path, merged: Trace) -> None:
    expected = json.loads((case / "expected.json").read_text())
    expect, wrong = expected["expect"], expected["wrong_answers"]
    tracked = add_tracked_hosts(records_of(merged))
    assert (tracked.n_hosts, tracked.gpu_count) == (expect["nodes"], expect["gpus"])
    assert tracked.energy_j / JOULE_PER_KWH == pytest.approx(expect["energy_kwh"], rel=2e-3)
    assert tracked.energy_j == pytest.approx(expect["energy_j"], rel=2e-3)
    assert tracked.energy_j / JOULE_PER_KWH != pytest.approx(wrong["sum_of_files_kwh"], rel=0.1)
    (length_s,) = {host.duration_s for host in tracked.hosts}
    assert tracked.gpu_count is not None
    assert tracked.energy_j / length_s / tracked.gpu_count == pytest.approx(
        expect["mean_w_per_gpu"], rel=2e-3
    )


def test_the_overlap_is_told_for_each_host(case: Path, merged: Trace) -> None:
    (flag,) = json.loads((case / "expected.json").read_text())["must_flag"]
    findings = add_tracked_hosts(records_of(merged)).findings
    assert [finding.where for finding in findings] == ["node-a", "node-b"]
    assert all(flag in finding.message for finding in findings)
    assert [finding.count for finding in findings] == [4, 4]


def test_no_two_files_share_a_series_so_that_merging_renames_none(merged: Trace) -> None:
    keys = {(item.device, item.channel, item.scope, item.part) for item in merged.series}
    assert len(keys) == len(merged.series)
