"""The figures of a run, and the steps of one: what is known, and what a ledger cannot tell."""

from tests.ledgers import MS, Step, run_of

from selftime.trace import Trace
from selftime.views.run_kinds import run_kinds
from selftime.views.run_steps import run_steps
from selftime.views.run_summary import run_summary

SLOW = [*[Step(10)] * 9, Step(60, line=4), Step(200, counted={"data_wait": 180})]


def summary(trace: Trace) -> dict[str, str | None]:
    return dict(run_summary(trace).select("metric", "text").rows())


def test_a_trace_without_a_ledger_has_no_run() -> None:
    for view in (run_summary, run_kinds, run_steps):
        assert view(Trace()).height == 0


def test_the_figures_of_a_run() -> None:
    told = summary(Trace(run=run_of([*SLOW, Step(10, recorded=True)], command="a b.py")))
    assert told == {
        "wall time": "870 ms",
        "ended": "ended",
        "command": "a b.py",
        "process": "4711",
        "rank": None,
        "steps": "12",
        "slow steps": "2",
        "slow steps' excess": "240 ms",
        "recorded steps": "1",
        "covered": "41.4 %",
        "recording": "0 ms",
    }


def test_a_run_without_an_end_says_so() -> None:
    assert "killed, or still runs" in str(summary(Trace(run=run_of(SLOW, whole=False)))["ended"])


def test_a_run_without_steps() -> None:
    told = summary(Trace(run=run_of([])))
    assert (told["steps"], told["slow steps"], told["covered"]) == ("0", "0", "0.0 %")


def test_slow_steps_alone_the_one_with_the_largest_excess_first() -> None:
    trace = Trace(run=run_of(SLOW))
    assert run_steps(trace).height == 11
    slow = run_steps(trace, slow=True)
    assert slow.select("step", "excess", "cause", "line").rows() == [
        (10, 190 * MS, "data_wait", None),
        (9, 50 * MS, "program", 4),
    ]


def test_kinds_are_declared_whole() -> None:
    table = run_kinds(Trace(run=run_of(SLOW)))
    assert table.columns == [column.name for column in run_kinds.columns]
    assert table.select("kind", "count", "slow").rows() == [("training", 11, 2)]
