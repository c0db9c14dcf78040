"""Whatever the bytes, the decoder gives a table or a DecodeError, and a written table comes back."""

import csv
import io
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.sources.run_columns import Column, Dimension, plan_columns, read_cell
from flopwitness.measure.sources.run_table import RunTable, decode_run_table, is_run_table

SEED = (
    b"run_id,device,world_size,duration_s,net_energy_j,idle_power_w,mean_utilisation_pct,precision,true_tflop\r\n"
    b'r1,2x-v100,2,165.389,19997.299,97.89,96.7,fp16,4099.4217\r\n"r\r\n""2""",v100,,1e2,,,,,\r\n'
)
pieces = st.sampled_from(
    [
        *(b"duration_s", b"energy (MJ)", b"chip", b"_mwh", b"1e25", b"0", b"-1", b"x", b" ", b"("),
        *(b",", b";", b"\t", b"\n", b"\r\n", b'"', b"\xef\xbb\xbf", b"\xff", b"\x00"),
    ]
)
cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def decode_or_refuse(data: bytes) -> RunTable | None:
    is_run_table(data, "t")
    try:
        return decode_run_table(data, where="t")
    except DecodeError:
        return None


@given(st.binary(max_size=200).filter(lambda data: not data.startswith(b"PAR1")))
def test_any_bytes(data: bytes) -> None:
    decode_or_refuse(data)


@given(st.lists(pieces, max_size=60).map(b"".join))
def test_any_pieces_of_a_table(data: bytes) -> None:
    decode_or_refuse(data)


@given(st.lists(st.tuples(st.integers(0, len(SEED) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_any_damage_to_a_table(damage: list[tuple[int, int]]) -> None:
    data = bytearray(SEED)
    for place, value in damage:
        data[place] = value
    decode_or_refuse(bytes(data))


@given(st.integers(0, len(SEED)))
def test_any_torn_table(length: int) -> None:
    table = decode_or_refuse(SEED[:length])
    assert table is None or len(table.rows) <= 2


@given(
    st.lists(st.tuples(cells, cells, st.floats(1e-9, 1e12)), min_size=1, max_size=8),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_written_table_comes_back(runs: list[tuple[str, str, float]], delimiter: str, line_end: str) -> None:
    target = io.StringIO(newline="")
    writer = csv.writer(target, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL)
    writer.writerows([("run_id", "note", "duration_s"), *runs])
    table = decode_run_table(target.getvalue().encode(), where="t")
    assert [(row.cells["run_id"], row.cells["note"], row.duration_s) for row in table.rows] == runs
    assert table.n_skipped == 0


@given(st.integers(0, 10**58))
def test_count_of_operations_is_exact(flop: int) -> None:
    column = Column(index=0, header="true_flop", field="true_flop", dimension=Dimension.FLOP)
    assert read_cell(column, str(flop), where="t") == flop
    assert read_cell(column, f"{flop}.000", where="t") == flop


@given(st.sampled_from(Dimension), st.text(max_size=80))
def test_any_cell(dimension: Dimension, text: str) -> None:
    column = Column(index=0, header="h", field="f", dimension=dimension)
    with suppress(DecodeError):
        read_cell(column, text, where="t")


@given(st.lists(st.text(max_size=20), max_size=12))
def test_every_column_is_used_or_ignored(headers: list[str]) -> None:
    plan = plan_columns(headers, where="t:1")
    assert len(plan.columns) + len(plan.ignored) == len(headers)
