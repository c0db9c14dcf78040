"""What is written in the text format comes back, wherever blocks are cut, and damage is a DecodeError."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Trace
from flopwitness.measure.sources.exposition import FORMATS
from flopwitness.measure.sources.source import Source
from flopwitness.testing.decoders.prometheus import decoders

(TEXT,) = FORMATS
START_MS = 1_700_000_000_000

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12)
# Names that say nothing of a device here.
others = st.dictionaries(
    st.sampled_from(["pod", "job", "container", "namespace", "a", "b"]), texts, max_size=4
)
values = st.floats(0, 1e6)
pieces = st.sampled_from(
    [
        *(
            b"DCGM_FI_DEV_POWER_USAGE",
            b"{",
            b"}",
            b'gpu="0"',
            b",",
            b" ",
            b" 5",
            b" 1700000000000",
            b"\n",
            b"#",
        ),
        *(b"# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n", b'"', b"\\", b"NaN", b"\r\n", b"\t", b"\xff", b"\x00"),
    ]
)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _write(labels: dict[str, str], value: float, time_ms: int) -> str:
    inside = ",".join(f'{name}="{_escape(text)}"' for name, text in labels.items())
    return f"DCGM_FI_DEV_POWER_USAGE{{{inside}}} {value!r} {time_ms}"


def _decode(data: bytes, sizes: list[int] | None = None) -> Trace:
    blocks, start = [], 0
    for size in sizes or []:
        blocks.append(data[start : start + size])
        start += size
    blocks.append(data[start:])
    return TEXT.decode(Source(blocks=blocks, where="dump", device="dump"))


@given(st.lists(st.tuples(others, values), min_size=1, max_size=8), texts.filter(str.strip))
def test_what_is_written_comes_back(samples: list[tuple[dict[str, str], float]], chip: str) -> None:
    lines = [
        _write({"gpu": "0", "modelName": chip, **labels}, value, START_MS + number)
        for number, (labels, value) in enumerate(samples)
    ]
    trace = _decode("\n".join(lines).encode())
    (series,) = trace.series
    assert series.value.tolist() == [value for _, value in samples]
    assert (series.utc_ns // 1_000_000 - START_MS).tolist() == list(range(len(samples)))
    assert trace.devices[0].chip_name == chip
    assert trace.n_skipped == 0


@given(st.lists(st.integers(0, 400), max_size=12))
def test_blocks_may_be_cut_anywhere(sizes: list[int]) -> None:
    for decoder in decoders():
        if decoder.name != TEXT.name:
            continue
        for data in decoder.seeds:
            assert _show(_decode(data, sizes)) == _show(_decode(data))


@given(st.lists(pieces, max_size=60).map(b"".join))
def test_any_pieces_give_a_trace_or_a_decode_error(data: bytes) -> None:
    TEXT.is_it(data, "")
    with suppress(DecodeError):
        _decode(data)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    TEXT.is_it(data, "")
    with suppress(DecodeError):
        _decode(data)


def _show(trace: Trace) -> list[object]:
    series = [
        (item.device, item.channel, item.part, item.utc_ns.tolist(), item.value.tobytes())
        for item in trace.series
    ]
    return [series, trace.devices, trace.skipped, trace.findings]
