"""Says when a profiler of torch may start or stop in the main thread.

A profiler is state of the thread. A backward pass keeps the state that the thread had at its begin,
and restores it at its end: a profiler that stops within the pass is taken for a running one after
it, for good, and one that starts within it is lost.
"""

from torch._C import _current_graph_task_id, _is_tracing

_NO_BACKWARD_PASS = -1


def may_change_profiler() -> bool:
    """Returns whether a profiler may start or stop now: not within a pass, nor while jit traces."""
    return _current_graph_task_id() == _NO_BACKWARD_PASS and not _is_tracing()
