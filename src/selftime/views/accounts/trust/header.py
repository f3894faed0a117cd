"""What the file's header tells of the machine and the job, and what it does not."""

from collections.abc import Iterator

from selftime import names
from selftime.views.accounts.job import place
from selftime.views.accounts.trust.checks import Check
from selftime.views.accounts.trust.recording import Recording

__all__ = ["described", "job", "zero"]


def described(recording: Recording) -> Iterator[Check]:
    """Whether the devices that worked are described: their peaks follow from that."""
    trace = recording.trace
    if trace.events.height and recording.device.height and not trace.devices.height:
        text = "the file does not describe its devices: their peaks and sizes are not known"
        yield Check("devices_untold", "good", text, 0.0, "efficiency, occupancy, shares of memory")


def job(recording: Recording) -> Iterator[Check]:
    """Whether what tells the rank agrees, and whether the size of the job can be."""
    trace = recording.trace
    rank, size = place(trace)
    told = trace.metadata.get("distributedInfo")
    written = trace.metadata.get("traceName")
    named = names.rank_of_process(written) if isinstance(written, str) else None
    if rank is not None and named is not None and named.isdigit() and int(named) != rank:
        text = f"the header tells rank {rank}, the name that it was written under {named}"
        text = f"{text}: the header holds"
        yield Check("rank", "degraded", text, float(rank), "ranks, stragglers")
    if isinstance(told, dict) and told.get("world_size") is not None and size is None:
        text = "the size of the job that the file tells cannot be: it is not known"
        yield Check("world_size", "degraded", text, None, "ranks, scaling, exchanges")


def zero(recording: Recording) -> Iterator[Check]:
    """Whether times count from a known instant: else those of two processes cannot be compared."""
    trace = recording.trace
    if trace.events.height and trace.origin is None and place(trace).rank is not None:
        text = "times count from an unknown zero, such as the machine's start: relative times only"
        yield Check("zero", "good", text, 0.0, "ranks: they are aligned by collectives alone")
