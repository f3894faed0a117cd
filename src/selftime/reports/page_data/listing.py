"""A trace as the page lists it: what the name and the size of its file tell."""

from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from selftime.names import rank_in_path

SUFFIXES: Final = (".json", ".json.gz", ".json.zst")
_RECORDED: Final = ".pt.trace"
"""Before the suffix in what PyTorch's own handler and `selftime run` write."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A trace that can be chosen."""

    id: str
    name: str
    run: str = ""
    """The folder that it belongs to."""
    worker: str = ""
    span: str = ""
    """The recording's number or time, where a worker has several."""
    bytes: int = 0
    job: str = ""
    """The same for all traces of a job: those of one folder, but for folders of ranks."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def identified(place: str, *, run: str = "") -> Listed:
    """What the name and the size of a trace's file tell of it.

    >>> told = identified("logs/gpu1_rank3.1723.pt.trace.json.gz", run="logs")
    >>> told.worker, told.span, told.bytes
    ('gpu1_rank3', '1723', 0)
    """
    name = place.rstrip("/").rpartition("/")[2]
    whole = place if "://" in place else str(Path(place).absolute())
    stem = next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), name)
    worker, span = stem, ""
    if stem.endswith(_RECORDED):
        worker = stem.removesuffix(_RECORDED)
        before, dot, last = worker.rpartition(".")
        if dot and last.isdigit():
            worker, span = before, last
    size = 0 if "://" in place or not Path(place).exists() else Path(place).stat().st_size
    parts = (part for part in whole.split("/")[:-1] if rank_in_path(part) is None)
    return Listed(_digest(whole), name, run, worker, span, size, _digest("/".join(parts)))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
