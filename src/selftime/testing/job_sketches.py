"""Parses jobs drawn as text for tests: a drawing of each rank's trace, and a common legend."""

import re
from types import MappingProxyType
from typing import Final

from selftime.testing.trace_sketches import sketch
from selftime.trace import Job, Trace, TraceInJob

_LINE_BEFORE_LANES_OF_RANK: Final = re.compile(r"\s*rank (\d+)\s*")


def sketch_job(text: str) -> Trace | Job:
    """Parses a trace drawn as text; returns a job if lines such as `rank 1` divide the text.

    The lanes after such a line belong to that rank; legends apply to all ranks.
    """
    shared: list[str] = []
    lanes: dict[int, list[str]] = {}
    at: int | None = None
    for line in text.splitlines():
        header_line = _LINE_BEFORE_LANES_OF_RANK.fullmatch(line)
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
        members[path] = TraceInJob(f"rank {rank}", rank, len(lanes), "header")
    return Job(MappingProxyType(traces), members=MappingProxyType(members))
