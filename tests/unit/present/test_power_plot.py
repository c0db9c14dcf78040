"""The picture: it can always be drawn, says the same each time, and refuses what it cannot show."""

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.foundation.errors import InputError
from flopwitness.measure.answer import Measurement
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.samples import RunWindow, Series, Trace
from flopwitness.present.power_plot import _total, draw_power

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]
MeasureIt = Callable[..., Measurement]


@pytest.fixture
def measure(chips: ChipCatalogue, reference: ReferenceTable) -> MeasureIt:
    question = Question(chips=chips.find("h100-sxm"), count=2)
    return lambda trace: measure_trace(trace, question, table=reference)


@pytest.fixture
def pair(make_series: MakeSeries) -> tuple[Series, Series]:
    return make_series([300, 310, 320, 330] * 10), make_series([400, 410] * 20, device="gpu_1")


def _text(data: bytes) -> str:
    return " ".join(ET.fromstring(data.decode()).itertext())  # noqa: S314 (drawn by this test)


def test_a_png_is_a_png(measure: MeasureIt, pair: tuple[Series, Series]) -> None:
    data = draw_power(pair, measure(Trace(series=pair)), title="2 x H100", format_name="png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")


def test_an_svg_says_what_it_shows(
    measure: MeasureIt, pair: tuple[Series, Series], make_window: MakeWindow
) -> None:
    trace = Trace(series=pair, windows=(make_window(5, 30),))
    words = _text(draw_power(pair, measure(trace), title="2 x H100", format_name="svg"))
    for part in (
        "2 x H100",
        "power, W",
        "minutes since 2023-11-14 22:13:20 UTC",
        "at the accelerator boards",
    ):
        assert part in words
    assert "power of 2 devices together" in words
    assert "the run, as its log marks it" in words
    assert "no readings" not in words


def test_the_same_input_gives_the_same_bytes(measure: MeasureIt, pair: tuple[Series, Series]) -> None:
    answer = measure(Trace(series=pair))
    for name in ("png", "svg"):
        first, second = (draw_power(pair, answer, title="t", format_name=name) for _ in range(2))
        assert first == second


def test_gaps_are_hatched_once_in_the_legend(measure: MeasureIt, make_series: MakeSeries) -> None:
    times = [*range(20), *range(60, 80), *range(120, 140)]
    series = (make_series([300 + i for i in range(60)], time_s=times),)
    words = _text(draw_power(series, measure(Trace(series=series)), title="t", format_name="svg"))
    assert words.count("no readings") == 1
    assert "power of" not in words


def test_without_an_energy_the_power_is_drawn_all_the_same(
    measure: MeasureIt, pair: tuple[Series, Series]
) -> None:
    words = _text(draw_power(pair, measure(Trace()), title="t", format_name="svg"))
    assert "over the run" not in words


def test_an_unfinished_run_is_not_shaded(
    measure: MeasureIt, pair: tuple[Series, Series], make_window: MakeWindow
) -> None:
    trace = Trace(series=pair, windows=(make_window(5, None),))
    assert "the run" not in _text(draw_power(pair, measure(trace), title="t", format_name="svg")).replace(
        "over the run", ""
    )


@pytest.mark.parametrize("name", ["pdf", "", "PNG", "png.exe"])
def test_other_formats_are_refused(measure: MeasureIt, pair: tuple[Series, Series], name: str) -> None:
    with pytest.raises(InputError, match="picture format"):
        draw_power(pair, measure(Trace()), title="t", format_name=name)


@pytest.mark.parametrize("values", [[], [math.nan] * 3, [math.inf]])
def test_nothing_to_draw_is_refused(measure: MeasureIt, make_series: MakeSeries, values: list[float]) -> None:
    for series in ((), (make_series(values),)):
        with pytest.raises(InputError, match="no power reading"):
            draw_power(series, measure(Trace()), title="t", format_name="svg")


def test_odd_recordings_can_be_drawn(measure: MeasureIt, make_series: MakeSeries) -> None:
    odd = [
        (make_series([300]),),
        (make_series([300, math.nan, 310], time_s=[2, 1, 0]),),
        (make_series([300, 310]), make_series([1e9, 1e9], time_s=[7e9, 7e9], device="gpu_1")),
        (make_series([300, 310]), make_series([], device="gpu_1"), make_series([math.nan], device="gpu_2")),
        (make_series([300, 310], time_s=[5, 5]),),
    ]
    for series in odd:
        draw_power(series, measure(Trace(series=series)), title="$x^2$ & <b>", format_name="svg")


def test_the_sum_is_the_devices_sum(pair: tuple[Series, Series], make_series: MakeSeries) -> None:
    origin_ns = int(pair[0].utc_ns[0])
    steady = [make_series([100] * 11), make_series([200] * 11, conversion=0.5, device="gpu_1")]
    time_s, total_w, n_devices = _total(steady, origin_ns)
    assert n_devices == 2
    assert (time_s[0], time_s[-1]) == (0, 10)
    np.testing.assert_allclose(total_w, 200)
    backwards = replace(steady[0], utc_ns=steady[0].utc_ns[::-1].copy())
    np.testing.assert_allclose(_total([backwards], origin_ns)[1], 100)
