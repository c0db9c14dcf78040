"""Which column of a run table is which quantity: a vocabulary, its units, and the reading of one cell.

Tables of training runs come from many hands. Each header is looked up in one table of accepted spellings;
its unit stands in the header itself and gives the factor. A header that promises a known quantity in a
unit that is missing, unknown or ambiguous is refused and recorded: a wrong factor would be a silent lie of
many orders of magnitude. Everything that is merely not known is ignored by name. Hyperparameters, step
counts and published utilisations (MFU, HFU) are in no vocabulary, so that they cannot reach a prediction.

Sources of the spellings: this project's own names; the run tables of the verification-games repository;
Epoch AI, "Data on AI Models" (epoch.ai); ml-energy/zeus trace summaries; GAISSA-UPC/seaa2023_ect.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from flopwitness.foundation.errors import DecodeError
from flopwitness.foundation.units import JOULE_PER_KWH, SECOND_PER_HOUR, parse_flop
from flopwitness.measure.samples import Scope, Skipped

__all__ = [
    "CellValue",
    "Column",
    "ColumnPlan",
    "Dimension",
    "is_plain_number",
    "plan_columns",
    "read_cell",
    "split_chip",
]

CellValue = str | int | float | tuple[str, ...] | Scope


class Dimension(StrEnum):
    """What kind of quantity a field holds; it decides which units a header may name."""

    TEXT = "text"
    PRECISIONS = "precisions"
    SCOPE = "scope"
    COUNT = "count"
    FLOP = "flop"
    TIME = "time"
    ENERGY = "energy"
    POWER = "power"
    SHARE = "share"
    TRAFFIC = "traffic"


_ONE: Final = Fraction(1)
_MILLI: Final = Fraction(1, 1000)
_WH: Final = Fraction(JOULE_PER_KWH, 1000)
_HOUR: Final = Fraction(SECOND_PER_HOUR)

# Written in lower case where case carries no meaning. A leading m or M is compared as it stands: mJ is not
# MJ. Lower-case `mj` and `mw` are milli, as NVML and zeus write them; lower-case `mwh` has no such custom.
_UNITS: Final[Mapping[Dimension, Mapping[str, Fraction]]] = {
    Dimension.FLOP: {
        "flop": _ONE,
        "gflop": Fraction(10**9),
        "tflop": Fraction(10**12),
        "pflop": Fraction(10**15),
        "eflop": Fraction(10**18),
        "zflop": Fraction(10**21),
    },
    Dimension.TIME: {
        **dict.fromkeys(("s", "sec", "second", "seconds"), _ONE),
        **dict.fromkeys(("min", "minute", "minutes"), Fraction(60)),
        **dict.fromkeys(("h", "hr", "hour", "hours"), _HOUR),
        **dict.fromkeys(("d", "day", "days"), 24 * _HOUR),
        "ms": _MILLI,
    },
    Dimension.ENERGY: {
        **dict.fromkeys(("mJ", "mj"), _MILLI),
        "j": _ONE,
        "kj": Fraction(10**3),
        "MJ": Fraction(10**6),
        "gj": Fraction(10**9),
        "mWh": _WH * _MILLI,
        "wh": _WH,
        "kwh": _WH * 10**3,
        "MWh": _WH * 10**6,
        "gwh": _WH * 10**9,
    },
    Dimension.POWER: {
        **dict.fromkeys(("mW", "mw"), _MILLI),
        "w": _ONE,
        "kw": Fraction(10**3),
        "MW": Fraction(10**6),
    },
    Dimension.SHARE: dict.fromkeys(("%", "pct", "percent"), _ONE),
    Dimension.TRAFFIC: {
        **dict.fromkeys(("b", "byte", "bytes"), Fraction(1, 10**12)),
        **dict.fromkeys(("MB", "mb"), Fraction(1, 10**6)),
        "gb": Fraction(1, 10**3),
        "tb": _ONE,
        "pb": Fraction(10**3),
        "gib": Fraction(2**30, 10**12),
        "tib": Fraction(2**40, 10**12),
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """One quantity of a run.

    Attributes:
        name: The field of a run row.
        dimension: What kind of quantity it is.
        spellings: Folded header stems, the preferred one first.
        may_be_zero: Whether zero is a reading; a run of no length, no chip or no energy is not.
        bare_unit: Stems whose table is known to leave its unit out, with that unit.
    """

    name: str
    dimension: Dimension
    spellings: tuple[str, ...]
    may_be_zero: bool = True
    bare_unit: Mapping[str, str] | None = None


_FIELDS: Final = (
    _Field(name="run_id", dimension=Dimension.TEXT, spellings=("run_id", "model")),
    _Field(
        name="chip_name",
        dimension=Dimension.TEXT,
        spellings=(
            "chip",
            "chip_name",
            "device",
            "gpu_model",
            "gpu_name",
            "training_hardware",
            "accelerator",
        ),
    ),
    _Field(
        name="count",
        dimension=Dimension.COUNT,
        spellings=(
            "count",
            "chip_count",
            "n_chips",
            "gpu_count",
            "n_gpus",
            "hardware_quantity",
            "world_size",
        ),
        may_be_zero=False,
    ),
    _Field(
        name="duration_s",
        dimension=Dimension.TIME,
        spellings=("duration", "training_duration", "training_time", "time_per_epoch"),
        may_be_zero=False,
        bare_unit={"time_per_epoch": "s"},
    ),
    _Field(
        name="energy_j",
        dimension=Dimension.ENERGY,
        spellings=("energy", "total_energy", "training_energy"),
        may_be_zero=False,
    ),
    _Field(name="net_energy_j", dimension=Dimension.ENERGY, spellings=("net_energy",)),
    _Field(name="idle_power_w", dimension=Dimension.POWER, spellings=("idle_power",)),
    _Field(
        name="mean_power_w",
        dimension=Dimension.POWER,
        spellings=("mean_power", "average_power", "average_power_draw"),
        may_be_zero=False,
        bare_unit={"average_power": "W"},
    ),
    _Field(name="scope", dimension=Dimension.SCOPE, spellings=("scope", "energy_scope")),
    _Field(name="power_mode", dimension=Dimension.TEXT, spellings=("power_mode", "power_limit")),
    _Field(name="clock_limit", dimension=Dimension.TEXT, spellings=("clock_limit", "clock_limits")),
    _Field(name="driver", dimension=Dimension.TEXT, spellings=("driver", "driver_version")),
    _Field(
        name="precisions",
        dimension=Dimension.PRECISIONS,
        spellings=("precisions", "precision", "numerical_format"),
    ),
    _Field(
        name="utilisation_pct",
        dimension=Dimension.SHARE,
        spellings=("utilisation", "mean_utilisation", "utilization", "mean_utilization", "gpu_usage"),
    ),
    _Field(name="memory_traffic_tb", dimension=Dimension.TRAFFIC, spellings=("memory_traffic",)),
    _Field(name="link_traffic_tb", dimension=Dimension.TRAFFIC, spellings=("link_traffic",)),
    _Field(name="host_traffic_tb", dimension=Dimension.TRAFFIC, spellings=("host_traffic",)),
    _Field(name="true_flop", dimension=Dimension.FLOP, spellings=("true",)),
    _Field(name="declared_flop", dimension=Dimension.FLOP, spellings=("declared", "training_compute")),
    _Field(name="finetune_flop", dimension=Dimension.FLOP, spellings=("finetune", "finetune_compute")),
    _Field(name="base_model", dimension=Dimension.TEXT, spellings=("base_model",)),
)

_BY_STEM: Final = {spelling: field for field in _FIELDS for spelling in field.spellings}
_RANK: Final = {spelling: rank for field in _FIELDS for rank, spelling in enumerate(field.spellings)}
_NUMBERS: Final = frozenset({*_UNITS, Dimension.COUNT})

# In a table of model scores `precision` is a share of right answers, and stands beside `recall`.
_SCORE_BESIDE_PRECISION: Final = "recall"

_NUMBER: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_LONGEST_NUMBER: Final = 64
_LONGEST_HEADER: Final = 256
_LARGEST_VALUE: Final = 1e100
_LARGEST_FLOP: Final = 10**64 - 1
_FULL_SHARE_PCT: Final = 100.0

_FORMAT_NAME: Final = re.compile(r"(?:fp|bf|tf|int|uint|mxfp|nvfp)[0-9]{1,2}(?:_e[0-9]m[0-9])?")
_FORMAT_ALIASES: Final[Mapping[str, str]] = {
    "bfloat16": "bf16",
    "double": "fp64",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "float8": "fp8",
    "half": "fp16",
    "single": "fp32",
}
_CHIP_TIMES: Final = re.compile(r"([1-9][0-9]{0,6}) ?[x\u00d7][-_ ]?(?=[A-Za-z])(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column that was understood.

    Attributes:
        index: Its place in the table, from 0.
        header: Its name as it stands.
        field: The field of a run row that it fills.
        dimension: What kind of quantity it holds.
        factor: What one of its units is in the field's unit; 1 for text.
        may_be_zero: Whether zero is a reading.
    """

    index: int
    header: str
    field: str
    dimension: Dimension
    factor: Fraction = _ONE
    may_be_zero: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """How a header was understood.

    Attributes:
        columns: The columns that are used, in the order of the table.
        ignored: The names of all others, the refused ones included.
        refused: Columns that promise a known quantity and cannot be trusted with it: why, and where.
    """

    columns: tuple[Column, ...]
    ignored: tuple[str, ...]
    refused: tuple[Skipped, ...]

    def has(self, *fields: str) -> bool:
        """Whether any column fills one of `fields`."""
        return any(column.field in fields for column in self.columns)


