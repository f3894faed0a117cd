"""Explain why a file holds no events."""

from typing import Final

from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import DECIMAL_COMMA
from selftime.ingest.text.document import TEXT_AFTER_END, Document
from selftime.ingest.text.top_level_keys import printable

_MOST_KEYS: Final = 8
_MOST_LABELS: Final = 3


def no_events_reason(document: Document, container: list[Fault], size: int) -> str:
    """Returns the end of the sentence that says why there are no events, and what to do.

    Args:
        document: The parsed file.
        container: Faults of the compressed container.
        size: The length of the text in bytes.
    """
    faults = [fault.fault for fault in [*container, *document.faults]]
    if not faults or (not document.arrays and set(faults) == {TEXT_AFTER_END}):
        return _reason_for_sound_json(document)
    if {fault.fault for fault in document.faults if fault.lost} == {DECIMAL_COMMA}:
        return "its numbers are written with a decimal comma: write them with a point"
    if all("ends" in fault for fault in faults):
        return f"it ends at byte {size:,} before the first event: give a whole trace"
    seen = ", ".join(dict.fromkeys(faults))
    return f"no event in it is sound ({seen}): give a whole trace"


def _reason_for_sound_json(document: Document) -> str:
    """Returns why undamaged JSON holds no event."""
    if document.arrays:
        labels = [
            f"{kind} `{printable(text)}`"
            for chunk in document.chunks
            for kind, _, _, text in chunk.labels
            if text not in ("", "None")
        ]
        examples = f" ({', '.join(labels[:_MOST_LABELS])})" if labels else ""
        only = "no events, only metadata" if any(c.phases for c in document.chunks) else "no events"
        return f"it holds {only}{examples}: record at least one step"
    if not document.metadata:
        return "it is an empty JSON object with no events: give a trace of PyTorch's profiler"
    keys = ", ".join(f"`{printable(key[:40])}`" for key in list(document.metadata)[:_MOST_KEYS])
    return (
        f"it is JSON without a list of `traceEvents`, so not a PyTorch trace; keys found: {keys}: "
        "give a trace that PyTorch's profiler wrote"
    )
