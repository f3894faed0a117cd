"""What a program does between steps and after them, by a ledger that a stack is shown at will."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from selftime.capture.ledger.ledger import Ledger
from selftime.capture.recorder.ledger_steps import end_ledger_step
from selftime.capture.steps import RecorderWork, StepDetector, StepSource, pauses
from selftime.ingest.ledger import read_ledger
from selftime.run import Run

pytestmark = pytest.mark.torch

LookNow = Callable[..., None]
"""Looks at the program's stack as the thread that reads stacks does in a long pause; or at that of
a frame."""

Keep = Callable[[Callable[[LookNow], None]], Run]
"""Runs a program in a thread of its own, and returns its ledger."""


@pytest.fixture
def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keep:
    """Keeps the ledger of a program for which any pause is long enough."""
    monkeypatch.setattr(pauses.PauseObserver, "_may_be_paused", lambda *_: True)
    monkeypatch.setattr(pauses, "MIN_OTHER_WORK_NS", 0)
    monkeypatch.setattr(pauses, "MIN_OTHER_WORK_STEPS", 0)

    def run(program: Callable[[LookNow], None]) -> Run:
        ledgers: list[Ledger] = []
        thread = threading.Thread(target=_run_with_ledger, args=(tmp_path, program, ledgers))
        thread.start()
        thread.join()
        path = ledgers[0].file.path
        assert path is not None
        return read_ledger(path.read_bytes(), str(path))

    return run


def _run_with_ledger(
    folder: Path, program: Callable[[LookNow], None], ledgers: list[Ledger]
) -> None:
    ledger, work = Ledger(folder), RecorderWork()
    ledger.is_written = True
    ledger.kinds.is_user_file = lambda file: file == __file__
    ledgers.append(ledger)

    def on_boundary(source: StepSource) -> None:
        end_ledger_step(ledger, source, work.start_ns, False)

    def on_step(source: StepSource, is_unusual: bool) -> bool:
        end_ledger_step(ledger, source, work.start_ns, is_unusual)
        return False

    detector = StepDetector(on_boundary, lambda: None, recorder_work=work, ledger=ledger)
    detector.call_for_other_work(lambda _: False, on_step)
    detector.attach()
    try:
        program(lambda frame=None: _look(detector, frame))
    finally:
        detector.detach()
        ledger.finish("ended")


def _look(detector: StepDetector, frame: FrameType | None) -> None:
    detector.observe_stack(frame or sys._getframe(2))


def counts(run: Run) -> dict[str, int]:
    kinds = run.segments.drop_nulls("kind")["kind"].cast(str).to_list()
    return dict(Counter(kind.removesuffix(", unusual") for kind in kinds))


class Training:
    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self, rows: int = 16) -> None:
        self.net(torch.randn(rows, 8)).pow(2).mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def infer(self, calls: int, rows: int = 16, look: LookNow | None = None) -> None:
        for _ in range(calls):
            self.net(torch.randn(rows, 8))
            if look is not None:
                look()


def test_what_repeats_after_the_training_are_steps_of_their_own(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        training.train(12)
        look()
        with torch.no_grad():
            training.infer(20)

    found = counts(keep(program))
    assert found.pop("steps that were not counted one by one", 0) <= 1
    assert found == {"training": 12, "inference": 19}  # the last one ends with the program


def test_steps_after_the_training_begin_where_the_first_call_does(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        training.train(12)
        look()
        for _ in range(3000):
            torch.ones(64).sum()
        training.infer(20)

    run = keep(program)
    found = counts(run)
    between = found.pop("steps that were not counted one by one", 0)  # as it may have been
    assert found == {"training": 12, "inference": 19}
    assert run.segments["kind"].is_null().sum() + between == 3  # set-up, between, end


def test_training_that_goes_on_after_other_work_is_counted(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        training.train(12)
        look()
        with torch.no_grad():
            training.infer(20)
        training.train(12)

    assert counts(keep(program))["training"] == 24


def test_calls_without_gradients_within_the_loop_are_an_evaluation(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            training.train(6)
            look()
            with torch.no_grad():
                training.infer(20)

    run = keep(program)
    assert counts(run) == {"training": 24}
    assert (run.segments["evaluation"] > 0).sum() == 4


def test_a_teacher_is_no_evaluation(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(12):
            training.step()
            look()
            with torch.no_grad():
                training.infer(2)

    run = keep(program)
    assert counts(run) == {"training": 12}
    assert run.segments["evaluation"].sum() == 0


def test_a_policy_that_acts_between_updates_makes_rollouts(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            training.step()
            training.step()
            look()
            with torch.no_grad():
                training.infer(20, rows=1, look=look)

    run = keep(program)
    assert counts(run) == {"training": 8, "rollout": 3}
    assert run.segments[:-1]["evaluation"].sum() == 0  # no training follows the last one
    file, line = run.loop_lines["rollout"]
    assert Path(file).name == "test_pauses.py"
    assert "range(calls)" in Path(file).read_text().splitlines()[line - 1]


def test_a_policy_and_a_value_that_take_turns_make_a_rollout(keep: Keep) -> None:
    value = nn.Linear(8, 1)

    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            training.train(12)
            look()
            with torch.no_grad():
                for _ in range(20):
                    training.infer(1, rows=1)
                    value(torch.randn(1, 8))

    assert counts(keep(program)) == {"training": 48, "rollout": 3}


def test_a_policy_that_acts_with_gradients_makes_rollouts_as_well(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            look()
            training.infer(20, rows=1)
            training.train(12)

    assert counts(keep(program)) == {"training": 48, "rollout": 3}


def test_the_first_rollout_is_no_inference(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            look()
            with torch.no_grad():
                training.infer(20, rows=1)
            training.train(12)

    run = keep(program)
    assert counts(run) == {"training": 48, "rollout": 4}
    assert run.segments["kind"].to_list()[:2] == [None, "rollout"]


class Environment:
    def __init__(self, look: LookNow) -> None:
        self.now = look

    def step(self, _action: int) -> torch.Tensor:
        self.now()
        return torch.randn(1, 8)


class ActorCritic(Training):
    """Acts with a module that is not called in training, as many libraries do."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Sequential(self.net, nn.Tanh())

    def act(self, moves: int, environment: Environment) -> None:
        self.policy.eval()
        observation = torch.randn(1, 8)
        with torch.no_grad():
            for _ in range(moves):
                observation = environment.step(int(self.policy(observation).argmax()))
        self.policy.train()


