"""From what a user names to one trace."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.measure.samples import Channel, Declaration, RunWindow, Scope, Series, Skipped, Trace
from flopwitness.measure.sources.format_names import FORMAT_NAMES
from flopwitness.measure.sources.formats import FORMATS, guess_format, merge_traces, read_evidence
from flopwitness.measure.sources.source import ColumnMap, ReadOptions


def _line(key: str, value: object = None, *, at_s: float = 0, metadata: object = "") -> str:
    record = {"time_ms": round(at_s * 1_000), "key": key, "value": value, "metadata": metadata}
    return f":::MLLOG {json.dumps(record)}\n"


def _power(*power_w: float) -> bytes:
    lines = (_line("power_reading", value, at_s=number) for number, value in enumerate(power_w))
    return "".join(lines).encode()


RESULT = (
    _line("submission_benchmark", "gpt3") + _line("run_start", at_s=1) + _line("run_stop", at_s=9)
).encode()
SYSTEM = json.dumps({"number_of_nodes": "2", "accelerators_per_node": "8", "sw_notes": ""}).encode()
SWITCH = _line("interconnect_power_est", 900, metadata={"switch_id": "sw_01"}).encode()


def _put(root: Path, **files: bytes) -> Path:
    root.mkdir(exist_ok=True)
    for name, data in files.items():
        (root / f"{name}.txt").write_bytes(data)
    return root


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (_power(1), "mlperf-power"),
        (SWITCH, "mlperf-power"),
        (_line("power_measurement_start").encode(), "mlperf-power"),
        (RESULT, "mlperf-result"),
        (b"+ noise\n" * 1_000 + RESULT, "mlperf-result"),
        (SYSTEM, "mlperf-system"),
        (b"  \n" + SYSTEM, "mlperf-system"),
        (b"", None),
        (b"{}", None),
        (b"number_of_nodes: 2", None),
        (b"Total Power Usage: 415.22 kWh\r\n", None),
        (b"\x00\xff" * 100, None),
        (b"timestamp, power.draw [W]\n", "nvidia-smi-csv"),
        (b"model,chip,duration_s,energy_j\n", None),
    ],
)
def test_a_format_is_guessed_from_content(head: bytes, name: str | None) -> None:
    assert guess_format(head, "node_1.txt") == name


def test_only_the_head_is_looked_at() -> None:
    assert guess_format(b"a" * (4 << 20) + RESULT, "x") is None


def test_format_names_are_unique() -> None:
    assert len({known.name for known in FORMATS}) == len(FORMATS)
    assert tuple(known.name for known in FORMATS) == FORMAT_NAMES


def test_logs_of_one_run_become_one_trace_in_any_order(tmp_path: Path) -> None:
    root = _put(
        tmp_path / "run", node_1=_power(1, 2), node_10=_power(3), node_2=_power(4), r=RESULT, sw=SWITCH
    )
    (tmp_path / "system.json").write_bytes(SYSTEM)
    paths = [root, tmp_path / "system.json"]
    trace = read_evidence(paths)
    assert [(series.device, series.scope) for series in trace.series] == [
        ("node_1", Scope.NODE),
        ("node_2", Scope.NODE),
        ("node_10", Scope.NODE),
        ("sw_01", Scope.SWITCH),
    ]
    assert trace.windows == (RunWindow(start_utc_ns=10**9, stop_utc_ns=9 * 10**9),)
    assert trace.declaration == Declaration(benchmark="gpt3", nodes=2, chips=16)
    assert trace.n_skipped == 0
    swapped = read_evidence(paths[::-1])
    assert (swapped.windows, swapped.declaration) == (trace.windows, trace.declaration)


def test_every_log_has_its_provenance(tmp_path: Path) -> None:
    root = _put(tmp_path / "run", node_1=_power(1), node_2=_power(1), total=b"Total\n")
    provenance = read_evidence([root]).provenance
    assert [one.path for one in provenance] == [f"{root}/node_1.txt", f"{root}/node_2.txt"]
    assert {one.format for one in provenance} == {"mlperf-power"}
    assert provenance[0].digest == provenance[1].digest == digest_bytes(_power(1))
    assert provenance[0].size_bytes == len(_power(1))


def test_a_file_that_the_user_names_must_be_a_known_log(tmp_path: Path) -> None:
    path = tmp_path / "total_power.txt"
    path.write_bytes(b"Total Power Usage: 415.22 kWh\r\n")
    with pytest.raises(DecodeError) as caught:
        read_evidence([path])
    assert caught.value.where == f"{path}:1"
    assert "mlperf-power, mlperf-result" in caught.value.expected
    assert caught.value.found == "Total Power Usage: 415.22 kWh\\r\\n"
    assert "\n" not in str(caught.value)


def test_an_empty_file_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_bytes(b"")
    with pytest.raises(DecodeError, match="found nothing"):
        read_evidence([tmp_path / "n.txt"])


def test_a_file_beside_the_logs_is_skipped_and_counted(tmp_path: Path) -> None:
    root = _put(tmp_path / "run", node_1=_power(1), total_power=b"Total Power Usage: 415.22 kWh\r\n")
    trace = read_evidence([root])
    assert trace.n_skipped == 1
    assert trace.skipped[0].where == f"{root}/total_power.txt:1"
    assert len(trace.provenance) == 1


@pytest.mark.parametrize("files", [{}, {"readme": b"hello"}, {"a": b"", "b": b"\x00"}])
def test_a_folder_in_which_nothing_is_a_log_is_an_error(tmp_path: Path, files: dict[str, bytes]) -> None:
    root = _put(tmp_path / "run", **files)
    with pytest.raises(DecodeError, match=f"holds no known log.*{len(files)} other files") as caught:
        read_evidence([root])
    assert caught.value.where == str(root)


def test_an_archive_in_which_nothing_is_a_log_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "n.gz").write_bytes(gzip.compress(b"hello"))
    with zipfile.ZipFile(tmp_path / "n.zip", "w") as archive:
        archive.writestr("readme", "hello")
    for name in ("n.gz", "n.zip"):
        with pytest.raises(DecodeError, match="no known log"):
            read_evidence([tmp_path / name])


NAN = b':::MLLOG {"time_ms": 1000, "key": "power_reading", "value": NaN}\n' * 3
TOO_HIGH = NAN.replace(b"NaN", b"1e999")


@pytest.mark.parametrize("data", [NAN, TOO_HIGH, _line("power_measurement_start").encode()])
def test_one_node_without_a_reading_does_not_hide_the_others(tmp_path: Path, data: bytes) -> None:
    root = _put(tmp_path / "run", node_1=_power(1), node_2=data)
    trace = read_evidence([root])
    assert [series.device for series in trace.series] == ["node_1"]
    assert (len(trace.provenance), trace.n_skipped) == (1, 1)
    assert trace.skipped[0].where == f"{root}/node_2.txt:1"
    assert "power_reading" in trace.skipped[0].expected


@pytest.mark.parametrize(
    ("data", "found"), [(NAN, "finite value, not NaN"), (TOO_HIGH, "finite value, not 1e999")]
)
def test_the_users_own_file_without_a_reading_is_refused_with_the_reason(
    tmp_path: Path, data: bytes, found: str
) -> None:
    root = _put(tmp_path / "run", node_1=_power(1), node_2=data)
    with pytest.raises(DecodeError, match=r"node_2\.txt:1: a power log without a reading") as caught:
        read_evidence([root / "node_1.txt", root / "node_2.txt"])
    assert caught.value.found.endswith(f"should hold a {found}")


@pytest.mark.parametrize(
    "data",
    [SYSTEM.replace(b'"2"', b'"two"'), _line("cache_clear").encode(), b"PAR1 and no more"],
)
def test_another_log_that_cannot_be_read_is_an_error_even_in_a_folder(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"other\.txt"):
        read_evidence([_put(tmp_path / "run", node_1=_power(1), other=data)])


@pytest.mark.parametrize("paths", [[], [Path("none.txt")]])
def test_nothing_to_read_is_the_callers_error(paths: list[Path]) -> None:
    with pytest.raises(InputError):
        read_evidence(paths)


@pytest.mark.parametrize("name", ["", "mlperf", "MLPERF-POWER"])
def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="mlperf-power, mlperf-result"):
        read_evidence([_put(tmp_path / "run", n=_power(1))], format=name)


def test_a_format_that_the_user_names_is_not_guessed(tmp_path: Path) -> None:
    root = _put(tmp_path / "run", n=_power(1), r=RESULT)
    with pytest.raises(DecodeError, match="without a reading"):
        read_evidence([root / "r.txt"], format="mlperf-power")
    trace = read_evidence([root], format="mlperf-power")
    assert (len(trace.series), trace.n_skipped, trace.windows) == (1, 1, ())


def test_both_sides_of_the_supply_are_read_apart_under_one_name(tmp_path: Path) -> None:
    _put(tmp_path / "power_ac", node_1=_power(100))
    _put(tmp_path / "power_dc", node_1=_power(90))
    series = read_evidence([tmp_path]).series
    assert [(one.device, one.scope) for one in series] == [
        ("node_1", Scope.NODE_AC),
        ("node_1", Scope.NODE_DC),
    ]


@pytest.mark.parametrize(
    ("folder", "scope", "expected"),
    [
        ("power_ac", None, Scope.NODE_AC),
        ("power_ac", Scope.NODE_DC, Scope.NODE_AC),
        ("power", None, Scope.NODE),
        ("power", Scope.NODE_DC, Scope.NODE_DC),
        ("run", Scope.MODULE, Scope.MODULE),
    ],
)
def test_a_folder_that_names_the_side_counts_before_the_argument(
    tmp_path: Path, folder: str, scope: Scope | None, expected: Scope
) -> None:
    root = _put(tmp_path / folder, node_1=_power(1))
    assert read_evidence([root / "node_1.txt"], options=ReadOptions(scope=scope)).series[0].scope == expected


def test_nodes_that_share_a_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for rack in ("rack_1", "rack_2"):
        (tmp_path / rack).mkdir()
        _put(tmp_path / rack / "logs", node_1=_power(1), **{f"only_{rack}": _power(2)})
    devices = [series.device for series in read_evidence([tmp_path / "rack_1", tmp_path / "rack_2"]).series]
    assert devices == ["rack_1/logs/node_1", "only_rack_1", "rack_2/logs/node_1", "only_rack_2"]


def test_one_file_named_twice_gives_two_devices_and_one_digest(tmp_path: Path) -> None:
    path = _put(tmp_path / "run", node_1=_power(1)) / "node_1.txt"
    trace = read_evidence([path, path])
    assert [series.device for series in trace.series] == ["node_1#1", "node_1#2"]
    assert len({one.digest for one in trace.provenance}) == 1


def test_members_of_an_archive_come_in_natural_order(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("node_1.txt", "node_10.txt", "node_2.txt"):
            member = tarfile.TarInfo(name)
            member.size = len(_power(1))
            archive.addfile(member, io.BytesIO(_power(1)))
    (tmp_path / "nodes.tar.gz").write_bytes(gzip.compress(file.getvalue()))
    trace = read_evidence([tmp_path / "nodes.tar.gz"])
    assert [series.device for series in trace.series] == ["node_1", "node_2", "node_10"]
    assert trace.provenance[1].path == f"{tmp_path}/nodes.tar.gz!node_2.txt"


def test_a_device_loses_an_ending_but_not_what_stands_before_it(tmp_path: Path) -> None:
    for name in ("10.0.0.17.log", "node"):
        (tmp_path / name).write_bytes(_power(1))
    assert [series.device for series in read_evidence([tmp_path]).series] == ["node", "10.0.0.17"]


def _series(device: str) -> Series:
    return Series(
        device=device,
        channel=Channel.POWER_W,
        scope=Scope.NODE,
        utc_ns=np.zeros(1, dtype=np.int64),
        value=np.ones(1),
    )


def test_merging_keeps_order_and_counts() -> None:
    skipped = tuple(Skipped(where=f"a:{line}", expected="x", found="y") for line in range(20))
    first = Trace(series=(_series("a"),), skipped=skipped, n_skipped=500)
    second = Trace(series=(_series("b"),), skipped=skipped[:1], n_skipped=1)
    merged = merge_traces([first, second])
    assert [series.device for series in merged.series] == ["a", "b"]
    assert (len(merged.skipped), merged.n_skipped) == (20, 501)
    assert merge_traces([]) == Trace()


def test_declarations_complete_each_other_and_the_larger_number_counts() -> None:
    first = Trace(declaration=Declaration(benchmark="gpt3", nodes=8, chip_name="H100-SXM5-80GB"))
    second = Trace(declaration=Declaration(platform="p", nodes=64, chips=512, chip_name="H100 80GB"))
    third = Trace(declaration=Declaration(nodes=8, benchmark="bert", chip_name="H100 80GB"))
    merged = merge_traces([first, Trace(), second, third])
    assert merged.declaration == Declaration(
        benchmark="gpt3",
        platform="p",
        nodes=64,
        chips=512,
        chip_name="H100-SXM5-80GB",
        other_chip_names=("H100 80GB",),
        differing=("8 and 64 nodes", "the benchmarks gpt3 and bert", "64 and 8 nodes"),
    )
    assert merged.n_skipped == 0
    assert merge_traces([merged]) == merged


def test_windows_of_one_run_become_one() -> None:
    windows = [RunWindow(start_utc_ns=start, stop_utc_ns=10**12) for start in (5, 0)]
    merged = merge_traces([Trace(windows=(window,)) for window in windows])
    assert merged.windows == (RunWindow(start_utc_ns=0, stop_utc_ns=10**12),)


def test_extents_of_several_logs_become_one(tmp_path: Path) -> None:
    late = (_line("run_start", at_s=2) + _line("eval_stop", at_s=77)).encode()
    trace = read_evidence([_put(tmp_path / "run", node_1=_power(1), r=RESULT, late=late)])
    assert trace.extent == RunWindow(start_utc_ns=0, stop_utc_ns=77 * 10**9)


@pytest.mark.parametrize("start", ["", _line("run_start", at_s=1)])
def test_a_file_of_readings_keeps_the_time_of_its_other_events(tmp_path: Path, start: str) -> None:
    """Without `run_start` as well: no event may be lost because of the company that it keeps."""
    data = _power(1) + (start + _line("run_stop", at_s=5) + _line("eval_stop", at_s=90)).encode()
    extent = read_evidence([_put(tmp_path / "run", both=data) / "both.txt"]).extent
    assert extent is not None
    assert extent.stop_utc_ns == 90 * 10**9


def test_a_second_stop_beside_readings_is_a_mark(tmp_path: Path) -> None:
    stops = _line("run_stop", at_s=5) + _line("run_stop", at_s=500)
    data = _power(1) + (_line("run_start", at_s=1) + stops).encode()
    trace = read_evidence([_put(tmp_path / "run", both=data) / "both.txt"])
    assert [mark.name for mark in trace.marks] == ["run_stop"]
    assert trace.windows == (RunWindow(start_utc_ns=10**9, stop_utc_ns=500 * 10**9),)


def test_the_name_of_a_run_in_no_event_does_not_hide_the_readings(tmp_path: Path) -> None:
    data = _power(1, 2) + b'# the "run_start" was lost\n'
    trace = read_evidence([_put(tmp_path / "run", both=data) / "both.txt"])
    assert (len(trace.series), trace.windows) == (1, ())


def test_a_file_that_holds_readings_and_the_run_gives_both(tmp_path: Path) -> None:
    both = _put(tmp_path / "run", both=RESULT + b"\n" + _power(1))
    trace = read_evidence([both / "both.txt"])
    assert len(trace.series) == 1
    assert len(trace.windows) == 1
    assert trace.windows == read_evidence([_put(tmp_path / "other", r=RESULT) / "r.txt"]).windows


def test_a_map_of_columns_that_nothing_needs_is_told(tmp_path: Path) -> None:
    smi = tmp_path / "smi.csv"
    smi.write_text("timestamp, index, power.draw [W]\n2026/01/31 09:00:00.000, 0, 300.00 W\n" * 2)
    table = tmp_path / "t.csv"
    table.write_text("when,draw\n2026-01-31 09:00:00,300\n2026-01-31 09:00:01,300\n")
    columns = ColumnMap(time="when", channels=(("draw", "power_w"),))
    options = ReadOptions(columns=columns)
    assert "columns-unused" in {item.code for item in read_evidence([smi], options=options).findings}
    assert "columns-unused" not in {item.code for item in read_evidence([table], options=options).findings}
