"""What must hold of every log of nvidia-smi: neither blocks nor bulk reading change what is read."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources import nvidia_csv, nvidia_dmon, nvidia_query, nvidia_xml
from flopwitness.measure.sources.delimited import split_rows
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.stamps import parse_stamp, parse_stamps
from flopwitness.measure.sources.values import Unreadable
from flopwitness.testing.decoders.nvidia import decoders

FORMATS = [*nvidia_csv.FORMATS, *nvidia_query.FORMATS, *nvidia_xml.FORMATS, *nvidia_dmon.FORMATS]
SEEDS = {decoder.name: decoder.seeds for decoder in decoders()}
CUTS = st.lists(st.integers(0, 10_000), max_size=12)
CELLS = st.one_of(
    st.sampled_from(["33.09 W", "400.00 W", "[N/A]", "", "7 W", "0.00 W", "ERR!", "W", "-1.00 W", "1e2 W"]),
    st.from_regex(r"\A[0-9]{1,18}(\.[0-9]{0,4})?( W)?\Z"),
    st.text("0123456789.+-eE W[]/", max_size=12),
)
STAMPS = st.one_of(
    st.datetimes().map(lambda time: time.isoformat(" ", "milliseconds").replace("-", "/")),
    st.sampled_from(
        ["2025/05/14 09:00:00.000", "2025-05-14T09:00:00", "2024/02/30 09:00:00.000", "timestamp"]
    ),
    st.text("0123456789/-: .T", max_size=24),
)


def _decode(known: Format, blocks: list[bytes]) -> Trace | str:
    try:
        return known.decode(Source(blocks=blocks, where="log", device="host"))
    except DecodeError as error:
        return str(error)


def _assert_same(one: Trace | str, other: Trace | str) -> None:
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert (one.skipped, one.n_skipped, one.devices, one.findings) == (
        other.skipped,
        other.n_skipped,
        other.devices,
        other.findings,
    )
    assert len(one.series) == len(other.series)
    for left, right in zip(one.series, other.series, strict=True):
        assert (left.device, left.channel, left.scope, left.part) == (
            right.device,
            right.channel,
            right.scope,
            right.part,
        )
        np.testing.assert_array_equal(left.utc_ns, right.utc_ns)
        np.testing.assert_array_equal(left.value, right.value)


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
@given(data=st.data(), cuts=CUTS, wound=st.tuples(st.integers(0, 10_000), st.binary(max_size=3)))
def test_a_log_reads_the_same_for_any_block_boundaries(
    known: Format, data: st.DataObject, cuts: list[int], wound: tuple[int, bytes]
) -> None:
    whole = data.draw(st.sampled_from(SEEDS[known.name]))
    place = wound[0] % len(whole)
    whole = whole[:place] + wound[1] + whole[place:]
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    _assert_same(_decode(known, [whole]), _decode(known, [whole[i:j] for i, j in pairwise(places)]))


@given(st.lists(st.tuples(STAMPS, st.sampled_from(["0", "1", "x y", ""]), CELLS, CELLS), max_size=12))
def test_rows_in_bulk_and_one_by_one_read_the_same(rows: list[tuple[str, ...]]) -> None:
    (known,) = nvidia_csv.FORMATS
    lines = ["timestamp, index, power.draw [W], temperature.gpu", *map(", ".join, rows)]
    data = ("\n".join(lines) + "\n").encode()
    whole = _decode(known, [data])
    with patch.object(nvidia_csv, "split_rows", return_value=None):
        _assert_same(whole, _decode(known, [data]))


@given(st.lists(st.from_regex(rb"\A[0-9]{0,16}(\.[0-9]{0,3})?\Z"), min_size=1, max_size=8))
def test_a_number_that_is_read_in_bulk_is_that_of_python(cells: list[bytes]) -> None:
    rows = split_rows(b"\n".join(b"a," + cell for cell in cells), 2)
    assert rows is not None
    value, is_read = rows.numbers(1)
    for cell, number, read in zip(cells, value.tolist(), is_read.tolist(), strict=True):
        assert not read or number == float(cell)
    assert rows.cell(0, 1) == cells[0]


@given(STAMPS)
def test_a_stamp_reads_the_same_alone_and_in_bulk(stamp: str) -> None:
    text = stamp.encode() or b" "
    time_ns, is_read = parse_stamps(np.frombuffer(text, dtype=np.uint8).reshape(-1, 1))
    if is_read[0]:
        assert time_ns[0] == parse_stamp(text)
    else:
        with pytest.raises(Unreadable):
            parse_stamp(text)
