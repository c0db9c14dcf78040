"""Options become values, or an error that names the option."""

import datetime as dt
import math
from fractions import Fraction
from zoneinfo import ZoneInfo

import click
import pytest

from flopwitness.catalogue.chips import Precision
from flopwitness.catalogue.rules import load_rules
from flopwitness.cli.options import (
    FiniteRange,
    WholeRange,
    choose_rules,
    known_formats,
    option_columns,
    option_count,
    option_date,
    option_precisions,
    option_safety,
    option_zone,
    reading_options,
    today,
)
from flopwitness.foundation.clock import FrozenClock, parse_utc
from flopwitness.foundation.errors import DecodeError, InputError, UnknownRuleError
from flopwitness.measure.samples import Scope
from flopwitness.measure.sources.source import ColumnMap, ReadOptions

CONTEXT = click.Context(click.Command("estimate"))
OPTION = click.Option(["--x"])


def test_a_date_is_read() -> None:
    assert option_date(CONTEXT, OPTION, "2026-01-31") == dt.date(2026, 1, 31)
    assert option_date(CONTEXT, OPTION, None) is None


@pytest.mark.parametrize(
    "text", ["", "2026", "20260131", "31.1.2026", "2026-02-30", "2026-W05-6", "today", "2026-1-31"]
)
def test_other_dates_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_date(CONTEXT, OPTION, text)
    assert caught.value.where == "--on"


@pytest.mark.parametrize(
    ("text", "precisions"),
    [
        (None, ()),
        ("", ()),
        ("bf16", (Precision.BF16,)),
        (" BF16 , fp8,,bf16", (Precision.BF16, Precision.FP8)),
    ],
)
def test_precisions_are_read(text: str | None, precisions: tuple[Precision, ...]) -> None:
    assert option_precisions(CONTEXT, OPTION, text) == precisions


@pytest.mark.parametrize("text", ["fp3", "bf16;fp8", "bf16,half", "16"])
def test_other_precisions_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_precisions(CONTEXT, OPTION, text)
    assert caught.value.where == "--precision"
    assert "bf16" in caught.value.expected


@pytest.mark.parametrize(
    ("text", "value"), [("0.3", Fraction(3, 10)), ("1", Fraction(1)), ("1/3", Fraction(1, 3))]
)
def test_a_safety_factor_is_exact(text: str, value: Fraction) -> None:
    assert option_safety(CONTEXT, OPTION, text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("0", "-0.5", "1.01", "nan", "inf", "", "half", "1/0", "0_1", "0.\u0665", "1/3/5", "1e"),
        *("1e-99999999", "1e-999999999", "1e999999999", "1/1" + "0" * 10_000, "0." + "1" * 10_000),
    ],
)
def test_other_safety_factors_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_safety(CONTEXT, OPTION, text)
    assert caught.value.where == "--safety"


def test_today_is_in_utc_by_the_clock_that_is_handed_in() -> None:
    clock = FrozenClock(utc_ns=parse_utc("2026-06-01T00:30:00+02:00"))
    root = click.Context(click.Command("flopwitness"), obj={"clock": clock})
    assert today(click.Context(click.Command("estimate"), parent=root)) == dt.date(2026, 5, 31)
    assert abs((today(CONTEXT) - dt.datetime.now(dt.UTC).date()).days) <= 1


@pytest.mark.parametrize(
    ("value", "number"), [("0.5", 0.5), (" 1e-1 ", 0.1), (".5", 0.5), ("1.", 1.0), (0.25, 0.25), (1, 1.0)]
)
def test_a_share_is_read(value: object, number: float) -> None:
    assert FiniteRange(0, 1).convert(value, OPTION, CONTEXT) == number


@pytest.mark.parametrize(
    "value",
    [
        *("nan", "NaN", "inf", "-inf", "1e999", "0_1", "\u0660", "", "x", "0x1", "2", "-0.1"),
        *(math.nan, math.inf, True, "1e" + "9" * 5_000, "0." + "1" * 5_000),
    ],
)
def test_what_is_no_share_is_refused_at_once(value: object) -> None:
    with pytest.raises(click.BadParameter) as caught:
        FiniteRange(0, 1).convert(value, OPTION, CONTEXT)
    assert len(caught.value.message) < 200


def test_a_number_that_no_range_bounds_must_be_finite_all_the_same() -> None:
    for value in ("1e999", math.nan, -math.inf):
        with pytest.raises(click.BadParameter):
            FiniteRange().convert(value, OPTION, CONTEXT)


@pytest.mark.parametrize(("value", "number"), [("8", 8), (" 12 ", 12), (5, 5)])
def test_a_whole_number_is_read(value: object, number: int) -> None:
    assert WholeRange(1, 20).convert(value, OPTION, CONTEXT) == number


@pytest.mark.parametrize("value", ["1_0", "٣", "1.0", "1e1", "", "21", "0", "9" * 5_000, 1.5, True, math.nan])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(click.BadParameter) as caught:
        WholeRange(1, 20).convert(value, OPTION, CONTEXT)
    assert len(caught.value.message) < 200


