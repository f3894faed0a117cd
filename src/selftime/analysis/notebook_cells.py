"""Gives what the cells of a notebook contained when a recording in it was made."""

from collections.abc import Mapping

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.names.recorded_cells import RecordedCells
from selftime.trace import Trace


def source_text_of_cell(trace: Trace, cell: str) -> str | None:
    """Returns the text of a cell by its name, such as `cell 3`; None if it was not recorded."""
    return _text_by_cell(trace).get(cell)


@cached_per_trace
def _text_by_cell(trace: Trace) -> Mapping[str, str]:
    recorded = RecordedCells.from_facts(trace.facts)
    return recorded.with_cells_of(RecordedCells.from_facts(trace.run.facts)).text_by_label
