"""Where a verb may write: never into its evidence, never twice to one place; checked before the work."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from flopwitness.foundation.errors import InputError
from flopwitness.foundation.files import check_target

__all__ = ["check_outputs"]


def check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[Path]) -> None:
    """Refuse a target that is evidence, lies in a folder of evidence, is named twice or cannot be written.

    Links are followed on both sides, and a second name of the same file is the same file.

    Args:
        outputs: The targets by the option that names them; None where an option is absent.
        inputs: The files and folders that the call reads.

    Raises:
        InputError: One of the targets is refused.
    """
    places: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        place = check_target(path)
        twin = next((places[other] for other in places if _is_same(other, place)), None)
        if twin is not None:
            raise InputError(
                "two answers in one file", where=f"{option} {path}", expected=f"another than {twin}"
            )
        evidence = next((log for log in inputs if _is_within(place, log)), None)
        if evidence is not None:
            raise InputError(
                "this would write into the evidence",
                where=f"{option} {path}",
                expected="a file outside what is read",
                found=str(evidence),
            )
        places[place] = option


def _is_within(place: Path, log: Path) -> bool:
    """Whether a place is a log, one of a folder's logs by whatever name, or would become one."""
    try:
        if Path(os.path.realpath(log)) in (place, *place.parents):
            return True
        return place.exists() and any(_is_same(place, file) for file in _files(log))
    except OSError as error:
        raise InputError("cannot be read", where=str(log), found=error.strerror or str(error)) from error


def _files(log: Path) -> Iterator[Path]:
    if not log.is_dir():
        yield log
        return
    for folder, _, names in os.walk(log):
        yield from (Path(folder, name) for name in names)


def _is_same(one: Path, other: Path) -> bool:
    return one == other or (one.exists() and other.exists() and one.samefile(other))
