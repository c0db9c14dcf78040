"""Delimited rows in bulk: cells where they stand, numbers as Python reads them, nothing irregular taken."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from flopwitness.measure.sources.delimited import Chunk, Rows, split_chunks, split_rows
from flopwitness.measure.sources.lines import LONGEST_LINE_BYTES
from flopwitness.measure.sources.stamps import parse_stamp


def _rows(*lines: str) -> Rows:
    rows = split_rows("\n".join(lines).encode(), lines[0].count(",") + 1)
    assert rows is not None
    return rows


def _column(*cells: str) -> Rows:
    return _rows(*(f"a, {cell},z" for cell in cells))


def _numbers(
    rows: Rows, *, prefix: bytes = b"", suffix: bytes = b""
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return rows.numbers(1, prefix=prefix, suffix=suffix)


def _chunks(blocks: Sequence[bytes]) -> list[Chunk]:
    return list(split_chunks(blocks))


def test_chunks_end_at_ends_of_lines() -> None:
    assert _chunks([b"a\nb\nc", b"d\ne", b"f", b"\n"]) == [Chunk(b"a\nb"), Chunk(b"cd"), Chunk(b"ef")]


def test_a_last_line_without_an_end_is_known() -> None:
    assert _chunks([b"a\nb"]) == [Chunk(b"a"), Chunk(b"b", is_ended=False)]
    assert _chunks([b"a\n"]) == [Chunk(b"a")]
    assert _chunks([]) == []


def test_carriage_returns_are_ends_of_lines_wherever_a_block_ends() -> None:
    assert _chunks([b"a\r\nb\r", b"\nc\r\n"]) == [Chunk(b"a"), Chunk(b"b\nc")]


def test_a_line_that_never_ends_does_not_fill_the_memory() -> None:
    (chunk,) = _chunks([b"x" * LONGEST_LINE_BYTES] * 3)
    assert len(chunk.text) == LONGEST_LINE_BYTES + 1


def test_cells_are_where_they_stand() -> None:
    rows = _rows("a, b,c", "dd,, f ")
    assert (len(rows), rows.n_cells) == (2, 3)
    assert [[rows.cell(row, column) for column in range(3)] for row in range(2)] == [
        [b"a", b"b", b"c"],
        [b"dd", b"", b"f "],
    ]


@pytest.mark.parametrize(
    "text",
    ["a,b\nc", "a\nb,c", "a,b,c\nd", "a,b\n\nc,d", "a,b\nc,d\n", "a,b,c\nd\ne,f", ""],
    ids=repr,
)
def test_a_text_with_an_odd_row_is_left_to_others(text: str) -> None:
    assert split_rows(text.encode(), 2) is None


def test_numbers_lose_their_unit_and_no_digit() -> None:
    rows = _column("33.09 W", "9.50 W", "700.00 W", "0.00 W", "123456789.25 W")
    value, is_read = _numbers(rows, suffix=b" W")
    assert is_read.all()
    assert value.tolist() == [33.09, 9.5, 700.0, 0.0, 123456789.25]


def test_numbers_with_and_without_a_unit_may_be_mixed() -> None:
    value, is_read = _numbers(_column("33.09 W", "33.10", "P1.25 W"), prefix=b"P", suffix=b" W")
    assert is_read.all()
    assert value.tolist() == [33.09, 33.1, 1.25]


def test_whole_numbers_need_no_point() -> None:
    value, is_read = _numbers(_column("0", "7", "100", "000123", "999999999999999"))
    assert is_read.all()
    assert value.tolist() == [0, 7, 100, 123, 999999999999999]


@pytest.mark.parametrize(
    "cell",
    [
        "[N/A]",
        "",
        " ",
        "-1.50",
        "+1.50",
        "1.5",
        "1.500",
        "15",
        ".50",
        "1,50",
        "1.50 ",
        "1.5x",
        "x1.50",
        "1e5.0",
        "nan",
        "inf",
        "1 2.50",
        "1..50",
        "9999999999999.50",
        "1.50 W",
        "1/.50",
        "1:.50",
    ],
    ids=repr,
)
def test_what_is_not_of_the_columns_form_is_not_read_in_bulk(cell: str) -> None:
    value, is_read = _numbers(_column("33.09", cell.replace(",", ";"), "2.25"))
    assert is_read.tolist() == [True, False, True]
    assert value[[0, 2]].tolist() == [33.09, 2.25]


def test_each_column_is_read_in_its_own_form() -> None:
    rows = _rows("33.09 W,99 %,P0,[N/A]", "7.50 W,100 %,P8,[N/A]", "[N/A],7 %,P12,[N/A]")
    value, is_read = rows.numbers(0, suffix=b" W")
    assert (value[:2].tolist(), is_read.tolist()) == ([33.09, 7.5], [True, True, False])
    assert rows.numbers(1, suffix=b" %")[0].tolist() == [99, 100, 7]
    assert rows.numbers(2, prefix=b"P")[0].tolist() == [0, 8, 12]
    assert not rows.numbers(3, prefix=b"P", suffix=b" MiB")[1].any()


@pytest.mark.parametrize("first", ["[N/A]", "", "x.5", "-1.5", ".50"])
def test_a_first_cell_without_a_number_hides_none(first: str) -> None:
    value, is_read = _numbers(_column(first, "33.09", "7.50"))
    assert is_read.tolist() == [False, True, True]
    assert value[1:].tolist() == [33.09, 7.5]


def test_a_number_may_end_with_its_point() -> None:
    value, is_read = _numbers(_column("5.", "61.", "6"))
    assert is_read.tolist() == [True, True, False]
    assert value[:2].tolist() == [5, 61]


def test_a_column_without_any_number_reads_none() -> None:
    value, is_read = _numbers(_column("", ""))
    assert value.size == 2
    assert not is_read.any()


def test_stamps_of_one_width_are_read() -> None:
    texts = ["2025/05/14 09:00:00.000", "2025/05/14 09:00:01.5", "2025/05/14 09:00:02.250", "timestamp"]
    time_ns, is_read = _rows(*(f"{text}, 1" for text in texts)).stamps(0)
    assert is_read.tolist() == [True, False, True, False]
    assert time_ns[[0, 2]].tolist() == [parse_stamp(texts[0].encode()), parse_stamp(texts[2].encode())]


@pytest.mark.parametrize("first", ["", "x" * 100, "2025/05/14"])
def test_a_first_cell_that_is_no_stamp_leaves_all_unread(first: str) -> None:
    assert not _rows(f"{first},1", f"{first},2").stamps(0)[1].any()


def test_rows_are_grouped_by_their_cells() -> None:
    rows = _rows("0,a,x", "1,b,y", "2,a,x", "3,a,y", "4,b,y")
    found = rows.groups([1, 2])
    assert found is not None
    number, first = found
    assert number.tolist() == [0, 1, 0, 2, 1]
    assert first == [0, 1, 3]


@pytest.mark.parametrize("names", ["abcabcab", "abcabcba", "aaaa", "abbabb", "ababc", "a", "ab", "aab"])
def test_rows_in_turn_and_out_of_turn_are_grouped(names: str) -> None:
    found = _rows(*(f"{name},1" for name in names)).groups([0])
    assert found is not None
    assert [names[found[1][group]] for group in found[0].tolist()] == list(names)


def test_without_columns_all_rows_are_of_one_group() -> None:
    found = _rows("0,a", "1,b").groups([])
    assert found is not None
    assert (found[0].tolist(), found[1]) == ([0, 0], [0])


def test_cells_that_only_begin_alike_are_unlike() -> None:
    cells = [
        "GPU-0",
        "GPU-00",
        "GPU-000000000000",
        "GPU-0000000000000",
        "GPU-0000000000000000000000000001",
        "",
    ]
    found = _rows(*(f"{cell},1" for cell in cells)).groups([0])
    assert found is not None
    assert len(set(found[0].tolist())) == len(cells)


def test_many_groups_are_told_apart() -> None:
    names = [f"gpu{number % 500}" for number in range(1500)]
    found = _rows(*(f"{name},1" for name in names)).groups([0])
    assert found is not None
    number, first = found
    assert first == list(range(500))
    assert [names[first[group]] for group in number.tolist()] == names


def test_a_cell_longer_than_any_name_is_left_to_others() -> None:
    assert _rows("a,1", f"{'b' * 65},2").groups([0]) is None
    assert _rows("a,1", f"{'b' * 64},2").groups([0]) is not None


def test_numbers_are_those_of_python() -> None:
    rng = np.random.default_rng(20_250_514)
    cells = [f"{value:.2f}" for value in rng.uniform(0, 2_000, 5_000)]
    value, is_read = _numbers(_column(*cells))
    assert is_read.all()
    assert value.tolist() == [float(cell) for cell in cells]
