"""What Redfish names stand for: nothing that is not a node's becomes a node's."""

import pytest

from flopwitness.measure.samples import Channel, Scope
from flopwitness.measure.sources.redfish_names import (
    Named,
    name_members,
    name_metric,
    name_place,
    name_sensor,
)

ROOT = "/redfish/v1"


@pytest.mark.parametrize(
    ("path", "name", "scope"),
    [
        ("/Chassis/1U/Power", "1U", Scope.NODE),
        ("/Chassis/System.Embedded.1/Power#/PowerControl/0", "System.Embedded.1", Scope.NODE),
        ("/Systems/437XR1138R2/EnvironmentMetrics", "437XR1138R2", Scope.NODE),
        ("/Chassis/HGX_GPU_SXM_1/EnvironmentMetrics", "HGX_GPU_SXM_1", Scope.GPU),
        ("/Systems/HGX_Baseboard_0/Processors/GPU_SXM_3/EnvironmentMetrics", "GPU_SXM_3", Scope.GPU),
        ("/Systems/1/Processors/CPU1/EnvironmentMetrics", "CPU1", Scope.CPU),
        ("/Systems/1/Processors/1/EnvironmentMetrics", "1", Scope.CPU),
        ("/Systems/1/Memory/DIMM_A1/EnvironmentMetrics", "DIMM_A1", Scope.DRAM),
        ("/Chassis/HGX_Baseboard_0/EnvironmentMetrics", "HGX_Baseboard_0", Scope.UNKNOWN),
        ("/Chassis/NVSwitch_0/EnvironmentMetrics", "NVSwitch_0", Scope.UNKNOWN),
        ("/Chassis/1U/Sensors/TotalPower", "1U", Scope.NODE),
        ("", "", Scope.NODE),
    ],
)
def test_a_path_says_whose_figures_a_resource_has(path: str, name: str, scope: Scope) -> None:
    assert name_place(ROOT + path) == Named(name=name, scope=scope)


def test_one_member_is_the_whole() -> None:
    place = Named(name="1", scope=Scope.NODE)
    assert name_members(place, [{"MemberId": "0"}]) == [place]


def test_several_members_are_parts_all() -> None:
    place = Named(name="1", scope=Scope.NODE)
    named = name_members(place, [{"MemberId": "0"}, {"MemberId": "PSU"}, {}])
    assert [(one.scope, one.part) for one in named] == [
        (Scope.NODE, "0"),
        (Scope.NODE, "PSU"),
        (Scope.NODE, "2"),
    ]


def test_members_of_processors_and_memory_leave_the_whole_alone() -> None:
    members = [
        {"MemberId": "0", "PhysicalContext": "Chassis"},
        {"MemberId": "1", "PhysicalContext": "CPU"},
        {"MemberId": "2", "PhysicalContext": "Memory"},
    ]
    named = name_members(Named(name="1", scope=Scope.NODE), members)
    assert [(one.scope, one.part) for one in named] == [
        (Scope.NODE, ""),
        (Scope.CPU, "1"),
        (Scope.DRAM, "2"),
    ]


@pytest.mark.parametrize(
    ("own", "context", "scope", "part"),
    [
        ("TotalPower", "Chassis", Scope.NODE, ""),
        ("PowerConsumption", "Chassis", Scope.NODE, ""),
        ("Fan_Power", "Chassis", Scope.NODE, "Fan_Power"),
        ("PSU1_Input", "PowerSupply", Scope.UNKNOWN, "PSU1_Input"),
        ("CPU_Power", "CPU", Scope.CPU, "CPU_Power"),
        ("DIMM_Power", "Memory", Scope.DRAM, "DIMM_Power"),
        ("Total_GPU_Power", "GPUSubsystem", Scope.UNKNOWN, ""),
        ("Ambient", None, Scope.NODE, "Ambient"),
    ],
)
def test_a_sensor_is_a_part_unless_it_reads_the_total(
    own: str, context: str | None, scope: Scope, part: str
) -> None:
    document = {
        "@odata.id": f"{ROOT}/Chassis/1U/Sensors/{own}",
        "Id": own,
        "ReadingUnits": "W",
        "PhysicalContext": context,
    }
    assert name_sensor(document) == (Channel.POWER_W, Named(name="1U", scope=scope, part=part), 1.0)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("kW.h", (Channel.ENERGY_COUNTER_J, 3.6e6)), ("J", (Channel.ENERGY_COUNTER_J, 1.0))],
)
def test_sensors_of_energy_are_counters(unit: str, expected: tuple[Channel, float]) -> None:
    named = name_sensor({"Id": "Total", "ReadingUnits": unit})
    assert named is not None
    assert (named[0], named[2]) == expected


@pytest.mark.parametrize("unit", ["Cel", "V", "%", "w", None, 5, ["W"]])
def test_other_sensors_are_none_of_ours(unit: object) -> None:
    assert name_sensor({"Id": "Total", "ReadingUnits": unit}) is None


@pytest.mark.parametrize(
    ("metric", "path", "channel", "scope", "part", "scale"),
    [
        ("Watts", "/Chassis/1/Power#/PowerControl/0/PowerConsumedWatts", "power_w", "node", "", 1.0),
        (
            "AverageConsumedWatts",
            "/Chassis/1/Power#/0/PowerConsumedWatts",
            "power_average_w",
            "node",
            "",
            1.0,
        ),
        ("", "/Chassis/1/Power#/0/PowerMetrics/AverageConsumedWatts", "power_average_w", "node", "", 1.0),
        ("", "/Chassis/1/EnvironmentMetrics#/PowerWatts/Reading", "power_w", "node", "", 1.0),
        ("", "/Chassis/1/EnvironmentMetrics#/EnergykWh/Reading", "energy_counter_j", "node", "", 3.6e6),
        ("", "/Systems/1/Processors/GPU_0/EnvironmentMetrics#/PowerWatts/Reading", "power_w", "gpu", "", 1.0),
        ("", "/Chassis/HGX_GPU_0/Sensors/HGX_GPU_0_Power_0", "power_w", "gpu", "", 1.0),
        ("", "/Chassis/HGX_GPU_0/Sensors/HGX_GPU_0_Energy_0", "energy_counter_j", "gpu", "", 1.0),
        (
            "",
            "/Chassis/HGX_GPU_0/Sensors/HGX_GPU_0_DRAM_0_Power_0",
            "power_w",
            "gpu",
            "HGX_GPU_0_DRAM_0_Power_0",
            1.0,
        ),
        ("SystemInputPower", "/Dell/Whatever", "power_w", "node-ac", "", 1.0),
        ("TotalCPUPower", "", "power_w", "cpu", "", 1.0),
    ],
)
def test_metrics_of_power_and_energy_are_known(
    metric: str, path: str, channel: str, scope: str, part: str, scale: float
) -> None:
    named = name_metric(metric, ROOT + path)
    assert named is not None
    assert (named[0], named[1].scope, named[1].part, named[2]) == (channel, scope, part, scale)


@pytest.mark.parametrize(
    ("metric", "path"),
    [
        ("", "/Chassis/HGX_GPU_0/Sensors/HGX_GPU_0_TEMP_0"),
        ("", "/Systems/1/Processors/GPU_0/ProcessorMetrics#/OperatingSpeedMHz"),
        ("CPUTemp", "/Systems/1/Processors/1#Temperature"),
        ("SystemHeadRoom", ""),
        ("", "/Chassis/1/PowerConsumedWatts/Other"),
    ],
)
def test_other_metrics_are_none_of_ours(metric: str, path: str) -> None:
    assert name_metric(metric, ROOT + path) is None
