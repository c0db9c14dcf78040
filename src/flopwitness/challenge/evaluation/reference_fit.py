"""How the prior's reference classes are made, and how well they cover sources they never saw.

A group is one model family on one chip type from one source. Groups weigh alike, however many rows they
have, because rows of one group share their kernels, their sensor and their mistakes. A class is the mean
and the spread of its groups' mean logarithms, the spread within groups added.

No run that a class will be judged on may be among its rows; the judge here leaves whole sources out.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from flopwitness.measure.reference import (
    Load,
    LogSpread,
    Quantity,
    ReferenceClass,
    Unit,
    Workload,
)

__all__ = ["Coverage", "EvidenceRow", "fit_classes", "judge_classes"]

_FEWEST_GROUPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """One training run of known size.

    Attributes:
        source: Who recorded it.
        group: Model family, chip type and source: rows of one group weigh as one.
        is_transformer: Whether a transformer was trained.
        unit: Which arithmetic unit it used.
        mfu: Model-FLOP utilisation of that unit's peak at the run's precision, > 0.
        power_share: Power over power limit, accelerators only, > 0; None where nobody recorded it.
    """

    source: str
    group: str
    is_transformer: bool
    unit: Unit
    mfu: float
    power_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How a class covers sources left out of it.

    Attributes:
        item: The class.
        covered: Groups inside the interval made without their source.
        judged: Groups judged.
        ratio: Median ratio of the interval's ends.
    """

    item: ReferenceClass
    covered: int
    judged: int
    ratio: float


def fit_classes(
    rows: Sequence[EvidenceRow], *, near_limit_from: float, published_load: float
) -> tuple[ReferenceClass, ...]:
    """All classes that at least four groups support.

    Args:
        rows: The evidence.
        near_limit_from: Power share from which a chip works near its limit.
        published_load: Power share that stands for published runs without a power record.
    """
    keys = product(Workload, Load, Unit, Quantity)
    fitted = (_fit(key, rows, near_limit_from, published_load) for key in keys)
    return tuple(item for item in fitted if item is not None)


def _fit(
    key: tuple[Workload, Load, Unit, Quantity],
    rows: Iterable[EvidenceRow],
    near_limit_from: float,
    published_load: float,
) -> ReferenceClass | None:
    workload, load, unit, quantity = key
    groups = _log_groups(key, rows, near_limit_from, published_load)
    spread = _spread(groups)
    if spread is None:
        return None
    return ReferenceClass(workload=workload, load=load, unit=unit, quantity=quantity, spread=spread)


def _log_groups(
    key: tuple[Workload, Load, Unit, Quantity],
    rows: Iterable[EvidenceRow],
    near_limit_from: float,
    published_load: float,
) -> Mapping[str, list[float]]:
    """The logarithms of the quantity, group by group."""
    workload, load, unit, quantity = key
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        share = row.power_share if row.power_share is not None else published_load
        row_load = Load.NEAR_LIMIT if share >= near_limit_from else Load.PART_LOAD
        is_member = row.unit is unit and (workload is Workload.ANY or row.is_transformer)
        if is_member and load in (Load.UNKNOWN, row_load):
            groups[row.group].append(math.log(row.mfu if quantity is Quantity.MFU else share / row.mfu))
    return groups


def _spread(groups: Mapping[str, Sequence[float]]) -> LogSpread | None:
    """Mean and spread over the groups, each of them once; None for fewer than four."""
    if len(groups) < _FEWEST_GROUPS:
        return None
    means = np.array([np.mean(group) for group in groups.values()])
    within = [float(np.var(group, ddof=1)) for group in groups.values() if len(group) > 1]
    variance = float(np.var(means, ddof=1)) + (float(np.mean(within)) if within else 0.0)
    return LogSpread(
        mean=_rounded(float(means.mean())), sd=_rounded(math.sqrt(variance)), n_groups=len(groups)
    )


def _rounded(value: float) -> float:
    """Six decimals: the last bits of a logarithm differ between machines, and no doubt is that small."""
    return round(value, 6)


def judge_classes(
    rows: Sequence[EvidenceRow],
    *,
    near_limit_from: float,
    published_load: float,
    level: float = 0.9,
    leave_out: Callable[[EvidenceRow], str] = lambda row: row.source,
) -> tuple[Coverage, ...]:
    """How often the interval made without a source holds the mean of that source's groups.

    Args:
        rows: The evidence.
        near_limit_from: As in `fit_classes`.
        published_load: As in `fit_classes`.
        level: Nominal level of the intervals.
        leave_out: What is left out together.
    """
    answers = []
    for item in fit_classes(rows, near_limit_from=near_limit_from, published_load=published_load):
        key = (item.workload, item.load, item.unit, item.quantity)
        covered = judged = 0
        ratios = []
        for name in sorted({leave_out(row) for row in rows}):
            rest = [row for row in rows if leave_out(row) != name]
            spread = _spread(_log_groups(key, rest, near_limit_from, published_load))
            if spread is None:
                continue
            low, high = spread.interval(level=level)
            mine = [row for row in rows if leave_out(row) == name]
            for group in _log_groups(key, mine, near_limit_from, published_load).values():
                covered += low <= math.exp(float(np.mean(group))) <= high
                judged += 1
                ratios.append(high / low)
        answers.append(
            Coverage(
                item=item,
                covered=covered,
                judged=judged,
                ratio=float(np.median(ratios)) if ratios else math.nan,
            )
        )
    return tuple(answers)