def test_a_policy_in_evaluation_mode_that_acts_in_an_environment_makes_rollouts(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        learner, environment = ActorCritic(), Environment(look)
        for _ in range(4):
            learner.act(20, environment)
            learner.train(12)

    run = keep(program)
    assert counts(run) == {"training": 48, "rollout": 4}
    assert run.segments["evaluation"].sum() == 0


def test_a_rollout_that_is_seen_to_be_one_as_it_goes_on_is_one(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training, environment = Training(), Environment(look)
        for _ in range(4):
            with torch.no_grad():
                observation = torch.randn(1, 8)
                for _ in range(20):
                    observation = environment.step(int(training.net(observation).argmax()))
            training.train(12)

    assert counts(keep(program)) == {"training": 48, "rollout": 4}


def test_a_rollout_within_which_the_program_ends_is_one(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        learner, environment = ActorCritic(), Environment(look)
        for last in (False, False, True):
            learner.act(20, environment)
            if not last:
                learner.train(12)

    run = keep(program)
    assert counts(run) == {"training": 24, "rollout": 3}
    assert run.segments["kind"].to_list()[-1] == "rollout"


def test_acting_that_takes_no_longer_than_a_step_is_no_evaluation(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        learner, environment = ActorCritic(), Environment(look)
        learner.act(20, environment)
        for _ in range(12):
            learner.train(1)
            learner.act(2, Environment(lambda: None))

    run = keep(program)
    assert counts(run) == {"training": 12, "rollout": 1}
    assert run.segments["evaluation"].sum() == 0


def test_an_evaluation_of_single_samples_without_an_environment_stays_one(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            training.train(12)
            training.net.eval()
            look()
            with torch.no_grad():
                training.infer(20, rows=1, look=look)
            training.net.train()

    run = keep(program)
    assert counts(run) == {"training": 48}
    assert (run.segments["evaluation"] > 0).sum() == 4


def test_the_moves_before_the_first_update_are_part_of_it(keep: Keep) -> None:
    def program(_look: LookNow) -> None:
        training = Training()
        for episode in range(12):
            loss = torch.zeros(())
            for _ in range(60 if episode == 0 else 10):
                loss = loss + training.net(torch.randn(1, 8)).sum()
            loss.backward()  # type: ignore[no-untyped-call]  # torch
            training.optimizer.step()

    run = keep(program)
    assert counts(run) == {"training": 12}
    assert run.segments["kind"].to_list()[1] == "training"
    assert run.segments["duration"][1] > run.segments["duration"][2]


def frame_of_ended_generator() -> FrameType:
    def make_frame() -> Iterator[FrameType]:
        yield sys._getframe()

    (frame,) = make_frame()
    return frame


def test_a_stack_that_lacks_its_outer_frames_shows_no_end_of_loops(keep: Keep) -> None:
    """A generator's frame has no caller any more, once it has ended while the stack is read."""

    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            training.train(3)
            look(frame_of_ended_generator())
            for _ in range(30):
                loss = training.net(torch.randn(1, 8)).sum()
            loss.backward()
            training.optimizer.step()

    assert counts(keep(program)) == {"training": 16}


def test_module_calls_are_not_wrapped_once_training_goes_on(keep: Keep) -> None:
    original = nn.Module.__call__
    seen = []

    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(4):
            training.train(6)
            look()
            seen.append(nn.Module.__call__ is original)
            training.step()
            seen.append(nn.Module.__call__ is original)

    keep(program)
    assert seen == [False, True] * 4


def test_a_module_call_that_runs_when_calls_are_wrapped_is_no_new_one(keep: Keep) -> None:
    class Looking(nn.Module):
        def __init__(self, look: LookNow) -> None:
            super().__init__()
            self.now, self.inner = look, nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.now()
            for _ in range(20):
                x = self.inner(x)
            return x

    def program(look: LookNow) -> None:
        training = Training()
        training.train(12)
        with torch.no_grad():
            Looking(look)(torch.randn(2, 8))

    assert counts(keep(program)) == {"training": 12}


def test_calls_by_a_method_that_was_looked_up_before_are_seen(keep: Keep) -> None:
    class Outer(nn.Module):
        def __init__(self, look: LookNow) -> None:
            super().__init__()
            self.now, self.inner = look, nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.now()
            y: torch.Tensor = self.inner(x)
            return y

    def program(look: LookNow) -> None:
        training = Training()
        training.train(12)
        call = Outer(look).__call__
        with torch.no_grad():
            for _ in range(20):
                call(torch.randn(2, 8))

    found = counts(keep(program))
    assert found["training"] == 12
    assert found["inference"] >= 17  # not the first, in which calls are wrapped, nor the last


def test_time_between_two_trainings_is_no_step(keep: Keep) -> None:
    def program(_look: LookNow) -> None:
        Training().train(12)
        for _ in range(20_000):
            torch.ones(8).sum()
        Training().train(12)

    run = keep(program)
    assert counts(run) == {"training": 24}
    kinds = run.segments["kind"].is_null().to_list()
    assert kinds == [True, *[False] * 12, True, *[False] * 12, True]


def evaluations(run: Run) -> list[bool]:
    """Whether each segment but the first has time of an evaluation."""
    return [time > 0 for time in run.segments["evaluation"].to_list()][1:]


def test_calls_with_gradients_that_lead_to_no_backward_pass_are_an_evaluation(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        for _ in range(2):
            training.train(12)
            look()
            training.infer(8)

    run = keep(program)
    assert counts(run) == {"training": 24}
    # Within the first step of the second loop, and where the program ends.
    assert evaluations(run) == [number in {12, 24} for number in range(25)]


def test_calls_of_one_step_in_a_loop_of_their_own_are_no_evaluation(keep: Keep) -> None:
    def program(look: LookNow) -> None:
        training = Training()
        other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        for number in range(16):
            if number == 12:
                look()
            for optimizer in (training.optimizer, other):  # the innermost loop where a step ends
                optimizer.zero_grad()
            chunks = [training.net(torch.randn(4, 8)) for _ in range(8)]
            loss = torch.cat(chunks).pow(2).mean()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's
            for optimizer in (training.optimizer, other):
                optimizer.step()

    run = keep(program)
    assert counts(run) == {"training": 16}
    assert not any(evaluations(run))


def render_in_chunks(before: bool) -> Callable[[LookNow], None]:
    """A program whose first step calls two modules many times, perhaps after calls of its own."""

    def program(look: LookNow) -> None:
        del look
        coarse, fine = nn.Linear(8, 4), nn.Linear(8, 4)
        if before:
            for _ in range(30):
                coarse(torch.randn(2, 8))
        optimizer = torch.optim.Adam([*coarse.parameters(), *fine.parameters()])
        for _ in range(12):
            parts = [torch.randn(rows, 8) for rows in [4] * 62 + [2]]
            found = [torch.cat([net(part) for part in parts]) for net in (coarse, fine)]
            loss = (found[0] + found[1]).mean()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's
            optimizer.step()

    return program


def test_chunks_of_the_first_batch_are_a_part_of_the_first_step(keep: Keep) -> None:
    assert counts(keep(render_in_chunks(before=False))) == {"training": 12}


def test_calls_before_there_is_an_optimizer_are_no_part_of_its_first_step(keep: Keep) -> None:
    assert counts(keep(render_in_chunks(before=True)))["inference"] >= 29
