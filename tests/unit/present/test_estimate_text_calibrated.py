"""A calibrated answer in words: what it rests on, what it brackets, and what was refused."""

import datetime as dt
from collections.abc import Callable

import pytest
from tests.made_runs import Cells, calibrate_cells, make_cells, read_table

from flopwitness.accounting.answers import RowAnswer, answer_row, assess_measurement
from flopwitness.accounting.thresholds import NO_COMPUTE
from flopwitness.catalogue.chips import ChipCatalogue, Precision
from flopwitness.catalogue.rules import Rule
from flopwitness.foundation.units import format_flop
from flopwitness.measure.answer import Measurement
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.question import Question
from flopwitness.measure.reference import ReferenceTable
from flopwitness.measure.rows import measure_row
from flopwitness.measure.samples import Channel, Series, Trace
from flopwitness.present.estimate_text import render_run_text, render_table_text

MakeSeries = Callable[..., Series]

TODAY = dt.date(2026, 6, 1)
CELLS = make_cells(24)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return calibrate_cells(CELLS[:20]).calibration


@pytest.fixture(scope="module")
def run(make_series: MakeSeries) -> Trace:
    """Two V100 at work for ten minutes, with memory, link and host traffic as calibration runs have it."""
    rates = {
        Channel.MEMORY_TRAFFIC_BYTE_PER_S: 0.4e12,
        Channel.LINK_TRAFFIC_BYTE_PER_S: 1e9,
        Channel.HOST_TRAFFIC_BYTE_PER_S: 3e9,
    }
    return Trace(
        series=tuple(
            make_series([value + value * number / 50] * 601, device=f"gpu_{number}", channel=channel)
            for number in range(2)
            for channel, value in ({Channel.POWER_W: 148.0} | rates).items()
        )
    )


@pytest.fixture(scope="module")
def ask(
    chips: ChipCatalogue,
    reference: ReferenceTable,
    calibration: Calibration,
    run: Trace,
    rules: dict[str, Rule],
) -> Callable[..., tuple[Measurement, str]]:
    def ask_it(**stated: object) -> tuple[Measurement, str]:
        options: dict[str, object] = {"calibration": calibration, "power_mode": "300W"}
        question = Question(
            chips=chips.find_all("v100-sxm2-16gb"),
            count=2,
            **{**options, **stated},  # type: ignore[arg-type]
        )
        measurement = measure_trace(run, question, table=reference)
        items = assess_measurement(measurement, [], other=NO_COMPUTE)
        text = render_run_text(
            measurement, question, items, rules=rules, on=TODAY, findings=measurement.findings
        )
        return measurement, text

    return ask_it


Ask = Callable[..., tuple[Measurement, str]]


def test_a_calibrated_estimate_says_what_it_rests_on(ask: Ask, calibration: Calibration) -> None:
    measurement, text = ask(precisions=(Precision.FP16,), level=0.8)
    estimate = measurement.estimate
    assert estimate is not None
    ends = f"{format_flop(estimate.low_flop)} to {format_flop(estimate.high_flop)} FLOP"
    words = " ".join(text.split())
    assert (
        f"estimate {ends} (nominal 80 %; efficiency, point {format_flop(estimate.flop, digits=3)};" in words
    )
    assert f"calibrated on 20 runs, {str(calibration.digest)[:15]})" in words
    assert str(calibration.digest) not in text
    for absent in ("prior", "no calibration", "calibration refused", "bracket"):
        assert absent not in text


def test_an_unknown_precision_is_shown_as_a_bracket(ask: Ask) -> None:
    measurement, text = ask()
    assert measurement.calibrated is not None
    bracket = measurement.calibrated.bracket
    assert bracket is not None
    lines = text.splitlines()
    order = [line[2:14].strip() for line in lines if line.startswith("  ") and line[2:14].strip()]
    assert order[:4] == ["energy", "estimate", "bracket", "at most"]
    words = " ".join(text.split())
    low, high = (format_flop(round(flop)) for flop in (bracket.low_flop, bracket.high_flop))
    assert (
        f"bracket {low} to {high} FLOP (nominal 90 % at each precision), since nobody recorded it (" in words
    )
    assert "fp32" in words
    assert "calibrated at fp16)" in words
    assert all(len(line) <= 100 for line in lines)


