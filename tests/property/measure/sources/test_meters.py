"""Meters' logs: wherever blocks are cut the trace is the same, and what was written comes back."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwitness.measure.host_energy import add_host_energy
from flopwitness.measure.samples import Scope, Trace
from flopwitness.measure.sources import ipmi, pdu_csv, perf_stat, powercap, redfish, spl_log
from flopwitness.measure.sources.clock_text import parse_clock_number, parse_stamp
from flopwitness.measure.sources.format import Format
from flopwitness.measure.sources.recording import Times
from flopwitness.measure.sources.source import Source
from flopwitness.testing.decoders.meters import decoders

FORMATS: tuple[Format, ...] = (
    *spl_log.FORMATS,
    *ipmi.FORMATS,
    *redfish.FORMATS,
    *pdu_csv.FORMATS,
    *perf_stat.FORMATS,
    *powercap.FORMATS,
)
DECODERS = {decoder.name: decoder for decoder in decoders()}
NINE_S = 1_747_213_200

watts = st.integers(0, 10_000_000).map(lambda mw: mw / 1_000)
readings = st.lists(st.one_of(watts, st.none()), min_size=1, max_size=40)


def _format(name: str) -> Format:
    return next(known for known in FORMATS if known.name == name)


def _decode(format: Format, *blocks: bytes) -> Trace:  # noqa: A002 (its name)
    return format.decode(Source(blocks=blocks, where="log", device="log"))


def _same(first: Trace, second: Trace) -> bool:
    """Whether two traces hold the same, missing readings included."""
    return repr(first) == repr(second) and all(
        one.utc_ns.tobytes() == other.utc_ns.tobytes() and one.value.tobytes() == other.value.tobytes()
        for one, other in zip(first.series, second.series, strict=True)
    )


@pytest.mark.parametrize(
    "name", ["spec-ptd", "ipmi-dcmi", "redfish-power", "pdu-csv", "perf-energy", "powercap"]
)
@given(data=st.data())
def test_blocks_may_be_cut_anywhere(name: str, data: st.DataObject) -> None:
    known = _format(name)
    seed = data.draw(st.sampled_from(DECODERS[name].seeds))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(seed)), max_size=6)))
    blocks = [seed[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(seed)], strict=True)]
    assert _same(_decode(known, *blocks), _decode(known, seed))


@given(readings)
def test_samples_come_back(values: list[float | None]) -> None:
    lines = [
        f"Time,05-14-2025 09:{number // 60:02}:{number % 60:02}.{number % 1_000:03},"
        f"Watts,{-1 if value is None else value:.6f},Volts,230.1,Amps,1.8,PF,0.99,Mark,m\r\n"
        for number, value in enumerate(values)
    ]
    trace = _decode(spl_log.FORMATS[0], "".join(lines).encode())
    (series,) = trace.series
    assert [None if math.isnan(value) else round(value, 6) for value in series.value] == values
    assert series.utc_ns.tolist() == [
        (NINE_S + number) * 10**9 + number % 1_000 * 10**6 for number in range(len(values))
    ]
    assert [mark.utc_ns for mark in trace.marks][:1] == series.utc_ns.tolist()[:1]
    assert trace.n_skipped == 0


@given(readings)
def test_documents_come_back(values: list[float | None]) -> None:
    lines = [
        json.dumps({"time": NINE_S + number, "body": {"PowerControl": [{"PowerConsumedWatts": value}]}})
        for number, value in enumerate(values)
    ]
    (series,) = _decode(redfish.FORMATS[0], "\n".join(lines).encode()).series
    assert [None if math.isnan(value) else value for value in series.value] == values
    assert series.utc_ns.tolist() == [(NINE_S + number) * 10**9 for number in range(len(values))]


@given(st.lists(st.one_of(st.integers(0, 10**7), st.none()), min_size=1, max_size=30))
def test_the_rises_of_a_counter_are_the_energies_that_were_counted(later: list[int | None]) -> None:
    """In hundredths of a joule, as perf prints them; a fall to 0 stands where nothing was counted."""
    values = [100, *later]
    shown = ["<not counted>" if value is None else f"{value / 100:.2f}" for value in values]
    lines = [f"{number}.000000000  {text} Joules power/energy-pkg/" for number, text in enumerate(shown, 1)]
    (series,) = _decode(perf_stat.FORMATS[0], "\n".join(lines).encode()).series
    steps_ns, rises_j = np.diff(series.utc_ns), np.diff(series.value)
    is_counted = (steps_ns > 0) & ~np.isnan(rises_j)
    counted = {n * 10**9: value / 100 for n, value in enumerate(values, 1) if value is not None}
    assert series.utc_ns[1:][is_counted].tolist() == list(counted)
    assert rises_j[is_counted].tolist() == pytest.approx(list(counted.values()), abs=1e-6)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(list(Scope)), st.sampled_from(["", "package-0", "package-1", "x"])),
        st.integers(0, 10**6).map(float),
    )
)
def test_rails_and_other_scopes_never_change_a_hosts_energy(
    energies_j: dict[tuple[Scope, str], float],
) -> None:
    own = {
        key: energy_j
        for key, energy_j in energies_j.items()
        if key[0] in (Scope.CPU, Scope.DRAM, Scope.PLATFORM)
    }
    assert add_host_energy(energies_j) == add_host_energy(own)
    total = add_host_energy(energies_j).cpu_plus_dram_j
    assert total is None or total <= sum(own.values())


@given(
    st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2099, 12, 30)),  # noqa: DTZ001 (a wall clock)
    st.integers(min_value=-14 * 60, max_value=14 * 60),
)
def test_every_moment_comes_back_as_python_has_it(moment: datetime, offset_min: int) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=offset_min)))
    stamp = parse_stamp(zoned.isoformat(timespec="microseconds").encode())
    assert stamp is not None
    since = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    assert stamp.time_ns == (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000
    assert stamp.times is Times.UTC


@given(st.integers(300_000_000, 4_000_000_000), st.integers(0, 999_999_999))
def test_a_time_is_exact_to_the_nanosecond_in_every_unit(second: int, nanosecond: int) -> None:
    time_ns = second * 10**9 + nanosecond
    for unit, digits in (("s", 9), ("ms", 6), ("us", 3), ("ns", 0)):
        whole, rest = divmod(time_ns, 10**digits)
        text = f"{whole}.{rest:0{digits}}" if digits else str(whole)
        stamp = parse_clock_number(text.encode(), unit=unit)
        assert stamp is not None
        assert Fraction(stamp.time_ns) == time_ns
