"""Readings without a time, numbered by the sweep over the devices in which they were taken."""

from collections.abc import Hashable, Iterable

__all__ = ["Sweeps"]


class Sweeps:
    """Counts sweeps: a quantity of a device that comes again begins the next one.

    Tools print one table for everything, or one table for each quantity; both make one sweep.
    """

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()
        self._number = 0

    def place(self, device: str, quantities: Iterable[Hashable]) -> int:
        """The number of the sweep, from 0, that readings of these quantities of a device are of."""
        keys = {(device, quantity) for quantity in quantities}
        if not self._seen.isdisjoint(keys):
            self._number += 1
            self._seen.clear()
        self._seen |= keys
        return self._number
