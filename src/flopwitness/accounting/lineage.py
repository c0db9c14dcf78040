"""How much compute a model carries in all: its own runs, and those of every ancestor, once each.

Laws count cumulatively, so the total of a model is the sum over its lineage. An ancestor that two parents
share is counted once; an ancestor that is named but not recorded leaves the total open at the top, because
nobody knows what it took. What is stated as exact and what is estimated are kept apart: sensors have a
tolerance, statements have none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from flopwitness.accounting.thresholds import NO_COMPUTE, ComputeRange
from flopwitness.foundation.encoding import JsonValue, decode_json
from flopwitness.foundation.errors import DecodeError, InputError, OutOfRangeError
from flopwitness.foundation.units import decode_flop
from flopwitness.foundation.verdict import Finding, Severity

__all__ = [
    "LARGEST_LINEAGE_RUNS",
    "LineageTotal",
    "Model",
    "Run",
    "account_lineage",
    "decode_lineage",
    "find_final_model",
    "total_compute",
]

LARGEST_LINEAGE_RUNS: Final = 100_000

_PLAIN_KEYS: Final = frozenset({"threshold", "comparison", "runs"})
_PLAIN_RUN_KEYS: Final = frozenset({"name", "flops"})  # the key as such files spell it
_PLAIN_MODEL_ID: Final = "model"
_TOP_KEYS: Final = frozenset({"version", "models"})
_MODEL_KEYS: Final = frozenset({"id", "runs", "parents"})
_EXACT_KEYS: Final = frozenset({"id", "flop"})
_RANGE_KEYS: Final = frozenset({"id", "low_flop", "upper_flop"})
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run.

    Attributes:
        id: Its name, unique in the file.
        compute: What it took; both ends equal where it is stated as exact.
    """

    id: str
    compute: ComputeRange

    @property
    def is_exact(self) -> bool:
        """Whether the run's compute is a single figure."""
        return self.compute.low_flop == self.compute.upper_flop


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model with the runs that made it out of its parents.

    Attributes:
        id: Its name, unique in the file.
        runs: Its own runs.
        parents: The ids of the models that it started from.
    """

    id: str
    runs: tuple[Run, ...]
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageTotal:
    """What a model and all its ancestors took.

    Attributes:
        stated_flop: The sum of the runs that are single figures.
        estimated: The sum of the runs that are ranges; open at the top where an ancestor is not recorded.
        model_ids: The models that were counted, the model itself first.
        unrecorded: The models that are named and of which no run is recorded, sorted.
    """

    stated_flop: int
    estimated: ComputeRange
    model_ids: tuple[str, ...]
    unrecorded: tuple[str, ...]

    @property
    def compute(self) -> ComputeRange:
        """Everything together."""
        return self.estimated.plus(ComputeRange(low_flop=self.stated_flop, upper_flop=self.stated_flop))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One warning for each model of the lineage that is not recorded."""
        return tuple(
            Finding(
                code="lineage-open",
                severity=Severity.WARNING,
                message=f"No run of {missing} is recorded: nothing bounds the total from above.",
                where=self.model_ids[0],
                expected="the runs of every model of the lineage",
                found=missing,
            )
            for missing in self.unrecorded
        )


def total_compute(models: Sequence[Model], model_id: str) -> ComputeRange:
    """What the model and all its ancestors took, each ancestor once.

    Raises:
        InputError: As `account_lineage`.
    """
    return account_lineage(models, model_id).compute


def account_lineage(models: Sequence[Model], model_id: str) -> LineageTotal:
    """What the model and all its ancestors took, stated and estimated apart.

    Raises:
        InputError: There is no such model, two models share an id, two counted runs share an id (they would
            count twice), or a model is its own ancestor.
    """
    by_id = _index_models(models)
    if model_id not in by_id:
        raise InputError(
            "no such model", where="lineage", expected=_some_of(list(by_id)), found=repr(model_id[:80])
        )
    order, unrecorded = _walk_ancestors(by_id, model_id)
    stated_flop = 0
    estimated = ComputeRange(low_flop=0, upper_flop=None) if unrecorded else NO_COMPUTE
    seen: set[str] = set()
    for run in (run for each in order for run in by_id[each].runs):
        if run.id in seen:
            raise InputError("a run that would count twice", where="lineage", found=repr(run.id[:80]))
        seen.add(run.id)
        if run.is_exact:
            stated_flop += run.compute.low_flop
        else:
            estimated = estimated.plus(run.compute)
    return LineageTotal(stated_flop=stated_flop, estimated=estimated, model_ids=order, unrecorded=unrecorded)


