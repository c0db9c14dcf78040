"""Fields of one line of tegrastats, known by their words."""

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.jetson import Quantity
from flopwitness.measure.sources.tegrastats_fields import Fields, find_fields

Values = dict[tuple[str, str], float]


def _values(line: bytes) -> Values:
    """The readings of a line, by channel and part; NaN where it names something and gives no number."""
    fields = find_fields(line)
    assert fields is not None
    numbers = np.array([[float(line[start:stop]) for start, stop in fields.spans]])
    return {
        (what.channel.value, what.part): float(value[0])
        for what, value in fields.shape.settle(numbers).items()
    }


def _of(rest: str) -> Values:
    """The readings of a line, without those of the memory that makes it one."""
    values = _values(f"RAM 1/2MB (lfb 3x4MB) CPU [0%] {rest}".encode())
    ours = {("memory_used_byte", ""), ("cpu_utilisation_pct", ""), ("cpu_cores_on", "")}
    return {key: value for key, value in values.items() if key not in ours}


def _same(values: Values, expected: Values) -> None:
    assert set(values) == set(expected)
    for key, value in expected.items():
        np.testing.assert_equal(values[key], value)


NONE = float("nan")
LOAD, CLOCK, CLOCK_1 = ("utilisation_pct", ""), ("clock_hz", "gpc0"), ("clock_hz", "gpc1")
EMC, EMC_CLOCK = ("memory_utilisation_pct", ""), ("memory_clock_hz", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GR3D_FREQ 0%", {LOAD: 0}),
        ("GR3D_FREQ 61%@1098", {LOAD: 61, CLOCK: 1.098e9}),
        ("GR3D_FREQ 76%@[655]", {LOAD: 76, CLOCK: 6.55e8}),
        ("GR3D_FREQ 97%@[1110,1107]", {LOAD: 97, CLOCK: 1.11e9, CLOCK_1: 1.107e9}),
        ("GR3D_FREQ @[980,975]", {LOAD: NONE, CLOCK: 9.8e8, CLOCK_1: 9.75e8}),
        ("GR3D_FREQ @0", {LOAD: NONE, CLOCK: 0}),
        ("GR3D 39%@76", {LOAD: 39, CLOCK: 7.6e7}),
        ("GR3D_FREQ 5% GR3D_FREQ 6%", {LOAD: 5}),
        ("GR3D_FREQ @5 GR3D_FREQ 6%", {LOAD: 6, CLOCK: 5e6}),
    ],
)
def test_every_spelling_of_the_gpus_load(text: str, expected: Values) -> None:
    _same(_of(text), expected)


@pytest.mark.parametrize(
    "text",
    [
        "GR3D_FREQ 5",
        "GR3D_FREQ 97%@[1110,1107",
        "GR3D_FREQ 97%@[1110,]",
        "GR3D_FREQ 97%@",
        "GR3D_FREQ 97%%",
        "GR3D_FREQ 9.5%",
        "GR3D_FREQ -5%",
        "GR3D_FREQX 5%",
        "XGR3D_FREQ 5%",
        "GR3D_FREQ=5%",
        "GR3D2_FREQ 5%",
        "gr3d_freq 5%",
    ],
)
def test_what_is_cut_or_no_load_gives_no_load(text: str) -> None:
    _same(_of(text), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EMC_FREQ 23%@1600", {EMC: 23, EMC_CLOCK: 1.6e9}),
        ("EMC 1%@1331", {EMC: 1, EMC_CLOCK: 1.331e9}),
        ("EMC_FREQ 0%@204", {EMC: 0, EMC_CLOCK: 2.04e8}),
        ("EMC_FREQ 7%", {EMC: 7}),
        ("EMC_FREQ 0%", {EMC: NONE}),
        ("EMC_FREQ @665", {EMC: NONE, EMC_CLOCK: 6.65e8}),
    ],
)
def test_memory_load_without_a_clock_is_read_unless_it_is_zero(text: str, expected: Values) -> None:
    _same(_of(text), expected)


