"""What is written as tegrastats writes it comes back, whatever stands between, wherever blocks are cut."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.source import Source
from flopwitness.measure.sources.tegrastats import FORMATS
from flopwitness.testing.decoders.jetson import decoders

(FORMAT,) = FORMATS
SEEDS = decoders()[0].seeds

loads = st.none() | st.integers(0, 100)
counts = st.integers(0, 99_999)
words = st.sampled_from(["", " NVENC off", " VIC_FREQ 115", " VDD_X 5mW/6mW", " x=y", " APE 25 PLL@24.5C"])
chatter = st.sampled_from(
    ["", "$ tegrastats", "Wed May 14 09:00:00 UTC 2025", "epoch 3/10", "RAM", "VDD_IN 5/6", "\x00\xff"]
)
pieces = st.sampled_from(
    [
        *(
            "RAM 5/6MB (lfb 1x4MB) ",
            "CPU [",
            "5%@6",
            ",",
            "off",
            "]",
            " EMC_FREQ ",
            " GR3D_FREQ ",
            "7%",
            "@8",
        ),
        *(
            "[8,9]",
            " VDD_IN ",
            "5/6",
            "5mW/6mW",
            " GPU@41.5C",
            " ",
            "\n",
            "\r\n",
            "05-14-2025 09:00:00 ",
            "-",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Sample:
    ram_mb: int
    cores: tuple[int | None, ...]
    load: int | None
    milliwatts: int
    word: str

    def written(self, *, unit: str) -> str:
        cores = ",".join("off" if core is None else f"{core}%@{1_000 + core}" for core in self.cores)
        load = "@[5,6]" if self.load is None else f"{self.load}%@[5,6]"
        power = f"VDD_IN {self.milliwatts}{unit}/1{unit} VDD_SOC {self.ram_mb}{unit}/1{unit}"
        return f"RAM {self.ram_mb}/99999MB (lfb 3x4MB) CPU [{cores}]{self.word} GR3D_FREQ {load} {power}"

    @property
    def mean_load(self) -> float:
        on = [core for core in self.cores if core is not None]
        return sum(on) / len(on) if on else np.nan


samples = st.builds(
    Sample,
    ram_mb=counts,
    cores=st.lists(loads, min_size=1, max_size=4).map(tuple),
    load=loads,
    milliwatts=counts,
    word=words,
)


def _decode(data: bytes, sizes: list[int] | None = None) -> Trace:
    blocks, start = [], 0
    for size in sizes or []:
        blocks.append(data[start : start + size])
        start += size
    blocks.append(data[start:])
    return FORMAT.decode(Source(blocks=blocks, where="log", device="board"))


def _values(trace: Trace, channel: Channel, scope: Scope) -> list[float]:
    (series,) = (item for item in trace.series if (item.channel, item.scope) == (channel, scope))
    values: list[float] = series.value.tolist()
    return values


@given(st.lists(st.tuples(samples, chatter), min_size=1, max_size=12), st.sampled_from(["", "mW"]))
def test_what_is_written_comes_back(log: list[tuple[Sample, str]], unit: str) -> None:
    lines = [line for sample, between in log for line in (between, sample.written(unit=unit))]
    trace = _decode("\n".join(lines).encode("utf-8", "surrogateescape"))
    written = [sample for sample, _ in log]
    nothing = [np.nan] * len(written)
    np.testing.assert_array_equal(
        _values(trace, Channel.POWER_W, Scope.MODULE), [sample.milliwatts / 1_000 for sample in written]
    )
    np.testing.assert_array_equal(
        _values(trace, Channel.UTILISATION_PCT, Scope.GPU),
        [
            empty if sample.load is None else sample.load
            for sample, empty in zip(written, nothing, strict=True)
        ],
    )
    np.testing.assert_array_equal(
        _values(trace, Channel.CPU_UTILISATION_PCT, Scope.CPU), [sample.mean_load for sample in written]
    )
    assert trace.n_skipped == sum(bool(between) for _, between in log)


@given(st.lists(st.tuples(samples, chatter), max_size=8), st.lists(st.integers(1, 400), max_size=8))
def test_blocks_may_be_cut_anywhere(log: list[tuple[Sample, str]], sizes: list[int]) -> None:
    lines = [line for sample, between in log for line in (between, sample.written(unit="mW"))]
    _check_cut("\n".join(lines).encode(), sizes)


@given(st.sampled_from(SEEDS), st.lists(st.integers(1, 400), max_size=8))
def test_blocks_of_every_generation_may_be_cut_anywhere(seed: bytes, sizes: list[int]) -> None:
    _check_cut(seed, sizes)


def _check_cut(data: bytes, sizes: list[int]) -> None:
    try:
        whole = _decode(data)
    except DecodeError:
        return
    cut = _decode(data, sizes)
    assert (whole.skipped, whole.n_skipped, whole.findings) == (cut.skipped, cut.n_skipped, cut.findings)
    for one, other in zip(whole.series, cut.series, strict=True):
        assert (one.channel, one.scope, one.part) == (other.channel, other.scope, other.part)
        np.testing.assert_array_equal(one.utc_ns, other.utc_ns)
        np.testing.assert_array_equal(one.value, other.value)


@given(st.lists(pieces, max_size=60).map("".join), st.lists(st.integers(1, 60), max_size=6))
def test_damage_is_a_decode_error_and_nothing_else(text: str, sizes: list[int]) -> None:
    with suppress(DecodeError):
        _decode(text.encode(), sizes)
    _check_cut(text.encode(), sizes)
