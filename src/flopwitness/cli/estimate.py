"""`flopwitness estimate`: FLOP, interval, upper bound and rules, from logs of one run or a table of runs."""

import datetime as dt
import difflib
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import click

from flopwitness.accounting.answers import RowAnswer, answer_row, assess_measurement, index_models
from flopwitness.accounting.thresholds import NO_COMPUTE, ComputeRange
from flopwitness.catalogue.chips import Chip, ChipCatalogue, Precision, load_chips, normalise_name
from flopwitness.catalogue.rules import Rule, load_rules
from flopwitness.cli.declared import find_declared_chips, tell_declared, tell_differences
from flopwitness.cli.evidence import read_logs_or_table
from flopwitness.cli.options import (
    FiniteRange,
    WholeRange,
    choose_rules,
    format_option,
    json_option,
    on_option,
    option_count,
    option_precisions,
    option_safety,
    paths_argument,
    reading_options,
    rule_option,
    today,
)
from flopwitness.cli.outputs import check_outputs
from flopwitness.cli.settings import (
    Setting,
    check_settings_place,
    find_settings_used,
    repeat_with_settings,
)
from flopwitness.cli.told import tell_scope_overruled, tell_settings_used, tell_weak_settings
from flopwitness.cli.whole_table import check_readable, fill_scope, table_findings
from flopwitness.foundation.errors import InputError, NotCalibratedError, UnknownChipError
from flopwitness.foundation.files import read_bounded, write_all_whole
from flopwitness.foundation.verdict import Finding, combine_verdicts, rank_findings
from flopwitness.measure.answer import Measurement
from flopwitness.measure.bounds import SAFETY_DEFAULT, SAFETY_HOSTILE
from flopwitness.measure.calibration.file import LARGEST_CALIBRATION_BYTES, decode_calibration
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.devices import count_accelerators
from flopwitness.measure.meter import measure_trace
from flopwitness.measure.power_choice import choose_power
from flopwitness.measure.question import Question
from flopwitness.measure.reference import Workload, load_reference
from flopwitness.measure.rows import chip_left_open, measure_row
from flopwitness.measure.samples import Channel, Scope, Trace
from flopwitness.measure.sources.run_table import RunTable
from flopwitness.measure.sources.selection import parse_where, select
from flopwitness.present.estimate_json import render_run, render_table
from flopwitness.present.estimate_text import render_run_text, render_table_text
from flopwitness.present.safe_text import encode_answer

__all__ = ["command"]

_NEAR: Final = 0.5
_USUAL_CHIPS: Final = ("h100-sxm", "a100-sxm-80gb", "H200")
_MOST_CHIPS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """The options of one call, as values."""

    chip: str | None
    count: int | None
    precisions: tuple[Precision, ...]
    workload: Workload
    safety: Fraction
    level: float
    rules: tuple[Rule, ...]
    on: dt.date
    is_rule_named: bool
    tolerance_ppm: int
    other: ComputeRange
    idle_w: float | None
    as_json: bool
    out: Path | None
    plot: Path | None
    n_rows: int
    reproduce: str
    settings: tuple[Setting, ...]
    power_mode: str
    calibration: Calibration | None
    method: Method


