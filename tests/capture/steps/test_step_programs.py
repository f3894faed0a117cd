"""Where the steps of many programs end, with the truth told by the programs themselves."""

import pytest

pytest.importorskip("torch")

from tests.capture.steps.programs import arranged, inferring, mixed, optimizing, updating
from tests.capture.steps.programs.truth import Program, watch

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
