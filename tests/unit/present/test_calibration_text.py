"""What a calibration says to a person: figures of the table with their units, nothing for what is absent."""

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from tests.made_runs import Cells, calibrate_cells, make_cells

from flopwitness.foundation.digest import digest_bytes
from flopwitness.foundation.verdict import Finding, Severity
from flopwitness.measure.calibration.calibrate import Calibrated
from flopwitness.measure.calibration.fingerprint import Fingerprint
from flopwitness.measure.calibration.fitted import Method, Model
from flopwitness.measure.calibration.record import Calibration
from flopwitness.measure.estimators.constant import ConstantModel
from flopwitness.measure.estimators.paper import PaperModel
from flopwitness.present.calibration_text import render_calibration_text

WIDEST = 130


def text_of(calibration: Calibration, *, out: str = "cal.json", findings: tuple[Finding, ...] = ()) -> str:
    return render_calibration_text(calibration, out=out, findings=findings)


def lines_of(calibration: Calibration) -> dict[str, str]:
    """What stands beside each head."""
    lines = text_of(calibration).splitlines()[1:]
    return {line[2:13].strip(): line[14:] for line in lines if line[2:13].strip()}


def with_model(calibration: Calibration, method: Method, model: Model) -> Calibration:
    models = MappingProxyType({method: model})
    return replace(calibration, fitted=replace(calibration.fitted, models=models))


def test_the_answer_is_whole(calibrated: Calibrated) -> None:
    lines = text_of(calibrated.calibration).splitlines()
    assert lines[0] == "cal.json: calibrated on 24 runs"
    assert list(lines_of(calibrated.calibration)) == [
        "digest", "holds for", "energy", "seen", "constant", "efficiency", "paper-eq1", "paper-eq2", "link",
    ]  # fmt: skip
    found = lines_of(calibrated.calibration)
    assert found["digest"] == str(digest_bytes(calibrated.data))
    assert found["holds for"] == "chip v100-sxm2-16gb, count 2, power mode 300W, precision fp16"
    assert found["energy"] == "above 98 W idle, the same for every run"
    assert "findings" not in text_of(calibrated.calibration)


def test_one_run_more_is_plural(calibrated: Calibrated) -> None:
    one = replace(
        calibrated.calibration, data=replace(calibrated.calibration.data, rows=((2,),), n_workloads=1)
    )
    assert text_of(one).startswith("cal.json: calibrated on 1 run\n")


def test_what_was_seen_is_the_tables_range(calibrated: Calibrated, known_cells: list[Cells]) -> None:
    power_w = [float(each["net_energy_j"]) / float(each["duration_s"]) for each in known_cells]
    link = [float(each["link_traffic_tb"]) / float(each["net_energy_j"]) for each in known_cells]
    lines = text_of(calibrated.calibration).splitlines()
    assert f"  seen        power_w {min(power_w):.4g} to {max(power_w):.4g} W" in lines
    assert f"              link_tb_per_j {min(link):.4g} to {max(link):.4g} TB/J as counted" in lines


def test_the_constants_are_told_with_their_units(calibrated: Calibrated, known_cells: list[Cells]) -> None:
    logs = [math.log(float(each["net_energy_j"]) / float(each["true_tflop"])) for each in known_cells]
    found = lines_of(calibrated.calibration)
    assert (
        found["constant"]
        == f"{math.exp(np.mean(logs)):.2f} J/TFLOP, spread {100 * np.std(logs, ddof=1):.1f} %"
    )
    assert found["efficiency"].startswith(
        "from power_w, memory_tb_per_j, link_tb_per_j, host_tb_per_j; runs left out are off by "
    )
    error = float(found["efficiency"].split("off by ")[1].split(" %")[0])
    assert 0.5 < error < 4
    per_token, rest = found["link"].split(" FLOP per TB of link traffic and declared token a step, spread ")
    assert float(per_token) == pytest.approx(1.6e12, rel=0.03)
    assert 1 < float(rest.removesuffix(" %")) < 4


def test_the_published_constants_read_as_published(calibrated: Calibrated) -> None:
    model = PaperModel(
        energy_per_tflop_j=5.612,
        energy_per_tb_j=4621.7,
        overhead_w=1.4625,
        condition_number=12.51,
        errors=np.full(24, np.inf),
    )
    first = with_model(calibrated.calibration, Method.PAPER_EQ1, model)
    assert lines_of(first)["paper-eq1"] == (
        "5.61 J/TFLOP, 4622 J per TB as counted, overhead 1.46 W (condition number 13)"
    )
    second = with_model(calibrated.calibration, Method.PAPER_EQ2, replace(model, energy_per_tb_j=None))
    assert lines_of(second)["paper-eq2"] == "5.61 J/TFLOP, overhead 1.46 W (condition number 13)"