@click.command("estimate")
@paths_argument
@click.option("--chip", metavar="NAME", help="The accelerator: an id or any name that logs call it by.")
@click.option("--count", type=WholeRange(1, _MOST_CHIPS), help="How many accelerators in all.")
@click.option(
    "--precision",
    "precisions",
    callback=option_precisions,
    metavar="P,P",
    help="Precisions that may have been used.",
)
@click.option(
    "--workload", type=click.Choice([str(w) for w in Workload]), default=str(Workload.ANY), show_default=True
)
@click.option(
    "--power-mode",
    default="",
    metavar="MODE",
    help="The power mode or power limit, such as 25W, where the record does not say it.",
)
@click.option(
    "--calibration",
    "calibration_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `calibrate` learnt on such a device; without it, the prior.",
)
@click.option(
    "--method",
    type=click.Choice([str(method) for method in Method]),
    help="Which of the calibration's estimators. [efficiency]",
)
@click.option(
    "--idle",
    "idle_w",
    type=FiniteRange(0, 1e6),
    metavar="WATTS",
    help="What each device draws at least while it is on; bounds gaps from below. [0]",
)
@reading_options
@rule_option
@on_option
@click.option(
    "--safety",
    default=str(float(SAFETY_DEFAULT)),
    show_default=True,
    callback=option_safety,
    help=f"Factor of the energy bound; {float(SAFETY_HOSTILE):g} against a hostile prover.",
)
@click.option(
    "--level",
    type=FiniteRange(0.5, 0.999),
    default=0.9,
    show_default=True,
    help="Nominal level of the interval.",
)
@click.option(
    "--tolerance",
    type=FiniteRange(0, 1),
    default=0.1,
    show_default=True,
    help="What the sensors may be off by, as a share.",
)
@click.option(
    "--other-flop",
    callback=option_count,
    metavar="N",
    help="The model's other recorded compute, such as its base model's.",
)
@click.option(
    "--where",
    "wheres",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Rows of a table to keep; may be repeated.",
)
@click.option(
    "--gate", type=FiniteRange(0, 100), help="Rows of a table to keep: utilisation of at least this [%]."
)
@click.option(
    "--rows",
    "n_rows",
    type=WholeRange(0),
    default=200,
    show_default=True,
    help="Rows of a table to show.",
)
@format_option(tables=True)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the power, as .png or .svg."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Also write the JSON answer to a file."
)
@json_option
@click.pass_context
def command(context: click.Context, /, logs: tuple[Path, ...], **options: Any) -> int:  # noqa: ANN401 (one value an option)
    """Say how much training compute LOGS show, how sure that is, and where it lies beside the rules.

    LOGS are all logs of one run (power, result and system files, folders or archives of nodes), or one
    table of runs. For a run with a rule named, the exit status is 0 where the run is below it and 3 where
    that cannot be told. For a table it is 0 once the rows are judged, whatever was found: each row has its
    own answer.

    With --calibration the estimate is what runs of known size on such a device teach. Where the device, its
    mode or what the run looks like is another, the point is refused: prior and bound remain, one line on
    standard error says why, and the exit status is 2.
    """
    format_name = options.pop("format_name")
    reading = options.pop("reading")
    wheres, gate = options.pop("wheres"), options.pop("gate")
    on = options.pop("on") or today(context)
    settings = find_settings_used(context, environment=os.environ)
    check_settings_place(settings, logs, folder=Path.cwd())
    line = (context.find_root().obj or {}).get("command", "")
    call = _understand(
        reproduce=repeat_with_settings(line, settings), settings=tuple(settings), on=on, **options
    )
    calibration_path = options.get("calibration_path")
    check_outputs(
        {"--plot": call.plot, "--out": call.out},
        (*logs, *(() if calibration_path is None else (calibration_path,))),
    )
    evidence = read_logs_or_table(logs, format_name, reading)
    if isinstance(evidence, RunTable):
        return _estimate_table(fill_scope(evidence, reading.scope), call, wheres=wheres, gate=gate)
    if wheres or gate is not None:
        raise InputError(
            "--where and --gate choose rows of a table", where=str(logs[0]), expected="a table of runs"
        )
    return _estimate_run(evidence, call, told=tell_scope_overruled(evidence, reading.scope))


def _understand(
    *,
    chip: str | None,
    count: int | None,
    precisions: tuple[Precision, ...],
    workload: str,
    rule_ids: tuple[str, ...],
    on: dt.date,
    safety: Fraction,
    level: float,
    tolerance: float,
    other_flop: int | None,
    calibration_path: Path | None,
    method: str | None,
    **rest: Any,  # noqa: ANN401 (the options that need no work)
) -> _Call:
    """The options as values."""
    other = NO_COMPUTE
    if other_flop is not None:
        other = ComputeRange(low_flop=other_flop, upper_flop=other_flop)
    return _Call(
        chip=chip,
        count=count,
        precisions=precisions,
        workload=Workload(workload),
        safety=safety,
        level=level,
        rules=choose_rules(load_rules(), rule_ids, on),
        on=on,
        is_rule_named=bool(rule_ids),
        tolerance_ppm=round(tolerance * 1_000_000),
        other=other,
        calibration=_load_calibration(calibration_path, method),
        method=Method(method or Method.EFFICIENCY),
        **rest,
    )


