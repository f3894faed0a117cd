"""Describes by what the page can group the ranks of a job, and how each grouping is known."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.rank_places import rank_places
from selftime.reports.plain import plain
from selftime.units import count_text

_NOT_DESCRIBED: Final = ("", "undefined")
"""What PyTorch writes as the description of a group that the program did not describe."""
_AXIS_NAMES: Final = {
    "TP": "tensor parallel",
    "CP": "context parallel",
    "PP": "pipeline",
    "EP": "expert parallel",
    "DP": "data parallel",
}
_STAGE_EVIDENCE: Final = {
    "messages": "Inferred: the stages follow from who sends to whom",
    "process groups": "Recorded: the stage is the position in the process group of the pipeline",
}


def rank_orders_data(ranks: Ranks, groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the groupings of a job's ranks as JSON objects `RankOrder` of the page.

    Args:
        ranks: The ranks of the job.
        groups: Its process groups, as in the object `Job`.
    """
    keys = list(ranks.ranks_by_key())
    places = rank_places(ranks)
    orders: list[dict[str, Any]] = []
    if places.stage:
        title_by_key = {key: f"stage {stage}" for key, stage in places.stage.items()}
        how = _STAGE_EVIDENCE[places.stage_evidence or "messages"]
        by_stage = sorted(keys, key=lambda key: places.stage.get(key, len(keys)))
        orders.append(_order("stage", "pipeline stage", how, by_stage, title_by_key))
    orders += _orders_by_process_groups(keys, groups)
    if len(set(places.host.values())) > 1:
        title_by_key = {key: plain(host) for key, host in places.host.items()}
        by_host = sorted(keys, key=lambda key: (key not in title_by_key, title_by_key.get(key, "")))
        how = "Recorded: the name of the machine, in the trace or the name of its file"
        orders.append(_order("host", "host", how, by_host, title_by_key))
    return orders


def _orders_by_process_groups(
    keys: Sequence[int], groups: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yields a grouping for each kind of process group that puts no rank into two groups."""
    members: defaultdict[tuple[str, str], list[list[int]]] = defaultdict(list)
    for group in groups:
        listed = group["ranks"]
        if listed is None or not 1 < len(listed) < len(keys):
            continue
        description = group["description"] or ""
        description = "" if description in _NOT_DESCRIBED else description
        axis = group["axis"] or ""
        kind = description or f"of {count_text(len(listed))} ranks"
        members[axis, kind].append(sorted(listed))
    known: set[tuple[tuple[int, ...], ...]] = set()
    for (axis, kind), lists in sorted(members.items(), key=lambda one: (not one[0][0], one[0])):
        distinct = tuple(sorted({tuple(ranks) for ranks in lists}))
        flat = [rank for ranks in distinct for rank in ranks]
        is_partition = len(flat) == len(set(flat)) and len(distinct) > 1
        if not is_partition or distinct in known:
            continue
        known.add(distinct)
        yield _order_of_groups(keys, axis, kind, distinct)


def _order_of_groups(
    keys: Sequence[int], axis: str, kind: str, lists: Sequence[Sequence[int]]
) -> dict[str, Any]:
    group_of_rank = {rank: at for at, ranks in enumerate(lists) for rank in ranks}
    short = axis or "group"
    title_by_key = {key: f"{short} {group_of_rank[key]}" for key in keys if key in group_of_rank}
    words = " and ".join(_AXIS_NAMES.get(one, one) for one in axis.split("+")) if axis else ""
    title = f"{words} group" if words else f"group {plain(kind)}"
    how = (
        f"Recorded: the process groups {plain(kind)}"
        if axis
        else "Recorded: process groups; what they are for is not"
    )
    ordered = sorted(keys, key=lambda key: group_of_rank.get(key, len(lists)))
    return _order(f"{short} {kind}", title, how, ordered, title_by_key)


def _order(
    name: str, title: str, how: str, keys: Iterable[int], title_by_key: Mapping[int, str]
) -> dict[str, Any]:
    """Returns a grouping: ranks in order, and a title for each stretch of them."""
    groups: list[dict[str, Any]] = []
    for key in keys:
        group_title = title_by_key.get(key, "not told")
        if not groups or groups[-1]["title"] != group_title:
            groups.append({"title": group_title, "ranks": []})
        groups[-1]["ranks"].append(key)
    return {"name": name, "title": title, "how": how, "groups": groups}
