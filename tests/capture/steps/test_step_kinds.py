"""Steps that are unlike the others: evaluations, new passes over the data, prompts."""

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch
from tests.capture.steps.programs.inferring import Decoder
from tests.capture.steps.programs.truth import At, Seen, watch
from torch import nn
from torch.utils.data import DataLoader

pytestmark = pytest.mark.torch


def epochs(after: Callable[[nn.Module], object]) -> Seen:
    """Three epochs of six steps each, with something after each of them."""

    def program(at: At) -> None:
        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        data = torch.randn(6, 4)
        for _ in range(3):
            net.train()
            for number in range(6):
                net(data[number]).sum().backward()
                optimizer.step()
                at("updated")
            at("epoch")
            after(net)

    return watch(program)


def test_steps_that_are_alike_are_not_told_apart() -> None:
    assert epochs(nn.Module.parameters).unlike == []


def test_a_step_with_an_evaluation_is_unlike_the_others() -> None:
    def validate(net: nn.Module) -> None:
        net.eval()
        with torch.no_grad():
            net(torch.randn(2, 4))

    assert epochs(validate).unlike == [["updated", "epoch"]] * 2


def test_where_each_step_evaluates_they_are_alike() -> None:
    def program(at: At) -> None:
        policy = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        for _ in range(10):
            policy.eval()
            with torch.no_grad():
                policy(torch.randn(1, 4))
            policy.train()
            policy(torch.randn(2, 4)).sum().backward()
            optimizer.step()
            at("updated")

    assert watch(program).unlike == []


def test_the_first_step_of_a_pass_over_the_data_is_unlike_the_others() -> None:
    def program(at: At) -> None:
        net = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loader: DataLoader[torch.Tensor] = DataLoader(torch.randn(12, 4), batch_size=2)  # type: ignore[arg-type]  # a tensor is a dataset
        for _ in range(3):
            at("epoch")
            for batch in loader:
                net(batch).sum().backward()
                optimizer.step()
                at("updated")

    assert watch(program).unlike == [["updated", "epoch"]] * 2


def test_prompts_are_unlike_tokens() -> None:
    def program(at: At) -> None:
        decoder = Decoder()
        for length in (7, 9):
            decoder.generate(at, torch.zeros(1, length, dtype=torch.long), 6)

    assert watch(program).unlike == [["called", "prompt", "called", "token"]]


def test_sequences_that_differ_in_length_are_alike() -> None:
    def program(at: At) -> None:
        net = nn.Linear(4, 4)
        with torch.no_grad():
            for length in range(1, 13):
                at("forward")
                net(torch.randn(length, 4))

    assert watch(program).unlike == []
