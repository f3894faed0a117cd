"""A recording tells of how many tensors the batches of a DataLoader consist."""

from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")

from selftime.capture.facts.batch_tensors import MAX_PARTS, tensor_count  # noqa: E402 - as above

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

PROGRAM = """
    import torch

    net = torch.nn.Linear(4, 1)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    samples = [{sample}] * 200
    {loop}
        net(torch.ones(2, 4)).sum().backward()
        sgd.step()
"""
LOADER = "for batch in torch.utils.data.DataLoader(samples, batch_size=4):"


@pytest.mark.parametrize(
    ("sample", "loop", "count"),
    [
        ("(torch.ones(4), 1)", LOADER, 2),
        ("{'x': torch.ones(4), 'y': [torch.ones(1), 2.0], 'name': 'a'}", LOADER, 3),
        ("'a name'", LOADER, None),
        ("torch.ones(4)", "for _ in range(50):", None),
    ],
    ids=["pair", "dict", "text", "no loader"],
)
@pytest.mark.sweep(2)
def test_the_tensors_of_a_batch_are_counted(
    record: "Runner", sample: str, loop: str, count: int | None
) -> None:
    outcome = record(PROGRAM.format(sample=sample, loop=loop))
    assert outcome.status == 0
    assert outcome.facts["batch_tensors"] == count


class Loud(list):  # type: ignore[type-arg]  # a program's own
    def __iter__(self) -> None:  # type: ignore[override]  # a test
        raise AssertionError

    def __getitem__(self, _: object) -> None:  # type: ignore[override]  # a test
        raise AssertionError


def test_counting_calls_no_code_of_the_program_and_has_an_end() -> None:
    assert tensor_count(Loud([torch.ones(1), torch.ones(1)])) == 2
    endless: list[object] = [torch.ones(1)]
    endless.append(endless)
    assert tensor_count(endless) <= MAX_PARTS
    assert tensor_count([1] * 10 * MAX_PARTS) == 0
    assert tensor_count(None) == 0
