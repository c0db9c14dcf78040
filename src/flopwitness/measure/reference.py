"""Reference classes: how far training runs elsewhere stayed from their chips' peak.

A run that nobody calibrated is compared with runs of known size on other chips. Two quantities carry over:

* `rho`, joules per operation over the chip's power limit per peak rate:  rho = (E / F) / (TDP / peak);
* `mfu`, model-FLOP utilisation:  mfu = F / (chips x time x peak).

They are kept as a mean and a spread of logarithms per class of runs. The table is made by
`campaigns/prior_reference.py` from recordings that are named there; how, and what it cannot see, stands
in docs/adr/0004. It is frozen in `reference.json`; its digest travels with every answer.
"""

import functools
import importlib.resources
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from flopwitness.foundation.digest import Digest, digest_bytes
from flopwitness.foundation.encoding import decode_json, encode_canonical
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.samples import Scope

__all__ = [
    "Load",
    "LogSpread",
    "NodeShare",
    "Quantity",
    "ReferenceClass",
    "ReferenceTable",
    "Unit",
    "Workload",
    "decode_reference",
    "encode_reference",
    "load_reference",
]

SPEC: Final = "flopwitness/prior-reference/v1"
_FEWEST_GROUPS: Final = 4
_NORMAL_95: Final = 1.6448536269514722  # the 95 % quantile of the normal distribution
_LARGEST_LOG: Final = 50.0  # e^50: no ratio of two machines comes near
_NODE_SCOPES: Final = tuple(str(scope) for scope in Scope if scope.is_node)


class Workload(StrEnum):
    """What is known of the workload: only what a user states, never what a log declares."""

    ANY = "any"
    TRANSFORMER = "transformer"


class Load(StrEnum):
    """How hard the chips worked, as their own power shows."""

    NEAR_LIMIT = "near-limit"
    PART_LOAD = "part-load"
    UNKNOWN = "unknown"


class Unit(StrEnum):
    """Which arithmetic unit a precision runs on."""

    MATRIX = "matrix"
    VECTOR = "vector"


class Quantity(StrEnum):
    """What carries over from other runs."""

    RHO = "rho"
    MFU = "mfu"


