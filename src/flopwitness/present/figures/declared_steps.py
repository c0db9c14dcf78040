"""Whether link traffic catches a Prover who declares fewer tokens than were trained on."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flopwitness.challenge.evaluation.claims import ClaimScore
from flopwitness.challenge.evaluation.evaluation import Evaluation
from flopwitness.present.figures.canvas import LIGHT, PALETTE, Drawn, render, strip_frame

__all__ = ["draw_declared_steps"]


def draw_declared_steps(evaluation: Evaluation, title: str) -> Drawn | None:
    """The share of doubted declarations by what they declare; None where no declaration was tested."""
    claims = evaluation.claims
    if claims is None:
        return None

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        _draw_caught(axes, claims)
        _draw_honest(axes, claims)
        axes.set_ylim(0, 112)
        axes.set_yticks(range(0, 101, 20))
        axes.set_xlabel("declared over true tokens [%]")
        axes.set_ylabel("doubted declarations [%]")
        strip_frame(axes)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)

    caption = (
        f"declared steps against link traffic and energy, {claims.n_estimates:,} judgements; doubted where "
        f"declared operations come to less than {100 * math.exp(claims.gate):.0f} % of what energy tells "
        "(median gate)"
    )
    error = (
        f"error of honestly declared operations: mean {claims.mean_abs_error_pct:.1f} %, 95 % quantile "
        f"{claims.p95_abs_error_pct:.1f} %, largest {claims.max_abs_error_pct:.1f} %"
    )
    return render(paint, height_in=4.8, heading=[title, caption, error])


def _draw_caught(axes: Axes, claims: ClaimScore) -> None:
    factors = sorted(claims.caught_pct)
    shares = [claims.caught_pct[factor] for factor in factors]
    places = [100 * factor for factor in factors]
    axes.plot(
        places,
        shares,
        color=PALETTE[0],
        marker="o",
        markersize=7,
        linewidth=1.3,
        label="understated, and caught",
    )
    axes.vlines(places, 0, shares, color=LIGHT, linewidth=1.0, zorder=0)
    for place, share in zip(places, shares, strict=True):
        _tell(axes, place, share, (20, 5))


def _draw_honest(axes: Axes, claims: ClaimScore) -> None:
    axes.plot(
        100,
        claims.false_alarm_pct,
        color=PALETTE[1],
        marker="X",
        markersize=9,
        linestyle="none",
        clip_on=False,
        label="honest, and doubted: false alarms",
    )
    _tell(axes, 100, claims.false_alarm_pct, (0, 9))


def _tell(axes: Axes, place: float, share: float, shift: tuple[int, int]) -> None:
    axes.annotate(
        f"{share:.1f} %", (place, share), shift, textcoords="offset points", ha="center", va="bottom", size=9
    )
