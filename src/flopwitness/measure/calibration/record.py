"""A calibration: constants, where they hold, and what they were made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from flopwitness.foundation.digest import Digest
from flopwitness.foundation.encoding import JsonValue
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.fitted import Fitted, Method
from flopwitness.measure.estimators.link_operations import LinkModel, gate

__all__ = ["Calibration", "CalibrationData"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationData:
    """What a calibration was made from.

    Attributes:
        tables: The digests of the tables, in the order in which they were handed over.
        rows: The lines of the runs that were used, one tuple a table; ids of runs are not kept.
        n_workloads: How many workloads: runs that repeat each other count once.
        conditions: The conditions on columns, as `column=value`.
        gate_pct: The lowest mean utilisation [%]; None where there was no gate.
    """

    tables: tuple[Digest, ...]
    rows: tuple[tuple[int, ...], ...]
    n_workloads: int
    conditions: tuple[str, ...] = ()
    gate_pct: float | None = None

    @property
    def n_runs(self) -> int:
        """How many runs."""
        return sum(len(rows) for rows in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """What was learnt on one device.

    Attributes:
        fingerprint: The device and its state.
        data: What it was made from.
        fitted: The estimators, the features' ranges, and how energy above idle is made.
        link: The constant of declared operations through link traffic; None where it could not be learnt.
        digest: The digest of the canonical bytes.
        extra: Fields of the record that this version does not know, kept as they stand.
    """

    fingerprint: Fingerprint
    data: CalibrationData
    fitted: Fitted
    link: LinkModel | None
    digest: Digest
    extra: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def link_gate(self) -> float | None:
        """How far log(F_ops / F_energy) may fall below 0 by chance; None without link or efficiency."""
        model = self.fitted.models.get(Method.EFFICIENCY)
        return None if self.link is None or model is None else gate(self.link, model.errors)
