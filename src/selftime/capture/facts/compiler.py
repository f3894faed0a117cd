"""What `torch.compile` counts of its own work, where the program has used it."""

import sys
from collections.abc import Mapping
from typing import Any


def compiler_facts() -> dict[str, Any] | None:
    """Graphs compiled, and how often device graphs were asked for and not used; None if unused."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if not isinstance(counters, Mapping):
        return None
    graphs = _count(counters, "stats", "unique_graphs")
    if not graphs:
        return None
    return {
        "graphs": graphs,
        "cudagraph_skips": _count(counters, "inductor", "cudagraph_skips"),
    }


def _count(counters: Mapping[Any, Any], kind: str, name: str) -> int:
    found = counters.get(kind)
    count = found.get(name) if isinstance(found, Mapping) else None
    return count if isinstance(count, int) else 0
