"""The flow names its stations, and how many runs stand at its start."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.flow import draw_flow

Words = Callable[[Mapping[str, bytes] | None], str]
Parts = Callable[[str], list[str]]


def test_the_stations_are_named(parts: Parts) -> None:
    for station in (
        "24 known runs",
        "gate and fingerprint",
        "fit",
        "calibration file",
        "named by their digest",
        "a new run's sensors",
        "domain check",
        "point with interval",
        "refusal",
        "bound and prior",
        "yes",
        "no",
    ):
        assert station in parts("calibration_and_use")


def test_how_it_was_judged_stands_above(evaluation: Evaluation, parts: Parts, words: Words) -> None:
    *_, title, caption = parts("calibration_and_use")
    assert title == "made up"
    assert "6 random splits: of 24 workloads, 16 teach and 8 judge" in caption
    once = replace(evaluation, plan=replace(evaluation.plan, n_splits=1))
    assert "1 random split:" in words(draw_flow(once, "made up"))
