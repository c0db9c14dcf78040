"""The processes of a run, all played by one."""

import torch

from flopwitness.trainers.group import PlayedGroup


def test_one_process_plays_all_and_has_added_everything() -> None:
    group = PlayedGroup(3)
    tensor = torch.ones(2)
    group.sum_in_order([tensor])
    assert (group.size, list(group.ranks)) == (3, [0, 1, 2])
    assert tensor.tolist() == [1.0, 1.0]
    assert group.gather([1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]
