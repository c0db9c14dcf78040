"""The frozen reference table: it round-trips, and only a whole one is believed."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.reference import (
    Load,
    LogSpread,
    NodeShare,
    Quantity,
    ReferenceTable,
    Unit,
    Workload,
    decode_reference,
    encode_reference,
)

Change = Callable[[dict[str, Any]], object]


def test_the_table_round_trips(reference: ReferenceTable) -> None:
    data = encode_reference(reference)
    assert decode_reference(data) == reference
    assert reference.digest == digest_bytes(data)


def test_the_shipped_table_makes_sense(reference: ReferenceTable) -> None:
    assert 0 < reference.near_limit_from < 1
    assert 0 < reference.published_load <= 1
    assert set(reference.node_share) == {"node", "node-ac", "node-dc"}
    for share in reference.node_share.values():
        assert 1 <= share.low < share.centre < share.high
        assert share.source
    for item in reference.classes:
        assert item.spread.n_groups >= 4
        if item.quantity is Quantity.MFU:
            assert item.spread.mean < 0  # nobody uses more than the peak


def test_an_interval_is_students(reference: ReferenceTable) -> None:
    spread = LogSpread(mean=0.5, sd=0.4, n_groups=10)
    low, high = spread.interval(level=0.9)
    half = float(stats.t.ppf(0.95, 9)) * 0.4 * math.sqrt(1.1)
    assert (low, high) == pytest.approx((math.exp(0.5 - half), math.exp(0.5 + half)))


def test_doubt_and_level_widen_an_interval() -> None:
    spread = LogSpread(mean=0.0, sd=0.4, n_groups=10)
    low, high = spread.interval(level=0.9)
    for wider in (spread.interval(level=0.99), spread.interval(level=0.9, extra_sd=0.3)):
        assert wider[0] < low < 1 < high < wider[1]
    fewer = replace(spread, n_groups=4).interval(level=0.9)
    assert fewer[1] > high


def test_a_nodes_share_lies_between_its_ends() -> None:
    share = NodeShare(low=1.25, high=1.8, source="x")
    assert share.centre == pytest.approx(1.5)
    assert share.log_sd == pytest.approx(math.log(1.8 / 1.25) / 2 / 1.6448536)


def test_a_class_that_is_too_small_falls_back_on_a_wider_one(reference: ReferenceTable) -> None:
    key = {"workload": Workload.TRANSFORMER, "load": Load.PART_LOAD, "unit": Unit.MATRIX}
    few = tuple(
        replace(item, spread=replace(item.spread, n_groups=3))
        if (item.workload, item.load, item.unit) == (Workload.TRANSFORMER, Load.PART_LOAD, Unit.MATRIX)
        else item
        for item in reference.classes
    )
    table = replace(reference, classes=few)
    found = table.find(**key, quantity=Quantity.RHO)  # type: ignore[arg-type]
    wider = {**key, "workload": Workload.ANY}
    assert found == table.find(**wider, quantity=Quantity.RHO)  # type: ignore[arg-type]
    unknown = replace(table, classes=tuple(item for item in table.classes if item.load is Load.UNKNOWN))
    assert unknown.find(**key, quantity=Quantity.RHO) == unknown.find(  # type: ignore[arg-type]
        workload=Workload.ANY, load=Load.UNKNOWN, unit=Unit.MATRIX, quantity=Quantity.RHO
    )


def test_every_question_has_an_answer(reference: ReferenceTable) -> None:
    for workload in Workload:
        for load in Load:
            for unit in Unit:
                for quantity in Quantity:
                    spread = reference.find(workload=workload, load=load, unit=unit, quantity=quantity)
                    assert spread.n_groups >= 4


def test_an_empty_table_has_none(reference: ReferenceTable) -> None:
    with pytest.raises(KeyError):
        replace(reference, classes=()).find(
            workload=Workload.ANY, load=Load.UNKNOWN, unit=Unit.MATRIX, quantity=Quantity.MFU
        )


def _set(*path: str | int, value: object) -> Change:
    def change(record: dict[str, Any]) -> None:
        place: Any = record
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("spec", value="flopwitness/prior-reference/v9"),
        lambda record: record.pop("spec"),
        lambda record: record.pop("classes"),
        _set("classes", value=[]),
        _set("classes", value=5),
        _set("classes", 0, value=None),
        _set("classes", 0, "log_sd", value=0),
        _set("classes", 0, "log_sd", value=-1),
        _set("classes", 0, "log_mean", value="high"),
        _set("classes", 0, "n_groups", value=1),
        _set("classes", 0, "unit", value="abacus"),
        _set("classes", 0, "workload", value="poetry"),
        _set("node_share", value=[]),
        _set("node_share", "node", value={"low": 1}),
        _set("node_share", value={}),
        _set("node_share", "node", "low", value="much"),
        _set("node_share", "node", "low", value=-1),
        _set("near_limit_from", value="most"),
        _set("near_limit_from", value=None),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(reference: ReferenceTable, change: Change) -> None:
    record = json.loads(encode_reference(reference))
    change(record)
    with pytest.raises(DecodeError) as caught:
        decode_reference(json.dumps(record).encode(), where="mine.json")
    assert caught.value.where == "mine.json"


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{", b"7", b'{"spec":1,"spec":1}', b"\xff\xfe"])
def test_bytes_that_are_no_table_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_reference(data)
