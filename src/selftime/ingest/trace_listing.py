"""Describes a trace as an entry in the web page's list: id, name, folder, worker and size."""

from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from selftime.ledger_format import LEDGER_SUFFIX
from selftime.names import rank_in_file_name

TRACE_FILE_SUFFIXES: Final = (".json", ".json.gz", ".json.zst")
"""Suffixes of the names of files that may be traces."""
_TORCH_TRACE_HANDLER_FILE_NAME_PART: Final = ".pt.trace"
"""File name part before `.json` in traces that PyTorch's trace handler or `selftime run` writes."""


@dataclass(frozen=True, slots=True)
class ListedTrace:
    """A trace's entry in the web page's list of traces."""

    id: str
    name: str
    run_folder: str = ""
    """Name of the folder that contains the recording."""
    worker: str = ""
    """Name of the process that wrote the trace, from the file's name."""
    span: str = ""
    """Number or time of the recording if the same process wrote several; else empty."""
    bytes: int = 0
    job: str = ""
    """Id that all traces of a job share: those in one folder, or in folders of one per rank, unless
    they are unrelated.
    """
    is_ledger: bool = False
    """Whether it is the ledger of a run alone, without a trace of any of its steps."""
    modified: int | None = None
    """When the file was last written, in s since the epoch; None if unknown."""
    device: str | None = None
    """The name of the recorded device; None if it is not known yet, or there are several."""
    steps: int | None = None
    """The number of recorded steps; None if it is not known yet."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the entry as the page reads it; the folder's name has the key `run`."""
        entry = asdict(self)
        return {"run" if key == "run_folder" else key: value for key, value in entry.items()}


def listed_trace(path: str, *, run_folder: str = "") -> ListedTrace:
    """Returns a trace's entry in the page's list, from its file's name and size.

    >>> trace = listed_trace("logs/gpu1_rank3.1723.pt.trace.json.gz", run_folder="logs")
    >>> trace.worker, trace.span, trace.bytes
    ('gpu1_rank3', '1723', 0)
    """
    name = path.rstrip("/").rpartition("/")[2]
    full_path = path if "://" in path else str(Path(path).absolute())
    suffixes = (*TRACE_FILE_SUFFIXES, LEDGER_SUFFIX)
    stem = next((name.removesuffix(s) for s in suffixes if name.endswith(s)), name)
    worker, span = stem, ""
    if stem.endswith(_TORCH_TRACE_HANDLER_FILE_NAME_PART):
        worker = stem.removesuffix(_TORCH_TRACE_HANDLER_FILE_NAME_PART)
        before, dot, last = worker.rpartition(".")
        if dot and last.isdigit():
            worker, span = before, last
    status = None if "://" in path or not Path(path).exists() else Path(path).stat()
    parts = (part for part in full_path.split("/")[:-1] if rank_in_file_name(part) is None)
    return ListedTrace(
        short_hash_of_text(full_path),
        name,
        run_folder,
        worker,
        span,
        0 if status is None else status.st_size,
        short_hash_of_text("/".join(parts)),
        name.endswith(LEDGER_SUFFIX),
        None if status is None else int(status.st_mtime),
    )


def is_named_by_recorder(name: str) -> bool:
    """Returns whether PyTorch's trace handler or `selftime run` named a trace or ledger."""
    return f"{_TORCH_TRACE_HANDLER_FILE_NAME_PART}." in name or name.endswith(LEDGER_SUFFIX)


def short_hash_of_text(text: str) -> str:
    """Returns the first 12 hexadecimal digits of a text's SHA-256."""
    return sha256(text.encode()).hexdigest()[:12]
