"""A run cut open: every reading stays, the pauses are idle, and time goes on evenly."""

from collections.abc import Callable

import numpy as np
import pytest

from flopwitness.measure.samples import Channel, Series
from flopwitness.simulation.splicing import Spliced, splice_idle

MakeSeries = Callable[..., Series]

SECOND_NS = 10**9


@pytest.fixture
def spliced(make_series: MakeSeries) -> Spliced:
    power = make_series([400 + number for number in range(20)])
    share = make_series([90] * 20, channel=Channel.UTILISATION_PCT)
    start_ns = int(power.utc_ns[0])
    return splice_idle(
        power,
        share,
        places_ns=[start_ns + 5 * SECOND_NS, start_ns + 12 * SECOND_NS],
        idle_w=np.array([60.0, 61.0, 62.0]),
        gap_s=4.0,
        step_s=1.0,
    )


def test_every_reading_stays_in_its_order(spliced: Spliced) -> None:
    kept = spliced.power.value[spliced.power.value >= 400]
    assert kept.tolist() == [400 + number for number in range(20)]
    assert len(spliced.power) == 28


def test_time_goes_on_evenly(spliced: Spliced) -> None:
    assert set(np.diff(spliced.power.utc_ns).tolist()) == {SECOND_NS}
    assert spliced.utilisation.utc_ns.tolist() == spliced.power.utc_ns.tolist()


def test_the_pauses_are_recorded_idle_taken_in_turn(spliced: Spliced) -> None:
    is_idle = spliced.utilisation.value == 0
    assert spliced.power.value[is_idle].tolist() == [60, 61, 62, 60, 61, 62, 60, 61]
    assert spliced.idle_j == sum([60, 61, 62, 60, 61, 62, 60, 61])


def test_no_place_leaves_the_run_as_it_was(make_series: MakeSeries) -> None:
    power, share = make_series([1, 2, 3]), make_series([0, 90, 0], channel=Channel.UTILISATION_PCT)
    whole = splice_idle(power, share, places_ns=[], idle_w=np.array([1.0]), gap_s=6, step_s=1)
    assert whole.power.value.tolist() == [1, 2, 3]
    assert whole.utilisation.value.tolist() == [0, 90, 0]
    assert whole.idle_j == 0
