"""The experiments and the groups they are shown in."""

from __future__ import annotations

from gptviz.runs.experiments import GROUPS, PLANS


def test_every_experiment_is_in_one_group_alone() -> None:
    assert sorted(name for group in GROUPS for name in group.plans) == sorted(PLANS)


def test_what_is_compared_learns_from_data_whose_losses_can_be() -> None:
    for group in GROUPS:
        compared = [PLANS[name] for name in group.plans if group.notice]
        assert len({plan.tokenizer for plan in compared}) <= 1


def test_families_are_trained_alike_and_compared_with_each_other() -> None:
    names = {"shakespeare", "llama-tiny", "neox-tiny"}
    assert (
        len({(PLANS[name].recipe, PLANS[name].data, PLANS[name].tokenizer) for name in names}) == 1
    )
    assert all({name, *PLANS[name].related} == names for name in names)
