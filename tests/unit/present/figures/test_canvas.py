"""What all figures share: looks that differ in grey print, labels that are safe, units that are short."""

from collections.abc import Callable, Mapping

import matplotlib as mpl
import pytest

from flopwitness.measure.calibration.fitted import Method
from flopwitness.present.figures.canvas import (
    choose_names,
    frame_pct,
    in_order,
    look_of,
    render,
    safe_label,
    scale_unit,
)

Words = Callable[[Mapping[str, bytes] | None], str]


def test_estimators_differ_in_marker_and_in_line() -> None:
    looks = [look_of(method) for method in Method]
    assert len({look.marker for look in looks}) == len(looks)
    assert len({look.line for look in looks}) == len(looks)
    assert len({look.color for look in looks}) == len(looks)


def test_an_unknown_estimator_always_looks_the_same() -> None:
    assert look_of("efficiency-no-link") == look_of("efficiency-no-link")
    assert look_of("another").marker not in {look_of(method).marker for method in Method}


def test_simpler_estimators_come_first() -> None:
    assert in_order({"other", "efficiency", "constant", "paper-eq2"}) == [
        "constant",
        "paper-eq2",
        "efficiency",
        "other",
    ]


def test_settings_do_not_outlive_a_figure(words: Words) -> None:
    before = (mpl.rcParams["svg.hashsalt"], mpl.rcParams["font.size"], mpl.rcParams["text.parse_math"])
    drawn = render(lambda figure: None, height_in=2.0, heading=["a title", "a caption"])
    assert words(drawn).endswith("a title | a caption")
    after = (mpl.rcParams["svg.hashsalt"], mpl.rcParams["font.size"], mpl.rcParams["text.parse_math"])
    assert after == before


@pytest.mark.parametrize("title", ["", "$x^2$ & <b>", "tab\tand\x1b[2J", "模型 ☃", "$" * 500])
def test_any_title_can_be_drawn(words: Words, title: str) -> None:
    assert "a caption" in words(render(lambda figure: None, height_in=2.0, heading=[title, "a caption"]))


def test_long_headings_are_broken(words: Words) -> None:
    drawn = render(lambda figure: None, height_in=2.0, heading=["word " * 60, "W" * 200, ""])
    lines = words(drawn).split(" | ")
    broken = [line for line in lines if set(line) == {"W"}]
    assert sum(len(line) for line in broken) == 200
    assert max(len(line) for line in broken) < 70
    assert len([line for line in lines if line.startswith("word")]) > 1


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("adamw", "adamw"),
        ("a\nb\x1b", r"a\nb\x1b"),
        ("模", r"\u6a21"),
        ("$x$", "$x$"),
        ("", ""),
        ("0123456789abcdef", "012345…def"),
        ("0123456789", "0123456789"),
    ],
)
def test_foreign_text_becomes_a_label(text: str, label: str) -> None:
    assert safe_label(text, longest=10) == label


@pytest.mark.parametrize(
    ("largest", "expected"),
    [
        (0.5, (1.0, "W")),
        (999, (1.0, "W")),
        (1000, (1e3, "kW")),
        (1.7e14, (1e12, "TW")),
        (3e31, (1e30, "QW")),
        (1e40, (1e30, "QW")),
        (float("inf"), (1.0, "W")),
        (float("nan"), (1.0, "W")),
    ],
)
def test_units_take_the_prefix_of_the_largest(largest: float, expected: tuple[float, str]) -> None:
    assert scale_unit(largest, "W") == expected


def test_the_first_wanted_estimator_that_is_there_is_drawn() -> None:
    present = ["constant", "paper-eq2"]
    assert choose_names(present, ["constant"], ["paper-eq1", "paper-eq2"], ["efficiency"]) == present
    assert choose_names(["other"], ["efficiency"]) == ["other"]
    assert choose_names([], ["efficiency"]) == []
    assert choose_names(present, ["constant"], ["efficiency", "constant"]) == ["constant"]


def test_the_frame_holds_the_errors_up_to_a_limit() -> None:
    assert frame_pct([]) == (13.0, "")
    assert frame_pct([3, -20])[0] == pytest.approx(22)
    assert frame_pct([3, -20])[1] == ""
    limit, note = frame_pct([3, -2000])
    assert limit == 150
    assert "cut" in note
