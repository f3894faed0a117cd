import gc
import inspect
import time
from pathlib import Path
from typing import Any

import pytest
from tests.experimental import experimental_config

pytest.importorskip("torch")
import torch
from torch.utils.checkpoint import checkpoint

from selftime.capture import Profile

pytestmark = pytest.mark.torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, rows: Any) -> Any:
        hidden = self.layer(rows)  # line: layer
        active = torch.relu(hidden)  # line: relu
        return active * hidden + 1


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Any) -> Any:
        del ctx
        return rows / 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        del ctx
        return torch.div(gradient, 2)  # line: own backward


SOURCE = Path(__file__).read_text().splitlines()


def line(mark: str) -> int:
    """The number of the line that bears the mark."""
    (number,) = [at for at, text in enumerate(SOURCE, 1) if text.endswith(f"# line: {mark}")]
    return number


def definition(function: Any) -> int:
    return inspect.getsourcelines(function)[1]


class Recorded:
    """The lines of a recording, by operator name in order."""

    def __init__(self, profile: Profile) -> None:
        block = profile.facts()["lines"]
        names = {
            event.correlation_id(): event.name()
            for event in profile.recorded_events()
            if not event.is_python_function()
        }
        self.files = block["files"]
        self.found: dict[str, list[tuple[int, str]]] = {name: [] for name in names.values()}
        rows = {
            number: (at, "definition" if how else "stack")
            for number, at, how in zip(block["id"], block["line"], block["how"], strict=True)
        }
        for number in sorted(names):
            if number in rows:
                self.found[names[number]].append(rows[number])

    def __getitem__(self, name: str) -> list[tuple[int, str]]:
        return self.found[name]


def record(work: Any, **options: Any) -> Recorded:
    with Profile(with_stack=True, **options) as profile:
        work()
    return Recorded(profile)


def test_calls_have_the_executing_line() -> None:
    net = Net()

    def work() -> None:
        rows = torch.randn(4, 8)  # line: randn
        total = net(rows).sum()  # line: sum
        total.item()  # line: item

    found = record(work)

    assert found["aten::randn"] == [(line("randn"), "stack")]
    assert found["aten::linear"] == [(line("layer"), "stack")]
    assert found["aten::addmm"] == [(line("layer"), "stack")]
    assert found["aten::relu"] == [(line("relu"), "stack")]
    assert found["aten::sum"][0] == (line("sum"), "stack")
    assert found["aten::item"] == [(line("item"), "stack")]
    assert str(Path(__file__)) in found.files


def test_an_operator_sign_has_its_functions_definition_line() -> None:
    net = Net()
    found = record(lambda: net(torch.randn(4, 8)))

    assert found["aten::mul"] == [(definition(Net.forward), "definition")]
    assert found["aten::add"] == [(definition(Net.forward), "definition")]


def test_backward_has_the_lines_of_the_forward_pass() -> None:
    net = Net()

    def work() -> None:
        total = net(torch.randn(4, 8)).sum()
        total.backward()  # line: backward

    found = record(work)
    node = "autograd::engine::evaluate_function: "

    assert found[node + "ReluBackward0"] == [(line("relu"), "stack")]
    assert found["aten::threshold_backward"] == [(line("relu"), "stack")]
    assert found[node + "AddmmBackward0"] == [(line("layer"), "stack")]
    assert found[node + "MulBackward0"] == [(definition(Net.forward), "definition")]
    assert set(found["torch::autograd::AccumulateGrad"]) == {(line("layer"), "stack")}
    assert found["aten::ones_like"] == [(line("backward"), "stack")]


def test_backward_code_of_the_user_has_its_own_line() -> None:
    def work() -> None:
        rows = torch.randn(4, 8, requires_grad=True)
        Halved.apply(rows).sum().backward()  # type: ignore[no-untyped-call]  # torch

    assert record(work)["aten::div"][-1] == (line("own backward"), "stack")


def test_backward_of_what_ran_before_the_recording_has_the_line_that_started_it() -> None:
    total = Net()(torch.randn(4, 8)).sum()

    def work() -> None:
        total.backward()  # line: late backward

    assert record(work)["ReluBackward0"] == [(line("late backward"), "stack")]


def test_forward_passes_on_two_threads_are_kept_apart() -> None:
    from threading import Thread  # noqa: PLC0415 - of this test alone

    def one(rows: Any) -> None:
        torch.sigmoid(rows).sum().backward()  # type: ignore[no-untyped-call]  # line: one

    def two(rows: Any) -> None:
        torch.sigmoid(rows).sum().backward()  # type: ignore[no-untyped-call]  # torch

    def work() -> None:
        one(torch.randn(4, requires_grad=True))
        thread = Thread(target=two, args=[torch.randn(4, requires_grad=True)])
        thread.start()
        thread.join()

    config = experimental_config(profile_all_threads=True)
    found = record(work, experimental_config=config)

    # The recorder sees no frames of threads that start later: their lines are unknown.
    assert found["SigmoidBackward0"] == [(line("one"), "stack")]


