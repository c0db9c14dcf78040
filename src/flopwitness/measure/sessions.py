"""When a monitor that polls utilisation sees a session begin and end, as a pure state machine.

The rule is the one of the Jetson daemon: a session begins when utilisation lies above 5 % at two polls in a
row and ends when it lies below at three. Its energy begins with the poll that confirms it, for the daemon
stores nothing before; every session loses its first seconds, and work cut into short pieces loses much of
its energy. That is why totals never go by sessions (`flopwitness.measure.totals`); sessions only name
stretches of time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.energy import integrate_power
from flopwitness.measure.paired import is_later
from flopwitness.measure.samples import RunWindow, Series

__all__ = [
    "Event",
    "Poll",
    "Session",
    "SessionRule",
    "SessionState",
    "Started",
    "Stopped",
    "find_sessions",
    "session_energy",
    "step",
]

_ABOVE: Final = 1
_BELOW: Final = -1
_BETWEEN: Final = 0
_UNKNOWN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRule:
    """When a session begins and ends.

    Attributes:
        start_above_pct: Utilisation that a session begins above [%].
        start_polls: At so many polls in a row.
        stop_below_pct: Utilisation that a session ends below [%].
        stop_polls: At so many polls in a row.
        poll_s: Time between polls [s].
        longest_gap_s: For how long utilisation may be unknown [s] before the session counts as ended, at
            its last known poll; None for ever. A reading is current for as long at most.

    Source:
        The daemon of williamfowler/verification-games; its sums of sessions over cut runs, 0.98, 0.94 and
        0.69 of the energy, come out only where a session begins with the confirming poll.
    """

    start_above_pct: float = 5.0
    start_polls: int = 2
    stop_below_pct: float = 5.0
    stop_polls: int = 3
    poll_s: float = 1.5
    longest_gap_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse a rule by which one poll could both begin and end a session, and polls without length."""
        if not self.start_above_pct >= self.stop_below_pct:
            raise ValueError(
                f"a session that begins above {self.start_above_pct} % cannot end below "
                f"{self.stop_below_pct} %"
            )
        if self.start_polls < 1 or self.stop_polls < 1:
            raise ValueError(f"not a number of polls: {self.start_polls}, {self.stop_polls}")
        if not (isfinite(self.poll_s) and round(self.poll_s * NANOSECOND_PER_SECOND) >= 1):
            raise ValueError(f"not a time between polls: {self.poll_s}")
        if self.longest_gap_s is not None and not self.poll_s <= self.longest_gap_s < float("inf"):
            raise ValueError(f"a gap is no shorter than the time between polls: {self.longest_gap_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What one poll saw.

    Attributes:
        utc_ns: Wall-clock nanoseconds since 1970.
        utilisation_pct: The utilisation [%]; NaN where it is not known, which is neither high nor low.
    """

    utc_ns: int
    utilisation_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """What the rule remembers from one poll to the next.

    Attributes:
        is_on: Whether a session runs.
        n_above: How many polls in a row lay above the start's limit.
        n_below: How many lay below the stop's.
        known_ns: The last poll that saw a value; None before the first.
    """

    is_on: bool = False
    n_above: int = 0
    n_below: int = 0
    known_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A session began with the poll at this time."""

    utc_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A session ended with the poll at this time, or with its last known one before a long gap."""

    utc_ns: int


Event: TypeAlias = Started | Stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A stretch in which a device was in use.

    Attributes:
        start_utc_ns: The poll that confirmed its start.
        stop_utc_ns: The poll that confirmed its end; the last poll where it did not end.
        is_open: Whether it had not ended by then.
    """

    start_utc_ns: int
    stop_utc_ns: int
    is_open: bool = False


def step(rule: SessionRule, state: SessionState, poll: Poll) -> tuple[SessionState, tuple[Event, ...]]:
    """The state after one more poll, and what began or ended with it.

    Unknown utilisation neither begins a session nor ends one: like a value between the limits, it breaks a
    row of polls.

    Args:
        rule: The rule.
        state: What is remembered; `SessionState()` before the first poll.
        poll: The next poll, later than those before.
    """
    events: tuple[Event, ...] = ()
    if _is_lost(rule, state, poll):
        if state.is_on and state.known_ns is not None:
            events = (Stopped(utc_ns=state.known_ns),)
        state = SessionState()
    value = poll.utilisation_pct
    is_known = isfinite(value)
    state = replace(
        state,
        n_above=state.n_above + 1 if is_known and value > rule.start_above_pct else 0,
        n_below=state.n_below + 1 if is_known and value < rule.stop_below_pct else 0,
        known_ns=poll.utc_ns if is_known else state.known_ns,
    )
    if not state.is_on and state.n_above >= rule.start_polls:
        return replace(state, is_on=True), (*events, Started(utc_ns=poll.utc_ns))
    if state.is_on and state.n_below >= rule.stop_polls:
        return replace(state, is_on=False), (*events, Stopped(utc_ns=poll.utc_ns))
    return state, events


def _is_lost(rule: SessionRule, state: SessionState, poll: Poll) -> bool:
    """Whether utilisation has been unknown for too long."""
    if rule.longest_gap_s is None or state.known_ns is None:
        return False
    return poll.utc_ns - state.known_ns > round(rule.longest_gap_s * NANOSECOND_PER_SECOND)


def find_sessions(utilisation: Series, rule: SessionRule) -> tuple[Session, ...]:
    """The sessions that polling a recording would have found.

    Polls begin with the first reading and end with the first poll that sees the last one; each sees the
    reading that is current. The answer is that of `step` poll by poll, counted by runs of like polls, so
    that a recording with a hole of years costs no more than its readings.

    Args:
        utilisation: Utilisation of one device [%]; readings not later than one before them are left out.
        rule: The rule.
    """
    later = is_later(utilisation.utc_ns)
    if not later.any():
        return ()
    utc_ns, value = utilisation.utc_ns[later], utilisation.value[later]
    poll_ns = round(rule.poll_s * NANOSECOND_PER_SECOND)
    runs = _runs_of_polls(utc_ns - utc_ns[0], value, rule, poll_ns)
    origin_ns, sessions = int(utc_ns[0]), []
    start: int | None = None
    for poll, is_start in _turns(runs, rule, poll_ns):
        moment_ns = origin_ns + poll * poll_ns
        if is_start and start is None:
            start = moment_ns
        elif not is_start and start is not None:
            sessions.append(Session(start_utc_ns=start, stop_utc_ns=moment_ns))
            start = None
    if start is not None:
        last_ns = origin_ns + (runs.n_polls - 1) * poll_ns
        sessions.append(Session(start_utc_ns=start, stop_utc_ns=last_ns, is_open=True))
    return tuple(sessions)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of polls of one kind, in order: shape (n,) each."""

    kind: NDArray[np.int8]
    first: NDArray[np.int64]  # the number of the run's first poll
    n_polls: int  # of all runs together


def _runs_of_polls(
    since_ns: NDArray[np.int64], value: NDArray[np.float64], rule: SessionRule, poll_ns: int
) -> _Runs:
    """The polls by what they see; a reading that has grown old is unknown."""
    first = -(-since_ns // poll_ns)
    n_polls = int(first[-1]) + 1
    kind = np.full(value.size, _BETWEEN, dtype=np.int8)
    kind[value > rule.start_above_pct] = _ABOVE
    kind[value < rule.stop_below_pct] = _BELOW
    kind[~np.isfinite(value)] = _UNKNOWN
    if rule.longest_gap_s is not None:
        old = (since_ns + round(rule.longest_gap_s * NANOSECOND_PER_SECOND)) // poll_ns + 1
        first = np.stack([first, np.maximum(first, old)], axis=1).ravel()
        kind = np.stack([kind, np.full_like(kind, _UNKNOWN)], axis=1).ravel()
    following = np.append(first[1:], n_polls)
    first = np.minimum(first, np.minimum.accumulate(following[::-1])[::-1])
    has_polls = np.append(first[1:], n_polls) > first
    first, kind = first[has_polls], kind[has_polls]
    is_new = np.concatenate([[True], np.diff(kind) != 0])
    return _Runs(kind[is_new], first[is_new], n_polls)


def _turns(runs: _Runs, rule: SessionRule, poll_ns: int) -> Iterator[tuple[int, bool]]:
    """The polls at which a session may begin (True) or ends (False), in the order in which they are told."""
    following = np.append(runs.first[1:], runs.n_polls)
    for kind, first, after in zip(runs.kind.tolist(), runs.first.tolist(), following.tolist(), strict=True):
        if kind == _ABOVE and after - first >= rule.start_polls:
            yield first + rule.start_polls - 1, True
        elif kind == _BELOW and after - first >= rule.stop_polls:
            yield first + rule.stop_polls - 1, False
        elif kind == _UNKNOWN and first > 0 and rule.longest_gap_s is not None:
            told = min(after, runs.n_polls - 1)  # the first poll that sees a value again, or the last one
            unknown_ns = (told - first + 1) * poll_ns
            if unknown_ns > round(rule.longest_gap_s * NANOSECOND_PER_SECOND):
                yield first - 1, False


def session_energy(power: Series, session: Session, idle_w: float) -> float:
    """The energy above idle that readings show for one session, its gaps left out [J].

    Args:
        power: Power readings of the device [W].
        session: The session.
        idle_w: What the device draws idle [W].
    """
    window = RunWindow(start_utc_ns=session.start_utc_ns, stop_utc_ns=session.stop_utc_ns)
    energy = integrate_power(power, window=window)
    return energy.measured_j - idle_w * energy.covered_s
