"""The chips of the catalogue as a Markdown table, for docs/chips.md."""

from collections.abc import Iterable

from flopwitness.catalogue.chips import Chip
from flopwitness.catalogue.sourced import Sourced

__all__ = ["render_chip_table"]

_HEAD = ("id", "name", "best dense peak", "precision", "checked", "power limit", "checked")


def render_chip_table(chips: Iterable[Chip]) -> str:
    """One row a chip: its best dense peak, its power limit, and how each was checked; ends in a newline.

    A power limit that is not known is shown as `not known`, never as a number.
    """
    rows = [_HEAD, ("---",) * len(_HEAD), *(_row(chip) for chip in chips)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(chip: Chip) -> tuple[str, ...]:
    """The cells of one chip."""
    precision, peak = chip.peak_best
    return (
        f"`{chip.id}`",
        chip.name,
        _format_rate(peak.value),
        precision.value,
        peak.checked.value,
        *_power_cells(chip.power_limit_w),
    )


def _power_cells(power_limit_w: Sourced | None) -> tuple[str, str]:
    """The power limit and how it was checked."""
    if power_limit_w is None:
        return "not known", ""
    return f"{power_limit_w.value:,g} W", power_limit_w.checked.value


def _format_rate(flop_per_s: float) -> str:
    """The rate in GFLOP/s, TFLOP/s or PFLOP/s with four digits."""
    for limit, scale, unit in ((1e12, 1e9, "GFLOP/s"), (1e15, 1e12, "TFLOP/s")):
        if flop_per_s < limit:
            return f"{flop_per_s / scale:.4g} {unit}"
    return f"{flop_per_s / 1e15:.4g} PFLOP/s"
