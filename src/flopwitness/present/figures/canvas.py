"""What all figures share: their bytes, their palette, their words.

Marker and line style tell estimators apart, colour only helps: a figure says the same to colour-blind eyes
and in grey print. SVG keeps its text as text, and the same records give the same bytes.
"""

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import FT2Font

from flopwitness.present.safe_text import escape_line

__all__ = [
    "GREY",
    "LIGHT",
    "MARGIN_PCT",
    "PALETTE",
    "WIDTH_IN",
    "Drawn",
    "Look",
    "choose_names",
    "frame_pct",
    "in_order",
    "look_of",
    "render",
    "safe_label",
    "scale_unit",
    "strip_frame",
]

Drawn: TypeAlias = Mapping[str, bytes]
"""One figure's bytes by format."""

PALETTE: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind eyes tell apart; jfly.uni-koeln.de/color, without yellow."""

GREY: Final = "#595959"
LIGHT: Final = "#e6e6e6"
WIDTH_IN: Final = 9.0
MARGIN_PCT: Final = 10.0
"""What the published experiment calls accurate enough [%]."""

_WIDEST_PCT: Final = 150.0  # beyond it, one bad fit would flatten all others
_DPI: Final = 150
_SIZE_PT: Final = 10.0
_PT_PER_INCH: Final = 72
_HEADING_COLUMNS: Final = 112
_LONGEST_HEADING: Final = 400
_PREFIXES: Final = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How an estimator is drawn, the same in every figure.

    Attributes:
        color: Its colour.
        marker: Its marker.
        line: Its line style.
        face: What its marker is filled with.
    """

    color: str
    marker: str
    line: str
    face: str


_LOOKS: Final = MappingProxyType(
    {
        "constant": Look(color="#000000", marker="x", line=":", face="#000000"),
        "paper-eq1": Look(color="#D55E00", marker="s", line="--", face="white"),
        "paper-eq2": Look(color="#009E73", marker="^", line="-.", face="white"),
        "efficiency": Look(color="#0072B2", marker="o", line="-", face="#0072B2"),
    }
)
_SPARE_MARKERS: Final = ("D", "v", "P", "*", "<", ">", "h")


def look_of(name: str) -> Look:
    """How an estimator is drawn; one that has no look of its own gets one that its name settles."""
    if name in _LOOKS:
        return _LOOKS[name]
    place = sum(name.encode())
    color = PALETTE[place % len(PALETTE)]
    return Look(color=color, marker=_SPARE_MARKERS[place % len(_SPARE_MARKERS)], line="--", face="white")


def in_order(names: Iterable[str]) -> list[str]:
    """The names in the order in which figures show them: simpler estimators first."""
    known = list(_LOOKS)
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def render(paint: Callable[[Figure], None], *, height_in: float, heading: Sequence[str]) -> Drawn:
    """The figure as SVG and PNG.

    Args:
        paint: Draws onto the empty figure.
        height_in: The figure's height [inch].
        heading: Lines that stand above it; long ones are broken.
    """
    with mpl.rc_context(
        {
            "svg.hashsalt": "flopwitness",
            "svg.fonttype": "none",
            "font.size": _SIZE_PT,
            "text.parse_math": False,
            "figure.constrained_layout.w_pad": 0.1,
            "figure.constrained_layout.h_pad": 0.06,
        }
    ):
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        lines = [part for line in heading for part in _broken(safe_label(line, longest=_LONGEST_HEADING))]
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=_SIZE_PT)
        paint(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine(None)  # both forms keep the places that were found once
        return {name: _encode(figure, name) for name in ("svg", "png")}


def _encode(figure: Figure, format_name: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None} if format_name == "svg" else {}
    figure.savefig(buffer, format=format_name, dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def _broken(line: str) -> list[str]:
    """The line in parts that fit the figure's width, however wide its letters are."""
    columns, limit_pt = _HEADING_COLUMNS, (WIDTH_IN - 0.3) * _PT_PER_INCH
    parts = textwrap.wrap(line, columns)
    while max(map(_width_pt, parts), default=0.0) > limit_pt:
        columns -= 8
        parts = textwrap.wrap(line, columns)
    return parts


def _width_pt(text: str) -> float:
    font = _font()
    font.set_size(_SIZE_PT, _PT_PER_INCH)
    font.set_text(text)
    return font.get_width_height()[0] / 64  # FreeType counts in 64ths


def safe_label(text: str, *, longest: int = 30) -> str:
    """Foreign text as a label: on one line, cut in its middle, in characters that the font has."""
    line = escape_line(text)
    known = _font().get_charmap()
    line = "".join(c if ord(c) in known else c.encode("unicode_escape").decode("ascii") for c in line)
    tail = longest // 3
    return line if len(line) <= longest else f"{line[: longest - tail - 1]}…{line[-tail:]}"


def _font() -> FT2Font:
    return get_font(findfont(FontProperties()))


def scale_unit(largest: float, unit: str) -> tuple[float, str]:
    """The factor and the unit with its SI prefix that make the largest value a short number."""
    if not math.isfinite(largest) or largest < 1:
        return 1.0, unit
    step = min(int(math.log10(largest)) // 3, len(_PREFIXES) - 1)
    return 1000.0**step, f"{_PREFIXES[step]}{unit}"


def choose_names(present: Sequence[str], *wanted: Sequence[str]) -> list[str]:
    """For each place the first of its wanted estimators that is present; without any, the first present."""
    chosen = [next((name for name in names if name in present), "") for names in wanted]
    return [name for name in dict.fromkeys(chosen) if name] or list(present)[:1]


def frame_pct(errors_pct: Iterable[float]) -> tuple[float, str]:
    """How far an axis of errors reaches to either side [%], and what to say of those beyond it."""
    largest = max((abs(value) for value in errors_pct), default=0.0)
    limit = min(max(1.1 * largest, 1.3 * MARGIN_PCT), _WIDEST_PCT)
    return limit, "; what lies beyond the frame is cut" if largest > limit else ""


def strip_frame(axes: Axes) -> None:
    """No line above or to the right of the data."""
    axes.spines[["top", "right"]].set_visible(False)
