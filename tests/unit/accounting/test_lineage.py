import json
from typing import Any

import pytest

from flopwitness.accounting.lineage import (
    LARGEST_LINEAGE_RUNS,
    Model,
    Run,
    account_lineage,
    decode_lineage,
    find_final_model,
    total_compute,
)
from flopwitness.accounting.thresholds import ComputeRange
from flopwitness.foundation.errors import DecodeError, InputError
from flopwitness.foundation.verdict import Severity


def between(low: int, upper: int | None) -> ComputeRange:
    return ComputeRange(low_flop=low, upper_flop=upper)


def model(model_id: str, flop: int, *parents: str) -> Model:
    run = Run(id=f"run-{model_id}", compute=between(flop, flop))
    return Model(id=model_id, runs=(run,), parents=parents)


def test_a_model_carries_its_ancestors() -> None:
    models = [model("c", 1, "b"), model("b", 10, "a"), model("a", 100)]
    assert total_compute(models, "c") == between(111, 111)
    assert total_compute(models, "b") == between(110, 110)
    assert account_lineage(models, "c").model_ids == ("c", "b", "a")


def test_a_shared_ancestor_counts_once() -> None:
    models = [model("top", 1, "left", "right"), model("left", 10, "base"), model("right", 100, "base")]
    assert total_compute([*models, model("base", 1000)], "top") == between(1111, 1111)
    assert total_compute([model("x", 1, "y", "y"), model("y", 2)], "x") == between(3, 3)


def test_a_relative_that_is_no_ancestor_does_not_count() -> None:
    models = [model("a", 1), model("child", 10, "a"), model("stranger", 100)]
    assert total_compute(models, "a") == between(1, 1)


@pytest.mark.parametrize(
    "models",
    [
        [model("a", 1, "a")],
        [model("a", 1, "b"), model("b", 1, "a")],
        [model("a", 1, "b"), model("b", 1, "c"), model("c", 1, "b")],
    ],
)
def test_a_model_that_is_its_own_ancestor_is_refused(models: list[Model]) -> None:
    with pytest.raises(InputError, match="its own ancestor"):
        total_compute(models, "a")


def test_an_ancestor_that_is_not_recorded_leaves_the_total_open() -> None:
    found = account_lineage([model("a", 5, "ghost"), model("b", 1)], "a")
    assert found.compute == between(5, None)
    assert found.unrecorded == ("ghost",)
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.found) == ("lineage-open", Severity.WARNING, "ghost")


def test_a_model_without_runs_and_parents_is_not_zero() -> None:
    empty = Model(id="base", runs=())
    assert total_compute([empty], "base") == between(0, None)
    assert account_lineage([model("a", 5, "base"), empty], "a").unrecorded == ("base",)
    merged = Model(id="merged", runs=(), parents=("a",))
    assert total_compute([merged, model("a", 5)], "merged") == between(5, 5)


def test_statements_and_estimates_are_kept_apart() -> None:
    estimated = Model(id="b", runs=(Run(id="r", compute=between(2, 4)),), parents=("a",))
    found = account_lineage([estimated, model("a", 100)], "b")
    assert (found.stated_flop, found.estimated, found.compute) == (100, between(2, 4), between(102, 104))
    assert found.findings == ()


@pytest.mark.parametrize(
    "models",
    [
        [model("b", 1)],
        [model("a", 1), model("a", 2)],
        [model("a", 1, "b"), Model(id="b", runs=model("a", 1).runs)],
    ],
    ids=["no such model", "two of one id", "one run twice"],
)
def test_an_ambiguous_lineage_is_refused(models: list[Model]) -> None:
    with pytest.raises(InputError):
        total_compute(models, "a")


def test_a_long_chain_needs_no_recursion() -> None:
    n = 20_000
    models = [model(str(i), 1, *([str(i + 1)] if i + 1 < n else [])) for i in range(n)]
    assert total_compute(models, "0") == between(n, n)


def test_the_final_model_is_nobodys_parent() -> None:
    assert find_final_model([model("a", 1), model("b", 1, "a")]) == "b"


