"""The options of the session rule, which the verb takes together as `rule`."""

import functools
from collections.abc import Callable
from typing import Any

import click

from flopwitness.cli.options import FiniteRange, WholeRange
from flopwitness.foundation.errors import InputError
from flopwitness.measure.sessions import SessionRule

__all__ = ["session_options"]

_PAPER = SessionRule()
_OPTIONS = (
    click.option(
        "--start-above",
        "start_above_pct",
        type=FiniteRange(0, 100),
        default=_PAPER.start_above_pct,
        show_default=True,
        help="Utilisation that a session starts above [%].",
    ),
    click.option(
        "--start-polls",
        type=WholeRange(1, 1_000_000),
        default=_PAPER.start_polls,
        show_default=True,
        help="At so many polls in a row.",
    ),
    click.option(
        "--stop-below",
        "stop_below_pct",
        type=FiniteRange(0, 100),
        default=_PAPER.stop_below_pct,
        show_default=True,
        help="Utilisation that a session stops below [%].",
    ),
    click.option(
        "--stop-polls",
        type=WholeRange(1, 1_000_000),
        default=_PAPER.stop_polls,
        show_default=True,
        help="At so many polls in a row.",
    ),
    click.option(
        "--poll",
        "poll_s",
        type=FiniteRange(0.001, 86_400),
        default=_PAPER.poll_s,
        show_default=True,
        metavar="SECONDS",
        help="The time between polls.",
    ),
    click.option(
        "--longest-gap",
        "longest_gap_s",
        type=FiniteRange(0.001, 1e9),
        metavar="SECONDS",
        help="For how long utilisation may be unknown before a session counts as ended. [for ever]",
    ),
)
_NAMES = ("start_above_pct", "start_polls", "stop_below_pct", "stop_polls", "poll_s", "longest_gap_s")


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All options of the rule; the defaults are the paper's.

    Raises:
        InputError: When called: the values make no rule.
    """

    @functools.wraps(command)
    def with_rule(*args: Any, **options: Any) -> Any:  # noqa: ANN401 (whatever the verb takes)
        chosen = {name: options.pop(name) for name in _NAMES}
        try:
            rule = SessionRule(**chosen)
        except ValueError as error:
            raise InputError(
                "no rule for sessions",
                where="--start-above, --stop-below, --poll, --longest-gap",
                expected="a start no lower than the stop, and a gap no shorter than the time between polls",
                found=str(error),
            ) from None
        return command(*args, rule=rule, **options)

    for option in reversed(_OPTIONS):
        with_rule = option(with_rule)
    return with_rule
