"""Jobs drawn as text: one drawing for each rank, whose letters mean the same on all of them."""

import re
from types import MappingProxyType
from typing import Final

from selftime.testing.sketches import sketch
from selftime.trace import Job, Member, Trace

_RANK: Final = re.compile(r"\s*rank (\d+)\s*")


def sketch_job(text: str) -> Trace | Job:
    """What a drawing shows: a trace, or a job where lines such as `rank 1` begin its ranks.

    The lanes that follow such a line are of that rank; legends hold for all.
    """
    shared: list[str] = []
    lanes: dict[int, list[str]] = {}
    at: int | None = None
    for line in text.splitlines():
        begun = _RANK.fullmatch(line)
        if begun:
            at = int(begun.group(1))
            lanes[at] = []
        elif "|" in line and at is not None:
            lanes[at].append(line)
        else:
            shared.append(line)
    if not lanes:
        return sketch(text)
    traces, members = {}, {}
    for rank, drawn in lanes.items():
        header = {"distributedInfo": {"rank": rank, "world_size": len(lanes)}}
        path = f"rank{rank}.json"
        traces[path] = sketch("\n".join([*shared, *drawn]), metadata=header)
        members[path] = Member(f"rank {rank}", rank, len(lanes), "header")
    return Job(MappingProxyType(traces), members=MappingProxyType(members))
