"""`selftime.profile` from outside: cycles, callbacks, and answers that are those of its file."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

torch = pytest.importorskip("torch")

import selftime  # noqa: E402 - after torch
from selftime.advice import Advice  # noqa: E402 - likewise
from selftime.errors import RecordingError  # noqa: E402 - likewise

pytestmark = [
    pytest.mark.torch,
    # torch says so once a process, at the second cycle of any profiler.
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]


def counts(prof: Any) -> dict[str, int]:
    return {row.key: row.count for row in prof.key_averages()}


def test_each_cycle_has_its_own_table() -> None:
    seen: list[tuple[Any, dict[str, int]]] = []

    with selftime.profile(
        schedule=selftime.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda ready: seen.append((ready, counts(ready))),
    ) as prof:
        for step in range(8):
            for _ in range(step):
                torch.ones(2)
            prof.step()

    assert [ready is prof for ready, _ in seen] == [True, True]
    assert [found["aten::ones"] for _, found in seen] == [2 + 3, 6 + 7]
    assert [found["ProfilerStep*"] for _, found in seen] == [2, 2]
    assert counts(prof) == seen[1][1]


@pytest.mark.skipif(
    "acc_events" not in inspect.signature(torch.profiler.profile).parameters,
    reason="this PyTorch has no `acc_events`",
)
def test_the_events_of_all_cycles_are_torchs() -> None:
    with selftime.profile(
        schedule=selftime.schedule(wait=0, warmup=1, active=1, repeat=2), acc_events=True
    ) as prof:
        for _ in range(4):
            torch.ones(2)
            prof.step()

    torchs = torch.profiler.profile.key_averages(prof)
    assert counts(prof) == {row.key: row.count for row in torchs}
    assert counts(prof)["aten::ones"] == 2


def test_the_answers_are_those_of_the_file(recordings: Any, tmp_path: Path) -> None:
    for name in ("training, everything", "loading with workers"):
        prof = recordings(name).profiler
        path = tmp_path / f"{name}.json"
        prof.export_chrome_trace(str(path))

        loaded = selftime.load(path)
        assert isinstance(loaded, selftime.Trace)
        assert loaded.facts == prof.trace().facts
        for table, columns in prof.trace().tables().items():
            assert_frame_equal(loaded.tables()[table], columns, categorical_as_str=True)
        assert_frame_equal(
            loaded.view("operators", by="line"),
            prof.trace().view("operators", by="line"),
            categorical_as_str=True,
        )


def test_advises(recordings: Any) -> None:
    advice = recordings("loading").profiler.advise()

    assert isinstance(advice, Advice)
    assert advice == selftime.advise(recordings("loading").profiler.trace())


def test_before_a_recording_there_is_no_answer() -> None:
    prof = selftime.profile()

    for ask in (prof.key_averages, prof.trace, prof.advise):
        with pytest.raises(RecordingError, match="nothing has been recorded"):
            ask()


def test_the_device_columns_are_named_as_torchs(recordings: Any) -> None:
    averages = recordings("forward").profiler.key_averages()

    assert averages.device == "cuda"
    assert [row.device_time_total for row in averages] == [0.0] * len(averages)
    assert "CUDA" not in averages.table()