@pytest.mark.parametrize(
    "models", [[], [model("a", 1), model("b", 1)], [model("a", 1, "b"), model("b", 1, "a")]]
)
def test_no_single_final_model_is_refused(models: list[Model]) -> None:
    with pytest.raises(InputError, match="no single final model"):
        find_final_model(models)


def full(*runs: dict[str, Any], **changes: Any) -> bytes:  # noqa: ANN401 (test data)
    entry: dict[str, Any] = {"id": "m", "parents": ["base"], "runs": list(runs)} | changes
    return json.dumps({"version": 1, "models": [entry]}).encode()


def test_the_full_form_is_read() -> None:
    data = full(
        {"id": "r1", "flop": "10000000000000000000000001"},
        {"id": "r2", "low_flop": "1", "upper_flop": "2"},
        {"id": "r3", "low_flop": "1", "upper_flop": None},
    )
    (found,) = decode_lineage(data)
    assert found.parents == ("base",)
    assert [run.compute for run in found.runs] == [
        between(10**25 + 1, 10**25 + 1),
        between(1, 2),
        between(1, None),
    ]


def test_the_plain_form_is_read_and_parents_may_be_left_out() -> None:
    assert decode_lineage(b'{"runs":[{"name":"a","flops":"7"}]}')[0] == Model(
        id="model", runs=(Run(id="a", compute=between(7, 7)),)
    )
    assert decode_lineage(b'{"version":1,"models":[{"id":"m","runs":[]}]}') == (Model(id="m", runs=()),)


@pytest.mark.parametrize(
    "run",
    [
        {"id": "r", "flop": 10},
        {"id": "r", "flop": 1e25},
        {"id": "r", "flop": "1e25"},
        {"id": "r", "flop": "-1"},
        {"id": "r", "flop": "01"},
        {"id": "r", "flop": None},
        {"id": "r", "flop": "1", "low_flop": "1"},
        {"id": "r", "low_flop": "2", "upper_flop": "1"},
        {"id": "r", "low_flop": None, "upper_flop": "1"},
        {"id": "r", "upper_flop": "1"},
        {"id": "", "flop": "1"},
        {"id": 3, "flop": "1"},
        {"flop": "1"},
        {"id": "r", "flops": "1"},
    ],
)
def test_a_faulty_run_is_refused(run: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        decode_lineage(full(run))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"runs":{}}',
        b'{"runs":[3]}',
        b'{"runs":[{"name":"a","flops":7}]}',
        b'{"runs":[{"name":"a","flops":"7","extra":1}]}',
        b'{"runs":[{"name":"a","flops":"7"},{"name":"a","flops":"7"}]}',
        b'{"runs":[],"parents":["x"]}',
        b'{"models":[{"id":"m","runs":[]}]}',
        b'{"version":2,"models":[{"id":"m","runs":[]}]}',
        b'{"version":true,"models":[{"id":"m","runs":[]}]}',
        b'{"version":1,"models":[]}',
        b'{"version":1,"models":{}}',
        b'{"version":1,"models":[3]}',
        b'{"version":1,"models":[{"id":"m"}]}',
        b'{"version":1,"models":[{"id":"m","runs":[],"parent":["base"]}]}',
        b'{"version":1,"models":[{"id":"m","runs":[],"parents":"base"}]}',
        b'{"version":1,"models":[{"id":"m","runs":[],"parents":[1]}]}',
        b'{"version":1,"models":[{"id":"m","runs":[]},{"id":"m","runs":[]}]}',
        b'{"version":1,"version":1,"models":[{"id":"m","runs":[]}]}',
    ],
)
def test_what_is_no_lineage_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_lineage(data, where="lineage.json")


def test_the_number_of_runs_is_limited() -> None:
    def runs(n: int) -> bytes:
        return json.dumps({"runs": [{"name": str(i), "flops": "1"} for i in range(n)]}).encode()

    assert len(decode_lineage(runs(LARGEST_LINEAGE_RUNS))[0].runs) == LARGEST_LINEAGE_RUNS
    with pytest.raises(DecodeError, match="too many runs"):
        decode_lineage(runs(LARGEST_LINEAGE_RUNS + 1))
