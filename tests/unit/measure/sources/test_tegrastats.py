"""Logs of tegrastats: samples in order, dates or numbers, and what a shell wrote in between."""

import json
from collections.abc import Sequence

import numpy as np
import pytest

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.verdict import Severity
from flopwitness.measure.samples import Channel, Scope, Series, Timing, Trace
from flopwitness.measure.sources import tegrastats
from flopwitness.measure.sources.source import ReadOptions, Source
from flopwitness.measure.sources.tegrastats import FORMATS, decode_tegrastats
from flopwitness.testing.decoders.jetson import decoders

(FORMAT,) = FORMATS
SECOND_NS = 10**9
SEEDS = decoders()[0].seeds


def _line(watts: int, *, stamp: str = "", load: str = "97%@[1110]", rest: str = "") -> str:
    return (
        f"{stamp}{' ' if stamp else ''}RAM {900 + watts}/3964MB (lfb 3x4MB) CPU [5%@6,off] "
        f"EMC_FREQ 2%@1600 GR3D_FREQ {load} GPU@41.5C VDD_IN {watts}000/1 VDD_SOC {watts}00/1{rest}"
    )


def _stamp(second: int) -> str:
    return f"05-14-2025 09:{second // 60:02}:{second % 60:02}"


def _decode(*lines: str, blocks: Sequence[bytes] = (), options: ReadOptions | None = None) -> Trace:
    data = "\n".join(lines).encode()
    return decode_tegrastats(
        Source(blocks=blocks or [data], where="t.log", device="orin", options=options or ReadOptions())
    )


def _series(trace: Trace, channel: Channel, *, part: str = "") -> Series:
    (series,) = (item for item in trace.series if item.channel is channel and item.part == part)
    return series


def _watts(trace: Trace) -> list[float]:
    watts: list[float] = _series(trace, Channel.POWER_W).value.tolist()
    return watts


def test_every_channel_of_a_line_has_its_unit_scope_and_part() -> None:
    trace = _decode(_line(5))
    found = {
        (item.channel, item.scope, item.part): (item.device, item.value.tolist(), item.averaged_s)
        for item in trace.series
    }
    assert found == {
        (channel, scope, part): ("orin", [value], 0.0)
        for channel, scope, part, value in (
            (Channel.MEMORY_USED_BYTE, Scope.MODULE, "", 905 * 2**20),
            (Channel.MEMORY_UTILISATION_PCT, Scope.MODULE, "", 2),
            (Channel.MEMORY_CLOCK_HZ, Scope.MODULE, "", 1.6e9),
            (Channel.UTILISATION_PCT, Scope.GPU, "", 97),
            (Channel.CLOCK_HZ, Scope.GPU, "gpc0", 1.11e9),
            (Channel.TEMPERATURE_C, Scope.GPU, "", 41.5),
            (Channel.POWER_W, Scope.MODULE, "", 5),
            (Channel.POWER_W, Scope.RAIL, "VDD_SOC", 0.5),
            (Channel.CPU_UTILISATION_PCT, Scope.CPU, "", 5),
            (Channel.CPU_CORES_ON, Scope.CPU, "", 1),
        )
    }


def test_samples_without_dates_are_numbered_at_the_usual_period() -> None:
    trace = _decode(_line(5), _line(6), _line(7))
    power = _series(trace, Channel.POWER_W)
    assert power.utc_ns.tolist() == [0, SECOND_NS, 2 * SECOND_NS]
    assert power.timing is Timing.COUNTED
    assert [finding.code for finding in trace.findings] == ["period-assumed"]


