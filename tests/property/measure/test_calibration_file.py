"""Calibrations round-trip both ways, and whatever the bytes, nothing but DecodeError comes out."""

import json
import unicodedata
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.made_runs import calibrate_cells, make_cells

from flopwitness.foundation.digest import Digest, digest_bytes
from flopwitness.foundation.encoding import encode_canonical
from flopwitness.foundation.errors import DecodeError
from flopwitness.measure.calibration.domain import Domain
from flopwitness.measure.calibration.file import decode_calibration, encode_calibration
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.fitted import Fitted, Method
from flopwitness.measure.calibration.record import Calibration, CalibrationData
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.estimators.link_operations import LinkModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.measure.observed import Feature, NetEnergy, NetKind
from flopwitness.testing.decoder_kit import check_decoder

WHOLE = calibrate_cells(make_cells(9))
SMALL = calibrate_cells(make_cells(4), without=["link_traffic_tb", "host_traffic_tb"])
SEEDS = (WHOLE.data, SMALL.data)

raw_texts = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0x3FF), max_size=8)
texts = raw_texts.map(lambda text: unicodedata.normalize("NFC", text))
positive = st.floats(1e-9, 1e12)
logs = st.floats(-50, 50)
digests = st.binary(min_size=32, max_size=32).map(lambda value: Digest("sha256", value))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def decode_or_refuse(data: bytes) -> Calibration | None:
    try:
        return decode_calibration(data)
    except DecodeError:
        return None


def errors(draw: st.DrawFn, n_runs: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(draw(st.lists(st.floats(0, 5), min_size=n_runs, max_size=n_runs)))


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    """A calibration of any small kind, the efficiency aside."""
    n_runs = draw(st.integers(3, 12))
    features = (Feature.POWER, Feature.MEMORY, *draw(st.sets(st.sampled_from([Feature.LINK, Feature.HOST]))))
    low = np.array([draw(logs) for _ in features])
    kind = draw(st.sampled_from(NetKind))
    return Calibration(
        fingerprint=Fingerprint(
            chips=tuple(draw(st.lists(texts, max_size=2))),
            count=draw(st.none() | st.integers(1, 10**6)),
            power_mode=draw(texts),
            precisions=tuple(draw(st.lists(texts, max_size=2))),
        ),
        data=CalibrationData(
            tables=(draw(digests),),
            rows=(tuple(range(2, 2 + n_runs)),),
            n_workloads=n_runs,
            conditions=tuple(draw(st.lists(texts, max_size=2))),
            gate_pct=draw(st.none() | st.floats(0, 100)),
        ),
        fitted=Fitted(
            net=NetEnergy(kind=kind, idle_w=draw(positive) if kind is NetKind.POOLED_IDLE else 0.0),
            domain=Domain(
                features=features,
                log_low=low,
                log_high=low + np.array([draw(st.floats(0, 9)) for _ in features]),
                n_runs=n_runs,
            ),
            models=MappingProxyType(
                {
                    Method.CONSTANT: ConstantModel(
                        log_flop_per_j=draw(logs), log_sd=draw(st.floats(0, 5)), errors=errors(draw, n_runs)
                    ),
                    Method.PAPER_EQ1: PaperModel(
                        energy_per_tflop_j=draw(positive),
                        energy_per_tb_j=draw(st.just(0.0) | positive),
                        overhead_w=draw(st.floats(0, 4)),
                        condition_number=draw(st.floats(1, 1_000)),
                        errors=errors(draw, n_runs),
                    ),
                }
            ),
            refused=MappingProxyType({Method.PAPER_EQ2: draw(texts)}),
        ),
        link=draw(
            st.none()
            | st.just(LinkModel(log_flop_per_tb_token=28.0, log_sd=0.1, errors=np.full(n_runs, 0.05)))
        ),
        digest=digest_bytes(b""),
        extra=draw(st.dictionaries(st.text("xyz", min_size=1), json_values, max_size=3)),
    )


@given(calibrations())
def test_a_calibration_comes_back_from_its_bytes(calibration: Calibration) -> None:
    data = encode_calibration(calibration)
    again = decode_calibration(data)
    assert encode_calibration(again) == data
    assert again.digest == digest_bytes(data)
    assert again.fingerprint == calibration.fingerprint
    assert again.extra == calibration.extra
    assert again.data.rows == calibration.data.rows
    assert again.data.conditions == calibration.data.conditions
    assert again.fitted.net.kind is calibration.fitted.net.kind
    np.testing.assert_allclose(again.fitted.domain.log_low, calibration.fitted.domain.log_low, rtol=1e-11)
    for method, model in calibration.fitted.models.items():
        np.testing.assert_allclose(again.fitted.models[method].errors, model.errors, rtol=1e-11)


@given(st.dictionaries(raw_texts, json_values | raw_texts, max_size=4))
def test_unknown_fields_are_kept(extra: dict[str, Any]) -> None:
    record = json.loads(SMALL.data)
    extra = {name: value for name, value in extra.items() if name not in record}
    calibration = decode_or_refuse(encode_canonical({**record, **extra}))
    try:
        expected = encode_calibration(replace(SMALL.calibration, extra=MappingProxyType(extra)))
    except ValueError:  # text that is not NFC has no form that can be signed
        assert calibration is None
        return
    assert calibration is not None
    assert calibration.extra == extra
    assert encode_calibration(calibration) == expected


@given(st.sampled_from(SEEDS), st.data())
def test_a_flipped_byte_is_refused_or_makes_another_calibration(seed: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(seed) - 1))
    flipped = bytearray(seed)
    flipped[place] ^= data.draw(st.integers(1, 255))
    calibration = decode_or_refuse(bytes(flipped))
    if calibration is not None:
        assert encode_calibration(calibration) == bytes(flipped)
        assert calibration.digest != digest_bytes(seed)


