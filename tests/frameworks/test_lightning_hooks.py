"""The parts for frameworks, in what their users do beside the plain case."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import selftime

if TYPE_CHECKING:
    from tests.frameworks.conftest import Ended, Run

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

HUGGINGFACE = """
    import json
    import torch
    from transformers import Trainer, TrainingArguments
    from selftime.frameworks.huggingface import SelftimeCallback

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def forward(self, x, labels=None):
            if len(traces) == 2 and self.training and trainer.state.global_step == 5:
                raise KeyError("mine")
            return {"loss": (self.layer(x) - labels).pow(2).mean(), "logits": x}

    rows = [{"x": torch.randn(8), "labels": torch.ones(1)} for _ in range(60)]
    arguments = TrainingArguments(
        "out", per_device_train_batch_size=2, gradient_accumulation_steps=2, num_train_epochs=2,
        eval_strategy="steps", eval_steps=7, save_strategy="no", report_to="none",
        disable_tqdm=True, use_cpu=True,
    )
    callback = SelftimeCallback(steps=3, warmup=3)
    trainer = Trainer(
        Net(), arguments, train_dataset=rows, eval_dataset=rows[:4], callbacks=[callback]
    )
    traces = []
    for _ in range(2):
        trainer.train()
        traces.append(str(callback.recording.trace))
    print("TRACES", json.dumps(traces))
    trainer.train()
"""

LIGHTNING = """
    import copy, json
    import pytorch_lightning, torch
    from lightning.pytorch import LightningModule, Trainer
    from selftime.frameworks import pytorch_lightning as by_its_other_name
    from selftime.frameworks.lightning import SelftimeCallback, SelftimeProfiler

    class Steps:
        fails = False

        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def training_step(self, batch, number):
            if Steps.fails and number == 5:
                raise KeyError("mine")
            return self.layer(batch).mean()

        def validation_step(self, batch):
            self.layer(batch)

        predict_step = validation_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    class Net(Steps, LightningModule):
        pass

    class OtherNet(Steps, pytorch_lightning.LightningModule):
        pass

    loader = torch.utils.data.DataLoader(torch.randn(80, 8), batch_size=2)
    plain = {
        "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
        "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1,
    }
    callback = SelftimeCallback(steps=3, warmup=3)
    trainer = Trainer(callbacks=[callback], accumulate_grad_batches=2, **plain)
    traces = {}
    trainer.fit(Net(), loader, loader)
    traces["accumulated"] = str(callback.recording.trace)
    copy.deepcopy(callback)
    trainer.predict(Net(), loader)
    traces["predicted"] = str(callback.recording.trace)
    profiler = SelftimeProfiler(steps=3, warmup=3)
    trainer = Trainer(profiler=profiler, accumulate_grad_batches=2, **plain)
    trainer.fit(Net(), loader)
    traces["profiled"] = str(profiler.recording.trace)
    trainer.validate(Net(), loader)
    traces["validated"] = str(profiler.recording.trace)
    callback = by_its_other_name.SelftimeCallback(steps=3, warmup=3)
    pytorch_lightning.Trainer(callbacks=[callback], **plain).fit(OtherNet(), loader)
    traces["other callback"] = str(callback.recording.trace)
    profiler = by_its_other_name.SelftimeProfiler(steps=3, warmup=3)
    pytorch_lightning.Trainer(profiler=profiler, **plain).validate(OtherNet(), loader)
    traces["other profiler"] = str(profiler.recording.trace)
    callback, profiler = SelftimeCallback(), SelftimeProfiler()
    Steps.fails = True
    for name, part in (("callbacks", [callback]), ("profiler", profiler)):
        try:
            Trainer(**{name: part}, **plain).fit(Net(), loader)
        except KeyError:
            mine = callback if name == "callbacks" else profiler
            traces[f"failed {name}"] = str(mine.recording.trace)
    print("TRACES", json.dumps(traces))
