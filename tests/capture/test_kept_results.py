"""What a program computes first is kept, and the program computes the same."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.preloaded import Preloaded

pytestmark = pytest.mark.torch

TRAINING = """
import random
import numpy, torch
if {seeded}:
    torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(14):
    optimizer.zero_grad()
    loss = model(torch.randn(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
print(random.random(), numpy.random.rand(), torch.rand(1).item())
"""

INFERENCE = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(5, 300).eval()
with torch.no_grad():
    for _ in range(14):
        out = {"scores": model(torch.randn(7, 5)), "n": 3}
        print(out["scores"][0, 0].item())
"""


def run(preloaded: Preloaded, folder: Path, program: str, *words: str) -> tuple[str, Any]:
    """What a program prints, and what its ledger keeps of its results."""
    (folder / "program.py").write_text(program)
    done = preloaded.run(
        ["-m", "selftime", "run", "-q", "--steps", "2", *words, "-o", "runs", "program.py"],
        cwd=folder,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    newest = max((folder / "runs").glob("*.run.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    return done.stdout, next((line["results"] for line in lines if "results" in line), None)


def values(rounds: list[Any]) -> dict[int, float]:
    return {one["number"]: one["tensors"][0]["values"][0] for one in rounds}


def test_a_program_computes_the_same_and_it_is_kept(preloaded: Preloaded, tmp_path: Path) -> None:
    program = TRAINING.format(seeded=True)
    plain, nothing = run(preloaded, tmp_path, program, "--seed", "5")
    told, kept = run(preloaded, tmp_path, program, "--seed", "5", "--results")
    assert nothing is None
    assert told == plain
    losses = [float(line) for line in told.splitlines()[:-1]]
    assert values(kept["losses"]) == {number: losses[number] for number in values(kept["losses"])}
    assert {0, 2} <= values(kept["losses"]).keys()
    assert (kept["torch_seed"], kept["seed"], kept["loss_count"]) == (0, 5, 14)


def test_a_seed_makes_a_program_repeat_itself(preloaded: Preloaded, tmp_path: Path) -> None:
    program = TRAINING.format(seeded=False)
    first, _ = run(preloaded, tmp_path, program, "--seed", "5", "--results")
    assert run(preloaded, tmp_path, program, "--seed", "5", "--results")[0] == first
    assert run(preloaded, tmp_path, program, "--seed", "6", "--results")[0] != first


def test_outputs_of_inference_are_sampled(preloaded: Preloaded, tmp_path: Path) -> None:
    told, kept = run(preloaded, tmp_path, INFERENCE, "--results")
    assert kept["losses"] == []
    first = kept["outputs"][0]["tensors"][0]
    assert (first["shape"], first["dtype"]) == ([7, 300], "float32")
    assert 32 < len(first["values"]) <= 64
    printed = [float(line) for line in told.splitlines()]
    assert values(kept["outputs"]) == {n: printed[n] for n in values(kept["outputs"])}


def test_the_layout_of_a_tensor_plays_no_part() -> None:
    torch = pytest.importorskip("torch")
    from selftime.capture.results.kept_results import MAX_SAMPLED_ELEMENTS, KeptResults  # noqa: PLC0415 - imports torch

    for shape in [(), (1,), (1000,), (3, 5), (2, 3, 17, 19), (1, 1, 1, 7, 900), (0, 4)]:
        tensor = torch.randn(shape)
        other = tensor.transpose(0, -1).contiguous().transpose(0, -1) if shape else tensor
        kept = [KeptResults(None), KeptResults(None)]
        for results, one in zip(kept, (tensor, other), strict=True):
            results.add_output([one])
        first, second = (results.facts()["outputs"] for results in kept)
        assert first == second
        count = len(first[0]["tensors"][0]["values"])
        assert min(tensor.numel(), MAX_SAMPLED_ELEMENTS // 8) <= count <= MAX_SAMPLED_ELEMENTS