def find_final_model(models: Sequence[Model]) -> str:
    """The id of the one model that is nobody's parent.

    Raises:
        InputError: There is none or more than one: the caller must name the model that is meant.
    """
    parents = {parent for model in models for parent in model.parents}
    final = [model.id for model in models if model.id not in parents]
    if len(final) != 1:
        raise InputError(
            "no single final model", where="lineage", expected="the model's id", found=_some_of(final)
        )
    return final[0]


def decode_lineage(data: bytes, *, where: str = "") -> tuple[Model, ...]:
    """The models of a lineage file.

    Two forms are read. `{"runs": [{"name": ..., "flops": ...}]}` is one model without parents; a `threshold`
    and `comparison` beside the runs are the writer's own and are not used. `{"version": 1, "models":
    [{"id": ..., "parents": [...], "runs": [...]}]}` is the full form, where a run is `{"id", "flop"}` or
    `{"id", "low_flop", "upper_flop"}` with null for an open upper end. Counts are decimal strings. Unknown
    keys are refused: a misspelt `parents` would silently shorten the lineage.

    Args:
        data: Strict JSON in UTF-8.
        where: The place to name in an error.

    Raises:
        DecodeError: Neither form; a count that is no decimal string; a repeated id; more than 100,000 runs.
    """
    document = decode_json(data, where=where)
    if isinstance(document, dict) and "models" in document:
        models = _decode_models(document, where=where)
    else:
        models = (_decode_plain(document, where=where),)
    _refuse_repeats((model.id for model in models), where=where, what="model")
    _refuse_repeats((run.id for model in models for run in model.runs), where=where, what="run")
    return models


def _index_models(models: Sequence[Model]) -> Mapping[str, Model]:
    by_id = {model.id: model for model in models}
    if len(by_id) != len(models):
        raise InputError("two models of one id", where="lineage")
    return by_id


