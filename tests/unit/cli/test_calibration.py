"""`calibrate`, `evaluate` and `estimate --calibration` as a user meets them, on made-up runs of one board."""

import csv
import io
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from flopwitness.foundation.digest import digest_file
from flopwitness.foundation.units import decode_flop

Call = Callable[..., tuple[int, str, str]]
Row = Mapping[str, object]

COLUMNS = (
    "run_id", "device", "world_size", "power_mode", "precision", "d_model", "seq_len", "batch_size",
    "duration_s", "idle_power_w", "net_energy_j", "mean_utilisation_pct", "memory_traffic_tb",
    "link_traffic_tb", "true_tflop",
)  # fmt: skip


def made_up_run(number: int, rng: random.Random) -> dict[str, object]:
    """A run on two V100 whose joules per operation depend on power and traffic, with 2 % of noise."""
    tflop = rng.uniform(500, 2_000)
    power_w, tb_per_tflop = rng.uniform(220, 260), rng.uniform(0.015, 0.03)
    net_j = tflop * (3.0 + 60 * tb_per_tflop) * math.exp(rng.gauss(0, 0.02))
    d_model, seq_len, batch = rng.choice((512, 1024)), rng.choice((128, 256)), rng.choice((8, 16))
    tokens = 2 * batch * seq_len
    return {
        "run_id": f"run{number}",
        "device": "2x-v100-sxm2-16gb",
        "world_size": 2,
        "power_mode": "300W",
        "precision": "fp16",
        "d_model": d_model,
        "seq_len": seq_len,
        "batch_size": batch,
        "duration_s": net_j / power_w,
        "idle_power_w": 98.0,
        "net_energy_j": net_j,
        "mean_utilisation_pct": rng.uniform(90, 99),
        "memory_traffic_tb": tflop * tb_per_tflop,
        "link_traffic_tb": tflop / (0.37e-3 * 1e3 * tokens * (1 + seq_len / (6 * d_model))),
        "true_tflop": tflop,
    }


def as_csv(rows: Iterable[Row], columns: Iterable[str] = COLUMNS) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.fixture
def rows() -> list[dict[str, object]]:
    rng = random.Random(5)  # noqa: S311 (a test's data)
    return [made_up_run(number, rng) for number in range(30)]


@pytest.fixture
def table(tmp_path: Path, rows: list[dict[str, object]]) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(as_csv(rows[:24]))
    return path


@pytest.fixture
def new_table(tmp_path: Path, rows: list[dict[str, object]]) -> Path:
    path = tmp_path / "new.csv"
    path.write_text(as_csv(rows[24:]))
    return path


@pytest.fixture
def calibration(call: Call, table: Path, tmp_path: Path) -> Path:
    path = tmp_path / "cal.json"
    assert call("calibrate", table, "--out", path)[0] == 0
    return path


def estimates(
    call: Call, table: Path, calibration: Path, *options: object
) -> tuple[int, list[dict[str, Any]], str]:
    status, out, err = call("estimate", table, "--calibration", calibration, *options, "--json")
    return status, json.loads(out)["runs"], err


def codes(run: Mapping[str, Any]) -> set[str]:
    return {finding["code"] for finding in run["findings"]}


def changed(rows: Iterable[Row], **values: object) -> list[dict[str, object]]:
    return [{**row, **values} for row in rows]


def test_calibrate_says_what_it_learnt_and_writes_canonical_bytes(
    call: Call, table: Path, tmp_path: Path
) -> None:
    out_file = tmp_path / "cal.json"
    status, out, err = call("calibrate", table, "--out", out_file, "--gate", 80)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == f"{out_file}: calibrated on 24 runs"
    assert f"  digest      {digest_file(out_file)}" in out
    assert "chip v100-sxm2-16gb, count 2, power mode 300W, precision fp16" in out
    for name in ("efficiency", "paper-eq1", "paper-eq2", "constant", "link"):
        assert f"\n  {name}" in out
    record = json.loads(call("calibrate", table, "--out", tmp_path / "other.json", "--gate", 80, "--json")[1])
    assert record["runs"] == 24
    assert record["digest"] == str(digest_file(out_file)) == str(digest_file(tmp_path / "other.json"))
    assert json.loads(out_file.read_text())["data"]["gate_pct"] == "80"