def test_the_user_may_name_the_period() -> None:
    trace = _decode(_line(5), _line(6), options=ReadOptions(period_s=0.25))
    power = _series(trace, Channel.POWER_W)
    assert (power.utc_ns.tolist(), power.timing) == ([0, SECOND_NS // 4], Timing.RELATIVE)


def test_dates_are_local_times_in_the_order_of_the_log() -> None:
    trace = _decode(*(_line(second, stamp=_stamp(second)) for second in (3, 5, 4)))
    power = _series(trace, Channel.POWER_W)
    assert np.diff(power.utc_ns).tolist() == [2 * SECOND_NS, -SECOND_NS]
    assert str(np.datetime64(int(power.utc_ns[0]), "ns")) == "2025-05-14T09:00:03.000000000"
    assert (power.timing, power.value.tolist()) == (Timing.DATED, [3, 5, 4])
    assert [finding.code for finding in trace.findings] == ["zone-assumed"]


def test_iso_dates_with_fractions_are_read_too() -> None:
    trace = _decode(_line(1, stamp="2025-05-14T09:00:00.25"), _line(2, stamp="2025-05-14T09:00:00.750001"))
    assert np.diff(_series(trace, Channel.POWER_W).utc_ns).tolist() == [500_001_000]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_lines_may_end_as_on_windows_and_the_last_not_at_all(ending: str) -> None:
    data = ending.join(_line(watts) for watts in (1, 2, 3)).encode()
    assert _watts(_decode(blocks=[data])) == _watts(_decode(blocks=[data + ending.encode()])) == [1, 2, 3]


def test_utf_16_with_its_mark_is_text_like_any_other() -> None:
    data = b"\xff\xfe" + f"{_line(1)}\n{_line(2)}\n".encode("utf-16-le")
    assert FORMAT.is_it(data, "t.log")
    assert _watts(_decode(blocks=[data])) == [1, 2]


def test_what_a_shell_writes_is_counted_and_located_and_blank_lines_are_not() -> None:
    trace = _decode("$ tegrastats", "", _line(1), "Wed May 14 09:00:00 UTC 2025", "  ", _line(2), "^C")
    assert _watts(trace) == [1, 2]
    assert _series(trace, Channel.POWER_W).utc_ns.tolist() == [0, SECOND_NS]
    assert [skipped.where for skipped in trace.skipped] == ["t.log:1", "t.log:4", "t.log:7"]
    assert trace.skipped[0].found == "$ tegrastats"
    assert trace.n_skipped == 3


def test_a_prompt_in_front_of_the_first_sample_does_not_cost_it() -> None:
    trace = _decode("[sudo] password for u: " + _line(1), _line(2))
    assert (_watts(trace), trace.n_skipped) == ([1, 2], 0)


@pytest.mark.parametrize("n_shell", [1, 3])
def test_a_date_between_all_samples_costs_none_of_them(n_shell: int) -> None:
    lines = [
        text for watts in range(50) for text in (*["Wed May 14 09:00:00 UTC 2025"] * n_shell, _line(watts))
    ]
    trace = _decode(*lines)
    assert _watts(trace) == list(range(50))
    assert trace.n_skipped == 50 * n_shell
    assert len(trace.skipped) == 20


def test_fields_that_come_and_go_are_missing_where_they_are_not() -> None:
    trace = _decode(
        _line(1, rest=" VDD_NEW 10/1"), _line(2), _line(3, load="@[980,975]"), _line(4, load="0%"), _line(5)
    )
    expected = {
        (Channel.UTILISATION_PCT, ""): [97, 97, np.nan, 0, 97],
        (Channel.CLOCK_HZ, "gpc0"): [1.11e9, 1.11e9, 9.8e8, np.nan, 1.11e9],
        (Channel.CLOCK_HZ, "gpc1"): [np.nan, np.nan, 9.75e8, np.nan, np.nan],
        (Channel.POWER_W, "VDD_NEW"): [0.01, np.nan, np.nan, np.nan, np.nan],
        (Channel.POWER_W, ""): [1, 2, 3, 4, 5],
    }
    for (channel, part), values in expected.items():
        np.testing.assert_array_equal(_series(trace, channel, part=part).value, values)
    assert {len(item) for item in trace.series} == {5}


def test_a_torn_line_gives_what_is_whole_and_is_told() -> None:
    torn = _line(7)[: _line(7).index("@[1110") - 3] + "9"
    trace = _decode(_line(5), _line(6), torn)
    np.testing.assert_array_equal(_watts(trace), [5, 6, np.nan])
    np.testing.assert_array_equal(_series(trace, Channel.UTILISATION_PCT).value, [97, 97, np.nan])
    assert _series(trace, Channel.MEMORY_USED_BYTE).value[-1] == 907 * 2**20
    assert [(skipped.where, skipped.expected) for skipped in trace.skipped] == [
        ("t.log:3", "a whole line of tegrastats")
    ]


def test_a_clock_at_the_end_of_a_torn_line_is_no_clock() -> None:
    torn = _line(7)[: _line(7).index("@1600") + 3]
    trace = _decode(_line(5), torn)
    np.testing.assert_array_equal(_series(trace, Channel.MEMORY_CLOCK_HZ).value, [1.6e9, np.nan])
    np.testing.assert_array_equal(_series(trace, Channel.MEMORY_UTILISATION_PCT).value, [2, 2])
    assert trace.n_skipped == 1


def test_lines_that_stop_at_the_same_word_again_are_not_torn() -> None:
    short = _line(7).partition(" VDD_IN")[0]
    trace = _decode(_line(5), short, short, short)
    assert trace.n_skipped == 1
    np.testing.assert_array_equal(_watts(trace), [5, np.nan, np.nan, np.nan])


def test_two_samples_in_one_line_are_none() -> None:
    trace = _decode(_line(5), _line(6)[:60] + _line(7), _line(8))
    assert _watts(trace) == [5, 8]
    assert [skipped.where for skipped in trace.skipped] == ["t.log:2"]


def test_the_date_of_a_torn_line_is_not_that_of_the_sample_that_runs_into_it() -> None:
    lines = [_line(second, stamp=_stamp(second)) for second in (1, 2, 3, 4)]
    trace = _decode(lines[0], lines[1][:25] + lines[2], lines[3])
    assert _watts(trace) == [1, 4]
    assert [skipped.where for skipped in trace.skipped] == ["t.log:2"]


def test_in_a_dated_log_samples_without_a_date_are_skipped() -> None:
    trace = _decode(
        _line(1),
        _line(2, stamp=_stamp(2)),
        _line(3, stamp=_stamp(3)),
        _line(4, stamp="13-14-2025 09:00:00"),
        _line(5, stamp="5-14-2025 09:00:00"),
        _line(6, stamp=_stamp(6)),
    )
    assert _watts(trace) == [2, 3, 6]
    assert [skipped.where for skipped in trace.skipped] == ["t.log:1", "t.log:4", "t.log:5"]
    assert {skipped.expected for skipped in trace.skipped} == {"a date in front, as other lines have"}


def test_in_a_log_of_few_dates_all_samples_are_numbered_and_the_dates_told() -> None:
    trace = _decode(_line(1, stamp=_stamp(1)), _line(2), _line(3), _line(4), _line(5, stamp=_stamp(9)))
    assert _watts(trace) == [1, 2, 3, 4, 5]
    assert _series(trace, Channel.POWER_W).utc_ns.tolist() == [n * SECOND_NS for n in range(5)]
    (finding,) = (finding for finding in trace.findings if finding.code == "dates-unused")
    assert (finding.count, finding.severity) == (2, Severity.WARNING)


@pytest.mark.parametrize("is_dated", [True, False])
def test_behind_much_chatter_the_first_sample_decides_about_dates(is_dated: bool) -> None:
    chatter = ["x" * 99] * 700
    stamp = _stamp(1) if is_dated else ""
    trace = _decode(*chatter, _line(1, stamp=stamp), _line(2, stamp=stamp), _line(3))
    assert _watts(trace) == ([1, 2] if is_dated else [1, 2, 3])
    assert trace.n_skipped == 700 + is_dated


def test_memory_traffic_that_was_not_measured_is_told() -> None:
    trace = _decode(*(_line(n).replace("EMC_FREQ 2%@1600", "EMC_FREQ 0%") for n in range(3)), _line(4))
    (finding,) = (finding for finding in trace.findings if finding.code == "memory-traffic-unread")
    assert finding.count == 3
    assert "on 3 of 4 lines" in finding.message
    np.testing.assert_array_equal(
        _series(trace, Channel.MEMORY_UTILISATION_PCT).value, [np.nan, np.nan, np.nan, 2]
    )


def test_impossible_values_are_left_out_and_told() -> None:
    trace = _decode(_line(1), _line(2, load="101%"), _line(3, rest=" VDD_GPU -392/1"))
    np.testing.assert_array_equal(_series(trace, Channel.UTILISATION_PCT).value, [97, np.nan, 97])
    assert np.isnan(_series(trace, Channel.POWER_W, part="VDD_GPU").value).all()
    assert [finding.count for finding in trace.findings if finding.code == "values-impossible"] == [2]


def test_a_log_of_more_layouts_than_are_kept_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tegrastats, "_MOST_LAYOUTS", 3)
    lines = [_line(n, rest=f" WORD_{'ABCDEFGHIJ'[n]} 1") for n in range(10)] * 3
    trace = _decode(*lines)
    assert _watts(trace) == list(range(10)) * 3
    assert trace.n_skipped == 0


def test_numbers_too_long_to_read_together_are_read_one_by_one() -> None:
    trace = _decode(_line(1), _line(2).replace("VDD_IN 2000/1", f"VDD_IN {'0' * 30}2000/1"), _line(3))
    assert _watts(trace) == [1, 2, 3]


def test_a_line_longer_than_a_line_may_be_is_skipped() -> None:
    trace = _decode(_line(1), _line(2) + " x" * (1 << 20), _line(3))
    assert (_watts(trace), trace.n_skipped) == ([1, 3], 1)


def test_words_of_a_sample_without_its_numbers_are_no_sample() -> None:
    bare = _line(2).translate({ord(digit): None for digit in "0123456789"})
    trace = _decode(_line(1), bare, _line(3))
    assert (_watts(trace), [skipped.where for skipped in trace.skipped]) == ([1, 3], ["t.log:2"])


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
@pytest.mark.parametrize("size_bytes", [1, 7, 100, 1_000])
def test_blocks_may_end_anywhere(seed: bytes, size_bytes: int) -> None:
    blocks = [seed[start : start + size_bytes] for start in range(0, len(seed), size_bytes)]
    whole, cut = _decode(blocks=[seed]), _decode(blocks=blocks)
    assert (whole.skipped, whole.n_skipped, whole.findings) == (cut.skipped, cut.n_skipped, cut.findings)
    assert len(whole.series) == len(cut.series)
    for one, other in zip(whole.series, cut.series, strict=True):
        assert (one.channel, one.scope, one.part) == (other.channel, other.scope, other.part)
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_lines_read_together_and_one_by_one_are_the_same(
    seed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = _decode(blocks=[seed])
    monkeypatch.setattr(tegrastats, "_MOST_LAYOUTS", 0)
    alone = _decode(blocks=[seed])
    assert len(together.series) == len(alone.series)
    for one, other in zip(together.series, alone.series, strict=True):
        assert (one.channel, one.scope, one.part) == (other.channel, other.scope, other.part)
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([], ""),
        (["", "  "], ""),
        (["$ tegrastats", "bash: tegrastats: command not found"], "$ tegrastats"),
        (["RAM 5/6MB"], "RAM 5/6MB"),
        (["GR3D_FREQ"], "GR3D_FREQ"),
        ([_line(1)[:20]], _line(1)[:20]),
    ],
)
def test_a_log_without_a_sample_is_refused_with_its_place(lines: list[str], found: str) -> None:
    with pytest.raises(DecodeError) as caught:
        _decode(*lines)
    assert (caught.value.where, caught.value.found) == ("t.log:1", found)
    assert "GR3D_FREQ" in caught.value.expected


