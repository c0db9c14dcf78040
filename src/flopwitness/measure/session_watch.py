"""The session rule over readings as they come: it polls at its own pace and sees the current reading.

The answer is that of `find_sessions` over the same readings, told while they come.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from flopwitness.foundation.units import NANOSECOND_PER_SECOND
from flopwitness.measure.sessions import Event, Poll, SessionRule, SessionState, step

__all__ = ["SessionWatch"]


@dataclass(slots=True, kw_only=True)
class SessionWatch:
    """One device's utilisation under a rule.

    Attributes:
        rule: The rule.
    """

    rule: SessionRule
    _state: SessionState = field(default_factory=SessionState)
    _due_ns: int | None = None
    _seen_ns: int = 0
    _held: float = float("nan")

    def see(self, utc_ns: int, utilisation_pct: float) -> Iterator[Event]:
        """What began or ended before a reading; readings not later than one before are left out.

        Args:
            utc_ns: When it was read.
            utilisation_pct: The reading [%]; NaN where it is missing.
        """
        if self._due_ns is None:
            self._due_ns = utc_ns
        elif utc_ns <= self._seen_ns:
            return
        yield from self._poll_until(utc_ns)
        self._seen_ns, self._held = utc_ns, utilisation_pct

    def end(self) -> Iterator[Event]:
        """What began or ended with the first poll that sees the last reading."""
        if self._due_ns is not None:
            yield from self._poll_until(max(self._seen_ns, self._due_ns) + 1)

    def _poll_until(self, before_ns: int) -> Iterator[Event]:
        """The polls that are due before an instant; like ones in a long row are passed over."""
        poll_ns = round(self.rule.poll_s * NANOSECOND_PER_SECOND)
        gap_s = self.rule.longest_gap_s
        gap_ns = 0 if gap_s is None else round(gap_s * NANOSECOND_PER_SECOND)
        row = max(self.rule.start_polls, self.rule.stop_polls) + 2 * (gap_ns // poll_ns + 2)
        due_ns = self._due_ns or 0
        n_polled = 0
        while due_ns < before_ns:
            is_old = gap_s is not None and due_ns - self._seen_ns > gap_ns
            value = float("nan") if is_old else self._held
            self._state, events = step(self.rule, self._state, Poll(utc_ns=due_ns, utilisation_pct=value))
            yield from events
            n_polled += 1
            skipped = (before_ns - 1 - due_ns) // poll_ns if n_polled > row else 0
            due_ns += poll_ns * max(1, skipped)
        self._due_ns = due_ns
