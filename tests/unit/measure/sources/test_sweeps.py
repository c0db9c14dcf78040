"""Sweeps: a quantity of a device that comes again begins the next one."""

from flopwitness.measure.sources.sweeps import Sweeps


def place(rows: list[tuple[str, str]]) -> list[int]:
    sweeps = Sweeps()
    return [
        sweeps.place(frozenset((device, quantity) for quantity in quantities)) for device, quantities in rows
    ]


def test_one_table_for_everything_is_one_sweep() -> None:
    assert place([("a", "pu"), ("b", "pu"), ("a", "pu"), ("b", "pu"), ("a", "pu")]) == [0, 0, 1, 1, 2]


def test_one_table_for_each_quantity_is_one_sweep() -> None:
    assert place([("a", "p"), ("b", "p"), ("a", "u"), ("b", "u"), ("a", "p"), ("b", "p")]) == [
        0,
        0,
        0,
        0,
        1,
        1,
    ]


def test_a_device_that_is_missing_once_stays_in_step() -> None:
    assert place([(device, "p") for device in "abaab"]) == [0, 0, 1, 2, 2]