@pytest.mark.parametrize("text", ["EMC_FREQ 2", "EMC_FREQ 23%@", "EMC_FREQ x%@5", "EMCX 5%@6", "DEMC 5%@6"])
def test_what_is_cut_or_no_memory_load_gives_none(text: str) -> None:
    _same(_of(text), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("VDD_IN 9120/8100", {("power_w", ""): 9.12}),
        ("VDD_IN 9120mW/8100mW", {("power_w", ""): 9.12}),
        ("VDD_GPU 37939mW/8660mW/37940mW", {("power_w", "VDD_GPU"): 37.939}),
        ("VDD_GPU -392mW/5mW/9mW", {("power_w", "VDD_GPU"): -0.392}),
        ("GPU 467mW/460mW CV 0mW/0mW", {("power_w", "GPU"): 0.467, ("power_w", "CV"): 0}),
        ("NC 5mW/5mW", {}),
        ("VDD_IN 1/1 VDD_IN 2/2", {("power_w", ""): 0.001}),
    ],
)
def test_the_first_number_of_a_rail_is_its_power_now(text: str, expected: Values) -> None:
    _same(_of(text), expected)


@pytest.mark.parametrize(
    "text",
    [
        "VDD_IN 9120",
        "VDD_IN 9120mW",
        "VDD_IN 9120/",
        "VDD_IN 9120mW/8100m",
        "VDD_IN 9120/8100MB",
        "VDD_IN 9.1/8.1",
        "VDD_IN 1/2/3/4",
        "vdd_in 9120/8100",
        "Step 3/10",
        "SWAP 0/3929MB (cached 0MB)",
        "IRAM 0/252kB(lfb 252kB)",
        "VDD_IN  9120/8100",
    ],
)
def test_what_is_cut_or_no_rail_gives_no_power(text: str) -> None:
    _same(_of(text), {})


@pytest.mark.parametrize(
    ("cores", "mean_pct", "n_on"),
    [
        ("[48%@2034,off,off,53%@2034,43%@2033,41%@2034]", 46.25, 4),
        ("[17%,11%,65%,0%]@1734", 23.25, 4),
        ("[off,off]", NONE, 0),
        ("[100%@1]", 100, 1),
    ],
)
@pytest.mark.parametrize("name", ["CPU", "cpu"])
def test_cores_that_are_off_are_no_cores_at_zero(name: str, cores: str, mean_pct: float, n_on: int) -> None:
    values = _values(f"RAM 5/6MB (lfb 3x4MB) {name} {cores} APE 5".encode())
    np.testing.assert_equal(values["cpu_utilisation_pct", ""], mean_pct)
    assert values["cpu_cores_on", ""] == n_on


@pytest.mark.parametrize(
    "cores", ["[48%@2034,x]", "[48%@2034,53%@20", "[]", "[48@5]", "[-1%]", "[5% 6%]", "[5%,,6%]", "[7%@]"]
)
def test_a_list_of_cores_that_is_none_gives_no_load(cores: str) -> None:
    values = _values(f"RAM 5/6MB (lfb 3x4MB) CPU {cores} EMC_FREQ 3%@5".encode())
    assert ("cpu_utilisation_pct", "") not in values
    assert ("cpu_cores_on", "") not in values
    assert values[EMC] == 3


def test_more_cores_than_any_board_has_are_no_cores() -> None:
    many = ",".join(["5%@6"] * 257)
    assert ("cpu_cores_on", "") not in _values(f"RAM 5/6MB (lfb 1x4MB) CPU [{many}]".encode() + b" EMC 1%@2")


@pytest.mark.parametrize(
    ("text", "celsius"),
    [("GPU@41C", 41), ("gpu@40.093C", 40.093), ("gpu@-3.5C", -3.5), ("GPU@56.9C/66.6C", 56.9)],
)
def test_the_gpus_temperature(text: str, celsius: float) -> None:
    _same(_of(text), {("temperature_c", ""): celsius})


def test_a_zone_that_is_switched_off_has_no_temperature() -> None:
    _same(_of("GPU@-256C"), {("temperature_c", ""): NONE})


@pytest.mark.parametrize("text", ["CPU@41C", "GPU@41", "GPU@C", "BGPU@41C", "tj@41C", "GPU@4.C", "GPU@--4C"])
def test_other_temperatures_are_passed_over(text: str) -> None:
    _same(_of(text), {})


