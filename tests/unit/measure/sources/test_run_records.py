"""Records of a table are found with their lines, and a broken one costs only itself."""

import io
from collections.abc import Sequence

import polars as pl
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.sources.run_records import Record, check_limit, is_parquet, open_parquet, open_text


def no_name(names: Sequence[str]) -> int:
    return 0


def read(text: str | bytes) -> tuple[tuple[str, ...], list[tuple[int, list[str] | None]]]:
    data = text.encode() if isinstance(text, str) else text
    records = open_text(data, no_name, where="t.csv")
    return records.names, [(record.line, record.cells) for record in records.rows]


def parquet(frame: pl.DataFrame) -> bytes:
    target = io.BytesIO()
    frame.write_parquet(target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,2\n", [(2, ["1", "2"])]),
        ("a,b\r\n1,2\r\n3,4", [(2, ["1", "2"]), (3, ["3", "4"])]),
        ("\ufeffa,b\n1,2\n", [(2, ["1", "2"])]),
        ("a;b\n1;2\n", [(2, ["1", "2"])]),
        ("a\tb\n1\t2\n", [(2, ["1", "2"])]),
        ("\n\na,b\n1,2\n", [(4, ["1", "2"])]),
        ('a,b\n"x,y",2\n', [(2, ["x,y", "2"])]),
        ('a,b\n"x ""y""",2\n', [(2, ['x "y"', "2"])]),
        ('a,b\n"x\r\ny",2\r\n3,4\r\n', [(2, ["x\r\ny", "2"]), (4, ["3", "4"])]),
        ('a,b\n1,"x\n\ny"\n3,4', [(2, ["1", "x\n\ny"]), (5, ["3", "4"])]),
        ('a,b\n"",""\n', [(2, ["", ""])]),
        ('a,b\n1,""', [(2, ["1", ""])]),
        ("a,b\n\n1,2\n", [(2, [""]), (3, ["1", "2"])]),
        ("a,b\n1\n1,2,3\n", [(2, ["1"]), (3, ["1", "2", "3"])]),
        ("a,b\n", []),
    ],
)
def test_text_is_split_and_located(text: str, rows: list[tuple[int, list[str] | None]]) -> None:
    assert read(text) == (("a", "b"), rows)


@pytest.mark.parametrize("broken", ['5" gun,1', '"x"y,1', '1,"x" ', '1,a"b', '"x\ny"z,1'])
def test_misplaced_quotation_mark_costs_only_its_own_record(broken: str) -> None:
    _, rows = read(f"a,b\n{broken}\n3,4\n")
    line = 3 + broken.count("\n")
    assert rows == [(2, None), (line, ["3", "4"])]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a table"),
        (b"\n\n", "not a table"),
        (b'a"b\n', "not a table"),
        (b"a,b\n\xff,2\n", "t.csv:2: not text"),
        (b"\xff\xfea\x00", "t.csv:1: not text"),
        (b"a,a\n1,2\n", "t.csv:1: a column name that stands twice"),
        (b"a, a \n1,2\n", "a column name that stands twice"),
        (b",".join(b"c%d" % n for n in range(4097)) + b"\n", "at most 4096 columns"),
        (b'"c",' + b",".join(b"c%d" % n for n in range(4096)) + b"\n", "at most 4096 columns"),
    ],
)
def test_table_without_a_readable_header_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        read(data)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('1,"x\n3,4\n', "t.csv:2: a quoted cell that never closes"),
        ("," * 4096, "t.csv:2: too large"),
        ("x" * (1024 * 1024 + 1), "bytes a cell"),
        ("é" * (512 * 1024 + 1), "bytes a cell"),
        ('"' + "x" * (1024 * 1024 + 1) + '"', "bytes a cell"),
        ('"' + "é" * (512 * 1024 + 1) + '"', "bytes a cell"),
    ],
)
def test_row_beyond_the_limits_is_refused(row: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        read(f"a,b\n{row}")


def test_cell_of_one_mebibyte_is_read() -> None:
    cell = "x" * (1024 * 1024)
    assert read(f'a,b\n1,{cell}\n2,"{cell}"\n')[1] == [(2, ["1", cell]), (3, ["2", cell])]


def test_column_without_a_name_is_named_by_its_place() -> None:
    assert read(",b,\n1,2,3\n")[0] == ("column 1", "b", "column 3")


def test_delimiter_under_which_most_names_make_sense_wins() -> None:
    def judge(names: Sequence[str]) -> int:
        return sum(name in ("x", "y") for name in names)

    assert open_text(b"x;y;a,b,c,d\n", judge, where="t").names == ("x", "y", "a,b,c,d")


def test_parquet_becomes_exact_text() -> None:
    frame = pl.DataFrame(
        {
            "name": ['a "b",\nc', None],
            "x": [0.1, 1e25],
            "n": [2**62, None],
            "ok": [True, False],
            "l": [[1], []],
        }
    )
    records = open_parquet(parquet(frame), where="t.parquet")
    assert records.names == ("name", "x", "n", "ok", "l")
    assert list(records.rows) == [
        Record(line=1, cells=['a "b",\nc', "0.1", str(2**62), "True", "[1]"]),
        Record(line=2, cells=["", "1e+25", "", "False", "[]"]),
    ]


@pytest.mark.parametrize("cut", [40, -1])
def test_torn_parquet_is_refused(cut: int) -> None:
    with pytest.raises(DecodeError, match=r"t\.parquet: cannot be unpacked \(expected Apache Parquet"):
        open_parquet(parquet(pl.DataFrame({"a": [1, 2]}))[:cut], where="t.parquet")


def test_parquet_beyond_the_limits_is_refused() -> None:
    with pytest.raises(DecodeError, match="at most 1000000 rows"):
        open_parquet(parquet(pl.DataFrame({"a": pl.Series([0]).new_from_index(0, 1_000_001)})), where="t")
    with pytest.raises(DecodeError, match="at most 4096 columns"):
        open_parquet(parquet(pl.DataFrame({f"c{n}": [0] for n in range(4097)})), where="t")


def test_parquet_is_known_by_its_first_bytes() -> None:
    assert is_parquet(b"PAR1\x15")
    assert not is_parquet(b"PAR2")
    assert not is_parquet(b"")


def test_limit_names_the_place_and_both_sizes() -> None:
    check_limit(5, 5, "rows", where="t")
    with pytest.raises(DecodeError, match=r"t: too large \(expected at most 5 rows; found 6 rows\)"):
        check_limit(6, 5, "rows", where="t")
