"""Small recordings made in memory, and the catalogues that ship with the package."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from flopwitness.catalogue.chips import ChipCatalogue, load_chips
from flopwitness.measure.reference import ReferenceTable, load_reference
from flopwitness.measure.samples import Channel, RunWindow, Scope, Series

START_NS = 1_700_000_000 * 10**9


def _ticks(time_s: Sequence[float]) -> list[int]:
    return [START_NS + round(1_000_000 * moment_s) * 1_000 for moment_s in time_s]


def _make_series(
    power_w: Sequence[float],
    *,
    time_s: Sequence[float] | None = None,
    monotonic_s: Sequence[float] | None = None,
    device: str = "gpu_0",
    scope: Scope = Scope.GPU,
    channel: Channel = Channel.POWER_W,
    conversion: float = 1.0,
    is_estimate: bool = False,
) -> Series:
    """Power readings, one a second from the start of the tests' time where no times are given."""
    return Series(
        device=device,
        channel=channel,
        scope=scope,
        utc_ns=np.array(_ticks(time_s if time_s is not None else range(len(power_w))), dtype=np.int64),
        value=np.array(power_w, dtype=np.float64),
        monotonic_ns=None if monotonic_s is None else np.array(_ticks(monotonic_s), dtype=np.int64),
        conversion=conversion,
        is_estimate=is_estimate,
    )


def _make_window(start_s: float, stop_s: float | None, status: str = "") -> RunWindow:
    return RunWindow(
        start_utc_ns=_ticks([start_s])[0],
        stop_utc_ns=None if stop_s is None else _ticks([stop_s])[0],
        status=status,
    )


@pytest.fixture(scope="session")
def make_series() -> Callable[..., Series]:
    """How a test makes a power series; seconds count from the start of the tests' time."""
    return _make_series


@pytest.fixture(scope="session")
def make_window() -> Callable[..., RunWindow]:
    """How a test marks a run, in the same seconds."""
    return _make_window


@pytest.fixture(scope="session")
def chips() -> ChipCatalogue:
    """The chip catalogue that ships with the package."""
    return load_chips()


@pytest.fixture(scope="session")
def reference() -> ReferenceTable:
    """The reference table that ships with the package."""
    return load_reference()