def test_most_flipped_bits_are_refused() -> None:
    n_accepted = n_tried = 0
    for place in range(len(SMALL.data)):
        for bit in (0x01, 0x08, 0x20, 0x80):
            flipped = bytearray(SMALL.data)
            flipped[place] ^= bit
            n_tried += 1
            n_accepted += decode_or_refuse(bytes(flipped)) is not None
    assert 0 < n_accepted < n_tried / 3  # what is left is another digit or letter: another calibration


@given(st.randoms(use_true_random=False))
def test_another_order_of_fields_is_refused(random: Any) -> None:  # noqa: ANN401 (Hypothesis names no type)
    record = json.loads(SMALL.data)
    names = list(record)
    random.shuffle(names)
    assume(names != list(record))
    shuffled = json.dumps({name: record[name] for name in names}, separators=(",", ":"), ensure_ascii=False)
    assert decode_or_refuse(shuffled.encode()) is None


@given(st.sampled_from(SEEDS), st.data(), st.sampled_from([b" ", b"\n", b"\t", b"\r\n", b"\x00"]))
def test_white_space_is_refused_wherever_it_stands(seed: bytes, data: st.DataObject, white: bytes) -> None:
    place = data.draw(st.integers(0, len(seed)))
    found = decode_or_refuse(seed[:place] + white + seed[place:])
    is_inside_text = seed[:place].count(b'"') % 2 == 1
    assert found is None or (is_inside_text and white == b" ")


@given(st.sampled_from(SEEDS), st.data())
def test_a_torn_file_is_refused(seed: bytes, data: st.DataObject) -> None:
    assert decode_or_refuse(seed[: data.draw(st.integers(0, len(seed) - 1))]) is None


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    assert decode_or_refuse(data) is None


@given(json_values)
def test_any_record(value: Any) -> None:  # noqa: ANN401 (any JSON)
    assert decode_or_refuse(encode_canonical(value)) is None


paths = st.sampled_from(
    [
        path
        for section, inner in json.loads(WHOLE.data).items()
        for path in [(section,), *((section, name) for name in inner if isinstance(inner, dict))]
    ]
    + [
        ("estimators", method, field)
        for method, item in json.loads(WHOLE.data)["estimators"].items()
        for field in item
    ]
)


@given(paths, json_values)
@settings(max_examples=300)
def test_any_value_in_any_field(path: tuple[str, ...], value: Any) -> None:  # noqa: ANN401 (any JSON)
    record = json.loads(WHOLE.data)
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    data = encode_canonical(record)
    calibration = decode_or_refuse(data)
    assert calibration is None or encode_calibration(calibration) == data


def test_nothing_but_a_decode_error_escapes() -> None:
    report = check_decoder(decode_calibration, SEEDS, trials=1_500, seed=11)
    assert report.trials == 1_500
    assert report.slowest_s < 2