"""

ACCELERATE = """
    import json
    import torch
    from accelerate import Accelerator
    from accelerate.optimizer import AcceleratedOptimizer
    from selftime.frameworks.accelerate import recording

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    before = AcceleratedOptimizer.step
    traces = []
    for fails in (False, True):
        try:
            with recording(accelerator, steps=3, warmup=3) as made:
                # Prepared within, as a program does that is wrapped as a whole.
                optimizers = [
                    accelerator.prepare(torch.optim.SGD(net.parameters(), lr=0.1))
                    for net in (first, second)
                ]
                for number in range(80):
                    with accelerator.accumulate(first, second):
                        accelerator.backward(second(first(torch.randn(2, 8))).mean())
                        for optimizer in optimizers:
                            optimizer.step()
                            optimizer.zero_grad()
                    if fails and number == 26:
                        raise KeyError("mine")
        except KeyError:
            pass
        traces.append(str(made.trace))
        assert AcceleratedOptimizer.step is before
    print("TRACES", json.dumps(traces))
"""

Steps = Callable[[Any], int]


def traces_of(ended: "Ended") -> Any:
    line = next(line for line in ended.stdout.splitlines() if line.startswith("TRACES "))
    return json.loads(line.removeprefix("TRACES "))


def partial(path: str | Path) -> Any:
    trace: Any = selftime.load(path)
    return trace.metadata["selftime"]["partial"]


def calls(path: str, name: str) -> int:
    """How many operators or annotations of a name a trace has."""
    trace: Any = selftime.load(path)
    return int((trace.slices["name"].cast(str) == name).sum())


@pytest.mark.sweep
def test_a_trainer_of_huggingface(run: "Run", steps: Steps) -> None:
    pytest.importorskip("transformers")
    ended = run(HUGGINGFACE)

    assert "KeyError: 'mine'" in ended.stderr
    first, second = traces_of(ended)
    assert first != second, "each training has its own file"
    for path in (first, second):
        assert steps(selftime.load(path)) == 3
        assert partial(path) is None
    # A step gathers the gradients of two batches.
    assert calls(first, "aten::mse_loss") == 0
    assert calls(first, "autograd::engine::evaluate_function: MeanBackward0") >= 2 * 3
    (failed,) = set(ended.files) - {Path(first), Path(second)}
    assert partial(failed) == "the program ended within the loop"


@pytest.mark.timed  # eight recordings in one process, which together may hold it for a limited time
def test_a_trainer_of_lightning(run: "Run", steps: Steps) -> None:
    pytest.importorskip("lightning")
    ended = run(LIGHTNING)

    assert ended.status == 0, ended.stderr
    traces = traces_of(ended)
    assert len(ended.files) == len(set(traces.values())) == 8
    for name in traces:
        if not name.startswith("failed"):
            assert steps(selftime.load(traces[name])) == 3, (name, ended.stderr)
            assert partial(traces[name]) is None, name
    assert partial(traces["failed callbacks"]) == "ended by KeyError"
    assert partial(traces["failed profiler"]) == "ended by KeyError"
    assert calls(traces["profiled"], "run_training_batch") >= 2 * 3
    assert calls(traces["accumulated"], "run_training_batch") == 0


@pytest.mark.sweep
def test_a_loop_of_accelerate(run: "Run", steps: Steps) -> None:
    pytest.importorskip("accelerate")
    ended = run(ACCELERATE)

    assert ended.status == 0, ended.stderr
    whole, failed = traces_of(ended)
    assert sorted(map(str, ended.files)) == sorted([whole, failed])
    assert steps(selftime.load(whole)) == 3
    assert partial(whole) is None
    # Four batches in each of the steps that are recorded or warm the recorder up.
    assert calls(whole, "autograd::engine::evaluate_function: MeanBackward0") == 4 * 3
    assert partial(failed) == "ended by KeyError"
