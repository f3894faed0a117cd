from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch


def test_an_inference_loop_steps_with_its_outermost_module(record: "Runner") -> None:
    outcome = record("""
        import torch
        from torch import nn

        head = nn.Linear(4, 4)
        net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
        with torch.no_grad():
            for _ in range(15):
                head(net(torch.randn(8, 16)))
    """)

    assert outcome.result["source"] == "module calls"
    assert outcome.result["steps_recorded"] == 5
    assert len(outcome.rows("aten::relu")) == 5
    assert len(outcome.rows("nn.Module: Sequential")) == 5


def test_a_short_inference_loop_leaves_its_last_steps(record: "Runner") -> None:
    outcome = record("""
        import torch
        net = torch.nn.Linear(4, 4)
        for _ in range(3):
            net(torch.randn(8, 4))
    """)

    assert outcome.result["steps_recorded"] == 1
    assert outcome.facts["partial"]
    assert outcome.rows("aten::linear")


def test_an_optimizer_that_inherits_its_step_is_seen(record: "Runner") -> None:
    outcome = record("""
        import torch

        class Mine(torch.optim.SGD):
            pass

        net = torch.nn.Linear(4, 4)
        torch.optim.SGD(net.parameters(), lr=0.1)
        optimizer = Mine(net.parameters(), lr=0.1)
        for _ in range(14):
            net(torch.randn(2, 4)).sum().backward()
            optimizer.step()
    """)

    assert outcome.result["steps_recorded"] == 5
    assert len(outcome.rows("aten::linear")) == 5


def test_training_replaces_what_was_recorded_of_a_pass_over_the_data(record: "Runner") -> None:
    outcome = record("""
        import torch
        from torch.utils.data import DataLoader
        data = torch.randn(60, 4)
        mean = sum(batch.mean().item() for batch in DataLoader(data, batch_size=2)) / 30
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for batch in DataLoader(data - mean, batch_size=4):
            net(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    """)

    assert outcome.result["source"] == "optimizer steps"
    assert outcome.facts["steps"]["source"] == "optimizer steps"
    assert len(outcome.rows("Optimizer.step")) == 5


def test_training_that_ends_at_once_keeps_what_was_recorded_before(record: "Runner") -> None:
    outcome = record("""
        import torch
        from torch.utils.data import DataLoader
        data = torch.randn(60, 4)
        mean = sum(batch.mean().item() for batch in DataLoader(data, batch_size=2)) / 30
        net = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(data).sum().backward()
        optimizer.step()
    """)

    assert outcome.result["source"] == "DataLoader"
    assert outcome.result["steps_recorded"] == 5
    assert outcome.result["reason"] is None
    assert len(outcome.rows("ProfilerStep")) == 5


def test_inference_replaces_what_was_recorded_of_a_pass_over_the_data(record: "Runner") -> None:
    outcome = record("""
        import torch
        from torch.utils.data import DataLoader
        data = torch.randn(60, 4)
        mean = sum(batch.mean().item() for batch in DataLoader(data, batch_size=2)) / 30
        net = torch.nn.Linear(4, 1)
        for batch in DataLoader(data - mean, batch_size=4):
            net(batch)
    """)

    assert outcome.result["source"] == "module calls"
    assert len(outcome.rows("aten::linear")) == 5


COMPILED = """
    import torch
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    model = torch.compile(net, backend="{backend}")
    {optimizer}
    for _ in range(14):
        loss = model(torch.randn(2, 4)).sum()
        loss.backward()
        {step}
    counters = torch._dynamo.utils.counters
    print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
"""


@pytest.mark.parametrize(("backend", "optimizing"), [("eager", False), ("aot_eager", True)])
@pytest.mark.sweep(1)
def test_a_compiled_model_is_compiled_once(
    record: "Runner", backend: str, *, optimizing: bool
) -> None:
    build = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)" if optimizing else "pass"
    step = "optimizer.step(); optimizer.zero_grad()" if optimizing else "pass"
    outcome = record(COMPILED.format(backend=backend, optimizer=build, step=step))

    assert outcome.status == 0, outcome.stderr
    assert outcome.result["source"] == ("optimizer steps" if optimizing else "backward passes")
    assert outcome.result["steps_recorded"] == 5
    assert outcome.stdout == "1 0\n", "one graph, no break"
    assert len(outcome.rows("Torch-Compiled Region")) == 5


@pytest.mark.sweep
def test_a_step_that_is_compiled_whole_is_compiled_the_same(record: "Runner") -> None:
    program = """
        import torch
        net = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        @torch.compile(backend="eager")
        def update():
            optimizer.step()

        for _ in range(14):
            net(torch.randn(2, 4)).sum().backward()
            update()
            optimizer.zero_grad()
        print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    """
    outcome = record(program)

    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == record.plainly(program)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.sweep(1)
def test_workers_of_a_loader_record_nothing(record: "Runner", method: str) -> None:
    outcome = record(f"""
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 16
            def __getitem__(self, index):
                return torch.full((4,), float(index))

        if __name__ == "__main__":
            net = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(2):
                loader = DataLoader(
                    Numbers(), batch_size=2, num_workers=2, multiprocessing_context="{method}"
                )
                for batch in loader:
                    net(batch).sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
            print("done")
    """)

    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == "done\n"
    assert outcome.result["steps_recorded"] == 5
    assert len(outcome.result["traces"]) == 1
    assert outcome.rows("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
