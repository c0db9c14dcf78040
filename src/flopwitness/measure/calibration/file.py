"""Calibrations as canonical bytes: RFC 8785 JSON, numbers as decimal strings, so that it can be signed.

Constants are kept to twelve significant digits: the last bits of a logarithm differ between machines, and the
same table should give the same digest everywhere. `calibrate` hands out what decoding gives, so that a
calibration in memory and one from a file are one and the same.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from flopwitness.foundation.digest import Digest, digest_bytes
from flopwitness.foundation.encoding import JsonValue, decode_json, encode_signable
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.calibration.domain import Domain
from flopwitness.measure.calibration.fingerprint import MOST_CHIPS, Fingerprint
from flopwitness.measure.calibration.fitted import Fitted, Method, Model
from flopwitness.measure.calibration.record import Calibration, CalibrationData
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.estimators.efficiency import FEWEST_RUNS, MOST_RUNS, EfficiencyModel
from flopwitness.measure.estimators.link_operations import LinkModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import LARGEST_LOG, Feature, NetEnergy, NetKind

__all__ = ["LARGEST_CALIBRATION_BYTES", "MOST_WORKLOADS", "SPEC", "decode_calibration", "encode_calibration"]

SPEC: Final = "flopwitness/calibration/v1"
LARGEST_CALIBRATION_BYTES: Final = 4 * 1024 * 1024
MOST_WORKLOADS: Final = 10_000
CONVENTION: Final = "FLOP as in the table's column of true operations; a multiply-add is 2"

Vector = NDArray[np.float64]

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-][0-9]{2,3})?")
_LARGEST: Final = 1e100
_SMALLEST: Final = 1e-300
_LONGEST_TEXT: Final = 1_000
_FEWEST: Final = 2


def encode_calibration(calibration: Calibration) -> bytes:
    """The calibration's canonical bytes, its own digest aside; decoding them gives it back.

    Raises:
        ValueError: A constant that is no number: nothing that `calibrate` makes.
    """
    fitted = calibration.fitted
    record = {
        **calibration.extra,
        "spec": SPEC,
        "convention": CONVENTION,
        "fingerprint": _encode_fingerprint(calibration.fingerprint),
        "data": _encode_data(calibration.data),
        "net_energy": {"kind": str(fitted.net.kind), "idle_w": _text(fitted.net.idle_w)},
        "domain": _encode_domain(fitted.domain),
        "estimators": {str(method): _encode_model(model) for method, model in fitted.models.items()},
        "not_fitted": {str(method): reason for method, reason in fitted.refused.items()},
        "link_operations": None if calibration.link is None else _encode_link(calibration.link),
    }
    return encode_signable(record)


def decode_calibration(data: bytes, *, where: str = "") -> Calibration:
    """The calibration that the bytes hold; only the form that `encode_calibration` writes is accepted.

    Args:
        data: At most 4 MiB.
        where: The path to name in an error.

    Raises:
        DecodeError: Not such a record, numbers out of range, or not canonical.
    """
    if len(data) > LARGEST_CALIBRATION_BYTES:
        raise DecodeError(
            "too large for a calibration",
            where=where,
            expected=f"at most {LARGEST_CALIBRATION_BYTES} bytes",
            found=f"{len(data)} bytes",
        )
    record = decode_json(data, where=where)
    spec = record.get("spec") if isinstance(record, dict) else None
    if spec != SPEC:
        raise DecodeError("not a calibration", where=where, expected=SPEC, found=repr(spec)[:80])
    try:
        calibration = _decode_record(record, digest_bytes(data))
        canonical = encode_calibration(calibration)
    except DecodeError as error:
        raise DecodeError(error.message, where=where, expected=error.expected, found=error.found) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, np.linalg.LinAlgError) as error:
        raise DecodeError("not a calibration", where=where, expected=SPEC, found=_reason(error)) from None
    if canonical != data:
        raise DecodeError(
            "a calibration that is not canonical", where=where, expected="the bytes that calibrate wrote"
        )
    return calibration


def _reason(error: Exception) -> str:
    """What is wrong, in words that need no knowledge of the program."""
    if isinstance(error, KeyError):
        return f"no field {str(error)[:80]}"
    if isinstance(error, (TypeError, AttributeError)):
        return "a value of another kind"
    return str(error)[:160]


def _decode_record(record: Mapping[str, JsonValue], digest: Digest) -> Calibration:
    net = record["net_energy"]
    models = {Method(name): _decode_model(Method(name), item) for name, item in record["estimators"].items()}
    refused = {Method(name): _str(reason) for name, reason in record["not_fitted"].items()}
    domain = _decode_domain(record["domain"])
    idle_w = _number(net["idle_w"], low=0)
    calibration = Calibration(
        fingerprint=_decode_fingerprint(record["fingerprint"]),
        data=_decode_data(record["data"]),
        fitted=Fitted(
            net=NetEnergy(kind=NetKind(net["kind"]), idle_w=idle_w),
            domain=domain,
            models=MappingProxyType(models),
            refused=MappingProxyType(refused),
        ),
        link=None if record["link_operations"] is None else _decode_link(record["link_operations"]),
        digest=digest,
        extra=MappingProxyType({name: value for name, value in record.items() if name not in _KNOWN}),
    )
    _check_consistent(calibration)
    return calibration


def _check_consistent(calibration: Calibration) -> None:
    """That the parts speak of the same runs.

    Raises:
        ValueError: They do not.
    """
    data, fitted, domain = calibration.data, calibration.fitted, calibration.fitted.domain
    n_efficiency = min(data.n_workloads, MOST_RUNS)
    n_errors = {
        method: n_efficiency if method is Method.EFFICIENCY else data.n_workloads for method in fitted.models
    }
    features = {feature for method in fitted.models for feature in fitted.needed(method)}
    n_links = 0 if calibration.link is None else calibration.link.errors.size
    faults = (
        (len(data.tables) != len(data.rows), "tables and rows"),
        (not 0 < data.n_workloads <= data.n_runs, "workloads and runs"),
        (data.n_workloads > MOST_WORKLOADS or domain.n_runs != data.n_workloads, "workloads and domain"),
        (
            any(model.errors.size != n_errors[method] for method, model in fitted.models.items()),
            "workloads and errors",
        ),
        (n_links > data.n_runs, "runs and link"),
        (fitted.net.kind is not NetKind.POOLED_IDLE and fitted.net.idle_w > 0, "idle power and its kind"),
        (not {Feature.POWER, *features} <= set(domain.features), "features and domain"),
        (bool(set(fitted.models) & set(fitted.refused)), "estimators fitted and not"),
    )
    for is_fault, what in faults:
        if is_fault:
            raise ValueError(f"{what} do not fit together")


_KNOWN: Final = frozenset(
    {
        "spec",
        "convention",
        "fingerprint",
        "data",
        "net_energy",
        "domain",
        "estimators",
        "not_fitted",
        "link_operations",
    }
)


def _encode_fingerprint(item: Fingerprint) -> dict[str, JsonValue]:
    return {
        "chips": list(item.chips),
        "count": item.count,
        "scope": item.scope,
        "power_mode": item.power_mode,
        "clock_limit": item.clock_limit,
        "driver": item.driver,
        "precisions": list(item.precisions),
    }


def _decode_fingerprint(item: Mapping[str, JsonValue]) -> Fingerprint:
    count = item["count"]
    if count is not None and _line(count) > MOST_CHIPS:
        raise ValueError(f"no count: {count!r}")
    return Fingerprint(
        chips=_strings(item["chips"]),
        count=count,
        scope=_str(item["scope"]),
        power_mode=_str(item["power_mode"]),
        clock_limit=_str(item["clock_limit"]),
        driver=_str(item["driver"]),
        precisions=_strings(item["precisions"]),
    )


def _encode_data(item: CalibrationData) -> dict[str, JsonValue]:
    return {
        "tables": [str(digest) for digest in item.tables],
        "rows": [list(rows) for rows in item.rows],
        "n_runs": item.n_runs,
        "n_workloads": item.n_workloads,
        "where": list(item.conditions),
        "gate_pct": None if item.gate_pct is None else _text(item.gate_pct),
    }


def _decode_data(item: Mapping[str, JsonValue]) -> CalibrationData:
    rows = tuple(tuple(_line(row) for row in table) for table in item["rows"])
    return CalibrationData(
        tables=tuple(Digest.parse(_str(text)) for text in item["tables"]),
        rows=rows,
        n_workloads=_line(item["n_workloads"]),
        conditions=_strings(item["where"]),
        gate_pct=None if item["gate_pct"] is None else _number(item["gate_pct"], low=0, high=100),
    )


def _line(value: JsonValue) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"no line: {value!r}")
    return value


def _encode_domain(item: Domain) -> dict[str, JsonValue]:
    return {
        "n_runs": item.n_runs,
        "features": [
            {"name": str(feature), "unit": feature.unit, "log_low": _text(low), "log_high": _text(high)}
            for feature, low, high in zip(item.features, item.log_low, item.log_high, strict=True)
        ],
    }


def _decode_domain(item: Mapping[str, JsonValue]) -> Domain:
    names = tuple(Feature(feature["name"]) for feature in item["features"])
    low = np.array([_log(feature["log_low"]) for feature in item["features"]])
    high = np.array([_log(feature["log_high"]) for feature in item["features"]])
    n_runs = _line(item["n_runs"])
    if n_runs < _FEWEST or not names or len(set(names)) < len(names) or (low > high).any():
        raise ValueError("no domain")
    return Domain(features=names, log_low=low, log_high=high, n_runs=n_runs)


def _encode_model(model: Model) -> dict[str, JsonValue]:
    match model:
        case ConstantModel():
            return {
                "log_flop_per_j": _text(model.log_flop_per_j),
                "log_sd": _text(model.log_sd),
                "left_out_errors": _texts(model.errors),
            }
        case PaperModel():
            traffic = model.energy_per_tb_j
            return {
                "energy_per_tflop_j": _text(model.energy_per_tflop_j),
                "energy_per_tb_j": None if traffic is None else _text(traffic),
                "overhead_w": _text(model.overhead_w),
                "condition_number": _text(model.condition_number),
                "left_out_errors": _texts(model.errors),
            }
        case EfficiencyModel():
            return {
                "features": [str(feature) for feature in model.features],
                "log_features": [_texts(row) for row in model.log_features],
                "log_flop_per_j": _texts(model.log_flop_per_j),
            }


def _decode_model(method: Method, item: Mapping[str, JsonValue]) -> Model:
    decode: dict[Method, Callable[[Mapping[str, JsonValue]], Model]] = {
        Method.CONSTANT: _decode_constant,
        Method.PAPER_EQ1: lambda it: _decode_paper(it, has_traffic=True),
        Method.PAPER_EQ2: lambda it: _decode_paper(it, has_traffic=False),
        Method.EFFICIENCY: _decode_efficiency,
    }
    return decode[method](item)


def _decode_constant(item: Mapping[str, JsonValue]) -> ConstantModel:
    return ConstantModel(
        log_flop_per_j=_log(item["log_flop_per_j"]),
        log_sd=_number(item["log_sd"], low=0),
        errors=_errors(item["left_out_errors"]),
    )


def _decode_paper(item: Mapping[str, JsonValue], *, has_traffic: bool) -> PaperModel:
    traffic = item["energy_per_tb_j"]
    if (traffic is not None) is not has_traffic:
        raise ValueError("the traffic's constant does not fit the equation")
    energy_j = _number(item["energy_per_tflop_j"], low=_SMALLEST)
    return PaperModel(
        energy_per_tflop_j=energy_j,
        energy_per_tb_j=None if traffic is None else _number(traffic, low=0),
        overhead_w=_number(item["overhead_w"], low=0),
        condition_number=_number(item["condition_number"], low=1),
        errors=_errors(item["left_out_errors"]),
    )


def _decode_efficiency(item: Mapping[str, JsonValue]) -> EfficiencyModel:
    features = tuple(Feature(name) for name in item["features"])
    log_flop_per_j = np.array([_log(text) for text in item["log_flop_per_j"]])
    rows = [[_log(text) for text in row] for row in item["log_features"]]
    n_runs = log_flop_per_j.size
    if len(set(features)) < len(features) or not FEWEST_RUNS <= n_runs <= MOST_RUNS or len(rows) != n_runs:
        raise ValueError("no runs that an efficiency could rest on")
    log_features = np.array(rows, dtype=np.float64).reshape(n_runs, len(features))
    return EfficiencyModel(features=features, log_features=log_features, log_flop_per_j=log_flop_per_j)


def _encode_link(model: LinkModel) -> dict[str, JsonValue]:
    return {
        "log_flop_per_tb_token": _text(model.log_flop_per_tb_token),
        "log_sd": _text(model.log_sd),
        "left_out_errors": _texts(model.errors),
    }


def _decode_link(item: Mapping[str, JsonValue]) -> LinkModel:
    return LinkModel(
        log_flop_per_tb_token=_log(item["log_flop_per_tb_token"]),
        log_sd=_number(item["log_sd"], low=0),
        errors=_errors(item["left_out_errors"]),
    )


def _text(value: float) -> str:
    """Twelve significant digits; `inf` for an error that nothing bounds."""
    if math.isnan(value):
        raise ValueError("no number")
    return f"{float(value) + 0.0:.12g}"


def _texts(values: Sequence[float] | Vector) -> list[str]:
    return [_text(value) for value in values]


def _number(text: Any, *, low: float, high: float = _LARGEST) -> float:  # noqa: ANN401 (whatever the record holds)
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise ValueError(f"no number: {text!r}")
    value = float(text)
    if not low <= value <= high:
        raise ValueError(f"out of range: {text}")
    return value


def _log(text: Any) -> float:  # noqa: ANN401 (whatever the record holds)
    return _number(text, low=-LARGEST_LOG, high=LARGEST_LOG)


def _errors(texts: Any) -> Vector:  # noqa: ANN401 (whatever the record holds)
    errors = np.array([math.inf if text == "inf" else _number(text, low=0) for text in texts])
    if errors.size < _FEWEST or errors.size > MOST_WORKLOADS:
        raise ValueError(f"no number of errors: {errors.size}")
    return errors


def _str(value: Any) -> str:  # noqa: ANN401 (whatever the record holds)
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r}")
    if len(value) > _LONGEST_TEXT:
        raise ValueError("a text that is too long")
    return value


def _strings(values: Any) -> tuple[str, ...]:  # noqa: ANN401 (whatever the record holds)
    if not isinstance(values, list):
        raise TypeError(f"no list: {values!r}")
    return tuple(_str(value) for value in values)
