"""Readings without a time, numbered by the sweep over the devices in which they were taken."""

from collections.abc import Hashable

__all__ = ["Sweeps"]


class Sweeps:
    """Counts sweeps: a quantity of a device that comes again begins the next one.

    Tools print one table for everything, or one table for each quantity; both make one sweep.
    """

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()
        self._number = 0

    def place(self, quantities: frozenset[Hashable]) -> int:
        """The number of the sweep, from 0, that readings of these quantities of devices are of."""
        if not self._seen.isdisjoint(quantities):
            self._number += 1
            self._seen.clear()
        self._seen |= quantities
        return self._number
