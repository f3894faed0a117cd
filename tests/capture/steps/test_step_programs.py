"""Where the steps of many programs end, with the truth told by the programs themselves."""

import pytest

pytest.importorskip("torch")

from tests.capture.steps.programs import arranged, inferring, mixed, optimizing, updating
from tests.capture.steps.programs.truth import Program, watch

from selftime.capture.steps import StepSource

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning"),  # since torch 2.14
]

PROGRAMS = [
    *optimizing.PROGRAMS,
    *updating.PROGRAMS,
    *inferring.PROGRAMS,
    *arranged.PROGRAMS,
    *mixed.PROGRAMS,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_one_boundary_ends_each_step(program: Program) -> None:
    seen = watch(program.run)

    assert seen.source is program.source
    ends = seen.boundaries(program.after, program.before)
    assert set(ends[program.found :]) == {1}, ends
    assert set(ends[: program.found]) <= {0, 1}, ends
    assert seen.elsewhere(program.after, program.before) == []


def test_passes_that_accumulate_gradients_end_no_step() -> None:
    [program] = [one for one in PROGRAMS if one.name == "gradients_of_sixty_batches"]
    seen = watch(program.run)
    assert {event for event in seen.events if isinstance(event, StepSource)} == {program.source}
