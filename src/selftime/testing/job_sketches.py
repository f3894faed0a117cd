"""Draw jobs as text: one sketch per rank, with one legend for all."""

import re
from types import MappingProxyType
from typing import Final

from selftime.testing.sketches import sketch
from selftime.trace import Job, Member, Trace

_RANK: Final = re.compile(r"\s*rank (\d+)\s*")


def sketch_job(text: str) -> Trace | Job:
    """Returns the trace of a sketch, or a job if lines such as `rank 1` divide it into ranks.

    The lanes after such a line belong to that rank; legends apply to all ranks.
    """
    shared: list[str] = []
    lanes: dict[int, list[str]] = {}
    at: int | None = None
    for line in text.splitlines():
        header_line = _RANK.fullmatch(line)
        if header_line:
            at = int(header_line.group(1))
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
