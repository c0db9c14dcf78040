"""From tables of runs to a calibration: which runs teach, and what is written down of them."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from tests.made_runs import (
    FLOP_PER_TB_TOKEN,
    IDLE_W,
    Cells,
    calibrate_cells,
    catalogue,
    make_cells,
    read_table,
    write_table,
)

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.errors import InputError, NotCalibratedError
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.calibration.calibrate import Calibrated, calibrate, known_runs
from flopwitness.measure.calibration.file import MOST_WORKLOADS, decode_calibration
from flopwitness.measure.calibration.fitted import Method

CELLS = make_cells(12)


@pytest.fixture(scope="module")
def made() -> Calibrated:
    return calibrate_cells(CELLS)


def codes(made: Calibrated) -> list[str]:
    return [finding.code for finding in made.findings]


def only(number: int, value: str, otherwise: str = "") -> Callable[[int], str]:
    """A value for one run, another for the rest."""
    return lambda each: value if each == number else otherwise


def test_all_that_was_used_is_written_down(made: Calibrated) -> None:
    calibration = made.calibration
    assert calibration.data.tables == (digest_bytes(write_table(CELLS)),)
    assert calibration.data.rows == (tuple(range(2, 14)),)
    assert calibration.data.n_runs == calibration.data.n_workloads == 12
    assert calibration.data.conditions == ()
    assert calibration.data.gate_pct is None
    assert calibration.fingerprint.chips == ("v100-sxm2-16gb",)
    assert calibration.fingerprint.count == 2
    assert calibration.fingerprint.power_mode == "300W"
    assert calibration.fingerprint.precisions == ("fp16",)
    assert calibration.fitted.net.idle_w == IDLE_W
    assert set(calibration.fitted.models) == set(Method)


def test_the_constant_of_the_link_comes_back(made: Calibrated) -> None:
    assert made.calibration.link is not None
    assert math.exp(made.calibration.link.log_flop_per_tb_token) == pytest.approx(FLOP_PER_TB_TOKEN, rel=0.03)
    assert made.calibration.link.errors.size == 12


def test_the_calibration_is_what_decoding_its_bytes_gives(made: Calibrated) -> None:
    again = decode_calibration(made.data)
    assert again.digest == made.calibration.digest
    for method in Method:
        np.testing.assert_array_equal(
            again.fitted.models[method].errors, made.calibration.fitted.models[method].errors
        )


def test_the_same_table_gives_the_same_bytes(made: Calibrated) -> None:
    assert calibrate_cells(CELLS).data == made.data


def test_conditions_and_gate_are_written_down_in_a_form_that_can_be_signed() -> None:
    table = read_table(CELLS)
    conditions = ["precision=fp16", "note=e\u0301", "odd=\udcff"]
    made = calibrate([(table, table.rows)], catalogue=catalogue(), conditions=conditions, gate_pct=80.0)
    assert made.calibration.data.conditions == ("precision=fp16", "note=\u00e9", "odd=\\udcff")
    assert made.calibration.data.gate_pct == 80.0
    assert json.loads(made.data)["data"]["gate_pct"] == "80"


def test_only_chosen_rows_teach(made: Calibrated) -> None:
    table = read_table(CELLS)
    some = calibrate([(table, table.rows[3:])], catalogue=catalogue()).calibration
    assert some.data.rows == (tuple(range(5, 14)),)
    assert some.data.tables == made.calibration.data.tables
    assert some.fitted.domain.n_runs == 9


def test_several_tables_make_one_calibration(made: Calibrated) -> None:
    first, second, empty = read_table(CELLS[:5]), read_table(CELLS[5:]), read_table(CELLS[:1])
    both = calibrate(
        [(first, first.rows), (empty, ()), (second, second.rows)], catalogue=catalogue()
    ).calibration
    assert both.data.rows == (tuple(range(2, 7)), (), tuple(range(2, 9)))
    assert both.data.tables == tuple(table.provenance.digest for table in (first, empty, second))
    for method in Method:
        np.testing.assert_array_equal(
            both.fitted.models[method].errors, made.calibration.fitted.models[method].errors
        )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("true_tflop", ""),
        ("duration_s", ""),
        ("duration_s", "-1"),
        ("net_energy_j", ""),
        ("memory_traffic_tb", "0"),
        ("host_traffic_tb", ""),
        ("true_tflop", "nan"),
        ("true_tflop", "-5"),
        ("true_tflop", "inf"),
    ],
)
def test_a_run_that_lacks_something_teaches_nothing(column: str, value: str) -> None:
    lacking = [dict(cells) for cells in CELLS]
    lacking[4][column] = value
    made, rest = calibrate_cells(lacking), calibrate_cells([*CELLS[:4], *CELLS[5:]])
    assert made.calibration.data.rows == ((*range(2, 6), *range(7, 14)),)
    for method in Method:
        np.testing.assert_array_equal(
            made.calibration.fitted.models[method].errors, rest.calibration.fitted.models[method].errors
        )
    (finding,) = (each for each in made.findings if each.code == "runs-unusable")
    assert finding.count == 1


def test_a_run_that_computed_the_impossible_is_a_contradiction() -> None:
    made = calibrate_cells(make_cells(12, true_tflop=lambda n: "1e9" if n == 7 else CELLS[n]["true_tflop"]))
    (finding,) = (each for each in made.findings if each.code == "truth-over-bound")
    assert finding.severity is Severity.CONTRADICTION
    assert finding.where == "r7"
    assert made.calibration.data.rows == ((*range(2, 9), *range(10, 14)),)


def test_what_the_chips_allow_is_chips_times_time_times_peak_and_a_tenth() -> None:
    (row,) = read_table(CELLS[:1]).rows
    (chip,) = catalogue().find_all(row.chip_name)
    assert row.duration_s is not None
    most = 2 * row.duration_s * chip.peak_best[1].value / 1e12
    found: list[Finding] = []

    def is_known(tflop: float, **columns: str) -> bool:
        rows = read_table([{**CELLS[0], "true_tflop": f"{tflop:.6f}", **columns}]).rows
        return bool(known_runs(rows, catalogue(), found)[0])

    assert is_known(1.09 * most)
    assert found == []
    assert not is_known(1.11 * most)
    assert [each.code for each in found] == ["truth-over-bound"]
    assert is_known(1.11 * most, device="an unknown chip")
    assert not is_known(1.11 * most, device="v100-sxm2-16gb", world_size="")  # its energy allows less
    assert not is_known(1.11 * most, device="v100-sxm2-16gb", world_size="2")


@pytest.mark.parametrize(
    ("cells", "is_known"),
    [
        ({}, True),
        ({"idle_power_w": ""}, True),  # energy above idle is enough
        ({"net_energy_j": "", "energy_j": "5000"}, True),
        ({"net_energy_j": ""}, False),
        ({"duration_s": ""}, False),
        ({"true_tflop": ""}, False),
        ({"true_tflop": "0"}, False),
    ],
)
def test_a_known_run_has_a_size_an_energy_and_a_length(cells: Cells, is_known: bool) -> None:
    rows = read_table([{**CELLS[0], "energy_j": "", **cells}]).rows
    assert known_runs(rows, catalogue(), []).tolist() == [is_known]


def test_no_rows_are_no_known_runs() -> None:
    assert known_runs([], catalogue(), []).shape == (0,)


@pytest.mark.parametrize("rows", [[], CELLS[:2]])
def test_too_few_runs_are_refused(rows: Sequence[Cells]) -> None:
    table = read_table(CELLS)
    with pytest.raises(NotCalibratedError):
        calibrate([(table, table.rows[: len(rows)])], catalogue=catalogue())


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(NotCalibratedError, match="no run of known size"):
        calibrate([], catalogue=catalogue())


def test_runs_without_a_size_are_refused_by_the_tables_name() -> None:
    table = read_table(CELLS, without=["true_tflop"])
    with pytest.raises(NotCalibratedError, match="no run of known size") as refusal:
        calibrate([(table, table.rows)], catalogue=catalogue())
    assert refusal.value.where == "runs.csv"


@pytest.mark.parametrize(
    ("column", "value", "field"),
    [
        ("device", "2x-h100-sxm", "chips"),
        ("device", "4x-v100-sxm2-16gb", "count"),
        ("power_mode", "250W", "power_mode"),
        ("driver", "551", "driver"),
        ("scope", "node-ac", "scope"),
    ],
)
def test_runs_of_unlike_devices_are_refused(column: str, value: str, field: str) -> None:
    usual = {"driver": "550", "scope": "gpu"}.get(column, CELLS[0].get(column, ""))
    cells = [{**each, "world_size": "", column: usual} for each in CELLS]
    cells[3][column] = value
    with pytest.raises(NotCalibratedError, match=f"differ in {field}"):
        calibrate_cells(cells)


def test_a_run_without_a_size_does_not_count_for_the_device() -> None:
    cells = make_cells(12, power_mode=only(3, "250W", "300W"))
    cells[3]["true_tflop"] = ""
    assert calibrate_cells(cells).calibration.fingerprint.power_mode == "300W"


def test_repeats_of_a_workload_count_once(made: Calibrated) -> None:
    repeated = calibrate_cells([*CELLS, *CELLS[:4]])
    data = repeated.calibration.data
    assert (data.n_runs, data.n_workloads) == (16, 12)
    assert repeated.calibration.fitted.domain.n_runs == 12
    for method in Method:
        np.testing.assert_allclose(
            repeated.calibration.fitted.models[method].errors,
            made.calibration.fitted.models[method].errors,
            rtol=1e-6,
        )


def test_named_columns_tell_workloads_apart() -> None:
    cells = make_cells(12, group=lambda number: str(number % 9), true_tflop="3000")
    table = read_table(cells)
    made = calibrate([(table, table.rows)], catalogue=catalogue(), columns=["group"])
    assert made.calibration.data.n_workloads == 9
    with pytest.raises(InputError, match="no such column"):
        calibrate([(table, table.rows)], catalogue=catalogue(), columns=["grope"])


def test_more_runs_than_the_efficiency_takes_teach_the_others() -> None:
    made = calibrate_cells(make_cells(501, seed=4))
    model = made.calibration.fitted.models[Method.EFFICIENCY]
    assert model.errors.size == 500
    assert made.calibration.fitted.models[Method.CONSTANT].errors.size == 501
    assert made.calibration.data.n_workloads == 501
    assert "calibration-thinned" in {finding.code for finding in made.findings}


def test_too_many_workloads_are_refused_before_they_are_fitted() -> None:
    table = read_table(make_cells(1))
    rows = [replace(table.rows[0], true_flop=10**15 + number) for number in range(MOST_WORKLOADS + 1)]
    with pytest.raises(NotCalibratedError, match="too many workloads") as refusal:
        calibrate([(table, rows)], catalogue=catalogue())
    assert refusal.value.found == f"{MOST_WORKLOADS + 1:,}"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("net_energy_j", "1e-300"),
        ("net_energy_j", "1e100"),
        ("net_energy_j", "0"),
        ("duration_s", "1e-300"),
        ("duration_s", "1e100"),
        ("memory_traffic_tb", "1e100"),
        ("memory_traffic_tb", "1e-300"),
        ("batch_size", "1e300"),
        ("d_model", "1e-300"),
        ("true_tflop", "1e-11"),
        ("true_tflop", "1e51"),
    ],
)
@pytest.mark.parametrize("idle_w", ["", "98"])
def test_a_reading_that_no_run_has_is_used_or_refused_and_nothing_else_escapes(
    column: str, value: str, idle_w: str
) -> None:
    cells = make_cells(12, device="unknown", world_size="", idle_power_w=idle_w)
    cells[3][column] = value
    with suppress(NotCalibratedError):
        assert calibrate_cells(cells).calibration.data.n_runs >= 11


@pytest.mark.parametrize("count", ["100000000000000000000", "9007199254740992"])
def test_a_count_that_no_device_has_is_refused_and_nothing_else_escapes(count: str) -> None:
    with pytest.raises(InputError):
        calibrate_cells(make_cells(12, device="v100-sxm2-16gb", world_size=count))


def test_runs_that_were_recorded_in_two_ways_calibrate() -> None:
    cells = [*make_cells(12), *make_cells(1)]
    cells[0].update(energy_j="40000", net_energy_j="")
    cells[12].update(energy_j="", idle_power_w="")
    table = read_table([{"energy_j": "", **each} for each in cells])
    made = calibrate([(table, table.rows)], catalogue=catalogue())
    assert made.calibration.data.n_runs == 13
    assert set(made.calibration.fitted.models) >= {Method.EFFICIENCY, Method.CONSTANT}


def test_ids_steps_and_utilisation_teach_nothing(made: Calibrated) -> None:
    other = calibrate_cells(
        make_cells(12, run_id=lambda n: f"x{n}", steps=lambda n: str(9 * n), mean_utilisation_pct="33")
    )
    for method in Method:
        np.testing.assert_array_equal(
            other.calibration.fitted.models[method].errors, made.calibration.fitted.models[method].errors
        )
    assert other.calibration.link is not None
    assert made.calibration.link is not None
    np.testing.assert_array_equal(other.calibration.link.errors, made.calibration.link.errors)


def test_a_row_of_another_table_of_the_same_line_is_not_confused() -> None:
    first, second = read_table(CELLS[:6]), read_table([{**CELLS[0], "true_tflop": ""}, *CELLS[6:]])
    made = calibrate([(first, first.rows), (second, second.rows)], catalogue=catalogue()).calibration
    assert made.data.rows == (tuple(range(2, 8)), tuple(range(3, 9)))


def test_findings_name_no_more_than_there_is(made: Calibrated) -> None:
    assert set(codes(made)) <= {
        "fingerprint-unrecorded",
        "calibration-small",
        "overhead-at-edge",
        "constants-collinear",
    }
    assert {finding.severity for finding in made.findings} == {Severity.NOTE}
