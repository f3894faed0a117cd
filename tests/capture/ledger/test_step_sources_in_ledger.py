"""What the ledger of a run makes of steps when a program does more than one thing."""

import json
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest

from selftime.analysis.run.parts import run_parts
from selftime.ingest.ledger import read_ledger
from selftime.run import Run

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch


def run_of(record: "Runner", program: str) -> Run:
    record(program, is_light=True)
    [path] = record.folder.rglob("*.run.jsonl")
    return read_ledger(path.read_bytes(), str(path))


def counts(run: Run) -> dict[str, int]:
    kinds = run.segments.drop_nulls("kind")["kind"].cast(str).to_list()
    return dict(Counter(kind.removesuffix(", unusual") for kind in kinds))


def test_module_calls_of_training_without_an_optimizer_are_training(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import torch
        from torch.func import functional_call, grad

        net = torch.nn.Linear(4, 1)
        params = {name: value.detach() for name, value in net.named_parameters()}
        x = torch.randn(16, 4)
        loss = grad(lambda params: functional_call(net, params, (x,)).pow(2).mean())
        for _ in range(30):
            params = {name: params[name] - 0.1 * g for name, g in loss(params).items()}
        """,
    )
    assert counts(run) == {"training": 30}


def test_calls_that_only_fill_the_memory_for_training_are_one_rollout(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import torch

        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        memory = []
        for frame in range(60):
            with torch.no_grad():
                memory.append(net(torch.randn(4)))
            if len(memory) < 20:
                continue
            net(torch.randn(8, 4)).sum().backward()
            optimizer.step()
        """,
    )
    assert counts(run) == {"rollout": 1, "training": 41}


def test_random_moves_before_the_training_are_a_rollout(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import time
        import torch

        class Environment:
            def step(self, action):
                time.sleep(0.003)
                return torch.randn(1, 4)

        net, environment = torch.nn.Linear(4, 1), Environment()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for move in range(300):
            environment.step(move)
        for step in range(40):
            net(environment.step(step)).sum().backward()
            optimizer.step()
        """,
    )
    assert counts(run) == {"rollout": 1, "training": 40}
    assert run.segments["kind"].to_list()[:2] == [None, "rollout"]
    assert run.segments["duration"][1] > 500_000_000
    assert run.loop_lines["rollout"][1] == 12
    seen = run.readings.filter(run.readings["segment"] == 1)["function"].cast(str)
    assert seen.mode().to_list() == ["step"]  # a sample may fall between two calls


def test_features_that_are_made_before_training_are_steps_of_their_own(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import torch

        backbone, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
        with torch.no_grad():
            features = []
            for _ in range(20):
                features.append(backbone(torch.randn(8, 4)))
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for x in 3 * features:
            head(x).sum().backward()
            optimizer.step()
        """,
    )
    assert counts(run) == {"training": 60, "inference": 19}


def test_the_rounds_around_two_solvers_are_the_steps(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import torch

        value, policy = torch.nn.Linear(4, 1), torch.nn.Linear(4, 2)
        slopes = lambda loss, net, **how: torch.autograd.grad(loss, list(net.parameters()), **how)

        def fit(x, iterations):
            for _ in range(iterations):
                for p, slope in zip(value.parameters(), slopes(value(x).pow(2).mean(), value)):
                    p.data -= 0.1 * slope

        def conjugate_gradients(x):
            direction = slopes(policy(x).pow(2).mean(), policy)
            for _ in range(5):
                first = slopes(policy(x).pow(2).mean(), policy, create_graph=True)
                product = sum((a * b).sum() for a, b in zip(first, direction))
                direction = slopes(product, policy)
            return direction

        for number in range(12):
            x = torch.randn(16, 4)
            fit(x, 5 + number % 3)
            for p, change in zip(policy.parameters(), conjugate_gradients(x)):
                p.data -= 0.01 * change
        """,
    )
    found = counts(run)
    # Three rounds go by until they are known.
    assert (found["training"], run.loop_lines["training"][1]) == (9, 20)
    assert not set(found) - {"training", "steps that were not counted one by one"}


ADVERSARIES = """
    import torch

    maker, judge = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    makers = torch.optim.Adam(maker.parameters())
    judges = torch.optim.Adam(judge.parameters())
    for number in range({steps}):
        judge(maker(torch.randn(2, 4)).detach()).mean().backward()
        judges.step()
        if {makes}:
            judge(maker(torch.randn(2, 4))).mean().backward()
            makers.step()
"""


def test_steps_of_a_judge_before_the_first_one_of_the_maker_are_one(record: "Runner") -> None:
    run = run_of(record, ADVERSARIES.format(steps=40, makes="number % 5 == 4"))
    assert counts(run) == {"training": 8}


def test_steps_of_a_judge_that_is_trained_alone_at_first_are_steps(record: "Runner") -> None:
    run = run_of(record, ADVERSARIES.format(steps=22, makes="number >= 12"))
    assert counts(run) == {"training": 22}


def test_an_evaluation_before_the_training_is_no_inference(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import torch

        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net.eval()
        with torch.no_grad():
            for _ in range(20):
                net(torch.randn(8, 4))
        net.train()
        for _ in range(40):
            net(torch.randn(8, 4)).sum().backward()
            optimizer.step()
        """,
    )
    assert counts(run) == {"training": 40}
    assert run.segments["evaluation"].sum() > 0


