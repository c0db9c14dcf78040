"""Lines that differ in their numbers only give the same numbers together as one by one."""

from dataclasses import replace

import numpy as np
import pytest

from flopwitness.measure.sources.tegrastats_fields import find_fields
from flopwitness.measure.sources.tegrastats_layout import Layout, words_of

LINE = (
    b"05-14-2025 09:00:00 RAM 3100/7620MB (lfb 5x1MB) CPU [12%@1510,off,9%@729] EMC_FREQ 2%@2133 "
    b"GR3D_FREQ 97%@[624,0] soc2@47.3C gpu@49.5C VIN_SYS_5V0 5212mW/5100mW VDD_GPU -39mW/0mW"
)


def _layout(line: bytes = LINE) -> Layout:
    fields = find_fields(line)
    assert fields is not None
    layout = Layout.learn(line, fields)
    assert layout is not None
    return layout


def _one_by_one(line: bytes) -> list[float]:
    fields = find_fields(line)
    assert fields is not None
    return [float(line[start:stop]) for start, stop in fields.spans]


def test_a_layout_reads_the_line_that_it_was_learned_from() -> None:
    numbers = _layout().numbers([LINE])
    assert numbers is not None
    assert numbers.tolist() == [_one_by_one(LINE)]
    assert numbers.tolist()[0][-2:] == [5212, -39]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"RAM 3100/", b"RAM 999999999999999/"),
        (b"gpu@49.5C", b"gpu@50C"),
        (b"gpu@49.5C", b"gpu@49.123456789C"),
        (b"soc2@47.3C", b"soc2@5C"),
        (b"5x1MB", b"12x1MB"),
        (b"97%@[624,0]", b"0%@[1,1098]"),
        (b"5212mW", b"0mW"),
        (b"-39mW", b"-1000mW"),
        (b"09:00:00", b"23:59:59"),
        (b"[12%@1510", b"[100%@7"),
    ],
)
def test_other_numbers_are_read_like_one_by_one(old: bytes, new: bytes) -> None:
    line = LINE.replace(old, new)
    assert line != LINE
    assert words_of([line]) == words_of([LINE])
    numbers = _layout().numbers([LINE, line, LINE])
    assert numbers is not None
    assert numbers.tolist() == [_one_by_one(LINE), _one_by_one(line), _one_by_one(LINE)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"RAM 3100/", b"RAM /3100"),
        (b"RAM 3100/7620MB", b"RAM 3100/7620MB7"),
        (b"RAM 3100/", b"RAM 9999999999999999/"),
        (b"gpu@49.5C", b"gpu@.5C"),
        (b"gpu@49.5C", b"gpu@49.C"),
        (b"gpu@49.5C", b"gpu@C"),
        (b"soc2@", b"soc0@"),
        (b"soc2@", b"soc@"),
        (b"VIN_SYS_5V0", b"VIN_SYS_3V3"),
        (b"VIN_SYS_5V0", b"VIN_SYS_V0"),
        (b"VIN_SYS_5V0", b"VIN_SYS_5V00"),
        (b"05-14-2025", b"5-14-2025"),
        (b"05-14-2025", b"05-14-202"),
        (b"09:00:00", b"9:00:00"),
        (b"[12%@1510", b"[%@1510"),
        (b"5x1MB", b"5xMB"),
        (b"GR3D_FREQ", b"GR_FREQ"),
        (b"VDD_GPU -39", b"VDD_GPU 1-39"),
    ],
)
def test_lines_that_share_their_words_and_no_more_are_not_read_together(old: bytes, new: bytes) -> None:
    line = LINE.replace(old, new)
    assert line != LINE
    if words_of([line]) == words_of([LINE]):
        assert _layout().numbers([LINE, line, LINE]) is None
        assert _layout().numbers([line]) is None


def test_two_wrongs_in_neighbouring_lines_do_not_make_a_right() -> None:
    more, fewer = LINE.replace(b"MB (lfb", b"MB1 (lfb"), LINE.replace(b"CPU [12%", b"CPU [%")
    assert words_of([more, fewer]) == words_of([LINE, LINE])
    layout = _layout()
    assert layout.numbers([more, fewer]) is None
    assert layout.numbers([fewer, more]) is None
    end, front = LINE + b"7", b"7" + LINE.replace(b"05-14-2025", b"-14-2025")
    assert layout.numbers([end, front]) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"EMC_FREQ 2%@1600", b"EMC_FREQ 2%"),
        (b"CPU [5%@6,off]", b"CPU [5%@6,5%@6]"),
        (b"GPU@41C", b"BGPU@41C"),
        (b"VDD_IN 5/6", b"VDD_IN 5mW/6mW"),
        (b"FOO 1.5", b"FOO 15"),
        (b"gpu@1.5C", b"gpu@1.5.2C"),
        (b"VDD_IN 5/6", b"VDD_IN 5/-6"),
    ],
)
def test_other_words_are_another_layout(first: bytes, second: bytes) -> None:
    words = words_of([first, second])
    assert words[0] != words[1]


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"gpu@1.5C", b"gpu@28C"), (b"GPU@56.9C/66.6C", b"GPU@57C/7C"), (b"", b""), (b"5", b"")],
)
def test_a_temperature_may_lose_its_point(first: bytes, second: bytes) -> None:
    words = words_of([first, second])
    assert words[0] == words[1]


def test_a_line_without_wanted_numbers_has_a_layout_with_none() -> None:
    line = b"CPU [off,off] GR3D_FREQ 1%"
    numbers = _layout(line).numbers([line, line])
    assert numbers is not None
    assert numbers.shape == (2, 1)
    bare = b"cpu [off] EMC_FREQ "
    fields = find_fields(bare)
    assert fields is not None
    assert Layout.learn(bare, fields) is None


def test_a_number_inside_another_is_not_learned() -> None:
    fields = find_fields(LINE)
    assert fields is not None
    moved = replace(fields, spans=((25, 27), *fields.spans[1:]))
    assert Layout.learn(LINE, moved) is None


def test_decimals_are_the_doubles_next_to_what_is_written() -> None:
    layout = _layout()
    texts = [b"43.906", b"0.1", b"1234567.1234567", b"99.999", b"0.000000000001", b"7"]
    lines = [LINE.replace(b"gpu@49.5C", b"gpu@%bC" % text) for text in texts]
    numbers = layout.numbers(lines)
    assert numbers is not None
    place = _one_by_one(LINE).index(49.5)
    np.testing.assert_array_equal(numbers[:, place], [float(text) for text in texts])