def _walk_ancestors(by_id: Mapping[str, Model], model_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The recorded lineage, the model first, and the models of which no run is recorded.

    Depth first with its own stack, so that a chain of 100,000 models needs no recursion. A model with neither
    runs nor parents came from somewhere all the same: it counts as not recorded.
    """
    order = {model_id: None}  # a dict keeps the order in which models are met
    unrecorded = set() if _is_recorded(by_id, model_id) else {model_id}
    path = {model_id}
    stack: list[tuple[str, Iterator[str]]] = [(model_id, iter(by_id[model_id].parents))]
    while stack:
        current, parents = stack[-1]
        parent = next(parents, None)
        if parent is None:
            stack.pop()
            path.discard(current)
        elif parent in path:
            raise InputError("a model that is its own ancestor", where="lineage", found=repr(parent[:80]))
        elif not _is_recorded(by_id, parent):
            unrecorded.add(parent)
        elif parent not in order:
            order[parent] = None
            path.add(parent)
            stack.append((parent, iter(by_id[parent].parents)))
    return tuple(order), tuple(sorted(unrecorded))


def _is_recorded(by_id: Mapping[str, Model], model_id: str) -> bool:
    model = by_id.get(model_id)
    return model is not None and bool(model.runs or model.parents)


def _some_of(ids: Sequence[str]) -> str:
    shown = ", ".join(each[:40] for each in ids[:5])
    return f"one of {shown}" + (", ..." if len(ids) > 5 else "") if ids else "nothing"  # noqa: PLR2004


def _refuse_repeats(ids: Iterator[str], *, where: str, what: str) -> None:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise DecodeError(f"two {what}s of one id", where=where, found=repr(each[:80]))
        seen.add(each)


def _decode_models(document: dict[str, JsonValue], *, where: str) -> tuple[Model, ...]:
    _check_keys(document, _TOP_KEYS, where=where)
    if document["version"] is True or document["version"] != _VERSION:
        found = repr(document["version"])[:80]
        raise DecodeError("unknown version", where=where, expected=str(_VERSION), found=found)
    models: list[Model] = []
    n_runs = 0
    for index, entry in enumerate(_as_list(document["models"], where=f"{where}, models")):
        place = f"{where}, models[{index}]"
        keys = _MODEL_KEYS if isinstance(entry, dict) and "parents" in entry else _MODEL_KEYS - {"parents"}
        _check_keys(entry, keys, where=place)
        runs = _as_list(entry["runs"], where=f"{place}, runs")
        n_runs += len(runs)
        _check_size(n_runs, where=where)
        parents = _as_list(entry.get("parents", []), where=f"{place}, parents")
        models.append(
            Model(
                id=_as_id(entry["id"], where=place),
                runs=tuple(_decode_run(run, where=f"{place}, runs[{i}]") for i, run in enumerate(runs)),
                parents=tuple(_as_id(parent, where=f"{place}, parents") for parent in parents),
            )
        )
    if not models:
        raise DecodeError("no models", where=where, expected="at least one")
    return tuple(models)


def _decode_run(entry: JsonValue, *, where: str) -> Run:
    is_exact = isinstance(entry, dict) and "flop" in entry
    _check_keys(entry, _EXACT_KEYS if is_exact else _RANGE_KEYS, where=where)
    run_id = _as_id(entry["id"], where=where)
    if is_exact:
        return Run(id=run_id, compute=_exactly(_as_count(entry["flop"], where=f"{where}, flop")))
    low = _as_count(entry["low_flop"], where=f"{where}, low_flop")
    upper = entry["upper_flop"]
    try:
        compute = ComputeRange(
            low_flop=low, upper_flop=None if upper is None else _as_count(upper, where=f"{where}, upper_flop")
        )
    except OutOfRangeError as error:
        raise DecodeError(error.message, where=where, expected=error.expected, found=error.found) from None
    return Run(id=run_id, compute=compute)


def _decode_plain(document: JsonValue, *, where: str) -> Model:
    if not isinstance(document, dict) or not set(document) <= _PLAIN_KEYS or "runs" not in document:
        raise DecodeError("not a lineage", where=where, expected="an object with models or runs")
    runs: list[Run] = []
    entries = _as_list(document["runs"], where=f"{where}, runs")
    _check_size(len(entries), where=where)
    for index, entry in enumerate(entries):
        place = f"{where}, runs[{index}]"
        _check_keys(entry, _PLAIN_RUN_KEYS, where=place)
        flop = _as_count(entry["flops"], where=f"{place}, flops")
        runs.append(Run(id=_as_id(entry["name"], where=place), compute=_exactly(flop)))
    return Model(id=_PLAIN_MODEL_ID, runs=tuple(runs))


def _exactly(flop: int) -> ComputeRange:
    return ComputeRange(low_flop=flop, upper_flop=flop)


def _check_size(n_runs: int, *, where: str) -> None:
    if n_runs > LARGEST_LINEAGE_RUNS:
        raise DecodeError(
            "too many runs", where=where, expected=f"at most {LARGEST_LINEAGE_RUNS}", found=str(n_runs)
        )


def _check_keys(entry: JsonValue, keys: frozenset[str], *, where: str) -> None:
    if not isinstance(entry, dict) or set(entry) != keys:
        found = ", ".join(sorted(entry))[:80] if isinstance(entry, dict) else repr(entry)[:80]
        raise DecodeError(
            "not the keys of a lineage", where=where, expected=", ".join(sorted(keys)), found=found
        )


def _as_list(value: JsonValue, *, where: str) -> list[JsonValue]:
    if not isinstance(value, list):
        raise DecodeError("not a list", where=where, expected="a list", found=repr(value)[:80])
    return value


def _as_id(value: JsonValue, *, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DecodeError("not an id", where=where, expected="text", found=repr(value)[:80])
    return value


def _as_count(value: JsonValue, *, where: str) -> int:
    if not isinstance(value, str):
        raise DecodeError("not a count", where=where, expected="a decimal string", found=repr(value)[:80])
    return decode_flop(value, where=where)