def plan_columns(headers: Sequence[str], *, where: str) -> ColumnPlan:
    """What each column of a table holds.

    Several columns may fill one number, which must then agree row by row; of several that fill one text,
    the spelling that stands first in the vocabulary is used.

    Args:
        headers: The column names, in the order of the table.
        where: File and line of the header, to locate a refusal.
    """
    folded = {_fold(header) for header in headers}
    columns: list[Column] = []
    refused: list[Skipped] = []
    for index, header in enumerate(headers):
        if _fold(header) == "precision" and _SCORE_BESIDE_PRECISION in folded:
            continue
        try:
            column = _match(index, header, where=where)
        except DecodeError as error:
            refused.append(Skipped(where=error.where, expected=error.expected, found=error.found))
            continue
        if column is not None:
            columns.append(column)
    used = _one_column_per_text(columns)
    indexes = {column.index for column in used}
    return ColumnPlan(
        columns=used,
        ignored=tuple(header for index, header in enumerate(headers) if index not in indexes),
        refused=tuple(refused),
    )


def read_cell(column: Column, text: str, *, where: str) -> CellValue | None:
    """What a cell says, in the unit of its field; None where it is empty.

    FLOP and counts are read exactly, as the whole number that the decimal text denotes. A count in a larger
    unit, such as TFLOP, is rounded to the nearest whole operation.

    Args:
        column: The column that it stands in.
        text: The cell as it stands.
        where: The place to name in an error.

    Raises:
        DecodeError: The text is not such a quantity: negative, NaN, infinite, not whole, out of range.
    """
    text = text.strip()
    if not text:
        return None
    match column.dimension:
        case Dimension.TEXT:
            return text
        case Dimension.PRECISIONS:
            return _read_precisions(text, where=where)
        case Dimension.SCOPE:
            return _read_scope(text, where=where)
        case Dimension.COUNT | Dimension.FLOP:
            return _read_whole(column, text, where=where)
        case _:
            return _read_quantity(column, text, where=where)


