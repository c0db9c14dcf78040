"""Plans of tables: what is unmistakable, what the user says, and nothing twice."""

import pytest

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.source import ColumnMap
from flopwitness.measure.sources.table_columns import TablePlan, UnknownColumnError, plan_table


def plan(*names: str, columns: ColumnMap | None = None) -> TablePlan:
    found = plan_table(names, columns)
    assert found is not None
    return found


def readings(found: TablePlan) -> list[tuple[str, Channel, Scope, str]]:
    return [(item.name, item.channel, item.scope, item.device) for item in found.readings]


def test_a_time_and_a_power_make_a_plan() -> None:
    found = plan("time_s", "power_w", "note")
    assert found.time.index == 0
    assert readings(found) == [("power_w", Channel.POWER_W, Scope.UNKNOWN, "")]
    assert (found.ignored, found.indexes) == (("note",), (0, 1))


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("",),
        ("time_s",),
        ("power_w",),
        ("time", "power"),
        ("timestamp", "memory usage (MB)", "temperature_c"),
        ("timestamp", "gpu_util"),
        ("chip", "duration_s", "mean_power_w", "energy_j"),
        ("dataset", "time_per_epoch", "average_power"),
        ("run_id", "energy_j", "training_time_h"),
    ],
)
def test_what_is_not_unmistakable_makes_none(names: tuple[str, ...]) -> None:
    assert plan_table(names) is None


@pytest.mark.parametrize(
    ("names", "time"),
    [
        (("time", "timestamp", "epoch_s", "power_w"), "epoch_s"),
        (("timestamp_utc", "timestamp_epoch", "power_w"), "timestamp_utc"),
        (("elapsed_s", "timestamp", "power_w"), "timestamp"),
        (("elapsed_s", "time_s", "power_w"), "time_s"),
        (("epoch", "step", "timestamp", "power_w"), "timestamp"),
    ],
)
def test_the_best_time_is_taken(names: tuple[str, ...], time: str) -> None:
    found = plan(*names)
    assert found.names[found.time.index] == time


def test_rows_of_gpus_are_gpus() -> None:
    for column in ("gpu_uuid", "gpu_index", "gpu", "gpu_name"):
        found = plan("time_s", column, "power_w", "total_power_w", "sm_clock_mhz")
        assert [item.scope for item in found.readings] == [Scope.GPU, Scope.UNKNOWN, Scope.GPU]
    assert plan("time_s", "device", "power_w").readings[0].scope is Scope.UNKNOWN


def test_a_quantity_is_read_once() -> None:
    found = plan("time_s", "gpu_uuid", "power_w", "gpu_power_w", "power_draw_mw")
    assert [item.name for item in found.readings] == ["power_w"]
    assert found.ignored == ("gpu_power_w", "power_draw_mw")


def test_a_sum_beside_its_parts_is_not_read() -> None:
    found = plan("time_s", "gpu0_power_w", "gpu1_power_w", "gpu_power_w", "total_power_w", "node_power_w")
    assert readings(found) == [
        ("gpu0_power_w", Channel.POWER_W, Scope.GPU, "gpu0"),
        ("gpu1_power_w", Channel.POWER_W, Scope.GPU, "gpu1"),
        ("node_power_w", Channel.POWER_W, Scope.NODE, ""),
    ]


def test_clocks_and_temperatures_of_nobody_are_not_read() -> None:
    assert readings(plan("time_s", "power_w", "temperature_c", "clock_mhz")) == [
        ("power_w", Channel.POWER_W, Scope.UNKNOWN, "")
    ]


def test_power_of_a_gpu_may_be_a_mean_unless_it_says_otherwise() -> None:
    found = plan("time_s", "gpu0_power_w", "gpu1_power_instant_w", "node_power_w", "gpu0_avg_power_w")
    assert [item.averaged_s for item in found.readings] == [1.0, 0.0, 0.0, 1.0]


def test_the_columns_of_the_device() -> None:
    found = plan("time_s", "hostname", "uuid", "gpu", "gpu_model", "driver_version", "power_w")
    device = found.device
    assert (device.host, device.uuid, device.number, device.chip, device.driver) == (1, 2, 3, 4, 5)
    assert (device.is_gpu, device.indexes) == (True, (2, 3, 1, 4, 5))
    assert plan("time_s", "power_w").device.indexes == ()


# The user's map


def test_the_user_names_columns_that_say_nothing() -> None:
    columns = ColumnMap(time="Zeit", channels=(("P", "power_mw"), ("gpu1", "power_w")), device="unit")
    found = plan("Zeit", "P", "gpu1", "unit", "power_w", columns=columns)
    assert found.time.index == 0
    assert readings(found) == [
        ("P", Channel.POWER_W, Scope.UNKNOWN, ""),
        ("gpu1", Channel.POWER_W, Scope.GPU, "gpu1"),
    ]
    assert [item.factor for item in found.readings] == [1e-3, 1.0]
    assert (found.device.number, found.device.is_gpu) == (3, False)
    assert found.ignored == ("power_w",)


def test_what_the_user_leaves_open_is_found_by_name() -> None:
    assert (
        plan("time_s", "x", columns=ColumnMap(channels=(("x", "gpu_power_w"),))).readings[0].scope
        is Scope.GPU
    )
    assert plan("x", "power_w", columns=ColumnMap(time="x")).readings[0].name == "power_w"
    assert plan("time_s", "power_w", columns=ColumnMap()).readings[0].name == "power_w"


@pytest.mark.parametrize(
    "columns",
    [
        ColumnMap(time="t"),
        ColumnMap(device="d"),
        ColumnMap(channels=(("p", "power_w"),)),
        ColumnMap(channels=(("power_w", "power"),)),
        ColumnMap(channels=(("power_w", "horse_power"),)),
        ColumnMap(channels=(("power_w", ""),)),
    ],
)
def test_a_map_that_does_not_fit_is_refused(columns: ColumnMap) -> None:
    with pytest.raises(UnknownColumnError):
        plan_table(("time_s", "power_w"), columns)


def test_a_map_without_a_time_or_a_reading_makes_no_plan() -> None:
    assert plan_table(("a", "b"), ColumnMap(channels=(("b", "power_w"),))) is None
    assert plan_table(("a", "b"), ColumnMap(time="a")) is None
