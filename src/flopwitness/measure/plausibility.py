"""Whether the stated hardware can be what the evidence shows.

A count, a chip's name and a power log are three records of one machine. Where they contradict each other, one
of them is wrong, and none of them may put a run below a threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from flopwitness.catalogue.chips import Chip
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Scope

__all__ = ["Hardware", "Power", "assess_power", "settle_hardware"]

_LEAST_NODE_SHARE: Final = 0.3  # an idle server draws 27 to 45 % of its accelerators' limits
_MOST_OVER_SHARE: Final = 0.05
_LEAST_CHIP_SHARE: Final = 0.1  # chips that work draw more than idle ones, which draw 3 to 15 %


class Power(Enum):
    """What a mean power says of the stated hardware."""

    PLAUSIBLE = "plausible"
    TOO_LOW = "too low"
    TOO_HIGH = "too high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The hardware that a bound must cover.

    Attributes:
        chips: Every chip that any record names.
        count: The largest count that any record names; None where none does.
    """

    chips: tuple[Chip, ...]
    count: int | None


def settle_hardware(
    chips: tuple[Chip, ...],
    count: int | None,
    *,
    declared_chips: tuple[Chip, ...],
    declared_count: int | None,
    findings: list[Finding],
) -> Hardware:
    """What the bound covers where the call and the record name different hardware: both.

    Args:
        chips: What the call names.
        count: How many it names.
        declared_chips: What the record itself declares; none where it does not, or where it names a chip
            that the catalogue does not know.
        declared_count: How many it declares.
        findings: Takes what is told of a difference.
    """
    if declared_chips and chips and not set(declared_chips) & set(chips):
        findings.append(
            Finding(
                code="chip-differs",
                severity=Severity.WARNING,
                message=(
                    f"the record declares {_names(declared_chips)}, the call says {_names(chips)}; the "
                    "bound covers the faster of the two"
                ),
                expected=_names(declared_chips),
                found=_names(chips),
            )
        )
    if declared_count is not None and count is not None and declared_count != count:
        findings.append(
            Finding(
                code="count-differs",
                severity=Severity.WARNING,
                message=(
                    f"the record declares {declared_count:,} chips, the call says {count:,}; the bound "
                    "covers the larger number, the estimate goes by the call's"
                ),
                expected=f"{declared_count:,}",
                found=f"{count:,}",
            )
        )
    counts = [number for number in (count, declared_count) if number is not None]
    return Hardware(chips=tuple(dict.fromkeys((*chips, *declared_chips))), count=max(counts, default=None))


def _names(chips: Sequence[Chip]) -> str:
    return " or ".join(chip.id for chip in chips[:3]) + (" or others" if len(chips) > 3 else "")  # noqa: PLR2004


def assess_power(
    working_w: float,
    chips: Sequence[Chip],
    *,
    count: int,
    scope: Scope,
    limit_w: float | None,
    over_share: float,
) -> tuple[Power, list[Finding]]:
    """Whether chips as stated can draw this mean power while they work, and what is told if not.

    Args:
        working_w: Energy-weighted mean power of everything together [W].
        chips: The chips that may have been used.
        count: How many of them.
        scope: What the power covers; a rail or an unrecorded scope is not judged.
        limit_w: The most that everything together can draw [W]; None where it is not known.
        over_share: Share of the readings that lie over one device's limit, 0 to 1; a glitch is not a rule.
    """
    if scope in (Scope.RAIL, Scope.UNKNOWN, Scope.SWITCH):
        return Power.PLAUSIBLE, []
    if limit_w is not None and over_share > _MOST_OVER_SHARE:
        return Power.TOO_HIGH, [
            Finding(
                code="hardware-contradicted",
                severity=Severity.CONTRADICTION,
                message=(
                    f"{100 * over_share:.0f} % of the power readings lie over what {count:,} x "
                    f"{_names(chips)} can draw ({limit_w:,.0f} W in all): there were other chips, or more of "
                    "them. Nothing is estimated, nothing bounds the run"
                ),
                expected=f"at most {limit_w:,.0f} W",
                found=f"{100 * over_share:.0f} % of the readings over it",
            )
        ]
    limits_w = [chip.power_limit_w.value for chip in chips if chip.power_limit_w is not None]
    share = _LEAST_NODE_SHARE if scope.is_node else _LEAST_CHIP_SHARE
    least_w = share * count * min(limits_w, default=0.0)
    if working_w >= least_w:
        return Power.PLAUSIBLE, []
    return Power.TOO_LOW, [
        Finding(
            code="power-under-idle",
            severity=Severity.WARNING,
            message=(
                f"{working_w:,.4g} W for {count:,} x {_names(chips)} is less than they draw idle: the unit, "
                "the scope or the number of devices is wrong, or nothing ran. Energy is not used"
            ),
            expected=f"at least {least_w:,.0f} W",
            found=f"{working_w:,.4g} W",
        )
    ]
