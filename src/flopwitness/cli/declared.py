"""What the logs themselves declare about the hardware, as far as the catalogue knows it."""

from typing import Final

from flopwitness.catalogue.chips import Chip, ChipCatalogue
from flopwitness.foundation.errors import UnknownChipError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.samples import Declaration

__all__ = ["find_declared_chips", "tell_declared", "tell_differences"]

_MOST_TOLD: Final = 3


def find_declared_chips(
    declared: Declaration | None, catalogue: ChipCatalogue, findings: list[Finding]
) -> tuple[Chip, ...]:
    """Every chip that any record of the run declares.

    Args:
        declared: What the records declare together.
        catalogue: The known chips.
        findings: Takes what is told of names that the catalogue does not know.
    """
    chips: list[Chip] = []
    unknown: list[str] = []
    for name in declared.chip_names if declared is not None else ():
        try:
            chips += catalogue.find(name)
        except UnknownChipError:
            unknown.append(name)
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        findings.append(
            Finding(
                code="chip-unknown",
                severity=Severity.WARNING,
                message=(
                    f"the log declares {unknown[0][:80]!r}{more}, which the catalogue does not know; nothing "
                    "here checks --chip"
                ),
                found=unknown[0],
                count=len(unknown),
            )
        )
    return tuple(dict.fromkeys(chips))


def tell_declared(chip: str | None, count: int | None, *, found: str) -> list[Finding]:
    """One finding where the call leaves chip or count to what the logs say and show.

    Args:
        chip: The call's chip.
        count: The call's count.
        found: What the logs say, such as `8 x NVIDIA H100`.
    """
    left = [word for word, stated in (("chip", chip), ("count", count)) if stated is None]
    if not left:
        return []
    verb = "come" if len(left) > 1 else "comes"
    return [
        Finding(
            code="declared-hardware",
            severity=Severity.WARNING,
            message=(
                f"{' and '.join(left)} {verb} from the logs themselves ({found}), which nothing here checks: "
                "what was not logged is not counted"
            ),
            found=found,
        )
    ]


def tell_differences(declared: Declaration | None, catalogue: ChipCatalogue) -> list[Finding]:
    """One finding where records of one run declare other hardware or work; spellings are no difference."""
    if declared is None:
        return []
    differing = list(declared.differing)
    names = _unlike_names(declared, catalogue)
    if len(names) > 1:
        differing.insert(0, " and ".join(repr(name[:80]) for name in names[:_MOST_TOLD]))
    if not differing:
        return []
    more = f", and {len(differing) - _MOST_TOLD} more" if len(differing) > _MOST_TOLD else ""
    return [
        Finding(
            code="declarations-differ",
            severity=Severity.WARNING,
            message=(
                f"records of the run contradict each other: {', '.join(differing[:_MOST_TOLD])}{more}. The "
                "bound covers the fastest chip and the largest number of them"
            ),
            expected="records that agree",
            found=", ".join(differing[:_MOST_TOLD]),
            count=len(differing),
        )
    ]


def _unlike_names(declared: Declaration, catalogue: ChipCatalogue) -> list[str]:
    """The declared names, without those that may mean the same chip as one before."""
    unlike: list[str] = []
    seen: set[Chip] = set()
    for name in declared.chip_names:
        try:
            chips = set(catalogue.find(name))
        except UnknownChipError:
            continue  # told as unknown; it may be a spelling of the others
        if not chips & seen:
            unlike.append(name)
        seen |= chips
    return unlike
