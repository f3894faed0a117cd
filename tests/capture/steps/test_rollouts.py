"""How many updates of a model follow each rollout of reinforcement learning."""

from selftime.capture.steps.rollouts import RolloutRounds


def ends(updates: list[int], *, acted: int = 20, acting_size: int = 4) -> list[int]:
    """Returns how many steps end after each rollout, which is followed by that many updates."""
    rounds = RolloutRounds()
    found = []
    for count in updates:
        for _ in range(acted):
            rounds.add_call("policy", acting_size)
        found.append(0)
        for _ in range(count):
            rounds.add_call("policy", 80)
            rounds.begin_backward_pass()
            found[-1] += rounds.ends_step(is_round_complete=True)
    return found


def test_a_step_is_a_rollout_with_its_updates() -> None:
    assert ends([3] * 6) == [3, 3, 1, 1, 1, 1]


def test_updates_of_a_number_that_varies_are_steps_of_their_own() -> None:
    assert ends([3, 2, 4, 3, 2, 5]) == [3, 2, 4, 3, 2, 5]


def test_many_updates_are_steps_of_their_own() -> None:
    assert ends([16] * 3) == [16] * 3


def test_calls_with_inputs_like_those_of_training_are_no_rollout() -> None:
    assert ends([3] * 6, acting_size=40) == [3] * 6


def test_few_calls_are_no_rollout() -> None:
    assert ends([3] * 6, acted=4) == [3] * 6


def test_module_calls_are_not_needed_without_a_rollout() -> None:
    rounds = RolloutRounds()
    rounds.add_call("net", 80)
    rounds.begin_backward_pass()
    assert not rounds.is_learning