@pytest.mark.sweep
def test_what_follows_too_short_a_training_is_recorded(record: "Runner") -> None:
    outcome = record(
        """
        import time
        import torch

        net = torch.nn.Linear(64, 64)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.randn(8, 64)).sum().backward()
            optimizer.step()
        end = time.perf_counter() + 3
        with torch.no_grad():
            while time.perf_counter() < end:
                net(torch.randn(8, 64))
    """,
        warmup=None,
    )
    assert outcome.result["source"] == "module calls"
    assert outcome.result["steps_recorded"] == 5
    assert len(outcome.result["traces"]) == 1


def test_each_iteration_of_two_loops_is_a_step(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import torch

        one, two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        x = torch.randn(8, 4)

        def run(network):
            return [network(x) for _ in range(15)]

        run(one)
        run(two)
        """,
    )
    assert counts(run) == {"inference": 29}  # the last one ends with the program


def test_setting_up_is_no_step_of_a_training_in_another_thread(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import threading
        import time
        import torch

        def train():
            time.sleep(0.3)
            net = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(12):
                net(torch.randn(8, 4)).sum().backward()
                optimizer.step()

        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        """,
    )
    assert counts(run) == {"training": 12}
    parts = run_parts(run).group_by("part").agg(pl.col("duration").sum())
    assert dict(parts.rows())["data"] >= 300_000_000


def test_a_checkpoint_after_an_evaluation_is_no_evaluation(record: "Runner") -> None:
    run = run_of(
        record,
        """
        import torch

        names = {}
        source = "import time\\ndef reduce(_):\\n    time.sleep(0.4)\\n    return str, ()"
        exec(compile(source, torch.serialization.__file__, "exec"), names)
        Slow = type("Slow", (), {"__reduce__": names["reduce"]})

        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.train()
            for _ in range(12):
                net(torch.randn(8, 4)).sum().backward()
                optimizer.step()
            net.eval()
            torch.save([Slow()], "checkpoint.pt")
        """,
    )
    parts = run_parts(run).group_by("part").agg(pl.col("duration").sum())
    found = dict(parts.rows())
    assert found["checkpoint"] > 500_000_000
    assert found.get("evaluation", 0) < 200_000_000


@pytest.mark.sweep
def test_the_process_that_trains_answers(record: "Runner") -> None:
    outcome = record.start(
        "script",
        record.write("""
            import torch
            import torch.multiprocessing as multiprocessing

            def train(net):
                optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
                for _ in range(60):
                    net(torch.randn(64, 64)).sum().backward()
                    optimizer.step()

            if __name__ == "__main__":
                net = torch.nn.Linear(64, 64)
                child = multiprocessing.get_context("spawn").Process(target=train, args=(net,))
                child.start()
                child.join()
                with torch.no_grad():
                    for _ in range(20):
                        net(torch.randn(64, 64))
        """),
    )
    outcome.communicate(timeout=120)
    result = json.loads((record.folder / "result.json").read_text())
    assert result["source"] == "optimizer steps"
    assert len(result["traces"]) == 2


def test_what_the_recorder_does_at_the_end_is_recording(record: "Runner") -> None:
    record("""
        import torch

        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(6):
            net(torch.randn(8, 4)).sum().backward()
            optimizer.step()
    """)
    [path] = record.folder.rglob("*.run.jsonl")
    last = read_ledger(path.read_bytes(), str(path)).segments.row(-1, named=True)
    assert last["recording"] > last["duration"] / 2
