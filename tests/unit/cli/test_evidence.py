"""Logs or a table of runs; and of what is neither, the reason that helps."""

import gzip
import io
from pathlib import Path

import polars as pl
import pytest

from flopwitness.cli import evidence
from flopwitness.cli.evidence import read_logs_or_table
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.run_table import RunTable
from flopwitness.measure.trace_file import encode_trace

TABLE = "model,chip,count,duration_s\na,h100-sxm,8,60\n"


def _parquet(**columns: list[object]) -> bytes:
    target = io.BytesIO()
    pl.DataFrame(columns).write_parquet(target)
    return target.getvalue()


def test_a_table_and_logs_are_told_apart(run_folder: Path, table_file: Path, tmp_path: Path) -> None:
    assert isinstance(read_logs_or_table([table_file], None, None), RunTable)
    assert isinstance(read_logs_or_table([table_file], "run-table", None), RunTable)
    trace = read_logs_or_table([run_folder], None, None)
    assert isinstance(trace, Trace)
    kept = tmp_path / "kept.parquet"
    kept.write_bytes(encode_trace(trace))
    assert isinstance(read_logs_or_table([kept], None, None), Trace)
    table = tmp_path / "runs.parquet"
    table.write_bytes(_parquet(chip=["h100-sxm"], count=[8], duration_s=[60.0]))
    assert isinstance(read_logs_or_table([table], None, None), RunTable)


def test_a_kept_trace_is_not_looked_at_as_a_table(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = read_logs_or_table([run_folder], None, None)
    assert isinstance(trace, Trace)
    kept = tmp_path / "kept.parquet"
    kept.write_bytes(encode_trace(trace))
    looked: list[str] = []
    monkeypatch.setattr(evidence, "check_run_table", lambda head, where: looked.append(where))
    assert isinstance(read_logs_or_table([kept], None, None), Trace)
    assert looked == []
    read_logs_or_table([next(path for path in run_folder.iterdir() if path.is_file())], None, None)
    assert len(looked) == 1


@pytest.mark.parametrize(
    ("name", "text", "where", "words"),
    [
        ("a.csv", "chip,chip,duration_s\nh100,x,3\n", ":1", "stands twice"),
        ("a.csv", "duration_s,duration_s\n1,1\n", ":1", "stands twice"),
        ("a.csv", "model;chip;count;duration\na;h100;8;3\n", ":1, column duration", "a unit of time"),
        ("a.csv", "model,energy (Q)\na,3\n", ":1, column energy (Q)", "a unit of energy"),
        ("a.tsv", "model\tchip\tcount\na\th100\t8\n", ":1", "without time or energy"),
        ("a.txt", "rank,run_id,duration_s,energy_kwh\n1,a,2,3\n", ":1", "single readings"),
        ("a.csv", "run_id,rank,gpu_count,duration_s\na,0,8,3\n", ":1", "a column rank"),
    ],
)
def test_nearly_a_table_is_told_its_own_reason(
    tmp_path: Path, run_folder: Path, name: str, text: str, where: str, words: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    for logs in ([path], [path, run_folder], [run_folder, path]):
        with pytest.raises(DecodeError) as caught:
            read_logs_or_table(logs, None, None)
        assert caught.value.where == f"{path}{where}"
        assert words in str(caught.value)
        assert "no known log" not in str(caught.value)


def test_what_is_neither_is_told_every_known_format(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    for content in (b"", b"Total Power Usage: 5 kWh\n", b"\x00\xff" * 9, b"a,b\n1,2\n", b"duration_s\n1\n"):
        path.write_bytes(content)
        with pytest.raises(DecodeError, match=r"no known log .*mlperf-power.*, run-table"):
            read_logs_or_table([path], None, None)


def test_of_an_archive_no_table_is_promised(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode()))
    with pytest.raises(DecodeError) as caught:
        read_logs_or_table([path], None, None)
    assert "run-table" not in str(caught.value)


def test_a_foreign_parquet_file_is_told_both_possibilities(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    whole = _parquet(x=[1, 2], y=[3, 4])
    for content in (whole, whole[:100], b"PAR1"):
        path.write_bytes(content)
        with pytest.raises(DecodeError, match=r", or a table of runs"):
            read_logs_or_table([path], None, None)
    path.write_bytes(_parquet(chip=["h100"], count=[8], duration=[3.0]))
    with pytest.raises(DecodeError, match=r"x.parquet:1, column duration: .*a unit of time"):
        read_logs_or_table([path], None, None)


def test_a_named_format_is_taken_at_its_word(tmp_path: Path, table_file: Path, run_folder: Path) -> None:
    for logs in ([run_folder], [run_folder / "result.txt"], [table_file, run_folder]):
        with pytest.raises(InputError):
            read_logs_or_table(logs, "run-table", None)
    with pytest.raises(DecodeError) as caught:
        read_logs_or_table([table_file], "mlperf-power", None)
    assert "run-table" not in str(caught.value)
    only_chips = tmp_path / "chips.csv"
    only_chips.write_text("chip,count\nh100-sxm,8\n")
    assert isinstance(read_logs_or_table([only_chips], "run-table", None), RunTable)


def test_a_table_stands_alone(table_file: Path, run_folder: Path) -> None:
    with pytest.raises(InputError, match="stands alone"):
        read_logs_or_table([run_folder, table_file], None, None)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("missing", "a" * 300):
        with pytest.raises(InputError):
            read_logs_or_table([tmp_path / name], None, None)