def test_a_constant_of_no_spread_is_told_so(calibrated: Calibrated) -> None:
    model = ConstantModel(log_flop_per_j=math.log(2e11), log_sd=0.0, errors=np.zeros(24))
    found = lines_of(with_model(calibrated.calibration, Method.CONSTANT, model))
    assert found["constant"] == "5.00 J/TFLOP, spread 0.0 %"


def test_what_is_absent_is_left_out() -> None:
    found = lines_of(calibrate_cells(make_cells(4), without=["memory_traffic_tb"]).calibration)
    assert set(found) == {"digest", "holds for", "energy", "seen", "constant", "paper-eq2"}


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (["idle_power_w"], "above idle, as each run's record gives it"),
        (["idle_power_w", "net_energy_j"], "idle included"),
    ],
)
def test_energy_without_an_idle_power_says_what_it_is(without: list[str], words: str) -> None:
    cells = make_cells(4, energy_j="30000")
    assert lines_of(calibrate_cells(cells, without=without).calibration)["energy"] == words


def test_a_whole_fingerprint_is_told(calibrated: Calibrated) -> None:
    fingerprint = Fingerprint(
        chips=("a", "b"),
        count=2,
        scope="gpu",
        power_mode="25W",
        clock_limit="1200MHz",
        driver="550.1",
        precisions=("fp16", "fp32"),
    )
    told = " ".join(text_of(replace(calibrated.calibration, fingerprint=fingerprint)).split())
    found = told.partition("holds for ")[2].partition(" energy ")[0]
    assert set(found.split(", ")) == {
        "chip a or b",
        "count 2",
        "scope gpu",
        "power mode 25W",
        "clock limit 1200MHz",
        "driver 550.1",
        "precision fp16",
        "fp32",
    }


def test_a_device_of_which_nothing_was_recorded_is_called_so(calibrated: Calibrated) -> None:
    nothing = replace(calibrated.calibration, fingerprint=Fingerprint())
    assert lines_of(nothing)["holds for"] == "a device of which nothing was recorded"


def test_findings_stand_last_and_wrapped(calibrated: Calibrated) -> None:
    told = text_of(calibrated.calibration, findings=calibrated.findings)
    plain, blocks = told.split("findings\n")
    assert plain == text_of(calibrated.calibration)
    assert calibrated.findings
    for finding in calibrated.findings:
        assert f"    {finding.code} " in blocks
        assert finding.message in " ".join(blocks.split())


def test_lines_fit_a_wide_terminal(calibrated: Calibrated) -> None:
    told = text_of(calibrated.calibration, findings=calibrated.findings)
    assert max(len(line) for line in told.splitlines()) <= WIDEST
    assert "nan" not in told.split()


def test_a_name_that_many_chips_share_fits_a_wide_terminal(calibrated: Calibrated) -> None:
    chips = tuple(f"v100-{form}-{size}gb" for form in ("dgxs", "pcie", "sxm2") for size in (16, 32))
    shared = replace(calibrated.calibration.fingerprint, chips=chips)
    told = text_of(replace(calibrated.calibration, fingerprint=shared))
    assert max(len(line) for line in told.splitlines()) <= WIDEST


def test_names_cannot_steer_the_terminal(calibrated: Calibrated) -> None:
    hostile = "25W\x1b[2J\n  digest      sha256:0"
    changed = replace(
        calibrated.calibration, fingerprint=Fingerprint(power_mode=hostile, driver="\x07\u202e")
    )
    finding = Finding(code="run-unlike-others", severity=Severity.WARNING, message=f"run {hostile}\x9b")
    told = text_of(changed, out="c\x1b]0;x\x07.json", findings=(finding,))
    assert all(line.isprintable() for line in told.split("\n"))
    assert told.startswith("c\\x1b]0;x\\x07.json: calibrated on 24 runs\n")
    assert "power mode 25W\\x1b[2J\\n  digest" in told
    assert [line for line in told.splitlines() if line.startswith("  digest")] == [
        f"  digest      {calibrated.calibration.digest}"
    ]