def split_chip(name: str) -> tuple[int | None, str]:
    """How many chips a name such as `2x-v100-sxm2-16gb` means (None where it does not say), and which."""
    match = _CHIP_TIMES.fullmatch(name)
    return (None, name) if match is None else (int(match[1]), match[2])


def is_plain_number(text: str) -> bool:
    """Whether a text is a decimal number without a sign, at most 64 characters long."""
    return len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) is not None


def _fold(name: str) -> str:
    """A header without case, and with white space, hyphens and underscores as one underscore."""
    return re.sub(r"[\s_-]+", "_", name.strip()[:_LONGEST_HEADER]).lower()


def _match(index: int, header: str, *, where: str) -> Column | None:
    """The column that a header stands for; None where no vocabulary knows it.

    Raises:
        DecodeError: A known quantity in a unit that is missing, unknown or ambiguous.
    """
    name = header.strip()
    if len(name) > _LONGEST_HEADER:
        return None
    stem, unit = _split_unit(name)
    field = _BY_STEM.get(stem)
    if field is None:
        return None
    factor = _ONE
    if field.dimension in _UNITS:
        factor = _unit_factor(field, stem, unit, header=name, where=where)
    elif unit:
        return None
    return Column(
        index=index,
        header=header,
        field=field.name,
        dimension=field.dimension,
        factor=factor,
        may_be_zero=field.may_be_zero,
    )


