"""Calibrations as canonical bytes: what is written comes back, and nothing else is accepted."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.made_runs import calibrate_cells, make_cells, read_table

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.encoding import encode_canonical
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.calibration.calibrate import Calibrated
from flopwitness.measure.calibration.file import (
    LARGEST_CALIBRATION_BYTES,
    MOST_WORKLOADS,
    SPEC,
    decode_calibration,
    encode_calibration,
)
from flopwitness.measure.calibration.fitted import Method
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.estimators.efficiency import EfficiencyModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import observe

CELLS = make_cells(12)
Record: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Record], object]


@pytest.fixture(scope="module")
def made() -> Calibrated:
    return calibrate_cells(CELLS)


@pytest.fixture
def record(made: Calibrated) -> Record:
    decoded: Record = json.loads(made.data)
    return decoded


def accepts(record: Record) -> bool:
    try:
        decode_calibration(encode_canonical(record))
    except DecodeError:
        return False
    return True


def test_bytes_come_back(made: Calibrated) -> None:
    again = decode_calibration(made.data)
    assert encode_calibration(again) == made.data
    assert again.digest == made.calibration.digest == digest_bytes(made.data)


def test_a_calibration_comes_back(made: Calibrated) -> None:
    again = decode_calibration(made.data)
    assert again.fingerprint == made.calibration.fingerprint
    assert again.data == made.calibration.data
    assert again.fitted.net == made.calibration.fitted.net
    assert again.fitted.refused == made.calibration.fitted.refused
    assert again.extra == {}
    runs = observe(read_table(CELLS).rows)
    for method in Method:
        own, theirs = made.calibration.fitted.predict(method, runs), again.fitted.predict(method, runs)
        np.testing.assert_array_equal(theirs.flop, own.flop)
        np.testing.assert_array_equal(theirs.log_half, own.log_half)


def test_what_could_not_be_fitted_comes_back() -> None:
    few = calibrate_cells(CELLS[:4])
    again = decode_calibration(few.data)
    assert set(again.fitted.refused) == {Method.EFFICIENCY, Method.PAPER_EQ1}
    assert again.fitted.refused == few.calibration.fitted.refused
    assert again.link is None


def test_it_is_json_that_others_can_read(record: Record) -> None:
    assert record["spec"] == SPEC == "flopwitness/calibration/v1"
    assert record["fingerprint"]["chips"] == ["v100-sxm2-16gb"]
    assert record["data"]["rows"] == [list(range(2, 14))]
    assert record["data"]["n_runs"] == 12
    assert [each["unit"] for each in record["domain"]["features"]] == ["W", "TB/J", "TB/J", "TB/J"]
    assert set(record["estimators"]) == set(Method)


def test_no_number_is_written_as_a_float(made: Calibrated) -> None:
    def refuse(text: str) -> None:
        pytest.fail(f"a float: {text}")

    json.loads(made.data, parse_float=refuse)


def test_no_id_of_a_run_is_written(made: Calibrated) -> None:
    named = calibrate_cells(make_cells(12, run_id=lambda number: f"secret-{number}"))
    assert b"secret" not in named.data
    assert json.loads(named.data)["data"]["tables"] != json.loads(made.data)["data"]["tables"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (5.123456789012345, "5.12345678901"),
        (1 / 3, "0.333333333333"),
        (2e-7, "2e-07"),
        (98.0, "98"),
        (0.0, "0"),
        (-0.0, "0"),
        (123_456_789_012_345.0, "1.23456789012e+14"),
    ],
)
def test_numbers_are_kept_to_twelve_digits(value: float, written: str, made: Calibrated) -> None:
    fitted = made.calibration.fitted
    other = replace(made.calibration, fitted=replace(fitted, net=replace(fitted.net, idle_w=value)))
    assert json.loads(encode_calibration(other))["net_energy"]["idle_w"] == written


def test_unknown_fields_are_kept(record: Record) -> None:
    record["signed_by"] = {"name": "é", "keys": [1, None, True, "x", []]}
    record["zz"] = 2**53 - 1
    data = encode_canonical(record)
    calibration = decode_calibration(data)
    assert calibration.extra == {"signed_by": record["signed_by"], "zz": 2**53 - 1}
    assert encode_calibration(calibration) == data


def test_an_extra_field_never_replaces_a_known_one(made: Calibrated) -> None:
    forged = replace(made.calibration, extra=MappingProxyType({"spec": "other", "fingerprint": None}))
    assert encode_calibration(forged) == made.data


def test_an_error_without_bound_is_written(made: Calibrated) -> None:
    fitted = made.calibration.fitted
    model = fitted.models[Method.PAPER_EQ2]
    assert isinstance(model, PaperModel)
    unbounded = replace(model, errors=np.array([math.inf, *[0.5] * 11]))
    data = encode_calibration(
        replace(
            made.calibration,
            fitted=replace(fitted, models=MappingProxyType({**fitted.models, Method.PAPER_EQ2: unbounded})),
        )
    )
    again = decode_calibration(data).fitted.models[Method.PAPER_EQ2]
    assert isinstance(again, PaperModel)
    assert again.errors.tolist() == [math.inf, *[0.5] * 11]


def test_a_constant_that_is_no_number_is_not_written(made: Calibrated) -> None:
    fitted = made.calibration.fitted
    model = fitted.models[Method.CONSTANT]
    assert isinstance(model, ConstantModel)
    for broken in (
        replace(model, log_sd=math.nan),
        replace(model, errors=np.array([math.nan, 1.0])),
    ):
        with pytest.raises(ValueError, match="no number"):
            encode_calibration(
                replace(made.calibration, fitted=replace(fitted, models={Method.CONSTANT: broken}))
            )


def change(*path: str | int, to: object) -> Change:
    """How a test sets one value of the record."""

    def apply(record: Record) -> None:
        place: Any = record
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return apply


def remove(*path: str | int) -> Change:
    def apply(record: Record) -> None:
        place: Any = record
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return apply


ACCEPTED: dict[str, Change] = {
    "as it is": lambda _: None,
    "another mode": change("fingerprint", "power_mode", to="250W"),
    "no mode": change("fingerprint", "power_mode", to=""),
    "no count": change("fingerprint", "count", to=None),
    "a gate": change("data", "gate_pct", to="80"),
    "conditions": change("data", "where", to=["precision=fp16", ""]),
    "no link": change("link_operations", to=None),
    "no idle power": change("net_energy", to={"kind": "recorded", "idle_w": "0"}),
    "a wide number": change("net_energy", "idle_w", to="1e-05"),
    "an estimator less": remove("estimators", "efficiency"),
    "a reason": lambda record: record.update(
        estimators={"constant": record["estimators"]["constant"]}, not_fitted={"efficiency": "too few"}
    ),
    "an unknown field": change("note", to="by hand"),
}

REFUSED: dict[str, Change] = {
    "no spec": remove("spec"),
    "a later version": change("spec", to="flopwitness/calibration/v2"),
    "another record": change("spec", to="flopwitness/trace/v1"),
    "a spec that is no text": change("spec", to=[SPEC]),
    "another convention": change("convention", to="FLOP counted otherwise"),
    "no convention": remove("convention"),
    "no fingerprint": remove("fingerprint"),
    "a fingerprint that is a list": change("fingerprint", to=[]),
    "an unknown field in the fingerprint": change("fingerprint", "colour", to="red"),
    "a field less in the fingerprint": remove("fingerprint", "driver"),
    "a count of zero": change("fingerprint", "count", to=0),
    "a negative count": change("fingerprint", "count", to=-2),
    "a count that is true": change("fingerprint", "count", to=True),
    "a count as text": change("fingerprint", "count", to="2"),
    "a count beyond JSON": change("fingerprint", "count", to=2.0**60),
    "chips that are one text": change("fingerprint", "chips", to="v100-sxm2-16gb"),
    "chips that are numbers": change("fingerprint", "chips", to=[1]),
    "a mode that is none": change("fingerprint", "power_mode", to=None),
    "a digest that is none": change("data", "tables", to=["sha256:0"]),
    "an upper-case digest": change("data", "tables", 0, to="sha256:" + "A" * 64),
    "a line of zero": change("data", "rows", 0, 0, to=0),
    "a negative line": change("data", "rows", 0, 0, to=-3),
    "a line that is true": change("data", "rows", 0, 0, to=True),
    "a line as text": change("data", "rows", 0, 0, to="2"),
    "another number of runs": change("data", "n_runs", to=13),
    "no number of runs": remove("data", "n_runs"),
    "no workloads": change("data", "n_workloads", to=0),
    "workloads as text": change("data", "n_workloads", to="12"),
    "more workloads than runs": change("data", "n_workloads", to=13),
    "tables without rows": change("data", "tables", to=[]),
    "rows without tables": change("data", "rows", to=[list(range(2, 14)), []]),
    "a gate below zero": change("data", "gate_pct", to="-1"),
    "a gate beyond all": change("data", "gate_pct", to="101"),
    "a gate that is a number": change("data", "gate_pct", to=80),
    "a condition that is none": change("data", "where", to=[None]),
    "a negative idle power": change("net_energy", "idle_w", to="-98"),
    "an idle power that is infinite": change("net_energy", "idle_w", to="inf"),
    "an idle power that is NaN": change("net_energy", "idle_w", to="nan"),
    "a huge idle power": change("net_energy", "idle_w", to="1e+101"),
    "an idle power that is no text": change("net_energy", "idle_w", to=98),
    "an idle power with a sign": change("net_energy", "idle_w", to="+98"),
    "an idle power with a space": change("net_energy", "idle_w", to=" 98"),
    "an idle power with a zero before": change("net_energy", "idle_w", to="098"),
    "an idle power with a zero behind": change("net_energy", "idle_w", to="98.0"),
    "an idle power in other digits": change("net_energy", "idle_w", to="٩٨"),
    "an idle power with an underscore": change("net_energy", "idle_w", to="9_8"),
    "an idle power in hexadecimal": change("net_energy", "idle_w", to="0x62"),
    "minus zero": change("net_energy", "idle_w", to="-0"),
    "another kind": change("net_energy", "kind", to="guessed"),
    "idle power that is not subtracted": change("net_energy", "kind", to="recorded"),
    "no domain": remove("domain"),
    "a domain without features": change("domain", "features", to=[]),
    "a domain of one run": change("domain", "n_runs", to=1),
    "a domain of other runs": change("domain", "n_runs", to=13),
    "more runs with a link than runs": lambda record: record["link_operations"].update(
        left_out_errors=["0.1"] * 13
    ),
    "a count beyond all devices": change("fingerprint", "count", to=1_000_000_001),
    "a feature twice": lambda record: record["domain"]["features"].append(record["domain"]["features"][0]),
    "an unknown feature": change("domain", "features", 0, "name", to="steps"),
    "another unit": change("domain", "features", 0, "unit", to="kW"),
    "a range that is turned round": lambda record: record["domain"]["features"][0].update(
        log_low=record["domain"]["features"][0]["log_high"], log_high="-200"
    ),
    "a feature beyond all": change("domain", "features", 0, "log_high", to="231"),
    "a feature of an estimator that has no range": lambda record: record["domain"]["features"].pop(),
    "a domain without power": lambda record: record["domain"]["features"].pop(0),
    "an unknown estimator": change("estimators", "oracle", to={}),
    "estimators as a list": change("estimators", to=[]),
    "no estimators": remove("estimators"),
    "an unknown estimator that was not fitted": change("not_fitted", "oracle", to="why"),
    "a reason that is no text": change("not_fitted", to={"efficiency": None}),
    "an estimator both fitted and not": change("not_fitted", to={"efficiency": "too few"}),
    "a negative spread": change("estimators", "constant", "log_sd", to="-0.1"),
    "a constant beyond all": change("estimators", "constant", "log_flop_per_j", to="230.1"),
    "a constant below all": change("estimators", "constant", "log_flop_per_j", to="-231"),
    "one error": change("estimators", "constant", "left_out_errors", to=["0.1"]),
    "no errors": change("estimators", "constant", "left_out_errors", to=[]),
    "a negative error": change("estimators", "constant", "left_out_errors", 0, to="-0.1"),
    "an error that is NaN": change("estimators", "constant", "left_out_errors", 0, to="nan"),
    "an error below infinity": change("estimators", "constant", "left_out_errors", 0, to="-inf"),
    "errors as a text": change("estimators", "constant", "left_out_errors", to="12"),
    "too many errors": change("estimators", "constant", "left_out_errors", to=["0.1"] * (MOST_WORKLOADS + 1)),
    "an error less": lambda record: record["estimators"]["constant"]["left_out_errors"].pop(),
    "an unknown field in an estimator": change("estimators", "constant", "seed", to=1),
    "a field less in an estimator": remove("estimators", "constant", "log_sd"),
    "traffic in equation 2": change("estimators", "paper-eq2", "energy_per_tb_j", to="10"),
    "no traffic in equation 1": change("estimators", "paper-eq1", "energy_per_tb_j", to=None),
    "no energy per operation": change("estimators", "paper-eq1", "energy_per_tflop_j", to="0"),
    "a negative energy per operation": change("estimators", "paper-eq1", "energy_per_tflop_j", to="-5"),
    "traffic that saves energy": change("estimators", "paper-eq1", "energy_per_tb_j", to="-5"),
    "a negative overhead": change("estimators", "paper-eq1", "overhead_w", to="-1"),
    "a condition number below 1": change("estimators", "paper-eq1", "condition_number", to="0.5"),
    "equations that are swapped": lambda record: record["estimators"].update(
        {
            "paper-eq1": record["estimators"]["paper-eq2"],
            "paper-eq2": record["estimators"]["paper-eq1"],
        }
    ),
    "a run less in one column": lambda record: record["estimators"]["efficiency"]["log_features"].pop(),
    "seven runs": lambda record: record["estimators"]["efficiency"].update(
        log_features=record["estimators"]["efficiency"]["log_features"][:7],
        log_flop_per_j=record["estimators"]["efficiency"]["log_flop_per_j"][:7],
    ),
    "a run with a feature less": lambda record: record["estimators"]["efficiency"]["log_features"][3].pop(),
    "features that are one text": change("estimators", "efficiency", "features", to="power_w"),
    "a feature twice in an estimator": lambda record: record["estimators"]["efficiency"].update(
        features=["power_w"] * 4
    ),
    "a feature that is NaN": change("estimators", "efficiency", "log_features", 0, 0, to="nan"),
    "a feature that is a number": change("estimators", "efficiency", "log_features", 0, 0, to=5),
    "an efficiency beyond all": change("estimators", "efficiency", "log_flop_per_j", 0, to="400"),
    "a link that is empty": change("link_operations", to={}),
    "a link that is false": change("link_operations", to=False),
    "a link with a negative spread": change("link_operations", "log_sd", to="-1"),
    "no link at all": remove("link_operations"),
    "an extra field with a float": change("note", to=0.5),
    "an extra field that is not NFC": change("note", to="e\u0301"),
    "an extra field whose name is not NFC": change("e\u0301", to=1),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str, record: Record) -> None:
    ACCEPTED[name](record)
    assert accepts(record)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, record: Record) -> None:
    REFUSED[name](record)
    assert not accepts(record)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_file(name: str, record: Record) -> None:
    REFUSED[name](record)
    with pytest.raises(DecodeError) as refusal:
        decode_calibration(encode_canonical(record), where="c.json")
    assert refusal.value.where.startswith("c.json")


def test_more_is_refused_than_accepted() -> None:
    assert len(REFUSED) >= 2 * len(ACCEPTED)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 100,
        b"{}",
        b"[]",
        b"null",
        b'"flopwitness/calibration/v1"',
        b'{"spec":"flopwitness/calibration/v1"}',
        b'{"spec":NaN}',
        b'{"spec":1e999}',
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    ],
)
def test_what_is_no_calibration_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_calibration(data)


def test_too_large_a_file_is_refused_before_it_is_read() -> None:
    with pytest.raises(DecodeError, match="too large") as refusal:
        decode_calibration(b"[" * (LARGEST_CALIBRATION_BYTES + 1), where="big.json")
    assert refusal.value.where == "big.json"


def test_a_field_of_any_size_is_kept_up_to_the_limit(record: Record) -> None:
    room = LARGEST_CALIBRATION_BYTES - len(encode_canonical({**record, "note": ""}))
    assert accepts({**record, "note": "x" * room})
    assert not accepts({**record, "note": "x" * (room + 1)})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data + b"\n",
        lambda data: b" " + data,
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b",", b", ", 1),
        lambda data: data.replace(b'"spec"', b'"\\u0073pec"', 1),
        lambda data: data + data,
        lambda data: data[:-1],
        lambda data: data.replace(b'"count":2', b'"count":2.0'),
        lambda data: data.replace(b'"count":2', b'"count":2,"count":2'),
        lambda data: json.dumps(json.loads(data)).encode(),
        lambda data: json.dumps(dict(reversed(json.loads(data).items())), separators=(",", ":")).encode(),
    ],
)
def test_another_form_of_the_same_record_is_refused(
    spoil: Callable[[bytes], bytes], made: Calibrated
) -> None:
    spoilt = spoil(made.data)
    assert spoilt != made.data
    with pytest.raises(DecodeError):
        decode_calibration(spoilt, where="c.json")


def test_the_place_is_told(made: Calibrated) -> None:
    for data in (b"{}", b"x", made.data + b" ", made.data.replace(b'"98"', b'"-98"')):
        with pytest.raises(DecodeError) as refusal:
            decode_calibration(data, where="c.json")
        assert refusal.value.where == "c.json"


def test_the_largest_numbers_that_are_accepted_raise_nothing_later(record: Record) -> None:
    efficiency = record["estimators"]["efficiency"]
    efficiency["log_features"] = [
        ["230" if (row + column) % 2 else "-230" for column in range(4)] for row in range(12)
    ]
    efficiency["log_flop_per_j"] = ["230" if row % 3 else "-230" for row in range(12)]
    record["estimators"]["paper-eq1"].update(energy_per_tflop_j="1e-300", energy_per_tb_j="1e+100")
    record["estimators"]["constant"].update(log_flop_per_j="230", log_sd="1e+100")
    calibration = decode_calibration(encode_canonical(record))
    runs = observe(read_table(CELLS).rows)
    model = calibration.fitted.models[Method.EFFICIENCY]
    assert isinstance(model, EfficiencyModel)
    for method in Method:
        answer = calibration.fitted.predict(method, runs)
        assert answer.low_flop.shape == answer.high_flop.shape == (12,)
    assert calibration.fitted.is_outside(runs).shape == (12,)
