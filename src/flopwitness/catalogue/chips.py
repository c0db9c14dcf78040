"""What is known of each accelerator: peak rates, memory, links and power, every figure with its source.

An upper bound on compute is only as honest as the peak that it divides by. So a peak here is the *dense*
rate of one chip at its boost clock, a multiply-add counted as 2, and a figure printed "with sparsity" is
halved. `peak_best` is the highest rate of any precision, integer included: a bound must hold for whatever
the chip can do. Binary (int1) tensor rates are left out: their XOR-and-count is no multiply-add, and nothing
is trained with it. An unknown chip or precision is an error, never a default.

The facts stand in `chips.toml` beside this file; docs/chips.md says how one is added.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import resources
from types import MappingProxyType
from typing import Final

from flopwitness.catalogue.sourced import (
    Checked,
    Source,
    Sourced,
    decode_sourced,
    decode_sources,
    positive_number,
)
from flopwitness.foundation.errors import OutOfRangeError, UnknownChipError
from flopwitness.foundation.toml_table import TomlTable, decode_toml

__all__ = [
    "Chip",
    "ChipCatalogue",
    "EpochDifference",
    "Kind",
    "PowerMode",
    "Precision",
    "ReferenceNode",
    "decode_chips",
    "load_chips",
    "normalise_name",
]


class Precision(StrEnum):
    """The number format of a multiply-add's inputs, and the unit that does it where a chip has two.

    Without a suffix: the tensor or matrix unit for fp16 and narrower where there is one, else the vector
    unit; the vector unit for fp32 and fp64.
    """

    FP64 = "fp64"
    FP64_TENSOR = "fp64-tensor"
    FP32 = "fp32"
    FP32_TENSOR = "fp32-tensor"
    TF32 = "tf32"
    FP16 = "fp16"
    FP16_VECTOR = "fp16-vector"
    BF16 = "bf16"
    FP8 = "fp8"
    FP6 = "fp6"
    FP4 = "fp4"
    INT8 = "int8"
    INT4 = "int4"


class Kind(StrEnum):
    """What one chip of the catalogue is, and so what `chips` counts."""

    GPU = "gpu"  # a card or a socketed module with one GPU, or with two dies sold as one
    MODULE = "module"  # a whole small computer, such as a Jetson
    ASIC = "asic"  # an accelerator for matrix products
    WAFER = "wafer"  # a system around one wafer


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerMode:
    """One power mode of a module.

    Attributes:
        name: The mode's name as `nvpmodel` prints it.
        power_limit_w: The budget [W]; None where the mode has none or it is not known.
        gpu_clock_hz: The highest GPU clock [Hz]; None where it is not known.
    """

    name: str
    power_limit_w: Sourced | None
    gpu_clock_hz: Sourced | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceNode:
    """A server that the chip is sold in.

    Attributes:
        name: The server's name.
        chips: How many of the chip it holds.
        power_limit_w: The most that the whole server draws [W].
    """

    name: str
    chips: int
    power_limit_w: Sourced


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One accelerator.

    Attributes:
        id: The short name, such as `h100-sxm`.
        vendor: Who makes it.
        name: The name for a person's eye.
        kind: What one chip is.
        aliases: Other names that mean this chip alone.
        families: Names that mean this chip among others, such as `H100`.
        peak_flop_per_s: Dense peak rates [FLOP/s], or operations per second for integers; never empty.
        memory_byte: Memory [byte]; printed GB and GiB are both read as 1e9 byte.
        memory_bandwidth_byte_per_s: Memory bandwidth [byte/s].
        link_bandwidth_byte_per_s: Bandwidth to other chips, both directions together [byte/s].
        power_limit_w: Thermal design or board power [W].
        power_scope: What its own power reading covers: `gpu`, `module`, `rail` or `unknown`.
        power_modes: Its power modes by name; empty for most chips.
        reference_node: A server that it is sold in; None where none is recorded.
    """

    id: str
    vendor: str
    name: str
    kind: Kind
    aliases: tuple[str, ...]
    families: tuple[str, ...]
    peak_flop_per_s: Mapping[Precision, Sourced] = field(hash=False)
    memory_byte: Sourced | None
    memory_bandwidth_byte_per_s: Sourced | None
    link_bandwidth_byte_per_s: Sourced | None
    power_limit_w: Sourced | None
    power_scope: str
    power_modes: Mapping[str, PowerMode] = field(hash=False)
    reference_node: ReferenceNode | None

    @property
    def peak_best(self) -> tuple[Precision, Sourced]:
        """The highest dense rate of any precision, integer included; among equals the best checked one."""
        order = list(Checked)
        return max(
            self.peak_flop_per_s.items(), key=lambda item: (item[1].value, -order.index(item[1].checked))
        )

    def peak(self, precision: Precision) -> Sourced:
        """The dense peak rate at `precision` [FLOP/s].

        Raises:
            OutOfRangeError: The chip does not have this precision, or its rate is not known.
        """
        if precision not in self.peak_flop_per_s:
            raise OutOfRangeError(
                f"no peak rate at {precision} is known",
                where=self.id,
                expected=", ".join(self.peak_flop_per_s),
                found=precision,
            )
        return self.peak_flop_per_s[precision]

    def in_mode(self, mode: str) -> "Chip":
        """The chip as it is in one of its power modes.

        Peaks shrink in proportion to the GPU clock; where a mode's clock is not known they stay, because
        too high a peak only loosens a bound.

        Raises:
            OutOfRangeError: The chip has no such mode.
        """
        if mode not in self.power_modes:
            modes = ", ".join(self.power_modes) or "no power modes"
            raise OutOfRangeError("no such power mode", where=self.id, expected=modes, found=mode[:80])
        chosen = self.power_modes[mode]
        clocks = [m.gpu_clock_hz.value for m in self.power_modes.values() if m.gpu_clock_hz is not None]
        scale = chosen.gpu_clock_hz.value / max(clocks) if chosen.gpu_clock_hz is not None else 1.0
        peaks = {
            precision: replace(
                peak, value=peak.value * scale, conditions=f"{peak.conditions}; at the clock of mode {mode}"
            )
            for precision, peak in self.peak_flop_per_s.items()
        }
        return replace(
            self,
            peak_flop_per_s=MappingProxyType(peaks),
            power_limit_w=chosen.power_limit_w or self.power_limit_w,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochDifference:
    """Why a figure here differs from Epoch AI's table of ML hardware by more than 5 %.

    Attributes:
        chip: The chip's id.
        field: The figure: a `Precision` value, or the name of a field of `Chip`. `fp16` is Epoch's column
            for tensor units, compared with the higher of fp16 and bf16; `fp16-vector` is its column for half
            precision, compared with the vector rate where there is one.
        epoch: What Epoch's table says, in the unit of the field.
        ours: What stands here; None where nothing does.
        reason: Why.
    """

    chip: str
    field: str
    epoch: float
    ours: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipCatalogue:
    """All chips, found by any of their names.

    Attributes:
        chips: The chips in the order of the file.
        epoch_differences: The explained differences from Epoch AI's table.
        names: Normalised name -> the chips that it may mean; built by `decode_chips`.
    """

    chips: tuple[Chip, ...]
    epoch_differences: tuple[EpochDifference, ...]
    names: Mapping[str, tuple[Chip, ...]] = field(repr=False, hash=False)

    def find(self, name: str) -> tuple[Chip, ...]:
        """The chips that a name may mean: one for an id or alias, all variants for a family such as `A100`.

        Case, vendor, spaces, hyphens and the like do not matter. Where several come back, a bound must take
        the highest of them.

        Raises:
            UnknownChipError: No chip is called so; the nearest names are suggested.
        """
        key = normalise_name(name)
        if key not in self.names:
            raise UnknownChipError(
                "no chip of this name", expected=self._suggestion(key), found=repr(name[:80])
            )
        return self.names[key]

    def find_all(self, names: str) -> tuple[Chip, ...]:
        """The chips that a comma-separated list of names may mean, each once, in the order of the list.

        Raises:
            UnknownChipError: One of the names is unknown, or the list holds none.
        """
        parts = [part for part in names.split(",") if part.strip()]
        if not parts:
            raise UnknownChipError("no chip is named", found=repr(names[:80]))
        return tuple({chip.id: chip for part in parts for chip in self.find(part)}.values())

    def _suggestion(self, key: str) -> str:
        """The catalogue's names that are nearest to a key, for an error."""
        near = difflib.get_close_matches(key, self.names, n=3, cutoff=0.5)
        shown = {normalise_name(name): name for chip in self.chips for name in _all_names(chip)}
        return " or ".join(shown[match] for match in near) or "a name listed in docs/chips.md"


def load_chips() -> ChipCatalogue:
    """The catalogue that ships with the package.

    Raises:
        DecodeError: The packaged file is damaged.

    Side effects:
        Reads the packaged `chips.toml`.
    """
    return decode_chips(resources.files(__package__).joinpath("chips.toml").read_bytes())


_VENDOR_WORDS: Final = frozenset(
    {"nvidia", "geforce", "tesla", "amd", "ati", "radeon", "instinct", "google", "cloud", "intel", "habana"}
    | {"amazon", "aws", "huawei", "hisilicon", "cerebras"}
)
_MARKS: Final = re.compile(r"[™®©]|\((?:tm|r|c)\)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]+")


def normalise_name(name: str) -> str:
    """The name without case, vendor, trade marks, spaces and punctuation; a lone vendor word stays.

    Examples:
        >>> normalise_name("NVIDIA Tesla V100-SXM2-16GB")
        'v100sxm216gb'
    """
    text = unicodedata.normalize("NFKC", _MARKS.sub(" ", name)).casefold()
    words = _WORD.findall(text)
    while len(words) > 1 and words[0] in _VENDOR_WORDS:
        words = words[1:]
    return "".join(words)


def decode_chips(data: bytes, *, where: str = "chips.toml") -> ChipCatalogue:
    """The catalogue that the bytes of a TOML file describe.

    Args:
        data: The file.
        where: The file's name for an error.

    Raises:
        DecodeError: Not TOML; a key, source or value is missing, unknown or not sensible; or one name would
            mean two different chips.
    """
    document = decode_toml(data, where=where)
    sources = decode_sources(document.table("sources"))
    chips = tuple(_decode_chip(table, sources=sources) for table in document.tables("chip"))
    differences = tuple(_decode_difference(table) for table in document.tables("epoch_difference"))
    document.close()
    if not chips:
        raise document.error("no chips", expected="at least one [[chip]]")
    return ChipCatalogue(
        chips=chips, epoch_differences=differences, names=_index_names(chips, document=document)
    )


_POWER_SCOPES: Final = ("gpu", "module", "rail", "unknown")  # words of measure.samples.Scope
_ID: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _decode_chip(plain: TomlTable, *, sources: Mapping[str, Source]) -> Chip:
    """One chip."""
    identity = plain.text("id")
    table = replace(plain, path=f"{plain.path} {identity[:40]}")
    scope = table.text("power_scope")
    if scope not in _POWER_SCOPES or not _ID.fullmatch(identity):
        expected = f"lower case and hyphens; one of {', '.join(_POWER_SCOPES)}"
        raise table.error("not an id or not a scope", expected=expected, found=f"{identity!r}; {scope!r}")
    chip = Chip(
        id=identity,
        vendor=table.text("vendor"),
        name=table.text("name"),
        kind=table.member("kind", Kind),
        aliases=table.texts("aliases"),
        families=table.texts("families"),
        peak_flop_per_s=_decode_peaks(table.table("peak_flop_per_s"), sources=sources),
        memory_byte=_figure(table, "memory_byte", sources=sources),
        memory_bandwidth_byte_per_s=_figure(table, "memory_bandwidth_byte_per_s", sources=sources),
        link_bandwidth_byte_per_s=_figure(table, "link_bandwidth_byte_per_s", sources=sources),
        power_limit_w=_figure(table, "power_limit_w", sources=sources),
        power_scope=scope,
        power_modes=_decode_modes(table, sources=sources),
        reference_node=_decode_node(table, sources=sources),
    )
    table.close()
    return chip


def _figure(table: TomlTable, name: str, *, sources: Mapping[str, Source]) -> Sourced | None:
    """The figure at a key; None where the key is missing."""
    return decode_sourced(table.table(name), sources=sources) if table.has(name) else None


def _decode_peaks(table: TomlTable, *, sources: Mapping[str, Source]) -> Mapping[Precision, Sourced]:
    """The peak rates of one chip; at least one."""
    unknown = [name for name in table.values if name not in list(Precision)]
    if unknown or not table.values:
        expected = f"at least one of {', '.join(Precision)}"
        raise table.error("bad precisions", expected=expected, found=", ".join(unknown))
    return MappingProxyType(
        {Precision(name): decode_sourced(table.table(name), sources=sources) for name in table.values}
    )


def _decode_modes(chip: TomlTable, *, sources: Mapping[str, Source]) -> Mapping[str, PowerMode]:
    """The power modes of one chip by name; none where it has none."""
    modes: dict[str, PowerMode] = {}
    if chip.has("power_modes"):
        tables = chip.table("power_modes")
        for name in tables.values:
            table = tables.table(name)
            modes[name] = PowerMode(
                name=name,
                power_limit_w=_figure(table, "power_limit_w", sources=sources),
                gpu_clock_hz=_figure(table, "gpu_clock_hz", sources=sources),
            )
            table.close()
    return MappingProxyType(modes)


def _decode_node(chip: TomlTable, *, sources: Mapping[str, Source]) -> ReferenceNode | None:
    """The server that a chip is sold in; None where none is recorded."""
    if not chip.has("reference_node"):
        return None
    table = chip.table("reference_node")
    node = ReferenceNode(
        name=table.text("name"),
        chips=table.integer("chips"),
        power_limit_w=decode_sourced(table.table("power_limit_w"), sources=sources),
    )
    table.close()
    if node.chips < 1:
        raise table.error("not a count of chips", expected="at least 1", found=str(node.chips))
    return node


def _decode_difference(table: TomlTable) -> EpochDifference:
    """One explained difference."""
    difference = EpochDifference(
        chip=table.text("chip"),
        field=table.text("field"),
        epoch=positive_number(table, "epoch"),
        ours=positive_number(table, "ours") if table.has("ours") else None,
        reason=table.text("reason"),
    )
    table.close()
    return difference


def _all_names(chip: Chip) -> Iterable[str]:
    """Every name of a chip, families included, the one for a person's eye last."""
    return (*chip.families, chip.id, *chip.aliases, chip.name)


def _index_names(chips: tuple[Chip, ...], *, document: TomlTable) -> Mapping[str, tuple[Chip, ...]]:
    """Normalised name -> chips; a name of one chip means no other chip and no family."""
    empty = [name for chip in chips for name in _all_names(chip) if not normalise_name(name)]
    if empty:
        raise document.error("a name without a letter or digit", found=repr(empty[0]))
    single: dict[str, Chip] = {}
    for chip in chips:
        for name in (chip.id, chip.name, *chip.aliases):
            other = single.setdefault(normalise_name(name), chip)
            if other is not chip:
                raise document.error("one name for two chips", found=f"{name!r}: {other.id} and {chip.id}")
    families: dict[str, dict[str, Chip]] = {}
    for chip in chips:
        for name in chip.families:
            key = normalise_name(name)
            if key in single:
                raise document.error("a family has the name of a chip", found=f"{name!r}: {single[key].id}")
            families.setdefault(key, {})[chip.id] = chip
    index = {key: (chip,) for key, chip in single.items()}
    return MappingProxyType(index | {key: tuple(members.values()) for key, members in families.items()})
