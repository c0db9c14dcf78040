"""Run every decoder over many wounded inputs and print a table.

    python campaigns/fuzz_decoders.py --trials 100000 [--decoder NAME] [--resume] [--shared DIR]

The state is written after every thousand trials, so that a run that was cut short goes on with
`--resume`. Seeds are inputs of our own making and, where the recordings are at hand, their heads.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import click

from flopwitness.foundation.files import write_whole
from flopwitness.testing.decoder_kit import Escape, KitReport, fuzz_decoder
from flopwitness.testing.decoder_table import known_decoders
from flopwitness.testing.known_decoder import KnownDecoder

__all__ = ["collect_seeds", "command", "run_campaign"]

_CHUNK_TRIALS = 1_000
_HEAD_BYTES = 4_096
_MOST_RECORDINGS = 12
_REPOSITORY = Path(__file__).resolve().parent.parent


def collect_seeds(decoder: KnownDecoder, shared: Path | None) -> tuple[bytes, ...]:
    """The decoder's own seeds and the heads of recordings, cut at a line's end."""
    seeds = list(decoder.seeds)
    if shared is not None:
        for pattern in decoder.recordings:
            for path in islice(sorted(shared.glob(pattern)), _MOST_RECORDINGS):
                with path.open("rb") as file:
                    head = file.read(_HEAD_BYTES)
                cut = head.rfind(b"\n") + 1
                seeds.append(head[:cut] if len(head) == _HEAD_BYTES and cut else head)
    return tuple(dict.fromkeys(seeds))


def run_campaign(
    decoder: KnownDecoder,
    seeds: Sequence[bytes],
    *,
    trials: int,
    seed: int,
    state_path: Path,
    is_resumed: bool,
) -> KitReport:
    """The report of `trials` trials in all, those of an earlier run included where `is_resumed`.

    Side effects:
        Writes the state to `state_path` after every thousand trials.
    """
    state = _load_state(state_path)
    name = f"{decoder.name} seed {seed}"
    report = _decode_report(state[name]) if is_resumed and name in state else KitReport()
    while report.trials < trials:
        count = min(_CHUNK_TRIALS, trials - report.trials)
        report += fuzz_decoder(decoder.decode, seeds, trials=count, seed=seed, first=report.trials)
        state[name] = asdict(report)
        write_whole(state_path, json.dumps(state, indent=1).encode())
    return report


def _load_state(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes()) if path.is_file() else {}


def _decode_report(record: dict[str, Any]) -> KitReport:
    escapes = tuple(Escape(**escape) for escape in record["escapes"])
    return KitReport(**{**record, "escapes": escapes})


def _shared_folder(named: Path | None) -> Path | None:
    folder = named or Path(os.environ.get("FLOPWITNESS_SHARED_DATA") or _REPOSITORY.parent / "shared")
    return folder if folder.is_dir() else None


@click.command()
@click.option("--trials", default=100_000, show_default=True, help="Trials for each decoder, in all.")
@click.option("--seed", default=1, show_default=True, help="Chooses the wounds.")
@click.option("--decoder", "chosen", multiple=True, help="Only this decoder; may be repeated.")
@click.option("--resume", "is_resumed", is_flag=True, help="Go on where an earlier run stopped.")
@click.option("--shared", type=click.Path(path_type=Path, file_okay=False, exists=True), default=None)
@click.option(
    "--state", "state_path", type=click.Path(path_type=Path), default=Path("out/fuzz_decoders.json")
)
def command(  # noqa: D103 (the module's docstring is its help)
    *,
    trials: int,
    seed: int,
    chosen: tuple[str, ...],
    is_resumed: bool,
    shared: Path | None,
    state_path: Path,
) -> None:
    decoders = {decoder.name: decoder for decoder in known_decoders()}
    unknown = set(chosen) - set(decoders)
    if unknown:
        raise click.UsageError(f"no decoder {', '.join(sorted(unknown))}; there are {', '.join(decoders)}")
    state_path.parent.mkdir(parents=True, exist_ok=True)
    print(f"{'decoder':<17}{'trials':>9}{'accepted':>10}{'refused':>9}{'escaped':>9}{'slowest':>10}")
    n_escaped = 0
    for decoder in (decoders[name] for name in chosen or decoders):
        seeds = collect_seeds(decoder, _shared_folder(shared))
        if not seeds:
            print(f"{decoder.name:<17}  no seeds: the recordings are not at hand")
            continue
        report = run_campaign(
            decoder, seeds, trials=trials, seed=seed, state_path=state_path, is_resumed=is_resumed
        )
        n_escaped += report.n_escaped
        print(
            f"{decoder.name:<17}{report.trials:>9}{report.accepted:>10}{report.refused:>9}"
            f"{report.n_escaped:>9}{report.slowest_s * 1e3:>7.1f} ms",
            flush=True,
        )
        for escape in report.escapes:
            print(f"    trial {escape.trial}: {escape.error}")
    sys.exit(1 if n_escaped else 0)


if __name__ == "__main__":
    command()
