"""What a calibration is tied to: chip, number, power mode, clocks, precision, driver, and the meter's scope.

Moved to another device or mode a calibration errs by factors of two to ten, so a field that differs refuses
the point estimate. A field that nobody recorded refuses nothing: it is told.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from flopwitness.catalogue.chips import ChipCatalogue, normalise_name
from flopwitness.foundation.errors import NotCalibratedError, UnknownChipError
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.run_table import RunRow

__all__ = ["MOST_CHIPS", "Difference", "Fingerprint", "fingerprint_of", "name_chips", "settle_fingerprint"]

MOST_CHIPS: Final = 1_000_000_000
_MOST_TOLD: Final = 4
_LONGEST_TEXT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What was recorded of the device and its state; "" or nothing where it was not.

    Attributes:
        chips: The chips that the device may be, by their ids in the catalogue, or a name that is not there.
        count: How many of them.
        scope: What the energy covers.
        power_mode: The power mode or power limit.
        clock_limit: The clock limits.
        driver: The driver's version.
        precisions: The number formats of the arithmetic; of a calibration, all that its runs used.
    """

    chips: tuple[str, ...] = ()
    count: int | None = None
    scope: str = ""
    power_mode: str = ""
    clock_limit: str = ""
    driver: str = ""
    precisions: tuple[str, ...] = ()

    def unrecorded(self) -> tuple[str, ...]:
        """The names of the fields that are not known."""
        return tuple(item.name for item in fields(self) if getattr(self, item.name) in ("", (), None))

    def differences(self, run: "Fingerprint") -> tuple["Difference", ...]:
        """The fields in which a run differs from this calibration; what either does not record is none."""
        found = []
        for item in fields(self):
            own, other = getattr(self, item.name), getattr(run, item.name)
            if own in ("", (), None) or other in ("", (), None):
                continue
            if not _agree(item.name, own, other):
                found.append(Difference(item.name, _told(own), _told(other)))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which a run differs from a calibration."""

    name: str
    calibrated: str
    found: str


def _agree(name: str, own: object, other: object) -> bool:
    if isinstance(own, tuple) and isinstance(other, tuple):
        both = set(own) & set(other)
        return set(other) <= set(own) if name == "precisions" else bool(both)
    if isinstance(own, str) and isinstance(other, str):
        return _fold(own) == _fold(other)
    return own == other


def _fold(text: str) -> str:
    return "".join(text.split()).casefold()


def _told(value: object) -> str:
    return " or ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def name_chips(name: str, catalogue: ChipCatalogue) -> tuple[str, ...]:
    """The ids that a name may mean; the name itself, folded, where the catalogue does not know it."""
    if not name.strip():
        return ()
    try:
        return tuple(sorted(chip.id for chip in catalogue.find_all(name)))
    except UnknownChipError:
        return (normalise_name(name),)


def fingerprint_of(row: RunRow, catalogue: ChipCatalogue) -> Fingerprint:
    """What a row of a table records."""
    return Fingerprint(
        chips=name_chips(row.chip_name, catalogue),
        count=row.count,
        scope="" if row.scope is Scope.UNKNOWN else str(row.scope),
        power_mode=_plain(row.power_mode),
        clock_limit=_plain(row.clock_limit),
        driver=_plain(row.driver),
        precisions=tuple(sorted(row.precisions)),
    )


def _plain(text: str) -> str:
    """The text in the one form that canonical bytes take (NFC), at most a line long."""
    return unicodedata.normalize("NFC", text.strip())[:_LONGEST_TEXT]


def settle_fingerprint(prints: Sequence[Fingerprint]) -> Fingerprint:
    """The one fingerprint of all calibration runs; precisions are gathered, everything else must agree.

    Raises:
        NotCalibratedError: Runs of unlike devices or modes, which one calibration must not mix.
    """
    settled: dict[str, object] = {}
    for item in fields(Fingerprint):
        values = [getattr(each, item.name) for each in prints]
        known = [value for value in values if value not in ("", (), None)]
        if item.name == "precisions":
            settled[item.name] = tuple(sorted({name for value in known for name in value}))
            continue
        distinct = {_fold(value) if isinstance(value, str) else value: value for value in known}
        if len(distinct) > 1:
            told = [_told(value) for value in list(distinct.values())[:_MOST_TOLD]]
            raise NotCalibratedError(
                f"runs that differ in {item.name}",
                expected="runs of one device in one state; --where chooses them",
                found=", ".join(told),
            )
        settled[item.name] = next(iter(distinct.values()), item.default)
    count = settled["count"]
    if isinstance(count, int) and count > MOST_CHIPS:
        raise NotCalibratedError(
            "no such number of chips", expected=f"at most {MOST_CHIPS:,}", found=str(count)
        )
    return Fingerprint(**settled)  # type: ignore[arg-type]  # field by field, as above