def _split_unit(name: str) -> tuple[str, str]:
    """The folded stem of a header, and the unit that it ends with: `(MJ)`, `[W]`, `_kwh`; "" for none."""
    for opening, closing in ("()", "[]"):
        if name.endswith(closing) and opening in name:
            stem, _, unit = name[:-1].rpartition(opening)
            return _fold(stem), unit.strip()
    whole = _fold(name)
    if whole in _BY_STEM:
        return whole, ""
    ending = re.fullmatch(r"(.+?)[\s_-]+([^\s_-]+)", name)
    if ending is None:
        return whole, ""
    stem, unit = _fold(ending[1]), ending[2]
    field = _BY_STEM.get(stem)
    units = {spelled.lower() for spelled in _UNITS.get(field.dimension, {})} if field else set()
    return (stem, unit) if unit.lower() in units else (whole, "")


def _unit_factor(field: _Field, stem: str, unit: str, *, header: str, where: str) -> Fraction:
    """What one unit of the header is in the field's unit.

    In a header of capitals a leading M may be milli or mega, so that it is refused.
    """
    units = _UNITS[field.dimension]
    unit = unit or (field.bare_unit or {}).get(stem, "")
    is_lettered = unit[:1] in ("m", "M")
    factor = units.get(unit) if is_lettered else units.get(unit.lower())
    if factor is None or (unit[:1] == "M" and header.isupper()):
        raise DecodeError(
            "a column without a unit that is known",
            where=f"{where}, column {header}",
            expected=f"a unit of {field.dimension} in the header: {', '.join(units)}",
            found=repr(unit) if unit else "no unit",
        )
    return factor


def _one_column_per_text(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns without those that fill a text which a preferred spelling fills too."""
    words = [column for column in columns if column.dimension not in _NUMBERS]
    best: dict[str, Column] = {}
    for column in sorted(words, key=lambda column: _RANK[_fold(column.header)]):
        best.setdefault(column.field, column)
    return tuple(column for column in columns if best.get(column.field, column) is column)


def _read_precisions(text: str, *, where: str) -> tuple[str, ...]:
    names = [name.lower() for name in re.split(r"[\s,;/+|]+", text[:_LONGEST_HEADER]) if name]
    formats = tuple(dict.fromkeys(_FORMAT_ALIASES.get(name, name) for name in names))
    if not formats or not all(_FORMAT_NAME.fullmatch(name) for name in formats):
        raise DecodeError(
            "not a number format", where=where, expected="names such as fp32 or bf16", found=repr(text[:80])
        )
    return formats


def _read_scope(text: str, *, where: str) -> Scope:
    try:
        return Scope(_fold(text).replace("_", "-"))
    except ValueError:
        raise DecodeError(
            "not a scope", where=where, expected=f"one of {', '.join(Scope)}", found=repr(text[:80])
        ) from None


def _read_whole(column: Column, text: str, *, where: str) -> int:
    """The exact whole number, scaled by the column's unit."""
    if not is_plain_number(text):
        raise _refuse_number(column, text, where=where)
    value = parse_flop(text, where=where) if column.factor == 1 else round(Fraction(text) * column.factor)
    if value > _LARGEST_FLOP or (value == 0 and not column.may_be_zero):
        raise _refuse_number(column, text, where=where)
    return value


def _read_quantity(column: Column, text: str, *, where: str) -> float:
    """The double next to the exact value in the unit of the field."""
    if not is_plain_number(text):
        raise _refuse_number(column, text, where=where)
    value = float(text) if column.factor == 1 else Fraction(text) * column.factor
    is_too_large = value > (_FULL_SHARE_PCT if column.dimension is Dimension.SHARE else _LARGEST_VALUE)
    if is_too_large or (float(value) == 0 and not column.may_be_zero):
        raise _refuse_number(column, text, where=where)
    return float(value)


def _refuse_number(column: Column, text: str, *, where: str) -> DecodeError:
    lower = "at least 0" if column.may_be_zero else "above 0"
    upper = " and at most 100" if column.dimension is Dimension.SHARE else ""
    return DecodeError(
        "not such a number", where=where, expected=f"a decimal number {lower}{upper}", found=repr(text[:80])
    )