@pytest.mark.parametrize(("unit", "size"), [("k", 2**10), ("M", 2**20), ("G", 2**30)])
def test_memory_in_use_is_in_bytes(unit: str, size: int) -> None:
    line = f"RAM 3/9{unit}B (lfb 3x4MB) EMC_FREQ 1%@2".encode()
    assert _values(line)["memory_used_byte", ""] == 3 * size


def test_unknown_words_never_hide_known_ones() -> None:
    values = _of("NEW 5%@6 VDD_NEW 1mW/2mW x y=3 GR3D_FREQ 7%@8 {z} VIC_FREQ @9 VDD_IN 5/6")
    assert values[LOAD] == 7
    assert values["power_w", ""] == 0.005
    assert values["power_w", "VDD_NEW"] == 0.001


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"user@board:~$ tegrastats",
        b"[sudo] password for user: ",
        b"Wed May 14 09:00:00 UTC 2025",
        b"RAM 5/6MB",
        b"VDD_IN 5/6 VDD_SOC 7/8",
        b"EMC_FREQ 5%@6",
        b"EMC_FREQ 5%@6 EMC 7%@8",
        b"epoch 3/10 loss 2.5",
        b"RAM 5/6MB (lfb 1x4MB) EMC_FREQ 1%@RAM 7/8MB (lfb 1x4MB) EMC_FREQ 1%@2 VDD_IN 5/6",
        b"\x00\xff\xfe" * 20,
    ],
)
def test_a_line_with_one_kind_of_field_or_two_samples_is_no_sample(line: bytes) -> None:
    assert find_fields(line) is None


def test_what_stands_in_front_of_a_sample_is_not_searched() -> None:
    line = b"[sudo] password for user: STEP 3/10 RAM 5/6MB (lfb 1x4MB) EMC_FREQ 1%@2"
    assert set(_values(line)) == {("memory_used_byte", ""), EMC, EMC_CLOCK}


def test_a_line_whose_beginning_is_cut_gives_what_is_left() -> None:
    values = _values(b"[1%@1190,2%@1190] EMC_FREQ 3%@1331 GR3D_FREQ 4%@114 GPU@35C GPU 467mW/460mW")
    assert ("cpu_cores_on", "") not in values
    assert (values[LOAD], values["power_w", "GPU"], values["temperature_c", ""]) == (4, 0.467, 35)


def _fields(line: bytes) -> Fields:
    fields = find_fields(line)
    assert fields is not None
    return fields


@pytest.mark.parametrize(
    ("line", "length"),
    [
        (b"05-14-2025 09:00:00 RAM 5/6MB EMC 1%@2", 19),
        (b"2025-05-14T09:00:00.25 RAM 5/6MB EMC 1%@2", 22),
        (b"RAM 5/6MB EMC 1%@2", 0),
        (b" 05-14-2025 09:00:00 RAM 5/6MB EMC 1%@2", 0),
        (b"05-14-2025 09:00:00Z RAM 5/6MB EMC 1%@2", 0),
    ],
)
def test_a_date_counts_where_it_stands_in_front(line: bytes, length: int) -> None:
    assert _fields(line).stamp_bytes == length


def test_a_number_at_the_end_of_a_cut_line_is_left_out() -> None:
    line = b"RAM 5/6MB EMC_FREQ 1%@16"
    fields = _fields(line).without_last(line)
    quantities = [slot.quantity for slot in fields.shape.slots]
    assert Quantity(Channel.MEMORY_CLOCK_HZ, Scope.MODULE) not in quantities
    assert len(quantities) == len(fields.spans) == 2


@pytest.mark.parametrize("line", [b"RAM 5/6MB EMC_FREQ 1%@16 ", b"RAM 5/6MB VDD_IN 91/8", b"CPU [off] EMC 0"])
def test_numbers_before_the_end_of_a_cut_line_are_whole(line: bytes) -> None:
    fields = find_fields(line)
    assert fields is None or fields.without_last(line) == fields


def test_numbers_beyond_a_double_are_infinite_and_raise_nothing() -> None:
    values = _of("VDD_IN " + "9" * 400 + "/1 GR3D_FREQ 5%@" + "9" * 305)
    assert values["power_w", ""] == float("inf")
    assert values[CLOCK] == float("inf")