def _load_calibration(path: Path | None, method: str | None) -> Calibration | None:
    """The calibration of a file; None where none is named.

    Raises:
        InputError: No such file, or a method without a calibration.
        DecodeError: Not a calibration.
    """
    if path is None:
        if method is not None:
            raise InputError("nothing to choose from", where="--method", expected="--calibration FILE")
        return None
    return decode_calibration(read_bounded(path, limit_bytes=LARGEST_CALIBRATION_BYTES), where=str(path))


def _refused(findings: Sequence[Finding], *, where: str) -> int:
    """Say on standard error in one line why the calibration gave no point, and give the exit status."""
    first = findings[0]
    more = f" ({len(findings) - 1} more reasons)" if len(findings) > 1 else ""
    error = NotCalibratedError(
        f"calibration refused: {first.message}{more}",
        where=where,
        expected=first.expected,
        found=first.found,
    )
    click.echo(f"flopwitness: {error}", err=True)
    return error.exit_status


def _estimate_run(trace: Trace, call: _Call, *, told: Sequence[Finding]) -> int:
    """One run from its logs; `told` is what the reading of them gave to tell."""
    question, findings = _pose(trace, call, load_chips())
    measurement = measure_trace(trace, question, table=load_reference())
    findings = _reproducible([*told, *findings, *measurement.findings], call)
    assessments = assess_measurement(
        measurement, call.rules, other=call.other, tolerance_ppm=call.tolerance_ppm
    )
    rules = {rule.id: rule for rule in call.rules}
    _deliver(
        call,
        record=lambda: render_run(
            measurement,
            question,
            assessments,
            rules=rules,
            on=call.on,
            inputs=trace.provenance,
            findings=findings,
            tolerance_ppm=call.tolerance_ppm,
        ),
        text=lambda: render_run_text(
            measurement, question, assessments, rules=rules, on=call.on, findings=findings
        ),
        picture=lambda path: _draw(trace, measurement, question, path),
    )
    if measurement.refusals:
        return _refused(measurement.refusals, where=str(trace.provenance[0].path))
    if not call.is_rule_named:
        return 0
    return combine_verdicts(item.verdict for item in assessments).exit_status


def _pose(trace: Trace, call: _Call, catalogue: ChipCatalogue) -> tuple[Question, list[Finding]]:
    """The question, with chip and count from the log's own declaration where the call names none.

    Raises:
        InputError: Neither the call nor the log says which chip, or how many.
    """
    declared = trace.declaration
    findings = tell_differences(declared, catalogue)
    where = trace.provenance[0].path if trace.provenance else ""
    name = call.chip or (declared.chip_name if declared is not None else "")
    count = call.count or (declared.chips if declared is not None else None) or count_accelerators(trace)
    if not name:
        raise InputError("the log does not name its accelerator", where=where, expected="--chip NAME")
    if not count:
        raise InputError("the log does not say how many accelerators ran", where=where, expected="--count N")
    findings += tell_declared(call.chip, call.count, found=f"{count} x {name}")
    chips = _find_chips(catalogue, name)
    if len(chips) > 1:
        findings.append(chip_left_open(name, chips))
    return Question(
        chips=chips,
        count=count,
        precisions=_checked(call.precisions, chips),
        workload=call.workload,
        safety=call.safety,
        level=call.level,
        idle_w=call.idle_w or 0.0,
        declared_chips=find_declared_chips(declared, catalogue, findings),
        power_mode=call.power_mode.strip(),
        calibration=call.calibration,
        method=call.method,
    ), findings


def _find_chips(catalogue: ChipCatalogue, name: str) -> tuple[Chip, ...]:
    """The chips of that name; an unknown one is told with the option it came from."""
    try:
        return catalogue.find(name)
    except UnknownChipError as error:
        is_near = difflib.get_close_matches(normalise_name(name), catalogue.names, cutoff=_NEAR)
        expected = error.expected if is_near else f"an id or a name such as {', '.join(_USUAL_CHIPS)}"
        raise UnknownChipError(error.message, where="--chip", expected=expected, found=error.found) from None


def _reproducible(findings: Sequence[Finding], call: _Call) -> list[Finding]:
    """The findings and what is told of the call, worst first, with the command that shows them again."""
    told = tell_weak_settings(safety=call.safety, tolerance_ppm=call.tolerance_ppm)
    told += tell_settings_used(call.settings)
    return [replace(finding, reproduce=call.reproduce) for finding in rank_findings([*told, *findings])]