def test_new_runs_get_points_whose_intervals_hold_them(
    call: Call, calibration: Path, new_table: Path, rows: list[dict[str, object]]
) -> None:
    status, runs, err = estimates(call, new_table, calibration)
    assert (status, err) == (0, "")
    for run, row in zip(runs, rows[24:], strict=True):
        estimate, truth = run["estimate"], float(str(row["true_tflop"])) * 1e12
        assert estimate["method"] == "efficiency"
        assert estimate["calibration"] == str(digest_file(calibration))
        assert estimate["calibration_runs"] == 24
        assert abs(decode_flop(estimate["flop"]) / truth - 1) < 0.1
        assert decode_flop(estimate["high"]) < 1.3 * decode_flop(estimate["low"])
        assert (run["bracket"], run["refused"]) == (None, [])
    held = [
        decode_flop(run["estimate"]["low"])
        <= float(str(row["true_tflop"])) * 1e12
        <= decode_flop(run["estimate"]["high"])
        for run, row in zip(runs, rows[24:], strict=True)
    ]
    assert sum(held) >= 5


def test_names_hyperparameters_and_true_sizes_move_no_estimate(
    call: Call, calibration: Path, new_table: Path, rows: list[dict[str, object]]
) -> None:
    before = [run["estimate"] for run in estimates(call, new_table, calibration)[1]]
    blind = ("run_id", "d_model", "seq_len", "batch_size", "true_tflop")
    turned = rows[25:] + rows[24:25]
    new_table.write_text(
        as_csv(
            {**row, **{name: other[name] for name in blind}}
            for row, other in zip(rows[24:], turned, strict=True)
        )
    )
    assert [run["estimate"] for run in estimates(call, new_table, calibration)[1]] == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"precision": "fp32"}, ("calibration-mismatch", "precisions")),
        ({"power_mode": "150W"}, ("calibration-mismatch", "power_mode")),
        ({"device": "2x-a100-sxm4-80gb"}, ("calibration-mismatch", "chips")),
        ({"world_size": 4, "device": "v100-sxm2-16gb"}, ("calibration-mismatch", "count")),
        ({"memory_traffic_tb": ""}, ("feature-missing", "")),
        ({"memory_traffic_tb": 0}, ("feature-missing", "")),
        ({"memory_traffic_tb": 900}, ("feature-outside", "memory_tb_per_j")),
        ({"net_energy_j": 90_000}, ("feature-outside", "power_w")),
    ],
)
def test_another_mode_or_unlike_features_are_refused(
    call: Call,
    calibration: Path,
    new_table: Path,
    rows: list[dict[str, object]],
    change: Row,
    expected: tuple[str, str],
) -> None:
    new_table.write_text(as_csv(changed(rows[24:], **change)))
    status, runs, err = estimates(call, new_table, calibration)
    assert status == 2
    assert err.startswith(f"flopwitness: {new_table}:2 and 5 more of 6 rows: calibration refused")
    assert err.count("\n") == 1
    for run in runs:
        refused = [item for item in run["refused"] if item["code"] == expected[0]]
        assert refused
        assert refused[0]["where"] == expected[1]
        assert refused[0]["expected"]
        assert refused[0]["found"]
        assert run["estimate"]["method"].startswith("prior")
        assert decode_flop(run["upper_bound"]["flop"]) > 0


def test_one_refused_row_does_not_take_the_others_with_it(
    call: Call, calibration: Path, new_table: Path, rows: list[dict[str, object]]
) -> None:
    new_table.write_text(as_csv([*rows[24:29], {**rows[29], "precision": "fp32"}]))
    status, runs, err = estimates(call, new_table, calibration)
    assert status == 2
    assert err.startswith(f"flopwitness: {new_table}:7: calibration refused")
    assert [run["estimate"]["method"] for run in runs] == ["efficiency"] * 5 + [runs[5]["estimate"]["method"]]


