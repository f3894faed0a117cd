"""FLOPs of a backward pass in which checkpointing stops early, against PyTorch's own counter."""

from typing import Any

import polars as pl
import pytest

import selftime

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("layer", ["linear", "linear without bias", "convolution"])
def test_an_operator_that_recomputation_stopped_has_no_flops(layer: str) -> None:
    torch: Any = pytest.importorskip("torch")
    checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint
    flop_counter: Any = pytest.importorskip("torch.utils.flop_counter")

    def layers() -> Any:
        if layer == "convolution":
            return torch.nn.Conv2d(16, 16, 3, padding=1)
        return torch.nn.Linear(512, 512, bias=layer == "linear")

    net = torch.nn.Sequential(layers(), torch.nn.ReLU(), layers())
    rows = torch.randn(8, 16, 32, 32) if layer == "convolution" else torch.randn(1024, 512)

    def train() -> None:
        hidden = checkpoint(net, rows, use_reentrant=False)
        checkpoint(net, hidden, use_reentrant=False).sum().backward()

    train()
    with flop_counter.FlopCounterMode(display=False) as counter:
        train()
    with selftime.profile(record_shapes=True, with_flops=True) as prof:
        train()
    operators = prof.trace().view("operators").filter(pl.col("self_model_flops") > 0)
    products = operators.filter(pl.col("name").cast(pl.String).str.contains("mm|conv"))
    assert products["self_model_flops"].sum() == counter.get_total_flops()


def test_a_recomputation_that_does_not_stop_keeps_its_flops() -> None:
    torch: Any = pytest.importorskip("torch")
    checkpointing: Any = pytest.importorskip("torch.utils.checkpoint")

    net = torch.nn.Linear(128, 128)
    rows = torch.randn(512, 128)
    whole = checkpointing.set_checkpoint_early_stop(False)
    with whole, selftime.profile(record_shapes=True, with_flops=True) as prof:
        checkpointing.checkpoint(net, rows, use_reentrant=False).sum().backward()
    operators = prof.trace().view("operators")
    products = operators.filter(pl.col("name") == "aten::addmm")
    assert products["self_model_flops"].sum() == 2 * 2 * 512 * 128 * 128
