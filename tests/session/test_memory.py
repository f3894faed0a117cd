"""What the memory views tell of a program whose memory is known to the byte."""

from typing import TYPE_CHECKING

import polars as pl
import pytest

from selftime import load, profile
from selftime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")

STEPS = 6
WEIGHTS = 4 * (64 * 128 + 128 + 128 * 10 + 10)
"""Bytes of the parameters."""


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A training that keeps a value of every step."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    kept = []

    def step() -> None:
        outputs = net(torch.randn(32, 64))
        loss = torch.nn.functional.cross_entropy(outputs, torch.zeros(32, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(outputs.detach().mul(2.0))  # the leak

    path: Path = tmp_path_factory.mktemp("memory") / "trace.json"
    with profile(profile_memory=True, with_stack=True) as recording:
        for _ in range(STEPS):
            step()
    recording.export_chrome_trace(str(path))
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


def test_the_optimizer_holds_two_moments_and_a_count_for_each_parameter(training: Trace) -> None:
    blocks = training.view("memory_events").filter(pl.col("category") == "optimizer state")

    assert blocks["size"].sum() == 2 * WEIGHTS + 4 * 4
    assert set(blocks["state"]) == {"lives on"}


def test_every_step_makes_the_gradients_anew(training: Trace) -> None:
    blocks = training.view("memory_events").filter(pl.col("category") == "gradient")

    assert blocks["size"].sum() == STEPS * WEIGHTS
    assert (blocks["state"] == "lives on").sum() == 4


def test_activations_are_what_the_backward_pass_needs(training: Trace) -> None:
    blocks = training.view("memory_events").filter(pl.col("category") == "activation")
    hidden = blocks.filter(pl.col("size") == 4 * 32 * 128)

    assert hidden.height >= STEPS
    assert (hidden["released"] > hidden["allocated"]).all()


def test_the_line_that_leaks_is_named(training: Trace) -> None:
    held = training.view("memory_peak", by="operator+line")
    [leak] = held.filter(pl.col("growth_per_step") >= 4 * 32 * 10).rows(named=True)

    assert leak["operator"] == "aten::mul"
    assert leak["growth_per_step"] == 4 * 32 * 10
    assert (leak["file"] or "").endswith("test_memory.py")
    assert leak["function"] == "step"


def test_the_peak_is_shared_out_to_the_byte(training: Trace) -> None:
    peak = training.view("memory_curve")["allocated"].max()

    for by in ("category", "line", "operator", "category+operator+line"):
        assert training.view("memory_peak", by=by)["bytes"].sum() == peak
