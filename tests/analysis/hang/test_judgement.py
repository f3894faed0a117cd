"""What ranks called in, the verdict out: one case for each thing that keeps a job from going on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dumps import QUEUED, RUNNING, Entry, dump, write_job

from selftime.analysis.hang import DifferenceKind, Hang, Verdict, hang
from selftime.analysis.hang.judgement import judge
from selftime.flight_recorder import HangEvidence
from selftime.ingest.flight_recorder.dump_entries import dump_of_values

A = Entry("all_reduce")
OPEN = Entry("all_reduce", RUNNING)
FOUR = {"0": ("default_pg", range(4))}


def judged(ranks: dict[int, Any], **options: Any) -> Hang:
    dumps = {
        rank: dump_of_values(told if isinstance(told, dict) else dump(told, **options), rank, "")
        for rank, told in ranks.items()
    }
    return judge(HangEvidence(dumps=dumps))


def of_four(usual: Sequence[Entry], odd: Sequence[Entry], rank: int = 3) -> Hang:
    """A job of four ranks, of which one does something else."""
    return judged({r: odd if r == rank else usual for r in range(4)}, groups=FOUR)


def first(found: Hang) -> tuple[str, int, tuple[int, ...], tuple[int, ...]]:
    """Kind and number of the first divergence, who differs, who waits."""
    cause = found.causes[0]
    return cause.kind.value, cause.sequence, cause.ranks, cause.waiting


def test_no_rank_waits() -> None:
    found = of_four([A, A], [A, A])
    assert (found.verdict, found.causes, found.consequences) == (Verdict.none, (), ())


def test_no_call_was_ever_made() -> None:
    assert judged({0: [], 1: []}).verdict is Verdict.none


@pytest.mark.parametrize("rank", range(4))
def test_a_rank_never_entered(rank: int) -> None:
    found = of_four([A, A, OPEN], [A, A], rank)
    others = tuple(r for r in range(4) if r != rank)
    assert found.verdict is Verdict.hang
    assert first(found) == ("missing", 3, (rank,), others)
    assert found.ranks[rank].open_call is None
    assert found.ranks[rank].last_ended == found.ranks[rank].last_call


def test_what_follows_in_the_same_group_is_no_cause() -> None:
    queued = Entry("all_reduce", QUEUED)
    found = of_four([A, OPEN, queued, queued], [A])
    assert first(found) == ("missing", 2, (3,), (0, 1, 2))
    assert found.consequences == ()


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        (Entry("all_reduce", RUNNING, sizes=[[8]]), "sizes"),
        (Entry("all_reduce", RUNNING, dtype="Half"), "dtypes"),
        (Entry("broadcast", RUNNING), "operation"),
    ],
)
def test_a_rank_called_something_else(odd: Entry, kind: str, rank: int) -> None:
    found = of_four([A, OPEN], [A, odd], rank)
    assert found.verdict is Verdict.hang
    assert first(found) == (kind, 2, (rank,), (0, 1, 2, 3))


def test_of_two_against_two_nobody_is_to_blame() -> None:
    other = Entry("broadcast", RUNNING)
    found = judged({0: [OPEN], 1: [other], 2: [OPEN], 3: [other]}, groups=FOUR)
    assert first(found) == ("operation", 1, (), (0, 1, 2, 3))
    assert [variant.ranks for variant in found.causes[0].variants] == [(0, 2), (1, 3)]


def test_ranks_went_on_after_a_mistake() -> None:
    found = of_four([A, A], [Entry("all_reduce", sizes=[[8]]), A])
    assert found.verdict is Verdict.mistake
    assert first(found) == ("sizes", 1, (3,), ())


def test_a_mistake_comes_before_the_wait_that_follows_it() -> None:
    found = of_four([A, A, OPEN], [A, Entry("all_reduce", sizes=[[8]])])
    assert [one.kind.value for one in found.causes] == ["sizes", "missing"]


def test_other_shapes_of_as_many_elements_are_a_remark() -> None:
    found = of_four([A], [Entry("all_reduce", sizes=[[2, 2]])])
    assert found.verdict is Verdict.none
    assert [one.kind for one in found.remarks] == [DifferenceKind.shapes]


STEPS = [A, *(Entry(name, QUEUED, line=n) for n, name in enumerate("bcdefg", 2))]


@pytest.mark.parametrize(
    ("odd", "kind", "number"),
    [
        ([STEPS[0], *STEPS[2:]], "skipped", 2),
        ([STEPS[0], *STEPS[4:]], "skipped", 2),
        ([STEPS[0], Entry("x", QUEUED), *STEPS[1:]], "extra", 2),
        ([STEPS[0], STEPS[2], STEPS[1], *STEPS[3:]], "order", 2),
        ([STEPS[0], Entry("x", QUEUED), *STEPS[2:]], "operation", 2),
        ([STEPS[0], STEPS[2]], "operation", 2),  # one call is too little to tell
    ],
)
def test_how_a_rank_left_the_order_of_the_others(odd: list[Entry], kind: str, number: int) -> None:
    assert first(of_four(STEPS, odd)) == (kind, number, (3,), (0, 1, 2, 3))


def test_a_call_that_has_not_ended_comes_before_a_later_difference() -> None:
    queued, other = Entry("all_reduce", QUEUED), Entry("broadcast", QUEUED)
    found = of_four([queued, queued], [queued, other])
    assert first(found) == ("unfinished", 1, (), (0, 1, 2, 3))
    assert [one.kind.value for one in found.consequences] == ["operation"]


def test_all_entered_alike() -> None:
    found = of_four([A, OPEN], [A, OPEN])
    assert first(found) == ("unfinished", 2, (), (0, 1, 2, 3))


def test_the_device_of_one_rank_has_not_started() -> None:
    found = of_four([A, OPEN], [A, Entry("all_reduce", QUEUED)])
    assert first(found) == ("unfinished", 2, (3,), (0, 1, 2, 3))


def test_a_rank_reached_its_timeout() -> None:
    found = of_four([A, Entry("all_reduce", RUNNING, retired=True)], [A])
    assert first(found) == ("missing", 2, (3,), (0, 1, 2))
    assert found.causes[0].timeout_ns == 600_000_000_000


def test_a_rank_left_no_dump() -> None:
    found = judged({rank: [A, OPEN] for rank in range(3)}, groups=FOUR)
    assert first(found) == ("no_dump", 2, (3,), (0, 1, 2))
    assert not found.ranks[3].has_dump


def test_no_rank_with_a_dump_waits_and_one_left_none() -> None:
    assert judged({rank: [A] for rank in range(3)}, groups=FOUR).verdict is Verdict.unknown


def test_what_completed_on_one_rank_was_entered_by_all() -> None:
    found = of_four([A, A, A], [A, A])
    assert (found.verdict, found.older) == (Verdict.none, (3,))


def test_gloo_does_not_tell_whether_a_call_failed() -> None:
    ended = Entry("barrier", QUEUED, retired=True, sizes=[])
    found = judged({0: [ended, ended], 1: [ended]}, backend="gloo")
    assert found.verdict is Verdict.unknown
    assert first(found) == ("missing", 2, (1,), ())


def test_gloo_lists_no_ranks() -> None:
    ended = Entry("all_reduce", QUEUED, retired=True)
    ranks: dict[int, Any] = {
        0: dump([ended, Entry("all_reduce", QUEUED)], groups={}, backend="gloo"),
        1: dump([ended], groups={}, backend="gloo"),
    }
    for values in ranks.values():
        values["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[0, 1, 2]"}}
        for entry in values["entries"]:
            entry["process_group"] = ("0", "default_pg")
    found = judged(ranks)
    assert first(found) == ("missing", 2, (1,), (0,))
    [group] = found.groups
    assert (group.ranks, group.are_ranks_stated) == ((0, 1, 2), False)


def test_a_call_that_a_later_one_has_overtaken_has_ended() -> None:
    ended = Entry("all_reduce", QUEUED, retired=True)
    late = Entry("all_reduce", QUEUED)
    found = judged({0: [ended, ended, ended], 1: [ended, late, ended]}, backend="gloo")
    assert found.verdict is Verdict.none


def test_what_the_ring_buffer_lost_is_compared_with_nothing() -> None:
    new = [Entry("all_reduce", number=52), Entry("all_reduce", RUNNING, number=53)]
    old = [Entry("all_reduce", sizes=[[8]], number=n) for n in (50, 51)]
    ranks = {
        0: dump(new, first_record=52),
        1: dump([*old, Entry("all_reduce", number=52)], first_record=50),
    }
    assert first(judged(ranks)) == ("missing", 53, (1,), (0,))


def test_a_rank_whose_buffer_lost_a_group_may_have_entered() -> None:
    groups = {"0": ("default_pg", (0, 1)), "1": ("dp", (0, 1))}
    ranks = {
        0: dump([Entry("all_reduce", RUNNING, group="1")], groups=groups),
        1: dump([Entry("all_reduce", number=9)], groups=groups, first_record=90),
    }
    assert first(judged(ranks)) == ("no_dump", 1, (1,), (0,))


# Sizes.


@pytest.mark.parametrize(
    ("name", "sizes", "outputs", "kind"),
    [
        ("all_gather", [[4]], [[8]], None),
        ("all_gather", [[4]], [[4], [4]], None),
        ("all_gather", [[4]], [[4]], "impossible_sizes"),
        ("_all_gather_base", [[4]], [[9]], "impossible_sizes"),
        ("reduce_scatter", [[8]], [[4]], None),
        ("_reduce_scatter_base", [[8]], [[8]], "impossible_sizes"),
        ("all_reduce", [[8]], [[4]], "impossible_sizes"),
        ("broadcast", [[8]], [[8]], None),
    ],
)
def test_an_output_fits_its_input(
    name: str, sizes: list[list[int]], outputs: list[list[int]], kind: str | None
) -> None:
    entry = Entry(name, sizes=sizes, outputs=outputs)
    found = judged({0: [entry], 1: [entry]})
    assert [one.kind.value for one in found.causes] == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    ("name", "outputs"), [("gather", ([[4], [4]], [])), ("scatter", ([[4]], [[4]]))]
)
def test_a_root_has_tensors_that_the_others_lack(name: str, outputs: Any) -> None:
    inputs = ([[4]], [[4]]) if name == "gather" else ([[4], [4]], [])
    ranks = {r: [Entry(name, sizes=inputs[r], outputs=outputs[r])] for r in (0, 1)}
    assert judged(ranks).causes == ()


def test_sizes_of_an_all_to_all_agree_in_sum() -> None:
    def exchange(first_output: int, version: str = "2.10") -> list[str]:
        ranks = {
            0: [Entry("all_to_all", sizes=[[4]], outputs=[[first_output]])],
            1: [Entry("all_to_all", sizes=[[8]], outputs=[[6]])],
        }
        return [one.kind.value for one in judged(ranks, version=version).causes]

    assert exchange(6) == []
    assert exchange(5) == ["impossible_sizes"]
    assert exchange(5, version="2.3") == []  # the sizes were not recorded then


@pytest.mark.parametrize("name", ["ALLGATHER_coalesced", "REDUCE_SCATTER_coalesced", "coalesced"])
def test_calls_that_were_made_together(name: str) -> None:
    def together(*sizes: int) -> list[Entry]:
        calls = [Entry("_broadcast_oop", sizes=[[size]], number=1) for size in sizes]
        return [*calls, Entry(name, sizes=[[]], number=1)]

    assert judged({0: together(4, 5), 1: together(4, 5)}).causes == ()
    assert first(judged({0: together(4, 5), 1: together(4, 4)}))[0] == "sizes"
    assert first(judged({0: together(4, 5), 1: together(4)}))[0] == "operation"


def test_a_rank_made_none_of_the_calls_that_another_made_together() -> None:
    entries = [Entry(name, number=1) for name in ("all_reduce", "_reduce_oop", "_reduce_oop")]
    found = judged({0: entries[:1], 1: entries})
    cause = found.causes[0]
    assert (cause.kind.value, cause.operation, cause.ranks) == ("missing", "_reduce_oop", (0,))


# Point to point.


@pytest.mark.parametrize(
    ("ranks", "kind", "odd", "waiting"),
    [
        ({0: [Entry("send 0->1", RUNNING)], 1: []}, "unmatched", (1,), (0,)),
        ({0: [], 1: [Entry("recv 1<-0", RUNNING)]}, "unmatched", (0,), (1,)),
        (
            {0: [Entry("send 0->1", RUNNING)], 1: [Entry("recv 1<-0", RUNNING, sizes=[[8]])]},
            *("sizes", (), (0, 1)),
        ),
        (
            {0: [Entry("send 0->1", RUNNING)], 1: [Entry("recv 1<-0", RUNNING, dtype="Half")]},
            *("dtypes", (), (0, 1)),
        ),
        (
            {0: [Entry("send 0->1", RUNNING)], 1: [Entry("recv 1<-0", RUNNING)]},
            *("unfinished", (), (0, 1)),
        ),
        ({0: [Entry("send 0->1", RUNNING)]}, "no_dump", (1,), (0,)),
        (
            {
                0: [Entry("send 0->1"), Entry("send 0->1", RUNNING)],
                1: [Entry("recv 1<-0"), Entry("send 1->0", RUNNING)],
            },
            *("unmatched", (1,), (0,)),
        ),
    ],
)
def test_sends_and_receives(
    ranks: dict[int, list[Entry]], kind: str, odd: tuple[int, ...], waiting: tuple[int, ...]
) -> None:
    found = judged(ranks)
    cause = found.causes[0]
    assert (cause.kind.value, cause.ranks, cause.waiting) == (kind, odd, waiting)


def test_sends_and_receives_that_go_together() -> None:
    ranks = {
        0: [Entry("send 0->1"), Entry("recv 0<-1"), Entry("send 0->1")],
        1: [Entry("recv 1<-0"), Entry("recv 1<-0"), Entry("send 1->0")],
    }
    assert judged(ranks).verdict is Verdict.none


def test_ranks_of_sends_are_those_of_the_group() -> None:
    groups = {"5": ("pp", (2, 6))}
    send = Entry("send 0->1", RUNNING, group="5")
    found = judged({2: dump([send], groups=groups), 6: dump([], groups=groups)})
    cause = found.causes[0]
    assert (cause.kind.value, cause.ranks, cause.waiting) == ("unmatched", (6,), (2,))


# Several groups.


def test_ranks_that_wait_for_a_rank_that_waits_elsewhere() -> None:
    groups = {"1": ("tp", (0, 1)), "2": ("pp", (1, 2))}
    ranks = {
        0: dump([Entry("all_reduce", RUNNING, group="1")], groups=groups),
        1: dump([Entry("all_reduce", RUNNING, group="2", at_s=9)], groups=groups),
        2: dump([], groups=groups),
    }
    found = judged(ranks)
    assert first(found) == ("missing", 1, (2,), (1,))
    assert [one.ranks for one in found.consequences] == [(1,)]


def test_ranks_that_wait_for_each_other() -> None:
    groups = {"1": ("tp", (0, 1)), "2": ("dp", (0, 1))}
    ranks = {
        0: [Entry("all_reduce", RUNNING, group="1"), Entry("all_reduce", QUEUED, group="2")][:1],
        1: [Entry("all_reduce", RUNNING, group="2")],
    }
    found = judged(ranks, groups=groups)
    assert found.verdict is Verdict.circle
    assert sorted(one.group.label for one in found.causes) == ["dp", "tp"]


def test_groups_of_one_name_and_other_ranks_are_several() -> None:
    def split(rank: int) -> dict[str, Any]:
        pair = (0, 1) if rank < 2 else (2, 3)
        sizes = [[4]] if rank < 2 else [[8]]
        return dump([Entry("all_reduce", sizes=sizes, group="7")], groups={"7": ("half", pair)})

    found = judged({rank: split(rank) for rank in range(4)})
    assert (found.verdict, len(found.groups)) == (Verdict.none, 2)


def test_lines_that_part_before_the_hang_are_a_remark() -> None:
    usual = [Entry("all_reduce", line=n) for n in (1, 2, 3)]
    odd = [Entry("all_reduce", line=n) for n in (1, 3)]
    found = of_four(
        [*usual, Entry("all_reduce", RUNNING, line=4)], [*odd, Entry("all_reduce", line=4)]
    )
    assert first(found) == ("missing", 4, (3,), (0, 1, 2))
    [remark] = found.remarks
    assert (remark.kind, remark.sequence) == (DifferenceKind.lines, 2)


def test_lines_that_always_differ_are_none() -> None:
    usual, odd = ([Entry("all_reduce", line=line)] * 3 for line in (1, 2))
    assert of_four([*usual, OPEN], odd).remarks == ()


# Properties.

calls = st.lists(
    st.builds(
        Entry,
        st.sampled_from(["all_reduce", "broadcast", "all_to_all", "send 0->1", "recv 1<-0"]),
        st.sampled_from(["completed", RUNNING, QUEUED]),
        st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2),
        retired=st.booleans(),
        group=st.sampled_from(["0", "1"]),
    ),
    max_size=6,
)


@given(st.dictionaries(st.integers(0, 3), calls, min_size=1), st.sampled_from(["nccl", "gloo"]))
def test_any_dumps_have_a_verdict_that_fits_itself(
    ranks: dict[int, list[Entry]], backend: str
) -> None:
    groups = {"0": ("default_pg", range(4)), "1": ("dp", (0, 1))}
    found = judged(ranks, groups=groups, backend=backend)
    every = [*found.causes, *found.consequences, *found.remarks]
    assert len(every) == len(set(every))
    for one in every:
        assert set(one.waiting) <= set(one.entered) <= set(one.group.ranks)
        assert not set(one.entered) & set(one.ranks) or one.kind not in {
            DifferenceKind.missing,
            DifferenceKind.no_dump,
            DifferenceKind.unmatched,
        }
    waits = any(rank.open_call is not None for rank in found.ranks)
    assert (found.verdict in {Verdict.hang, Verdict.circle}) <= waits
    assert (found.verdict is Verdict.none) <= (not waits)


@given(calls, st.integers(1, 4))
def test_ranks_that_do_the_same_do_not_differ(entries: list[Entry], size: int) -> None:
    same = [entry for entry in entries if entry.name in {"all_reduce", "broadcast"}]
    found = judged(
        dict.fromkeys(range(size), same), groups={name: ("g" + name, range(size)) for name in "01"}
    )
    assert {one.kind.value for one in (*found.causes, *found.remarks)} <= {"unfinished"}


def test_a_folder_is_judged_as_what_was_read_of_it(tmp_path: Path) -> None:
    write_job(tmp_path, {0: [A, OPEN], 1: [A]})
    assert first(hang(str(tmp_path))) == ("missing", 2, (1,), (0,))
