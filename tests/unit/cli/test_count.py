import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flopwitness.cli.count import command
from flopwitness.cli.instrumented import InstrumentedPass, count_instrumented
from flopwitness.cli.main import _main
from flopwitness.foundation.errors import DecodeError, InputError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def call(*arguments: str) -> int:
    status = command.main(args=list(arguments), standalone_mode=False, obj={})
    assert isinstance(status, int)
    return status


def record(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:  # noqa: ANN401 (JSON)
    assert call(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.shared_data
def test_gpt3_comes_out_as_its_tokens_make_it(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "1.28e21 to 1.30e21 FLOP (1,207,959,552 tokens)" in (shared_data / "data" / "README.md").read_text(
        encoding="utf-8"
    )
    found = record(capsys, str(EXAMPLES / "gpt3_175b.toml"))
    assert found["tokens"] == "1207959552"
    assert 1.28e21 <= int(found["flop"]["model_masked"]) <= int(found["flop"]["model"]) <= 1.301e21


def test_the_chain_of_adapters_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert record(capsys, str(EXAMPLES / "adapters.toml"))["flop"] == {"model": "2035200"}
    assert call(str(EXAMPLES / "adapters.toml")) == 0
    assert "in all      2,035,200 FLOP" in capsys.readouterr().out


def test_a_mixture_costs_what_its_tokens_visit(capsys: pytest.CaptureFixture[str]) -> None:
    found = record(capsys, str(EXAMPLES / "mixture.toml"))
    assert found["parameters"]["total"] == "46702792704"
    assert found["parameters"]["active"] == "12879925248"


def test_a_published_model_takes_tokens_and_rows_from_the_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "gpt2"}')
    found = record(capsys, str(config), "--tokens", "1.024e6", "--sequence", "512")
    assert (found["tokens"], found["rows"], found["steps"]) == ("1024000", "2000", None)
    assert call(str(config)) == 0
    assert "run: 1 row x 1,024 tokens = 1,024 tokens" in capsys.readouterr().out


def test_a_run_names_its_own_tokens() -> None:
    with pytest.raises(InputError, match="names its own rows and steps"):
        call(str(EXAMPLES / "mixture.toml"), "--tokens", "5")


@pytest.mark.parametrize(
    "words",
    [
        ["--tokens", "-1"],
        ["--tokens", "many"],
        ["--tokens", "0"],
        ["--sequence", "0"],
        ["--sequence", "1.5"],
        ["--sequence", "1e3"],
        ["--torch"],
    ],
)
def test_options_that_are_no_counts_are_wrong_use(words: list[str], tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "gpt2"}')
    assert _main(["count", str(config), *words]) == 2


def test_a_file_that_is_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        call(str(tmp_path / "absent.toml"))
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(DecodeError, match="too large"):
        call(str(large))


def test_a_wrong_key_ends_in_one_line_and_status_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.toml"
    config.write_text((EXAMPLES / "mixture.toml").read_text().replace("heads = 32", "heads = 31"))
    assert _main(["count", str(config)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"flopwitness: {config}, model.heads: does not fit the model (expected a divisor of d_model (4096), "
        "or head_dim beside it; found 31)\n"
    )


def test_case_h34_module_table_sum(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = cases / "h34_module_table_sum"
    case = json.loads((folder / "expected.json").read_text())
    found = record(capsys, str(folder / "flops.json"))
    assert found["flop"]["total"] == str(case["expect"]["total_flops"])
    assert int(found["flop"]["total"]) not in case["wrong_answers"].values()
    assert call(str(folder / "flops.json")) == 0
    assert capsys.readouterr().out.startswith("table of 6 modules: 12,000 FLOP in all\n")


@pytest.mark.parametrize("option", [["--tokens", "5"], ["--sequence", "5"], ["--torch"]])
def test_a_table_of_modules_is_no_run(cases: Path, option: list[str]) -> None:
    with pytest.raises(InputError, match=f"{option[0]}: no run to count"):
        call(str(cases / "h34_module_table_sum" / "flops.json"), *option)


def test_a_chain_and_a_mixture_are_not_trained_here() -> None:
    with pytest.raises(InputError, match="--torch: no run to count"):
        call(str(EXAMPLES / "adapters.toml"), "--torch")
    with pytest.raises(
        InputError, match=r"--torch: this is not trained here.*mixture.toml, optimizer: missing key"
    ):
        call(str(EXAMPLES / "mixture.toml"), "--torch")


def test_a_trained_pass_runs_what_the_closed_form_says(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    found = record(capsys, str(EXAMPLES / "decoder_tiny.toml"), "--torch")
    assert found["torch"]["executed_flop"] == found["torch"]["closed_executed_flop"]
    assert found["torch"]["is_complete"] is True
    assert {row["reason"] for row in found["torch"]["uncounted"]} <= {
        "elementwise", "reduction", "movement", "view",
    }  # fmt: skip
    assert call(str(EXAMPLES / "decoder_tiny.toml"), "--torch") == 0
    assert "instrumented, one pass of 8 rows" in capsys.readouterr().out


def test_counts_that_differ_contradict_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    honest = count_instrumented

    def altered(data: bytes, *, where: str) -> InstrumentedPass:
        counted = honest(data, where=where)
        return replace(counted, closed=replace(counted.closed, again_flop=0))

    monkeypatch.setattr("flopwitness.cli.count.count_instrumented", altered)
    assert call(str(EXAMPLES / "decoder_tiny.toml"), "--torch") == 1
    text = capsys.readouterr().out
    assert "counts-differ  CONTRADICTION: executed FLOP of one pass" in text
    assert "2.08 % more than the closed form" in text


def test_tokens_are_named_as_what_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "gpt2"}')
    assert _main(["count", str(config), "--tokens", "1.5"]) == 2
    assert "a whole number of tokens" in capsys.readouterr().err
