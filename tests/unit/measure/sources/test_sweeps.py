"""Sweeps: a quantity of a device that comes again begins the next one."""

from flopwitness.measure.sources.sweeps import Sweeps


def test_one_table_for_everything_is_one_sweep() -> None:
    sweeps = Sweeps()
    rows = [("a", "pu"), ("b", "pu"), ("a", "pu"), ("b", "pu"), ("a", "pu")]
    assert [sweeps.place(device, quantities) for device, quantities in rows] == [0, 0, 1, 1, 2]


def test_one_table_for_each_quantity_is_one_sweep() -> None:
    sweeps = Sweeps()
    rows = [("a", "p"), ("b", "p"), ("a", "u"), ("b", "u"), ("a", "p"), ("b", "p")]
    assert [sweeps.place(device, quantity) for device, quantity in rows] == [0, 0, 0, 0, 1, 1]


def test_a_device_that_is_missing_once_stays_in_step() -> None:
    sweeps = Sweeps()
    assert [sweeps.place(device, "p") for device in "abaab"] == [0, 0, 1, 2, 2]