def test_a_count_names_its_option() -> None:
    assert option_count(CONTEXT, OPTION, "2.5e24") == 25 * 10**23
    assert option_count(CONTEXT, OPTION, None) is None
    with pytest.raises(DecodeError) as caught:
        option_count(CONTEXT, OPTION, "1_000")
    assert caught.value.where == "--x"


@pytest.mark.parametrize("text", ["Europe/Berlin", "UTC", "Etc/GMT+5", "America/Argentina/San_Luis"])
def test_a_zone_is_read(text: str) -> None:
    assert option_zone(CONTEXT, OPTION, text) == ZoneInfo(text)
    assert option_zone(CONTEXT, OPTION, None) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "/", "Europe", "Europe/", "Mars/Olympus", "+01:00", "UTC+1", "CEST", "a b", "\n"),
        *("../etc/passwd", "/etc/localtime", "/usr/share/zoneinfo/UTC", "zone.tab", "tzdata.zi", "__init__"),
        *("a\0b", "\udcff", "\u00e9", "x" * 5_000, "a/" * 300, "Europe/Berlin\n", " UTC"),
    ],
)
def test_other_zones_are_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_zone(CONTEXT, OPTION, text)
    assert caught.value.where == "--timezone"
    assert "Europe/Berlin" in caught.value.expected
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (None, None),
        ("power_w=P", ColumnMap(channels=(("P", "power_w"),))),
        (
            "time=t,power_w=GPU Power (W),device=id",
            ColumnMap(time="t", device="id", channels=(("GPU Power (W)", "power_w"),)),
        ),
        (
            " time = t , power_mw = a=b , clock_hz = c ",
            ColumnMap(time="t", channels=(("a=b", "power_mw"), ("c", "clock_hz"))),
        ),
    ],
)
def test_a_map_of_columns_is_read(text: str | None, columns: ColumnMap | None) -> None:
    assert option_columns(CONTEXT, OPTION, text) == columns


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "=", "power_w", "power_w=", "=P", "time=t", "time=t,device=d", "time=t,power_w=P,"),
        *(
            "power_w=P,power_w=Q",
            "power_w=P,,time=t",
            "power_w=P;time=t,x",
            "power_w = , time=t",
            "x" * 5_000,
        ),
    ],
)
def test_other_maps_of_columns_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        option_columns(CONTEXT, OPTION, text)
    assert caught.value.where == "--columns"
    assert "time=COLUMN" in caught.value.expected
    assert len(str(caught.value)) < 300


def _reading(*arguments: str) -> ReadOptions:
    """What a verb with these options is handed."""
    taken: list[ReadOptions] = []

    @click.command()
    @reading_options
    def verb(*, reading: ReadOptions) -> None:
        taken.append(reading)

    verb.main(args=list(arguments), standalone_mode=False)
    return taken[0]


def test_the_options_for_reading_come_as_one() -> None:
    assert _reading() == ReadOptions()
    assert _reading(
        *("--scope", "node-ac", "--timezone", "Asia/Kathmandu", "--period", "0.5", "--columns", "power_w=P")
    ) == ReadOptions(
        scope=Scope.NODE_AC,
        zone=ZoneInfo("Asia/Kathmandu"),
        period_s=0.5,
        columns=ColumnMap(channels=(("P", "power_w"),)),
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--scope", value) for value in ("", "GPU", "galaxy")),
        *(("--period", value) for value in ("0", "-1", "nan", "inf", "1e999", "86401", "0.0001", "1_0", "")),
    ],
)
def test_other_words_on_reading_are_refused(option: str, value: str) -> None:
    with pytest.raises(click.BadParameter):
        _reading(option, value)


def test_the_formats_are_named_in_the_help() -> None:
    assert "run-table" in known_formats(tables=True)
    assert "run-table" not in known_formats(tables=False)
    assert {"mlperf-power", "flopwitness-trace"} <= set(known_formats(tables=False))


def test_named_rules_are_taken_once_and_in_order() -> None:
    catalogue = load_rules()
    chosen = choose_rules(catalogue, ("us-ca-sb53", "eu-ai-act-art51", "us-ca-sb53"), dt.date(2026, 6, 1))
    assert [rule.id for rule in chosen] == ["us-ca-sb53", "eu-ai-act-art51"]


def test_without_a_name_the_laws_of_the_day_are_taken() -> None:
    catalogue = load_rules()
    early, late = (choose_rules(catalogue, (), dt.date(year, 6, 1)) for year in (2022, 2026))
    assert early == ()
    assert "eu-ai-act-art51" in {rule.id for rule in late}


def test_rules_that_cannot_be_answered_are_refused() -> None:
    catalogue = load_rules()
    with pytest.raises(UnknownRuleError):
        choose_rules(catalogue, ("eu-ai-act-art52",), dt.date(2026, 6, 1))
    with pytest.raises(InputError) as caught:
        choose_rules(catalogue, ("eu-gpai-modifier",), dt.date(2026, 6, 1))
    assert caught.value.where == "--rule eu-gpai-modifier"
