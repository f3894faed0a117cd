"""Traces of a folder that are there twice, such as one file plain and compressed."""

from selftime.trace import Trace

__all__ = ["without_doubles"]


def without_doubles(traces: dict[str, Trace]) -> tuple[dict[str, Trace], dict[str, str]]:
    """Each trace once, by its first path; and for the other paths why they are left out."""
    firsts: dict[tuple[object, ...], list[str]] = {}
    kept: dict[str, Trace] = {}
    why: dict[str, str] = {}
    for path, trace in traces.items():
        alike = firsts.setdefault((trace.slices.height, trace.memory.height, trace.origin), [])
        first = next((other for other in alike if _is_same(kept[other], trace)), None)
        if first is None:
            alike.append(path)
            kept[path] = trace
        else:
            why[path] = f"`{path}` holds the same trace as `{first}`: it is counted once"
    return kept, why


def _is_same(one: Trace, other: Trace) -> bool:
    """Whether every table and every key of the header is the same."""
    if one.metadata != other.metadata:
        return False
    tables = other.tables()
    return all(table.equals(tables[name]) for name, table in one.tables().items())