@functools.lru_cache(maxsize=1024)
def _t_quantile(probability: float, freedom: int) -> float:
    """Student's t quantile; a table of runs asks for the same few again and again."""
    from scipy.special import stdtrit  # noqa: PLC0415 (slow to load, and no help text needs it)

    return float(stdtrit(freedom, probability))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpread:
    """A quantity over a class of runs, in natural logarithms.

    Attributes:
        mean: Mean of the groups' means.
        sd: Spread that a run of a new group shows: between the groups, and within them.
        n_groups: How many groups; a group is one model family on one chip type from one source.
    """

    mean: float
    sd: float
    n_groups: int

    def interval(self, *, level: float, extra_sd: float = 0.0) -> tuple[float, float]:
        """The nominal prediction interval for one run of a new group, in natural units.

        Student's t with n - 1 degrees of freedom and the factor sqrt(1 + 1/n) for the mean's own doubt.

        Args:
            level: Nominal level, such as 0.9.
            extra_sd: Spread of log factors that the class does not hold, such as a node's overhead.
        """
        quantile = _t_quantile((1 + level) / 2, self.n_groups - 1)
        half = quantile * math.hypot(self.sd, extra_sd) * math.sqrt(1 + 1 / self.n_groups)
        return math.exp(self.mean - half), math.exp(self.mean + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceClass:
    """Runs that are alike in what a meter can know.

    Attributes:
        workload: What was trained.
        load: How hard the chips worked.
        unit: Which arithmetic unit they used.
        quantity: What is spread out.
        spread: How it is spread.
    """

    workload: Workload
    load: Load
    unit: Unit
    quantity: Quantity
    spread: LogSpread


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShare:
    """A node's power over its accelerators' power: hosts, fans and conversion losses included.

    Attributes:
        low: 5 % of nodes lie below this ratio.
        high: 5 % lie above it.
        source: Where the two come from.
    """

    low: float
    high: float
    source: str

    @property
    def centre(self) -> float:
        """The ratio in the middle of the range, on the logarithmic scale."""
        return math.sqrt(self.low * self.high)

    @property
    def log_sd(self) -> float:
        """The spread of its logarithm, read as a normal one."""
        return math.log(self.high / self.low) / (2 * _NORMAL_95)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceTable:
    """All classes, with the digest of what they were made from.

    Attributes:
        classes: The classes.
        node_share: Node power over accelerator power, by scope (`node-ac`, `node-dc`, `node`).
        near_limit_from: Power over limit from which a chip counts as working near its limit.
        published_load: Power over limit that stands for published runs whose power nobody recorded.
        evidence: Digest of the rows the classes were made from.
        digest: Digest of the table itself.
    """

    classes: tuple[ReferenceClass, ...]
    node_share: dict[str, NodeShare]
    near_limit_from: float
    published_load: float
    evidence: str
    digest: Digest

    def find(self, *, workload: Workload, load: Load, unit: Unit, quantity: Quantity) -> LogSpread:
        """The spread for a class; where too few groups are known, that of the next wider one.

        Raises:
            KeyError: No class is wide enough; a table without it was refused when it was read.
        """
        for wider in dict.fromkeys([(workload, load), (Workload.ANY, load), (Workload.ANY, Load.UNKNOWN)]):
            for item in self.classes:
                is_it = (item.workload, item.load) == wider and (item.unit, item.quantity) == (unit, quantity)
                if is_it and item.spread.n_groups >= _FEWEST_GROUPS:
                    return item.spread
        raise KeyError((workload, load, unit, quantity))


def encode_reference(table: ReferenceTable) -> bytes:
    """The table's canonical bytes; decoding them gives the table back."""
    record = {
        "spec": SPEC,
        "evidence": table.evidence,
        "near_limit_from": table.near_limit_from,
        "published_load": table.published_load,
        "node_share": {
            scope: {"low": share.low, "high": share.high, "source": share.source}
            for scope, share in table.node_share.items()
        },
        "classes": [
            {
                "workload": str(item.workload),
                "load": str(item.load),
                "unit": str(item.unit),
                "quantity": str(item.quantity),
                "log_mean": item.spread.mean,
                "log_sd": item.spread.sd,
                "n_groups": item.spread.n_groups,
            }
            for item in table.classes
        ],
    }
    return encode_canonical(record)


def decode_reference(data: bytes, *, where: str = "reference.json") -> ReferenceTable:
    """The table that the bytes hold.

    Raises:
        DecodeError: Not such a table, or one without the classes that every answer may fall back on.
    """
    record = decode_json(data, where=where)
    try:
        if record["spec"] != SPEC:
            raise DecodeError("another format", where=where, expected=SPEC, found=str(record["spec"]))
        table = ReferenceTable(
            classes=tuple(_decode_class(item) for item in record["classes"]),
            node_share={scope: _decode_share(record["node_share"][scope]) for scope in _NODE_SCOPES},
            near_limit_from=float(record["near_limit_from"]),
            published_load=float(record["published_load"]),
            evidence=str(record["evidence"]),
            digest=digest_bytes(data),
        )
        for unit in Unit:
            for quantity in Quantity:
                table.find(workload=Workload.ANY, load=Load.UNKNOWN, unit=unit, quantity=quantity)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DecodeError(
            "not a reference table", where=where, expected=SPEC, found=repr(error)[:120]
        ) from None
    return table


def _decode_share(item: dict[str, Any]) -> NodeShare:
    share = NodeShare(low=float(item["low"]), high=float(item["high"]), source=str(item["source"]))
    if not 0 < share.low < share.high < math.inf:
        raise ValueError(f"no share: {share}")
    return share


def _decode_class(item: dict[str, Any]) -> ReferenceClass:
    spread = LogSpread(mean=float(item["log_mean"]), sd=float(item["log_sd"]), n_groups=int(item["n_groups"]))
    if not (abs(spread.mean) < _LARGEST_LOG and 0 < spread.sd < _LARGEST_LOG and spread.n_groups > 1):
        raise ValueError(f"no spread: {spread}")
    return ReferenceClass(
        workload=Workload(item["workload"]),
        load=Load(item["load"]),
        unit=Unit(item["unit"]),
        quantity=Quantity(item["quantity"]),
        spread=spread,
    )


def load_reference() -> ReferenceTable:
    """The frozen table that comes with the package."""
    data = importlib.resources.files("flopwitness.measure").joinpath("reference.json").read_bytes()
    return decode_reference(data)
