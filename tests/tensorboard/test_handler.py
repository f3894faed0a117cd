"""What the trace handler writes is what the tab shows."""

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

import selftime  # noqa: E402 - after torch
from selftime.tensorboard import logdir_watch, sources  # noqa: E402 - likewise

if TYPE_CHECKING:
    from tests.tensorboard.conftest import Board, Logs

pytestmark = [
    pytest.mark.torch,
    # torch says so once a process, at the second cycle of any profiler.
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]


@pytest.mark.parametrize("use_gzip", [False, True])
def test_a_tutorials_handler_fills_the_tab(
    use_gzip: bool, board: "Board", logs: "Logs", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logdir_watch, "_MIN_PAUSE_BETWEEN_SEARCHES_S", 0.0)
    monkeypatch.setattr(logdir_watch, "_MIN_RATIO_OF_PAUSE_TO_SEARCH_TIME", 0)
    monkeypatch.setattr(
        logdir_watch, "_MIN_NS_SINCE_CHANGE_OF_COMPLETE_FILE", -60_000_000_000
    )  # clocks may differ a little
    monkeypatch.setattr(sources, "_MAX_WAIT_FOR_SEARCH_S", 60.0)
    told = board()
    assert told.get("/data/plugin/selftime/api/traces").json == {"traces": []}
    with selftime.profile(
        schedule=selftime.schedule(wait=1, warmup=1, active=2),
        on_trace_ready=selftime.tensorboard_trace_handler(
            str(logs.root / "resnet"), worker_name="host_7", use_gzip=use_gzip
        ),
    ) as prof:
        for _ in range(8):
            torch.ones(3).sum()
            prof.step()
    listed: Any = told.get("/data/plugin/selftime/api/traces").json

    assert [(one["run"], one["worker"]) for one in listed["traces"]] == [("resnet", "host_7")] * 2
    assert len({one["span"] for one in listed["traces"]}) == 2
    for one in listed["traces"]:
        asked = f"/data/plugin/selftime/api/view/operators?.trace={one['id']}&.find=aten::sum"
        page: Any = told.get(asked).json
        assert page["columns"]["count"]["values"] == [2]