def test_a_precision_that_nobody_recorded_gives_a_bracket_and_no_refusal(
    call: Call, calibration: Path, new_table: Path, rows: list[dict[str, object]]
) -> None:
    new_table.write_text(
        as_csv(rows[24:], [name for name in COLUMNS if name not in ("precision", "power_mode")])
    )
    status, runs, _ = estimates(call, new_table, calibration)
    assert status == 0
    for run in runs:
        assert "fingerprint-unrecorded" in codes(run)
        bracket, estimate = run["bracket"], run["estimate"]
        assert bracket["calibrated_precision"] == "fp16"
        assert "fp32" in bracket["precisions"]
        assert decode_flop(bracket["low"]) < decode_flop(estimate["low"])
        assert decode_flop(bracket["high"]) >= decode_flop(estimate["flop"])
    named = estimates(call, new_table, calibration, "--precision", "fp16", "--power-mode", "300 w")[1]
    assert all(run["bracket"] is None and "fingerprint-unrecorded" not in codes(run) for run in named)
    status, refused, _ = estimates(call, new_table, calibration, "--power-mode", "250W")
    assert status == 2
    assert all(run["refused"][0]["where"] == "power_mode" for run in refused)


def test_halved_tokens_are_doubted_and_move_nothing(
    call: Call, calibration: Path, new_table: Path, rows: list[dict[str, object]]
) -> None:
    honest = estimates(call, new_table, calibration)[1]
    assert not any("declared-steps-low" in codes(run) for run in honest)
    new_table.write_text(as_csv({**row, "batch_size": int(str(row["batch_size"])) // 2} for row in rows[24:]))
    status, lying, _ = estimates(call, new_table, calibration)
    assert status == 0
    assert all("declared-steps-low" in codes(run) for run in lying)
    assert [run["estimate"] for run in lying] == [run["estimate"] for run in honest]


@pytest.mark.parametrize("method", ["paper-eq1", "paper-eq2", "constant"])
def test_another_method_may_be_asked_for(call: Call, calibration: Path, new_table: Path, method: str) -> None:
    status, runs, _ = estimates(call, new_table, calibration, "--method", method)
    assert status == 0
    assert {run["estimate"]["method"] for run in runs} == {method}


def test_a_table_without_chip_or_count_still_gets_its_estimate(
    call: Call, calibration: Path, new_table: Path, rows: list[dict[str, object]]
) -> None:
    new_table.write_text(
        as_csv(rows[24:], [name for name in COLUMNS if name not in ("device", "world_size")])
    )
    status, out, _ = call("estimate", new_table, "--calibration", calibration)
    assert status == 0
    assert "run24" in out
    runs = estimates(call, new_table, calibration)[1]
    assert all(run["estimate"]["method"] == "efficiency" and run["upper_bound"] is None for run in runs)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--method", "efficiency"), "expected --calibration FILE"),
        (("--calibration", "{table}"), "not strict JSON"),
        (("--calibration", "{missing}"), "no such file"),
    ],
)
def test_wrong_use_is_one_line(call: Call, new_table: Path, words: tuple[str, ...], part: str) -> None:
    named = [word.format(table=new_table, missing=new_table.with_name("none.json")) for word in words]
    status, out, err = call("estimate", new_table, *named)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert part in err


def test_an_altered_calibration_is_refused(call: Call, calibration: Path, new_table: Path) -> None:
    calibration.write_text(calibration.read_text() + " ")
    status, out, err = call("estimate", new_table, "--calibration", calibration)
    assert (status, out) == (2, "")
    assert "not canonical" in err


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"true_tflop": ""}, "no run of known size"),
        ({"net_energy_j": ""}, "no run of known size"),
        ({"true_tflop": 1e9}, "no run of known size"),
    ],
)
def test_what_cannot_calibrate_is_refused_and_leaves_no_file(
    call: Call, table: Path, rows: list[dict[str, object]], tmp_path: Path, change: Row, part: str
) -> None:
    table.write_text(as_csv(changed(rows, **change)))
    status, out, err = call("calibrate", table, "--out", tmp_path / "none.json")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert part in err
    assert not (tmp_path / "none.json").exists()


