"""Writes the end of the error message that says why a file holds no events."""

from typing import Final

from selftime.ingest.damage.event_recovery import DECIMAL_COMMA_FAULT
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.text.top_level_keys import printable_json_key
from selftime.ingest.text.trace_parsing import TEXT_AFTER_TRACE_FAULT, ParsedTrace

_MAX_LISTED_TOP_LEVEL_KEYS: Final = 8
_MAX_LISTED_PROCESS_OR_THREAD_NAMES: Final = 3


def no_events_reason(trace: ParsedTrace, container_faults: list[FileFault], text_bytes: int) -> str:
    """Returns the end of an error message: why a file has no events, and what to do about it.

    Args:
        trace: The parsed trace.
        container_faults: Faults of the compressed container.
        text_bytes: The length of the text in bytes.
    """
    faults = [fault.fault for fault in [*container_faults, *trace.faults]]
    if not faults or (not trace.event_list_count and set(faults) == {TEXT_AFTER_TRACE_FAULT}):
        return _no_events_reason_for_valid_json(trace)
    if {fault.fault for fault in trace.faults if fault.lost} == {DECIMAL_COMMA_FAULT}:
        return "its numbers are written with a decimal comma: write them with a point"
    if all("ends" in fault for fault in faults):
        return f"it ends at byte {text_bytes:,} before the first event: give a whole trace"
    seen = ", ".join(dict.fromkeys(faults))
    return f"it has no undamaged event ({seen}): give a whole trace"


def _no_events_reason_for_valid_json(trace: ParsedTrace) -> str:
    """Returns the end of an error message: why undamaged JSON has no events."""
    if trace.event_list_count:
        labels = [
            f"{kind} `{printable_json_key(text)}`"
            for chunk in trace.chunks
            for kind, _, _, text in chunk.process_and_thread_labels
            if text not in ("", "None")
        ]
        examples = f" ({', '.join(labels[:_MAX_LISTED_PROCESS_OR_THREAD_NAMES])})" if labels else ""
        only = (
            "no events, only metadata"
            if any(c.event_counts_by_phase_and_category for c in trace.chunks)
            else "no events"
        )
        return f"it holds {only}{examples}: record at least one step"
    if not trace.metadata:
        return "it is an empty JSON object with no events: give a trace of PyTorch's profiler"
    keys = ", ".join(
        f"`{printable_json_key(key[:40])}`"
        for key in list(trace.metadata)[:_MAX_LISTED_TOP_LEVEL_KEYS]
    )
    return (
        f"it is JSON without a list of `traceEvents`, so not a PyTorch trace; keys found: {keys}: "
        "give a trace that PyTorch's profiler wrote"
    )
