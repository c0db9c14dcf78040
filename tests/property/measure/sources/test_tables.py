"""What must hold of every table: block boundaries and fast paths change nothing."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Series, Trace
from flopwitness.measure.sources import amd_smi, codecarbon_csv, plain_table, rocm_smi, zeus_csv
from flopwitness.measure.sources.recording import Times
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.table_times import TimeForm, TimeReader
from flopwitness.measure.sources.values import Unreadable
from flopwitness.testing.decoders.tables import decoders

FORMATS = {
    known.name: known
    for module in (amd_smi, codecarbon_csv, plain_table, rocm_smi, zeus_csv)
    for known in module.FORMATS
}
SEEDS = [(decoder.name, seed) for decoder in decoders() for seed in decoder.seeds if decoder.name in FORMATS]
CUTS = st.lists(st.integers(0, 2_000), max_size=12)
CELLS = st.sampled_from(
    [
        "0",
        "1.5",
        "12.25",
        "-3",
        "",
        "N/A",
        "nan",
        "x",
        "1e3",
        "1e999",
        " 7 ",
        '"8"',
        "9" * 70,
        "0x1",
        "1_0",
        "1e-99999",
    ]
)
TIMES = st.sampled_from(
    [
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:05",
        "2024-01-01 00:00:59",
        "2024-01-01 00:00:60",
        "2024-01-01 00:00:01.5",
        "2024-01-01T00:00:01.25",
        "2024-01-01 00:00:01Z",
        "2024-02-30 00:00:00",
        "x",
        "",
        "1.5",
        "1.25",
        "10.5",
        "3",
        "-1",
        "1e3",
        "9" * 30,
    ]
)


def _blocks(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:stop] for start, stop in pairwise(places)]


def _told(trace: Trace) -> list[object]:
    return [*map(_of_series, trace.series), trace.n_skipped, trace.skipped, trace.devices, trace.findings]


def _of_series(series: Series) -> tuple[object, ...]:
    values = tuple(np.where(np.isnan(series.value), -1.5, series.value).tolist())
    return (series.device, series.channel, series.scope, series.part, tuple(series.utc_ns.tolist()), values)


def _decode(name: str, blocks: list[bytes]) -> list[object]:
    try:
        return _told(FORMATS[name].decode(Source(blocks=blocks, where="log", device="log")))
    except DecodeError as error:
        return [str(error)]


@given(st.sampled_from(SEEDS), CUTS)
def test_block_boundaries_anywhere_give_the_same_trace(seed: tuple[str, bytes], cuts: list[int]) -> None:
    name, data = seed
    assert _decode(name, _blocks(data, cuts)) == _decode(name, [data])


@given(st.lists(st.tuples(TIMES, st.sampled_from("012"), CELLS), max_size=12))
def test_rows_read_together_are_as_rows_read_apart(rows: list[tuple[str, str, str]]) -> None:
    lines = ["time,gpu,gpu_power_w", *(",".join(row) for row in rows)]
    together = _decode("plain-table", ["\n".join(lines).encode()])
    apart = _decode("plain-table", [f"{line}\n".encode() for line in lines])
    assert together == apart


@given(
    st.sampled_from(
        [
            TimeForm(times=Times.LOCAL),
            TimeForm(times=Times.UTC, has_zone=True),
            TimeForm(times=Times.UTC, unit_ns=10**9),
            TimeForm(times=Times.UTC, unit_ns=1),
        ]
    ),
    st.lists(TIMES, min_size=1, max_size=6),
)
def test_times_read_together_are_as_times_read_apart(form: TimeForm, cells: list[str]) -> None:
    reader, coded = TimeReader(form), [cell.encode() for cell in cells]
    try:
        apart = [reader.read(cell) for cell in coded]
    except Unreadable:
        apart = None
    try:
        together = reader.read_all(coded).tolist()
    except Unreadable:
        together = None
    assert together == apart
