"""Which readings, which run and which time: nothing that a prover writes makes any of it smaller."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from flopwitness.catalogue.chips import ChipCatalogue
from flopwitness.foundation.clock import parse_utc
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.capacity import (
    covers_limits,
    device_limit_w,
    expected_devices,
    least_count,
    needed_devices,
    total_limit_w,
)
from flopwitness.measure.framing import (
    assess_clock,
    choose_window,
    claimed_stretches,
    frame_run,
    length_s,
    recorded_length_s,
    recorded_span,
)
from flopwitness.measure.question import Question
from flopwitness.measure.samples import Channel, Declaration, Mark, RunWindow, Scope, Series, Trace

MakeSeries = Callable[..., Series]
MakeWindow = Callable[..., RunWindow]

DAY_S = 86_400


def _codes(findings: Sequence[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_the_run_that_the_readings_cover_best_is_chosen(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    short, long = make_window(0, 10), make_window(20, 90)
    findings: list[Finding] = []
    chosen = choose_window(Trace(windows=(short, long)), [make_series([1] * 100)], findings)
    assert chosen == long
    assert _codes(findings) == ["runs-several"]


def test_a_run_that_stops_before_it_starts_is_a_contradiction(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    findings: list[Finding] = []
    trace = Trace(windows=(make_window(50, 10),))
    assert choose_window(trace, [make_series([1] * 100)], findings) is None
    assert _codes(findings) == ["run-reversed"]
    assert findings[0].severity is Severity.CONTRADICTION


def test_a_run_of_no_length_is_not_used(make_series: MakeSeries, make_window: MakeWindow) -> None:
    findings: list[Finding] = []
    window = make_window(5, 5)
    assert choose_window(Trace(windows=(window,)), [make_series([1] * 100)], findings) is None
    assert "does not stop after it starts" in findings[0].message


def test_a_log_that_goes_on_after_the_stop_is_told(make_window: MakeWindow) -> None:
    findings: list[Finding] = []
    trace = Trace(windows=(make_window(0, 60, "success"),), extent=make_window(-5, 1_695))
    assert choose_window(trace, [], findings) == make_window(0, 60, "success")
    assert _codes(findings) == ["events-after-stop"]
    assert findings[0].severity is Severity.WARNING
    assert "27 min 15 s" in findings[0].message
    assert "28 min 20 s" in findings[0].message


@pytest.mark.parametrize(
    ("windows_s", "extent_s"),
    [
        ([(0, 600)], (-400, 600)),
        ([(0, 600)], (-400, 660)),  # a log is closed within the minute
        ([(0, 600), (1_000, 2_000)], (-400, 2_060)),  # what follows the first run is the second
        ([(0, None)], (-400, 9_000)),
        ([(60, 60), (60, 0)], (-400, 9_000)),  # these marks are not used at all
        ([], (0, 9_000)),
        ([(0, 600)], None),
    ],
)
def test_a_log_that_ends_with_its_last_run_is_not_told(
    make_window: MakeWindow,
    windows_s: list[tuple[float, float | None]],
    extent_s: tuple[float, float] | None,
) -> None:
    findings: list[Finding] = []
    windows = tuple(make_window(start, stop) for start, stop in windows_s)
    extent = None if extent_s is None else make_window(*extent_s)
    choose_window(Trace(windows=windows, extent=extent), [], findings)
    assert "events-after-stop" not in _codes(findings)


def test_a_second_stop_is_told(make_window: MakeWindow) -> None:
    findings: list[Finding] = []
    stops = tuple(Mark(name="run_stop", utc_ns=5, where=f"r.txt:{line}") for line in (7, 9))
    choose_window(Trace(windows=(make_window(0, 60),), marks=stops), [], findings)
    assert _codes(findings) == ["stops-several"]
    assert (findings[0].where, findings[0].count) == ("r.txt:7", 2)
    power = Mark(name="power_measurement_stop", utc_ns=5, where="n.txt:1")
    choose_window(Trace(windows=(make_window(0, 60),), marks=(power,)), [], findings)
    assert len(findings) == 1


def test_a_run_of_centuries_is_not_measured(make_series: MakeSeries, make_window: MakeWindow) -> None:
    century = make_window(0, 101 * 365 * DAY_S)
    assert choose_window(Trace(windows=(century,)), [make_series([1] * 100)], []) is None


def test_a_run_apart_from_all_readings_is_told(make_series: MakeSeries, make_window: MakeWindow) -> None:
    findings: list[Finding] = []
    trace = Trace(windows=(make_window(5_000, 6_000),))
    assert choose_window(trace, [make_series([1] * 100)], findings) is None
    assert _codes(findings) == ["clocks-apart"]


def test_a_run_is_known_without_power(make_window: MakeWindow) -> None:
    window = make_window(0, 10)
    assert choose_window(Trace(windows=(window,)), [], []) == window


def test_an_unfinished_run_overlaps_until_the_readings_end(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    window = make_window(10, None)
    assert choose_window(Trace(windows=(window,)), [make_series([1] * 100)], []) == window
    assert length_s(window) is None
    assert length_s(None) is None
    assert length_s(make_window(1, 3.5)) == 2.5


def test_the_span_holds_readings_and_marks(make_series: MakeSeries, make_window: MakeWindow) -> None:
    series = [make_series([1] * 11), make_series([1] * 11, time_s=range(5, 16), device="gpu_1")]
    assert recorded_span(series, None) == make_window(0, 15)
    assert recorded_span(series, make_window(-3, 8)) == make_window(-3, 15)
    assert recorded_span(series, make_window(3, None)) == make_window(0, 15)
    assert recorded_span([], make_window(3, None)) == make_window(3, 3)
    assert recorded_span([], None) is None


def test_short_marks_do_not_shorten_the_span(make_series: MakeSeries, make_window: MakeWindow) -> None:
    assert recorded_span([make_series([1] * 101)], make_window(50, 51)) == make_window(0, 100)


def test_what_a_log_claims_beside_its_run_is_in_the_span(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    series = [make_series([1] * 101)]
    assert recorded_span(series, None, [make_window(-400, 50)]) == make_window(-400, 100)
    assert recorded_span(series, make_window(50, 51), [make_window(60, 900)]) == make_window(0, 900)
    assert recorded_span(series, None, [make_window(30, 40)]) == make_window(0, 100)
    assert recorded_span([], make_window(3, None), [make_window(0, 900)]) == make_window(0, 900)


def test_a_claim_days_away_is_no_part_of_the_span(make_series: MakeSeries, make_window: MakeWindow) -> None:
    far = make_window(3 * DAY_S, 3 * DAY_S + 5)
    assert recorded_span([make_series([1] * 101)], None, [far]) == make_window(0, 100)
    assert recorded_span([], None, [far]) is None


def test_claims_are_the_extent_and_the_marks_of_each_log(make_window: MakeWindow) -> None:
    start_ns = make_window(0, 1).start_utc_ns
    marks = tuple(
        Mark(name="power_measurement_start", utc_ns=start_ns + at_s * 10**9, where=where)
        for at_s, where in ((30, "a/n:1"), (0, "a/n:9"), (500, "b/n:1"))
    )
    trace = Trace(marks=marks, extent=make_window(5, 9))
    assert claimed_stretches(trace) == [make_window(5, 9), make_window(0, 30), make_window(500, 500)]
    assert claimed_stretches(Trace()) == []


def test_a_clock_a_day_off_does_not_stretch_the_span(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    late = make_series([1] * 11, time_s=range(2 * DAY_S, 2 * DAY_S + 11), device="gpu_2")
    others = [make_series([1] * 11), make_series([1] * 11, device="gpu_1")]
    assert recorded_span([*others, late], None) == make_window(0, 10)


def test_a_clock_that_steps_back_does_not_shorten_the_span(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    series = make_series([1] * 200, time_s=[*range(100), *range(100)])
    assert recorded_span([series], None) == make_window(0, 199)


def test_a_wall_clock_that_stands_still_does_not_shorten_the_span(
    make_series: MakeSeries, make_window: MakeWindow
) -> None:
    series = make_series([1] * 101, time_s=[0.0] * 101, monotonic_s=range(101))
    assert recorded_span([series], None) == make_window(0, 100)


def test_the_longest_recorded_time_counts(make_series: MakeSeries, make_window: MakeWindow) -> None:
    series = make_series([1] * 101)
    span = make_window(0, 100)
    assert recorded_length_s(span, Trace(series=(series,), windows=(make_window(40, 41),))) == 100
    assert recorded_length_s(span, Trace(windows=(make_window(0, 500),))) == 500
    assert recorded_length_s(span, Trace(windows=(make_window(500, 0),))) == 100
    assert recorded_length_s(make_window(3, 3), Trace()) is None
    assert recorded_length_s(None, Trace()) is None


def test_no_event_is_left_out_of_the_recorded_time(make_series: MakeSeries, make_window: MakeWindow) -> None:
    """A stop set early, or no stop at all, does not shorten what the same log shows by its other events."""
    span = make_window(0, 60)
    for window in (span, make_window(0, None), make_window(60, 0)):
        trace = Trace(windows=(window,), extent=make_window(-5, 1_700))
        assert recorded_length_s(span, trace) == 1_705
        assert recorded_length_s(None, trace) == 1_705
    assert recorded_length_s(None, Trace(extent=make_window(5, 5))) is None
    late = Mark(name="power_measurement_stop", utc_ns=make_window(0, 900).stop_utc_ns or 0, where="n.txt:9")
    early = replace(late, name="power_measurement_start", utc_ns=span.start_utc_ns, where="n.txt:1")
    assert recorded_length_s(span, Trace(marks=(early, late))) == 900


IN_1970 = RunWindow(start_utc_ns=1_715_257_378 * 10**6, stop_utc_ns=1_717_849_378 * 10**6)


def _early_traces(make_series: MakeSeries, make_window: MakeWindow) -> list[Trace]:
    """Each time that a trace holds, in seconds where milliseconds belong; all else in order."""
    busy, window = make_series([400] * 101), make_window(0, 100)
    early = replace(busy, device="gpu_1", utc_ns=busy.utc_ns // 1_000)
    mixed = replace(busy, utc_ns=np.concatenate([busy.utc_ns[:50], busy.utc_ns[50:] // 1_000]))
    utilisation = replace(early, channel=Channel.UTILISATION_PCT)
    mark = Mark(name="power_measurement_start", utc_ns=5, where="n.txt:1")
    return [
        Trace(series=(busy, early), windows=(window,)),
        Trace(series=(mixed,)),
        Trace(series=(busy, utilisation)),
        Trace(series=(busy,), windows=(window, IN_1970)),
        Trace(series=(busy,), windows=(replace(IN_1970, stop_utc_ns=None),)),
        Trace(series=(busy,), windows=(replace(window, stop_utc_ns=0),)),
        Trace(series=(busy,), windows=(window,), extent=IN_1970),
        Trace(series=(busy,), windows=(window,), marks=(mark,)),
    ]


@pytest.mark.parametrize("number", range(8))
def test_times_before_there_were_such_clocks_bound_nothing(
    make_series: MakeSeries, make_window: MakeWindow, number: int
) -> None:
    trace = _early_traces(make_series, make_window)[number]
    (finding,) = assess_clock(trace)
    assert finding.code == "clock-implausible"
    assert finding.severity is Severity.WARNING
    assert "stamped 1970: seconds in place of milliseconds?" in finding.message
    assert recorded_length_s(make_window(0, 100), trace) is None


def test_a_plausible_clock_and_a_switch_are_fine(make_series: MakeSeries, make_window: MakeWindow) -> None:
    busy, window = make_series([400] * 101), make_window(0, 100)
    switch = replace(busy, scope=Scope.SWITCH, utc_ns=busy.utc_ns // 1_000)
    trace = Trace(series=(busy, switch, make_series([])), windows=(window,), extent=window)
    assert assess_clock(trace) == []
    assert recorded_length_s(window, trace) == 100
    assert assess_clock(Trace()) == []


@pytest.mark.parametrize(("year", "told"), [(2009, True), (2010, False), (2099, False), (2100, True)])
def test_the_years_that_a_clock_may_show(year: int, *, told: bool) -> None:
    utc_ns = parse_utc(f"{year}-06-01T00:00:00Z")
    assert bool(assess_clock(Trace(extent=RunWindow(start_utc_ns=utc_ns, stop_utc_ns=utc_ns)))) is told


def test_a_far_future_only_makes_the_bound_larger(make_window: MakeWindow) -> None:
    trace = Trace(windows=(make_window(0, 120 * 365 * DAY_S),))
    assert _codes(assess_clock(trace)) == ["clock-implausible"]
    assert recorded_length_s(None, trace) == 120 * 365 * DAY_S


def test_many_short_runs_add_up(make_window: MakeWindow) -> None:
    """A training cut into ten marked runs took at least ten times as long as each of them."""
    runs = tuple(make_window(2 * day * DAY_S, 2 * day * DAY_S + 3_600) for day in range(10))
    assert recorded_length_s(runs[0], Trace(windows=runs)) == 36_000
    daily = tuple(make_window(day * DAY_S, day * DAY_S + 3_600) for day in range(10))
    assert recorded_length_s(daily[0], Trace(windows=daily)) == 9 * DAY_S + 3_600
    overlapping = (make_window(0, 100), make_window(50, 150), make_window(60, 70))
    assert recorded_length_s(None, Trace(windows=overlapping)) == 150


@pytest.mark.parametrize(
    ("first_day", "recorded_days"), [(5, 15), (10, 20), (20, 30), (20.5, 20), (-20, 30), (-21, 20)]
)
def test_all_that_was_recorded_counts_together(
    make_series: MakeSeries, make_window: MakeWindow, first_day: float, recorded_days: float
) -> None:
    """A power log of ten days and a result log of ten others: nothing of either is left out."""
    power = make_series([400, 400], time_s=[0, 10 * DAY_S])
    run = make_window(first_day * DAY_S, (first_day + 10) * DAY_S)
    for trace in (Trace(series=(power,), windows=(run,)), Trace(series=(power,), extent=run)):
        assert recorded_length_s(make_window(0, 10 * DAY_S), trace) == recorded_days * DAY_S


def test_rotated_logs_are_one_device_for_as_long_as_they_last(
    make_series: MakeSeries, chips: ChipCatalogue
) -> None:
    weeks = tuple(
        make_series(
            [5_000 + week] * 169,
            time_s=range(week * 7 * DAY_S, (week + 1) * 7 * DAY_S + 1, 3_600),
            device=f"week_{week}",
            scope=Scope.NODE_AC,
        )
        for week in (1, 0, 2)
    )
    findings: list[Finding] = []
    frame = frame_run(Trace(series=weeks), Question(chips=tuple(chips.find("h100-sxm")), count=8), findings)
    assert [(item.device, len(item)) for item in frame.series] == [("week_0", 507)]
    assert frame.recordings == weeks
    assert frame.recorded_s == frame.duration_s == 21 * DAY_S
    assert frame.n_expected == 1
    assert _codes(findings) == ["recordings-joined"]


@pytest.mark.parametrize(
    ("channel", "value"),
    [(Channel.POWER_W, float("nan")), (Channel.POWER_W, 0.0), (Channel.UTILISATION_PCT, 99.0)],
)
def test_time_counts_where_power_is_blank(
    make_series: MakeSeries, make_window: MakeWindow, channel: Channel, value: float
) -> None:
    long = make_series([value] * 1_001, channel=channel, device="gpu_1")
    assert recorded_length_s(make_window(0, 10), Trace(series=(make_series([1] * 11), long))) == 1_000


def test_a_switch_has_its_own_time(make_series: MakeSeries, make_window: MakeWindow) -> None:
    switch = make_series([9] * 1_001, scope=Scope.SWITCH)
    assert recorded_length_s(make_window(0, 10), Trace(series=(switch,))) == 10


def test_a_device_for_each_chip_is_expected(make_series: MakeSeries, chips: ChipCatalogue) -> None:
    h100 = chips.find("h100-sxm")
    series = [make_series([1, 1])]
    assert expected_devices(Trace(), series, Scope.GPU, h100, 8) == 8
    assert expected_devices(Trace(), series * 16, Scope.GPU, h100, 8) == 16


@pytest.mark.parametrize(
    ("name", "count", "declared", "handed", "expected"),
    [
        ("h100-sxm", 512, None, 60, 64),  # four nodes kept back, no declaration
        ("h100-sxm", 512, 60, 60, 64),  # and with a declaration that agrees with the prover
        ("h100-sxm", 512, 1, 1, 64),
        ("h100-sxm", 512, 128, 64, 128),
        ("h100-sxm", 8, None, 1, 1),
        ("h100-sxm", 9, None, 1, 2),
        ("rtx-4090", 4, None, 1, 1),
        ("rtx-4090", 512, None, 1, 64),
        ("h100-sxm", 8, None, 3, 3),
    ],
)
def test_as_many_nodes_as_the_chips_fill_are_expected(
    make_series: MakeSeries,
    chips: ChipCatalogue,
    name: str,
    count: int,
    declared: int | None,
    handed: int,
    expected: int,
) -> None:
    trace = Trace(declaration=Declaration(nodes=declared))
    series = [make_series([1, 1], scope=Scope.NODE)] * handed
    assert expected_devices(trace, series, Scope.NODE, chips.find(name), count) == expected


def test_each_recorded_device_holds_a_chip(make_series: MakeSeries) -> None:
    series = [make_series([1, 1])] * 8
    assert least_count(series, Scope.GPU, 1) == 8
    assert least_count(series, Scope.NODE, 64) == 64
    assert least_count(series, Scope.RAIL, 1) == 1


@pytest.mark.parametrize(
    ("name", "scope", "covers"),
    [
        ("h100-sxm", Scope.GPU, True),
        ("h100-sxm", Scope.NODE_AC, True),
        ("h100-sxm", Scope.RAIL, False),
        ("h100-sxm", Scope.UNKNOWN, False),
        ("h100-sxm", Scope.SWITCH, False),
        ("jetson-agx-orin-64gb", Scope.MODULE, True),
        ("jetson-agx-orin-64gb", Scope.NODE, True),
        ("jetson-agx-orin-64gb", Scope.GPU, False),
        ("jetson-agx-orin-64gb", Scope.RAIL, False),
    ],
)
def test_a_part_of_the_power_does_not_cover_the_limit(
    chips: ChipCatalogue, name: str, scope: Scope, *, covers: bool
) -> None:
    assert covers_limits(scope, chips.find(name)) is covers


def test_a_limit_for_boards_and_for_nodes(chips: ChipCatalogue) -> None:
    (h100,) = chips.find("h100-sxm")
    assert h100.power_limit_w is not None
    assert h100.reference_node is not None
    assert device_limit_w([h100], 8, Scope.GPU, 8) == 1.5 * h100.power_limit_w.value
    assert device_limit_w([h100], 512, Scope.NODE_AC, 64) == h100.reference_node.power_limit_w.value
    (card,) = chips.find("rtx-4090")
    assert card.power_limit_w is not None
    assert device_limit_w([card], 4, Scope.NODE, 1) == 4 * 2.5 * card.power_limit_w.value
    (unknown,) = chips.find("trainium1")
    assert device_limit_w([h100, unknown], 8, Scope.GPU, 8) is None


@pytest.mark.parametrize(
    ("name", "count", "n_devices", "n_chips"),
    [
        ("h100-sxm", 8, 1, 8),
        ("h100-sxm", 8, 8, 8),  # seven logs of other things beside the node
        ("h100-sxm", 8, 1_000, 8),
        ("h100-sxm", 4, 64, 4),
        ("h100-sxm", 512, 64, 8),
        ("h100-sxm", 512, 512, 8),
        ("h100-sxm", 512, 32, 16),
        ("rtx-4090", 4, 4, 4),
    ],
)
def test_any_node_may_hold_all_its_chips_whatever_else_was_handed_over(
    chips: ChipCatalogue, name: str, count: int, n_devices: int, n_chips: int
) -> None:
    found = chips.find(name)
    share_w = device_limit_w(found, 1, Scope.NODE, 1)
    assert share_w is not None
    assert device_limit_w(found, count, Scope.NODE, n_devices) == pytest.approx(n_chips * share_w)


@pytest.mark.parametrize(
    ("scope", "count", "needed"),
    [(Scope.GPU, 8, 8), (Scope.NODE, 8, 1), (Scope.NODE, 1, 1), (Scope.NODE_AC, 9, 2), (Scope.RAIL, 3, 3)],
)
def test_the_devices_that_the_chips_need(chips: ChipCatalogue, scope: Scope, count: int, needed: int) -> None:
    assert needed_devices(scope, chips.find("h100-sxm"), count) == needed


def test_all_devices_together_draw_what_their_chips_and_hosts_can(chips: ChipCatalogue) -> None:
    (h100,) = chips.find("h100-sxm")
    assert h100.power_limit_w is not None
    assert h100.reference_node is not None
    node_w, chip_w = h100.reference_node.power_limit_w.value, h100.power_limit_w.value
    assert total_limit_w([h100], 512, Scope.NODE, 64) == pytest.approx(64 * node_w)
    host_w = node_w - 8 * chip_w
    assert total_limit_w([h100], 8, Scope.NODE, 8) == pytest.approx(node_w + 7 * host_w)
    assert total_limit_w([h100], 512, Scope.NODE, 1) == pytest.approx(64 * node_w)
    assert total_limit_w([h100], 8, Scope.GPU, 8) == 8 * 1.5 * chip_w
    assert total_limit_w([h100], 1, Scope.GPU, 8) == 8 * 1.5 * chip_w
    assert total_limit_w([*chips.find("trainium1"), h100], 8, Scope.NODE, 1) is None
    assert total_limit_w([], 8, Scope.NODE, 1) is None