def test_runs_of_two_modes_make_no_calibration(
    call: Call, table: Path, rows: list[dict[str, object]], tmp_path: Path
) -> None:
    table.write_text(as_csv([*rows, *changed(rows, power_mode="150W")]))
    status, _, err = call("calibrate", table, "--out", tmp_path / "none.json")
    assert status == 2
    assert "runs that differ in power_mode" in err
    assert "--where" in err
    assert call("calibrate", table, "--out", tmp_path / "one.json", "--where", "power_mode=150W")[0] == 0


@pytest.mark.parametrize("verb", [("calibrate", "--out", "c.json"), ("evaluate",)])
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--where", "colour=red"), "no such column"),
        (("--where", "precision=int8"), "no row is left"),
        (("--gate", "100"), "no row is left"),
        (("--workload", "colour"), "no such column"),
        (("--workload", "a,,b"), "no list of columns"),
    ],
)
def test_a_choice_that_leaves_nothing_is_one_line(
    call: Call, table: Path, verb: tuple[str, ...], words: tuple[str, ...], part: str, tmp_path: Path
) -> None:
    named = [str(tmp_path / word) if word == "c.json" else word for word in verb[1:]]
    status, out, err = call(verb[0], table, *named, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert part in err


def test_a_calibration_never_overwrites_its_table(call: Call, table: Path) -> None:
    before = table.read_bytes()
    assert call("calibrate", table, "--out", table)[0] == 2
    assert table.read_bytes() == before


def test_evaluate_gives_what_programs_rely_on(call: Call, table: Path, tmp_path: Path) -> None:
    words = ("--splits", 20, "--train", 16, "--seed", 3, "--curve", "8,12")
    status, out, err = call("evaluate", table, *words, "--json", "--out", tmp_path / "e.json")
    assert (status, err) == (0, "")
    record = json.loads(out)
    assert json.loads((tmp_path / "e.json").read_text()) == record
    assert [record[name] for name in ("runs", "workloads", "splits", "train", "seed")] == [24, 24, 20, 16, 3]
    assert set(record["estimators"]) == {"constant", "paper-eq1", "paper-eq2", "efficiency"}
    for score in record["estimators"].values():
        assert {
            "mean_abs_error_pct", "sd_pct", "bias_pct", "median_abs_error_pct", "p95_abs_error_pct",
            "splits_over_10pct_pct", "coverage_pct", "interval_ratio",
        } <= set(score)  # fmt: skip
        assert score["n_estimates"] == 20 * 8
    assert [point["train"] for point in record["learning_curve"]] == [8, 12]
    assert {item["column"] for item in record["leave_one_value_out"]} == {"d_model", "seq_len", "batch_size"}
    assert record["declared_steps"]["caught_pct"]["0.5"] == 100
    assert record["upper_bound"]["total_energy"]["n_violated"] == 0
    assert record["repeats"] is None
    again = json.loads(call("evaluate", table, *words, "--json")[1])
    assert again["estimators"] == record["estimators"]
    text = call("evaluate", table, *words)[1]
    assert text.startswith(
        "24 runs of 24 workloads; 20 random splits, in each 16 teach and 8 are estimated; seed 3\n"
    )
    assert "violated by 0 of 24 runs" in text


def test_repeats_of_a_workload_stay_together(
    call: Call, table: Path, rows: list[dict[str, object]], tmp_path: Path
) -> None:
    again = tmp_path / "again.csv"
    again.write_text(
        as_csv({**row, "net_energy_j": 1.01 * float(str(row["net_energy_j"]))} for row in rows[:24])
    )
    record = json.loads(
        call("evaluate", table, again, "--splits", 5, "--train", 16, "--curve", 0, "--json")[1]
    )
    assert (record["runs"], record["workloads"]) == (48, 24)
    assert record["repeats"]["n_workloads"] == 24
    assert 0 < record["repeats"]["spread_pct"] < 2
    assert record["estimators"]["efficiency"]["n_estimates"] == 5 * 16


def test_the_same_table_twice_is_no_repeat(call: Call, table: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.csv"
    twin.write_bytes(table.read_bytes())
    status, _, err = call("evaluate", table, twin)
    assert status == 2
    assert "the same table twice" in err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--train", 24), "--train"),
        (("--leave-out", "colour"), "no such column"),
        (("--curve", "8,x"), "no list of numbers"),
        (("--curve", "8,99"), "--curve: no such split"),
        (("--trace", "runs.csv"), "expected --plots DIR"),
        (("--safety", "0"), "not a safety factor"),
    ],
)
def test_wrong_plans_are_one_line(call: Call, table: Path, words: tuple[object, ...], part: str) -> None:
    status, out, err = call("evaluate", table, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert part in err


def test_figures_are_drawn_whole_in_both_forms(call: Call, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    assert call("evaluate", table, "--splits", 5, "--train", 16, "--curve", "8", "--plots", folder)[0] == 0
    names = {path.name for path in folder.iterdir()}
    for stem in (
        "calibration_and_use",
        "estimate_against_truth",
        "error_by_hyperparameter",
        "ablation",
        "coverage",
    ):
        assert {f"{stem}.svg", f"{stem}.png"} <= names
    assert "power_trace.svg" not in names


def test_figures_are_never_drawn_over_evidence(call: Call, table: Path, tmp_path: Path) -> None:
    words = ("--splits", 2, "--train", 16, "--curve", 0)
    folder = tmp_path / "figures"
    folder.mkdir()
    named = folder / "coverage.svg"
    named.write_bytes(table.read_bytes())
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "ablation.png").symlink_to(table)
    for evidence, place in ((named, folder), (table, tmp_path / "linked")):
        before = evidence.read_bytes()
        status, out, err = call("evaluate", evidence, *words, "--plots", place)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "this would write into the evidence" in err
        assert evidence.read_bytes() == before


def test_runs_of_two_modes_are_not_judged_as_repeats(
    call: Call, table: Path, rows: list[dict[str, object]]
) -> None:
    table.write_text(as_csv([*rows, *changed(rows, power_mode="150W")]))
    status, out, err = call("evaluate", table)
    assert (status, out) == (2, "")
    assert "runs that differ in power_mode" in err
    table.write_text(as_csv([*rows, *changed(rows, precision="fp32")]))
    status, out, _ = call("evaluate", table, "--splits", 2, "--train", 20, "--curve", 0, "--json")
    assert status == 0
    assert "precisions-mixed" in {finding["code"] for finding in json.loads(out)["findings"]}


def test_a_calibration_of_an_unknown_device_says_so(
    call: Call, table: Path, new_table: Path, rows: list[dict[str, object]], tmp_path: Path
) -> None:
    table.write_text(as_csv(rows, [name for name in COLUMNS if name != "device"]))
    assert call("calibrate", table, "--out", tmp_path / "nd.json")[0] == 0
    runs = estimates(call, new_table, tmp_path / "nd.json")[1]
    for run in runs:
        (told,) = [finding for finding in run["findings"] if finding["code"] == "fingerprint-unrecorded"]
        assert (told["severity"], told["found"]) == ("warning", "chips")
        assert told["reproduce"].startswith("flopwitness estimate ")


def test_alike_runs_do_not_make_an_interval_of_no_width(
    call: Call, table: Path, new_table: Path, rows: list[dict[str, object]], tmp_path: Path
) -> None:
    alike = [{**rows[0], "run_id": str(number), "batch_size": number + 1} for number in range(12)]
    table.write_text(as_csv(alike))
    new_table.write_text(as_csv(alike[:1]))
    status, out, _ = call("calibrate", table, "--out", tmp_path / "alike.json")
    assert status == 0
    assert "from energy alone" in out
    (run,) = estimates(call, new_table, tmp_path / "alike.json")[1]
    ratio = decode_flop(run["estimate"]["high"]) / decode_flop(run["estimate"]["low"])
    assert ratio == pytest.approx(math.exp(0.02), rel=1e-3)


def test_a_table_without_shapes_has_no_repeats(
    call: Call, table: Path, rows: list[dict[str, object]], tmp_path: Path
) -> None:
    twice = [{**row, "true_tflop": 1_000} for row in rows[:10]]
    table.write_text(
        as_csv(twice, [name for name in COLUMNS if name not in ("d_model", "seq_len", "batch_size")])
    )
    record = json.loads(call("calibrate", table, "--out", tmp_path / "c.json", "--json")[1])
    assert (record["runs"], record["workloads"]) == (10, 10)
