"""What so many chips need and can draw: devices, nodes, watts."""

import math
from collections.abc import Sequence
from typing import Final

from flopwitness.catalogue.chips import Chip
from flopwitness.measure.samples import Declaration, Scope, Series, Trace

__all__ = [
    "CHIPS_IN_A_NODE",
    "covers_limits",
    "device_limit_w",
    "expected_devices",
    "least_count",
    "needed_devices",
    "total_limit_w",
]

CHIPS_IN_A_NODE: Final = 8  # where the catalogue names no server: what most of them hold
_NODE_OVER_CHIPS: Final = 2.5  # no server on record draws more than twice its accelerators' limit
_BOARD_OVER_CHIP: Final = 1.5  # boards whose limit can be raised go to 1.4


def expected_devices(
    trace: Trace, series: Sequence[Series], scope: Scope, chips: Sequence[Chip], count: int
) -> int:
    """How many devices the power should come from: chips, or the nodes that they fill.

    The nodes that a log declares are its word, so they only ever add to what the chips need; but where it
    declares more chips a node than the catalogue's server holds, so many fit.
    """
    declared = trace.declaration.nodes if trace.declaration is not None and scope.is_per_node else None
    return max(declared or 0, len(series), needed_devices(scope, chips, count, declared=trace.declaration))


def needed_devices(
    scope: Scope, chips: Sequence[Chip], count: int, *, declared: Declaration | None = None
) -> int:
    """How many devices so many chips need at least: one each, or the nodes that they fill."""
    if not scope.is_per_node:
        return count
    in_a_node = min(map(_chips_in_a_node, chips))
    if declared is not None and declared.nodes and declared.chips:
        in_a_node = max(in_a_node, declared.chips // declared.nodes)
    return math.ceil(count / in_a_node)


def _chips_in_a_node(chip: Chip) -> int:
    return chip.reference_node.chips if chip.reference_node is not None else CHIPS_IN_A_NODE


def least_count(series: Sequence[Series], scope: Scope, count: int) -> int:
    """How many chips there are at least: each GPU, module or node that was recorded holds one."""
    return count if scope in (Scope.RAIL, Scope.UNKNOWN) else max(count, len(series))


def covers_limits(scope: Scope, chips: Sequence[Chip]) -> bool:
    """Whether the readings hold everything that the chips' power limits speak of.

    A rail's energy beside a whole module's limit would make a bound that is too low.
    """
    if scope is Scope.RAIL:
        return all(chip.power_scope == "rail" for chip in chips)
    if scope in (Scope.GPU, Scope.NODE_GPUS):
        return all(chip.power_scope != "module" for chip in chips)
    return scope.is_node or scope is Scope.MODULE


def device_limit_w(chips: Sequence[Chip], count: int, scope: Scope, n_devices: int) -> float | None:
    """The most that one metered device can draw [W]; None where a chip's power limit is not known.

    However many devices were handed over, any one of them may be a node filled with chips: the others may
    hold none.

    Args:
        chips: The chips that may have been used; the highest limit counts.
        count: How many chips in all.
        scope: What one device is.
        n_devices: Over how many devices the chips are spread.
    """
    limits = []
    for chip in chips:
        if chip.power_limit_w is None:
            return None
        if not scope.is_per_node:
            limits.append(_BOARD_OVER_CHIP * chip.power_limit_w.value)
            continue
        n_chips = max(math.ceil(count / max(1, n_devices)), min(count, _chips_in_a_node(chip)))
        limits.append(n_chips * _node_share_w(chip, chip.power_limit_w.value))
    return max(limits, default=None)


def total_limit_w(chips: Sequence[Chip], count: int, scope: Scope, n_devices: int) -> float | None:
    """The most that all metered devices together can draw [W]; None where a power limit is not known.

    The chips as stated, and beside them in each node as much as a whole node needs for its hosts and fans:
    chips may be spread thinly, and some nodes may hold none.

    Args:
        chips: As for `device_limit_w`.
        count: As for `device_limit_w`.
        scope: As for `device_limit_w`.
        n_devices: How many devices there are.
    """
    limits = []
    for chip in chips:
        if chip.power_limit_w is None:
            return None
        limit_w = chip.power_limit_w.value
        if not scope.is_per_node:
            limits.append(_BOARD_OVER_CHIP * limit_w * max(count, n_devices))
            continue
        host_w = max(0.0, _node_share_w(chip, limit_w) - limit_w) * _chips_in_a_node(chip)
        limits.append(limit_w * count + host_w * max(n_devices, math.ceil(count / _chips_in_a_node(chip))))
    return max(limits, default=None)


def _node_share_w(chip: Chip, limit_w: float) -> float:
    """What a node draws for each of its chips at most [W]."""
    node = chip.reference_node
    return node.power_limit_w.value / node.chips if node is not None else _NODE_OVER_CHIPS * limit_w
