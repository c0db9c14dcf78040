"""Full utilisation at near-idle power: time that utilisation calls work and power does not."""

import math
from collections.abc import Callable

import pytest

from flopwitness.foundation.verdict import Severity
from flopwitness.measure.samples import Channel, Series
from flopwitness.measure.waiting import Waiting, assess_waiting, find_waiting

MakeSeries = Callable[..., Series]
Wait = Callable[..., Waiting]

IDLE_W = 75.0


@pytest.fixture
def wait(make_series: MakeSeries) -> Wait:
    """How a test looks for waiting in stretches of seconds, watts and percent, read once a second."""

    def look(*stretches: tuple[int, float, float], **settings: float) -> Waiting:
        power_w = [power for n, power, _ in stretches for _ in range(n)]
        utilisation_pct = [pct for n, _, pct in stretches for _ in range(n)]
        return find_waiting(
            make_series(power_w),
            make_series(utilisation_pct, channel=Channel.UTILISATION_PCT),
            idle_w=IDLE_W,
            **settings,
        )

    return look


def test_work_and_waiting_are_split(wait: Wait, make_series: MakeSeries) -> None:
    waiting = wait((60, 75, 0), (600, 640, 99), (900, 118, 100), (60, 75, 0))
    assert (waiting.compute_s, waiting.waiting_s) == (600, 900)
    assert waiting.compute_net_j == 600 * 565
    assert waiting.waiting_net_j == 900 * 43
    (stretch,) = waiting.stretches
    assert stretch.duration_s == 900
    assert stretch.start_utc_ns == int(make_series([0] * 661).utc_ns[-1])


def test_at_the_limits_it_is_waiting(wait: Wait) -> None:
    assert wait((60, 640, 99), (30, 118, 80), (60, 640, 99)).waiting_s == 30
    at_limit = wait((60, 575, 99), (60, 175, 99), (1, 575, 99), working_net_w=500.0)
    assert (at_limit.limit_net_w, at_limit.waiting_s) == (100, 0)


def test_utilisation_at_the_limit_is_not_busy(wait: Wait) -> None:
    assert wait((100, 640, 5)).compute_s == 0


def test_work_throughout_is_no_waiting(wait: Wait) -> None:
    waiting = wait((60, 75, 0), (600, 640, 99), (60, 75, 0))
    assert waiting.stretches == ()
    assert (waiting.compute_s, waiting.waiting_s, waiting.waiting_net_j) == (600, 0, 0)


@pytest.mark.parametrize(
    "stretch",
    [
        (900, 118, 79),  # utilisation is not high
        (900, 300, 100),  # power is not near idle
        (29, 118, 100),  # it does not last
        (900, 118, math.nan),  # utilisation is not known
        (900, math.nan, 100),  # power is not known
        (900, 118, 3),  # nothing runs
    ],
)
def test_what_is_no_waiting(wait: Wait, stretch: tuple[int, float, float]) -> None:
    assert wait((600, 640, 99), stretch, (600, 640, 99)).stretches == ()


def test_short_dips_between_steps_are_work(wait: Wait) -> None:
    waiting = wait(*[(20, 640, 99), (10, 118, 100)] * 20)
    assert waiting.stretches == ()
    assert waiting.compute_s == 599


def test_several_stretches_are_told_each(wait: Wait) -> None:
    waiting = wait((60, 640, 99), (60, 118, 100), (60, 640, 99), (40, 118, 100), (60, 640, 99))
    assert [stretch.duration_s for stretch in waiting.stretches] == [60, 40]
    assert waiting.waiting_s == 100


def test_a_gap_ends_a_stretch(make_series: MakeSeries) -> None:
    times_s = [*range(60), *range(100, 120), *range(200, 240)]
    power_w = [640.0] * 40 + [118.0] * 80
    waiting = find_waiting(
        make_series(power_w, time_s=times_s),
        make_series([100] * 120, time_s=times_s, channel=Channel.UTILISATION_PCT),
        idle_w=IDLE_W,
    )
    assert [stretch.duration_s for stretch in waiting.stretches] == [39]


def test_mostly_waiting_is_still_told(wait: Wait) -> None:
    """The measure of work is weighted by energy: time spent waiting hardly moves it."""
    waiting = wait((100, 640, 99), (1_900, 118, 100))
    assert waiting.waiting_s == pytest.approx(1_900, abs=1)
    assert waiting.limit_net_w > 43


def test_waiting_alone_needs_a_calibration(wait: Wait) -> None:
    assert wait((900, 118, 100)).stretches == ()
    assert wait((900, 118, 100), working_net_w=565.0).waiting_s == 899


def test_the_settings_decide(wait: Wait) -> None:
    stretches = (600, 640, 99), (20, 118, 100), (600, 640, 99)
    assert wait(*stretches, shortest_s=10.0).waiting_s == 20
    assert wait(*stretches, shortest_s=10.0, near_idle_share=0.05).waiting_s == 0
    assert wait(*stretches, shortest_s=10.0, full_pct=100.5).waiting_s == 0


def test_nothing_busy_has_no_measure(wait: Wait) -> None:
    waiting = wait((100, 75, 0))
    assert math.isnan(waiting.limit_net_w)
    assert (waiting.compute_s, waiting.waiting_s, waiting.stretches) == (0, 0, ())
    assert assess_waiting(waiting) is None


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_readings_show_nothing(wait: Wait, n: int) -> None:
    waiting = wait((n, 118, 100), working_net_w=565.0)
    assert (waiting.compute_s, waiting.waiting_s, waiting.stretches) == (0, 0, ())


def test_the_finding_says_how_long(wait: Wait) -> None:
    finding = assess_waiting(wait((60, 640, 99), (900, 118, 100), (60, 640, 99), (40, 118, 100), (1, 75, 0)))
    assert finding is not None
    assert (finding.code, finding.where) == ("busy-at-idle-power", "gpu_0")
    assert finding.severity is Severity.WARNING
    assert finding.count == 2
    assert "15 min 40 s of full utilisation at near-idle power" in finding.message
    assert finding.found == "43 W above idle"
    assert finding.expected.endswith("W or more above idle while utilisation is high")