def test_a_refused_calibration_is_no_missing_one(ask: Ask) -> None:
    measurement, text = ask(precisions=(Precision.FP16,), power_mode="250W")
    assert measurement.refusals
    words = " ".join(text.split())
    assert "prior from power, fp16; calibration refused)" in words
    assert "no calibration for this chip" not in words
    assert "calibration-mismatch" in words
    assert "for power_mode 300W, the run's is 250W" in words
    plain = " ".join(ask(precisions=(Precision.FP16,), calibration=None)[1].split())
    assert "prior from power, fp16; no calibration for this chip)" in plain


def test_a_run_of_another_mode_has_no_bracket(ask: Ask) -> None:
    assert "\n  bracket     " in ask()[1]
    text = ask(power_mode="250W")[1]
    assert "\n  bracket     " not in text
    assert "calibration refused" in " ".join(text.split())


@pytest.fixture(scope="module")
def answer_cells(
    chips: ChipCatalogue, reference: ReferenceTable, rules: dict[str, Rule], calibration: Calibration
) -> Callable[..., RowAnswer]:
    def answer(cells: Cells, *, without: tuple[str, ...] = ()) -> RowAnswer:
        (row,) = read_table([cells], without=without).rows
        question = Question(chips=(), count=0, calibration=calibration)
        measurement = measure_row(row, question, catalogue=chips, table=reference)
        return answer_row(row, lambda _: measurement, [rules["eu-ai-act-art51"]], index={})

    return answer


def test_a_row_with_an_estimate_and_no_bound_is_shown(
    answer_cells: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    answer = answer_cells(CELLS[20], without=("device", "batch_size"))
    estimate = answer.measurement.estimate
    assert estimate is not None
    assert answer.measurement.upper is None
    text = render_table_text([answer], rules=rules, on=TODAY, findings=[], limit=5)
    (line,) = (line for line in text.splitlines() if line.startswith("r20 "))
    assert f" {format_flop(estimate.low_flop)} to {format_flop(estimate.high_flop)} " in line
    assert line[54:].split()[0] == "-"
    assert "A cannot tell" in line
    assert "nothing can be said" not in text


def test_a_row_without_estimate_and_bound_is_counted_and_not_shown(
    answer_cells: Callable[..., RowAnswer], rules: dict[str, Rule]
) -> None:
    nothing = answer_cells(CELLS[20], without=("device", "duration_s"))
    text = render_table_text([nothing, answer_cells(CELLS[21])], rules=rules, on=TODAY, findings=[], limit=5)
    assert not any(line.startswith("r20 ") for line in text.splitlines())
    assert any(line.startswith("r21 ") for line in text.splitlines())
    assert "... and 1 row of which nothing can be said" in text


def test_a_table_says_how_many_rows_its_calibration_answers(
    answer_cells: Callable[..., RowAnswer],
    rules: dict[str, Rule],
    calibration: Calibration,
) -> None:
    answers = [answer_cells(CELLS[20]), answer_cells({**CELLS[21], "precision": "fp32"})]
    text = render_table_text(answers, rules=rules, on=TODAY, findings=[], limit=5)
    (line,) = (line for line in text.splitlines() if line.startswith("estimates: "))
    assert line.startswith("estimates: 1 of 2 rows by efficiency, calibrated on 20 runs, ")
    assert str(calibration.digest) in line
    assert "  1 refused" in text
    assert any(
        line.startswith("r21 ") and line.endswith(": calibration-mismatch") for line in text.splitlines()
    )
    whole = render_table_text(answers[:1], rules=rules, on=TODAY, findings=[], limit=5)
    assert "refused" not in whole