def test_a_log_of_samples_that_all_lack_a_valid_date_is_refused() -> None:
    with pytest.raises(DecodeError):
        _decode(_line(1, stamp="99-99-2025 09:00:00"))


def test_more_rails_than_a_board_has_are_refused() -> None:
    with pytest.raises(DecodeError, match="too many rails"):
        _decode(_line(1, rest="".join(f" RAIL_{n} 1/1" for n in range(200))))


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_every_generation_is_known_by_its_content(seed: bytes) -> None:
    assert FORMAT.is_it(seed, "")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"timestamp, index, power.draw [W]\n2025/05/14 09:00:00.000, 0, 61.5 W\n",
        b"# gpu pwr gtemp mtemp sm mem enc dec\n    0 61 45 - 97 12 0 0\n",
        json.dumps({"power_mw": [[0, 1]], "t_start": 5}).encode(),
        b"time,uptime,CPU1,GPU,Power TOT\n",
        b"PROGRAM 5/6MB (lfb 1x4MB)\n",
        b"RAM 5/6 (lfb 1x4MB)\n",
        b"GR3D_FREQ x%\n",
        bytes(range(256)) * 100,
        b"\xff\xfe\x00\xd8" * 99,
    ],
)
def test_other_files_are_not_taken_for_it(head: bytes) -> None:
    assert not FORMAT.is_it(head, "tegrastats.log")
