"""`flopwitness evaluate`: how good the estimators are on runs that they were not calibrated on."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from flopwitness.catalogue.chips import load_chips
from flopwitness.cli.known_runs import (
    ChosenRuns,
    choice_options,
    option_names,
    read_tables,
    tables_argument,
    workload_option,
)
from flopwitness.cli.options import WholeRange, json_option, option_safety
from flopwitness.cli.outputs import check_outputs
from flopwitness.cli.settings import check_settings_place, find_settings_used
from flopwitness.cli.told import name_command, tell_settings_used
from flopwitness.foundation.errors import InputError, NotCalibratedError
from flopwitness.foundation.files import write_all_whole
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.bounds import SAFETY_DEFAULT
from flopwitness.present.safe_text import encode_answer, name_count

if TYPE_CHECKING:
    from flopwitness.challenge.evaluation.evaluation import Evaluation
    from flopwitness.challenge.evaluation.table import KnownRuns

__all__ = ["command"]

_TRAIN_SHARE: Final = Fraction(2, 3)
_MOST_SPLITS: Final = 100_000
_MOST_VALUES: Final = 20  # of a column whose values are left out unasked
_LARGEST_SEED: Final = 2**63 - 1


def _option_sizes(_: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Numbers of calibration workloads, separated by commas; none for `0`.

    Raises:
        InputError: Not such numbers.
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 6 for part in parts):  # noqa: PLR2004 (digits)
        raise InputError(
            "no list of numbers", where=parameter.opts[0], expected="N,N,...", found=repr(text[:80])
        )
    return tuple(int(part) for part in parts if int(part))


@click.command("evaluate")
@tables_argument
@choice_options
@click.option("--splits", "n_splits", type=WholeRange(1, _MOST_SPLITS), default=200, show_default=True)
@click.option(
    "--train", "n_train", type=WholeRange(1), help="Workloads that teach in each split. [two thirds of them]"
)
@click.option("--seed", type=WholeRange(0, _LARGEST_SEED), default=1000, show_default=True)
@workload_option
@click.option(
    "--leave-out",
    callback=option_names,
    metavar="COLUMN,...",
    help="Leave out each value of these columns in turn. [all columns that make a workload]",
)
@click.option(
    "--curve",
    callback=_option_sizes,
    metavar="N,...",
    help="Numbers of calibration workloads to learn from; 0 for none. [a usual few]",
)
@click.option(
    "--safety",
    default=str(float(SAFETY_DEFAULT)),
    show_default=True,
    callback=option_safety,
    help="Factor of the energy bound whose margins are shown.",
)
@click.option(
    "--plots", type=click.Path(path_type=Path), metavar="DIR", help="Draw all figures there, as SVG and PNG."
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="LOG",
    help="A log of one run, whose power and traffic are drawn with --plots.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Also write the JSON answer.")
@json_option
@click.pass_context
def command(context: click.Context, /, tables: tuple[Path, ...], **options: Any) -> int:  # noqa: ANN401 (one value an option)
    """Judge all estimators on TABLES of runs of known size.

    In each random split some workloads calibrate and the others are estimated; repeats of one workload never
    stand on both sides, and whatever is chosen from data is chosen from the first part alone. Then come runs
    whose hyperparameter no calibration run had, fewer calibration runs, ours without its traffic counters,
    declared steps against link traffic, and the upper bound's margins.
    """
    settings = find_settings_used(context, environment=os.environ)
    check_settings_place(settings, tables, folder=Path.cwd())
    plots, trace, out = options["plots"], options["trace"], options["out"]
    if trace is not None and plots is None:
        raise InputError("--trace is drawn with the other figures", where="--trace", expected="--plots DIR")
    check_outputs({"--out": out}, (*tables, *(() if trace is None else (trace,))))
    chosen = read_tables(
        tables, wheres=options["wheres"], gate_pct=options["gate_pct"], scope=options["scope"]
    )
    evaluation, findings = _evaluate(chosen, options)
    told = name_command([*chosen.findings, *findings, *tell_settings_used(settings)], context, settings)
    files = {} if plots is None else _draw(evaluation, plots, trace, tables)
    _deliver(evaluation, chosen, told, files=files, out=out, as_json=options["as_json"])
    return 0


def _evaluate(chosen: ChosenRuns, options: dict[str, Any]) -> tuple["Evaluation", list[Finding]]:
    """The judgement, with progress on a terminal."""
    from flopwitness.challenge.evaluation.evaluation import Plan, evaluate_runs  # noqa: PLC0415 (slow to load)

    findings: list[Finding] = []
    runs = _gather(chosen, options["columns"], findings)
    leave_out = options["leave_out"] or runs.axes(most=_MOST_VALUES)
    shared = set.intersection(*(set(row.cells) for row in runs.rows))
    for column in options["leave_out"]:
        if column not in shared:
            raise InputError(
                "no such column",
                where="--leave-out",
                expected=f"one of {', '.join(sorted(shared))}",
                found=repr(column[:80]),
            )
    plan = Plan(
        n_train=options["n_train"] or max(1, int(runs.n_workloads * _TRAIN_SHARE)),
        n_splits=options["n_splits"],
        seed=options["seed"],
        leave_out=leave_out,
        curve=options["curve"],
        safety=options["safety"],
    )
    with _progress() as tick:
        evaluation = evaluate_runs(runs, plan, catalogue=load_chips(), tick=tick)
    if not evaluation.scores:
        reason = next((text for _, text in evaluation.refusals.values()), "")
        raise NotCalibratedError(
            "no estimator could be fitted",
            where=chosen.tables[0][0].provenance.path,
            expected="more runs that teach, with energy above idle",
            found=reason,
        )
    return evaluation, findings


def _gather(chosen: ChosenRuns, columns: Sequence[str], findings: list[Finding]) -> "KnownRuns":
    from flopwitness.challenge.evaluation.table import gather_runs  # noqa: PLC0415 (as above)
    from flopwitness.measure.calibration.assess import assess_precisions  # noqa: PLC0415 (as above)
    from flopwitness.measure.calibration.calibrate import known_runs  # noqa: PLC0415 (as above)
    from flopwitness.measure.calibration.fingerprint import (  # noqa: PLC0415 (as above)
        fingerprint_of,
        settle_fingerprint,
    )
    from flopwitness.measure.sources.workloads import workload_columns  # noqa: PLC0415 (as above)

    known = known_runs(chosen.rows, load_chips(), findings)
    rows = [row for row, is_known in zip(chosen.rows, known, strict=True) if is_known]
    if not rows:
        raise InputError(
            "no run of known size",
            where=chosen.tables[0][0].provenance.path,
            expected="a column such as true_tflop, an energy and a duration",
        )
    fingerprint = settle_fingerprint([fingerprint_of(row, load_chips()) for row in rows])
    findings += assess_precisions(fingerprint)
    n_unknown = len(chosen.rows) - len(rows)
    if n_unknown:
        findings.append(
            Finding(
                code="runs-unusable",
                severity=Severity.WARNING,
                message=(
                    f"{name_count(n_unknown, 'chosen run')} had no true operations, energy or duration, or "
                    "more operations than the chips allow, and were not judged on"
                ),
                count=n_unknown,
            )
        )
    return gather_runs(rows, columns=workload_columns(rows, columns))


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Something to call with each step's name: a line on a terminal, and nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield lambda step: click.echo(f"\r\x1b[K{step} ...", nl=False, err=True)
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def _draw(
    evaluation: "Evaluation", folder: Path, trace_path: Path | None, tables: Sequence[Path]
) -> dict[Path, bytes]:
    """All figures, by the place where they go."""
    from flopwitness.measure.sources.formats import read_evidence  # noqa: PLC0415 (slow to load)
    from flopwitness.present.figures.evaluation import draw_evaluation  # noqa: PLC0415 (matplotlib is slow to load)

    trace = None if trace_path is None else read_evidence([trace_path])
    figures = draw_evaluation(evaluation, trace=trace, title=", ".join(path.stem for path in tables))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("cannot be made", where=str(folder), found=error.strerror or str(error)) from error
    files = {folder / name: data for name, data in figures.items()}
    evidence = (*tables, *(() if trace_path is None else (trace_path,)))
    check_outputs({f"--plots {path.name}": path for path in files}, evidence)
    return files


def _deliver(
    evaluation: "Evaluation",
    chosen: ChosenRuns,
    findings: Sequence[Finding],
    *,
    files: dict[Path, bytes],
    out: Path | None,
    as_json: bool,
) -> None:
    """Write what is asked for, all or nothing, then print the answer."""
    from flopwitness.present.evaluation_json import render_evaluation  # noqa: PLC0415 (slow to load)
    from flopwitness.present.evaluation_text import render_evaluation_text  # noqa: PLC0415 (slow to load)

    inputs = [table.provenance for table, _ in chosen.tables]
    encoded = ""
    if as_json or out is not None:
        encoded = encode_answer(render_evaluation(evaluation, inputs=inputs, findings=findings))
    if out is not None:
        files[out] = f"{encoded}\n".encode()
    write_all_whole(files)
    click.echo(encoded if as_json else render_evaluation_text(evaluation, findings), nl=as_json)
