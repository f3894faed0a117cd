"""Section F of the catalogue: identity, ranks, merged files."""

from random import Random

from tests.ingest.rough.case import HEADER, Event, case, document, kernel, launch, op
from tests.ingest.rough.program import COUNT, PROGRAM, every, linked, moved, names_of, quiet

from selftime.trace import Trace

HELD_BY = {
    "42a": "test_ranks.py::test_a_missing_rank_is_named",
    "42b": "test_ranks.py::test_two_files_of_one_rank",
    "42c": "test_ranks.py::test_missing_ranks_are_named_but_not_thousands",
    "42e": "test_ranks.py::test_ranks_that_only_names_tell",
    "43a": "test_job.py::test_only_steps_that_all_ranks_recorded_are_compared",
    "43b": "test_ranks.py::test_runs_of_several_folders_are_told_apart",
    "43c": "test_ranks.py::test_ranks_of_different_versions_are_told",
}


def is_linked_within(trace: Trace) -> None:
    """Each kernel is launched by a call of its own process and time."""
    kernels = trace.slices.filter(trace.slices["launch"].is_not_null())
    calls = trace.slices.select("start").to_series().gather(kernels["launch"])
    assert set((kernels["start"] - calls).to_list()) == {3_000}


def has_no_links(trace: Trace) -> None:
    assert linked(trace) == 0
    assert trace.view("health")["verdict"][0] == "unusable"


def _other(event: Event) -> Event:
    """The same of another process, whose device is another too."""
    return {**event, "pid": 8 if event["pid"] == 7 else 1}


@case("40a", "limit", "of several processes that share a correlation id", "give one file per rank",
      sound=2 * COUNT, check=every(has_no_links, quiet))  # fmt: skip
def ranks_with_the_same_numbers(dice: Random) -> bytes:
    """Ranks whose calls lie between each other's: by time alone some would be joined wrongly."""
    other = moved([_other(event) for event in PROGRAM], dice.randrange(3, 6))
    return document([*PROGRAM, *other])


@case("40a", "limit", "launches that share a correlation id: not linked", sound=2 * COUNT,
      check=every(has_no_links, quiet))  # fmt: skip
def ranks_with_the_same_processes(dice: Random) -> bytes:
    """As containers make them: process 7 and thread 7 in each."""
    return document([*PROGRAM, *moved(PROGRAM, dice.randrange(3, 6))])


def are_told_apart(trace: Trace) -> None:
    is_linked_within(trace)
    assert linked(trace) == 100
    processes = dict(trace.tracks.select("id", "process").rows())
    tracks = trace.slices["track"]
    kernels = trace.slices.filter(trace.slices["launch"].is_not_null())
    for own, call in zip(kernels["track"], tracks.gather(kernels["launch"]), strict=True):
        assert processes[own].split("]")[0] == processes[call].split("]")[0]


@case("40b", "limit", "2 ranks in one file (0, 3)", "give one file per rank", sound=2 * COUNT,
      check=every(are_told_apart, quiet))  # fmt: skip
def processes_renamed_by_a_merging_tool(_: Random) -> bytes:
    ranks = ((0, PROGRAM), (3, moved(PROGRAM, 4)))
    return document(
        [{**e, "pid": f"[rank {rank}] {e['pid']}"} for rank, some in ranks for e in some]
    )


def is_whole(trace: Trace) -> None:
    is_linked_within(trace)
    assert linked(trace) == 50 + 31 // 3


@case("41a", "accept", sound=COUNT + 31, check=is_whole)
def numbers_used_again_in_a_later_window(_: Random) -> bytes:
    return document([*PROGRAM, *moved(PROGRAM[:31], 100_000)])


@case("41a", "accept", sound=2 * COUNT + 31)
def numbers_used_again_in_three_windows(_: Random) -> bytes:
    return document([*PROGRAM, *moved(PROGRAM[:31], 100_000), *moved(PROGRAM, 200_000)])


def is_one_launch(trace: Trace) -> None:
    kernels = trace.slices.filter(trace.slices["launch"].is_not_null())
    assert set(names_of(trace, kernels["launch"])) == {"cudaGraphLaunch"}
    assert kernels.height == 20


@case("41b", "accept", sound=22, check=is_one_launch)
def a_graph_of_many_kernels(_: Random) -> bytes:
    args = kernel(0)["args"]
    made = [kernel(n, args=args) for n in range(20)]
    return document([op(0), launch(0, name="cudaGraphLaunch"), *made])


def is_not_guessed(trace: Trace) -> None:
    assert linked(trace) == 49


@case("41c", "limit", "launches that share a correlation id: not linked (3)", sound=COUNT + 2,
      check=every(is_not_guessed, quiet))  # fmt: skip
def many_launches_with_one_number(dice: Random) -> bytes:
    again = launch(dice.randrange(50))
    return document([*PROGRAM, *moved([again, again], 2_000)])


def is_joined_by_time(trace: Trace) -> None:
    ops = trace.slices["name"].gather(trace.call_args["operator"])
    assert ops.cast(str).to_list() == [f"op{n}" for n in range(50)]


def _as_in_2022(event: Event) -> Event:
    number = event["args"].get("correlation")
    return event if number is None else {**event, "args": {**event["args"], "External id": number}}


@case("41d", "accept", sound=COUNT, check=is_joined_by_time)
def external_ids_that_are_correlations(_: Random) -> bytes:
    """Torch 1.13 to 2.1: the numbers are those of other operators."""
    return document([_as_in_2022(event) for event in PROGRAM])


def needs_no_rank(trace: Trace) -> None:
    assert "distributedInfo" not in trace.metadata
    assert "rank" not in set(trace.view("overview")["metric"])
    assert trace.view("health")["verdict"][0] == "good"


@case("42d", "accept", sound=COUNT, check=needs_no_rank)
def one_device_without_a_rank(_: Random) -> bytes:
    assert "distributedInfo" not in HEADER
    return document(PROGRAM)