def test_annotations_have_the_line_that_opened_them() -> None:
    parameter = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=0.1)

    def work() -> None:
        with torch.profiler.record_function("mine"):  # line: annotation
            parameter.sum().backward()  # type: ignore[no-untyped-call]  # torch
        optimizer.step()  # line: step

    found = record(work)

    assert found["mine"] == [(line("annotation"), "stack")]
    assert found["Optimizer.step#SGD.step"] == [(line("step"), "stack")]
    assert {at for at, _ in found["aten::add_"]} == {line("step")}


def test_a_frame_that_ran_already_has_its_true_definition_line() -> None:
    rows = torch.ones(4)
    with Profile(with_stack=True) as profile:
        rows = rows + 1
    here = test_a_frame_that_ran_already_has_its_true_definition_line

    assert Recorded(profile)["aten::add"] == [(definition(here), "definition")]


def test_without_stacks_there_are_no_lines() -> None:
    with Profile() as profile:
        torch.ones(4).sum()

    assert profile.facts()["lines"] == {
        "id": [],
        "file": [],
        "line": [],
        "function": [],
        "how": [],
        "files": [],
        "functions": [],
    }


def test_pauses_of_the_garbage_collector_harm_nothing(tmp_path: Path) -> None:
    config = experimental_config(record_python_gc_info=True)
    with Profile(with_stack=True, experimental_config=config) as prof:
        torch.ones(8, 8).sum()
        gc.collect()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert "Python GC" in (tmp_path / "trace.json").read_text()
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    assert "test_pauses_of" in (tmp_path / "stacks.txt").read_text()


def in_checkpoint(rows: Any) -> Any:
    return torch.sigmoid(rows)  # line: recomputed


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_checkpoint_recomputes_has_the_line_of_the_forward_pass(reentrant: bool) -> None:
    rows = torch.ones(4, requires_grad=True)

    def work() -> None:
        kept = checkpoint(in_checkpoint, rows, use_reentrant=reentrant)
        kept.sum().backward()

    found = record(work)

    assert found["aten::sigmoid"] == [(line("recomputed"), "stack")] * 2
    assert found["SigmoidBackward0"] == [(line("recomputed"), "stack")]


def test_hooks_have_their_own_lines() -> None:
    net: Any = torch.nn.Linear(4, 4)
    net.weight.register_hook(lambda gradient: torch.tanh(gradient).clone())  # line: tensor hook

    def accumulated(weight: Any) -> None:
        weight.grad.sin_()  # line: accumulated

    net.weight.register_post_accumulate_grad_hook(accumulated)
    net.register_full_backward_hook(
        lambda _, gradients, __: (torch.cos(gradients[0]),)  # line: module hook
    )

    found = record(lambda: net(torch.ones(2, 4, requires_grad=True)).sum().backward())

    assert found["aten::tanh"] == [(line("tensor hook"), "stack")]
    assert found["aten::sin_"] == [(line("accumulated"), "stack")]
    assert found["aten::cos"] == [(line("module hook"), "stack")]


def test_a_backward_pass_of_a_backward_pass_has_the_first_forward_line() -> None:
    rows = torch.ones(4, requires_grad=True)

    def work() -> None:
        total = torch.sigmoid(rows).sum()  # line: twice
        gradient: Any = torch.autograd.grad(total, rows, create_graph=True)[0]
        gradient.sum().backward(retain_graph=True)
        gradient.sum().backward()

    found = record(work)

    assert found["SigmoidBackwardBackward0"] == [(line("twice"), "stack")] * 2
    assert set(found["SigmoidBackward0"]) == {(line("twice"), "stack")}


def broken(rows: Any) -> Any:
    rows = torch.sin(rows)
    torch._dynamo.graph_break()  # line: graph break
    return torch.cos(rows)


@pytest.mark.sweep(1)
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch, of what lies between two parts
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_code_has_the_line_on_which_its_part_of_the_function_begins(backend: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(broken, backend=backend)
    rows = torch.ones(4, requires_grad=True)

    def work() -> None:
        compiled(rows).sum().backward()  # line: compiled

    work()
    found = record(work)
    begin, resumed = (definition(broken), "definition"), (line("graph break"), "definition")

    assert found["Torch-Compiled Region: 0/0"] == [(line("compiled"), "stack")]
    assert set(found["aten::sin"]) <= {begin, resumed}
    assert begin in found["aten::sin"]
    assert resumed in found["aten::cos"]
    assert found["aten::sum"][0] == (line("compiled"), "stack")


def pause(seconds: float) -> None:
    time.sleep(seconds)  # line: sleep


def gather(numbers: list[int]) -> int:
    first = sum(numbers)
    return first + sum(numbers)


def test_calls_of_c_and_of_libraries_have_the_line_that_made_them() -> None:
    with Profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as profile:
        pause(0.001)
        gather([1, 2])
        Net()(torch.ones(2, 8))
    block = profile.facts()["calls"]
    names = block["names"]
    found = {
        (names[caller].partition(": ")[2], names[called]): at
        for caller, called, at in zip(block["caller"], block["called"], block["line"], strict=True)
    }
    assert found["pause", "<built-in function sleep>"] == line("sleep")
    assert ("gather", "<built-in function sum>") not in found  # at two lines
    relu = next(at for (_, called), at in found.items() if "relu" in called)
    assert relu == line("relu")