def _with_command(answer: RowAnswer, command: str) -> RowAnswer:
    """The answer with the command in each of its findings."""
    own = tuple(replace(finding, reproduce=command) for finding in answer.findings)
    measured = tuple(replace(finding, reproduce=command) for finding in answer.measurement.findings)
    return replace(answer, findings=own, measurement=replace(answer.measurement, findings=measured))


def _checked(precisions: tuple[Precision, ...], chips: tuple[Chip, ...]) -> tuple[Precision, ...]:
    """The precisions, each known for every chip that may have been used."""
    for precision in precisions:
        for chip in chips:
            chip.peak(precision)
    return precisions


def _draw(trace: Trace, measurement: Measurement, question: Question, path: Path) -> bytes:
    from flopwitness.present.power_plot import draw_power  # noqa: PLC0415 (matplotlib is slow to load)

    scope = measurement.energy.scope if measurement.energy is not None else Scope.UNKNOWN
    title = f"{question.count:,} x {question.chips[0].name}"
    chosen = choose_power(trace, []).series
    series = [item for item in chosen if item.channel is not Channel.ENERGY_COUNTER_J and item.scope is scope]
    format_name = path.suffix.removeprefix(".").lower()
    return draw_power(series, measurement, title=title, format_name=format_name)


def _deliver(
    call: _Call,
    *,
    record: Callable[[], dict[str, Any]],
    text: Callable[[], str],
    picture: Callable[[Path], bytes] | None = None,
) -> None:
    """Print the answer and write the files that are asked for: all of them whole, or none.

    Each form of the answer is made only where it is wanted, and nothing is printed before the files stand.
    """
    files: dict[Path, bytes] = {}
    if call.plot is not None and picture is not None:
        files[call.plot] = picture(call.plot)
    encoded = encode_answer(record()) if call.as_json or call.out is not None else ""
    if call.out is not None:
        files[call.out] = f"{encoded}\n".encode()
    write_all_whole(files)
    click.echo(encoded if call.as_json else text(), nl=call.as_json)


def _estimate_table(table: RunTable, call: _Call, *, wheres: tuple[str, ...], gate: float | None) -> int:
    """Every row of a table of runs."""
    if call.plot is not None:
        raise InputError("a table of runs has no power to draw", where="--plot", expected="logs of one run")
    catalogue, reference = load_chips(), load_reference()
    index = index_models(table.rows)
    selection = select(table.rows, [parse_where(text) for text in wheres], gate)
    chips = _find_chips(catalogue, call.chip) if call.chip is not None else ()
    stated = Question(
        chips=chips,
        count=call.count or 0,
        precisions=_checked(call.precisions, chips),
        workload=call.workload,
        safety=call.safety,
        level=call.level,
        power_mode=call.power_mode.strip(),
        calibration=call.calibration,
        method=call.method,
    )
    measure = functools.partial(measure_row, stated=stated, catalogue=catalogue, table=reference)
    check_readable(table)
    answers = [
        answer_row(
            row,
            measure,
            call.rules,
            index=index,
            other=call.other,
            tolerance_ppm=call.tolerance_ppm,
        )
        for row in selection.rows
    ]
    answers = [_with_command(answer, call.reproduce) for answer in answers]
    findings = _reproducible(table_findings(table, selection), call)
    rules = {rule.id: rule for rule in call.rules}
    inputs = [table.provenance]
    _deliver(
        call,
        record=lambda: render_table(
            answers,
            rules=rules,
            on=call.on,
            inputs=inputs,
            findings=findings,
            safety=call.safety,
            tolerance_ppm=call.tolerance_ppm,
        ),
        text=lambda: render_table_text(
            answers, rules=rules, on=call.on, findings=findings, limit=call.n_rows
        ),
    )
    return _refused_rows(answers, table.provenance.path)


def _refused_rows(answers: Sequence[RowAnswer], path: str) -> int:
    """The exit status of a table: 2, with the first reason told, where a calibration refused any row."""
    refused = [answer for answer in answers if answer.measurement.refusals]
    if not refused:
        return 0
    where = f"{path}:{refused[0].row.row}"
    if len(refused) > 1:
        where += f" and {len(refused) - 1:,} more of {len(answers):,} rows"
    return _refused(refused[0].measurement.refusals, where=where)
