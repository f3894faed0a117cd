"""Dumps of the Flight Recorder of jobs that were never run: what each rank called, as files."""

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

S: Final = 1_000_000_000
BEGAN: Final = 1_700_000_000 * S
"""When the first call is entered, in ns since the Unix epoch."""
DONE, RUNNING, QUEUED = "completed", "started", "scheduled"


@dataclass(frozen=True)
class Entry:
    """A call: what, how far it has come, on tensors of which sizes, from which line."""

    name: str
    state: str = DONE
    sizes: Sequence[Sequence[int]] = ((4,),)
    outputs: Sequence[Sequence[int]] | None = None
    """Sizes of the output; None if they are those of the input."""
    dtype: str = "Float"
    output_dtype: str | None = None
    line: int | None = 10
    """Line of `/project/train.py`; None if there is no stack."""
    group: str = "0"
    number: int | None = None
    """None if it is one more than that of the call before in its group."""
    retired: bool = False
    at_s: int | None = None
    """When it is entered, in s from the first call; None if that is its place in the dump."""


def dump(
    entries: Sequence[Entry],
    *,
    groups: Mapping[str, tuple[str, Sequence[int]]] | None = None,
    backend: str = "nccl",
    version: str = "2.10",
    first_record: int = 0,
) -> dict[str, Any]:
    """The values of a dump as C++ writes it; groups are (description, ranks) by name."""
    groups = {"0": ("default_pg", (0, 1))} if groups is None else groups
    numbers: dict[tuple[str, bool], int] = {}
    return {
        "version": version,
        "pg_config": {
            name: {"name": name, "desc": description, "ranks": str(list(ranks))}
            for name, (description, ranks) in groups.items()
        },
        "comm_lib_version": "2.27.5",
        "pg_status": {"0": {"last_enqueued_collective": len(entries)}},
        "entries": [
            entry_values(
                entry, first_record + place, numbers, backend, groups.get(entry.group, ("", ()))[0]
            )
            for place, entry in enumerate(entries)
        ],
    }


def entry_values(
    entry: Entry,
    record: int,
    numbers: dict[tuple[str, bool], int],
    backend: str,
    description: str,
) -> dict[str, Any]:
    is_p2p = entry.name.startswith(("send", "recv"))
    key = (entry.group, is_p2p)
    number = numbers.get(key, 0) + 1 if entry.number is None else entry.number
    numbers[key] = number
    created = BEGAN + (record if entry.at_s is None else entry.at_s) * S
    frames = [
        {"name": "all_reduce", "filename": "/venv/site-packages/torch/distributed/d.py", "line": 3},
        {"name": "train", "filename": "/project/train.py", "line": entry.line},
        {"name": "<module>", "filename": "/project/train.py", "line": 99},
    ]
    return {
        **({} if entry.line is None else {"frames": frames}),
        "record_id": record,
        "pg_id": int(entry.group) if entry.group.isdigit() else 7,
        "process_group": (entry.group, description),
        "thread_name": "python",
        "thread_id": "1",
        "collective_seq_id": 0 if is_p2p else number,
        "p2p_seq_id": number if is_p2p else 0,
        "op_id": record + 1,
        "profiling_name": f"{backend}:{entry.name}",
        "time_created_ns": created,
        "input_sizes": [list(shape) for shape in entry.sizes],
        "input_dtypes": [entry.dtype],
        "output_sizes": [
            list(shape) for shape in (entry.sizes if entry.outputs is None else entry.outputs)
        ],
        "output_dtypes": [entry.output_dtype or entry.dtype],
        "state": entry.state,
        "time_discovered_started_ns": None if entry.state == QUEUED else created + 1,
        "time_discovered_completed_ns": created + 2 if entry.state == DONE else None,
        "retired": entry.retired or entry.state == DONE,
        "timeout_ms": 600_000,
        "is_p2p": is_p2p,
    }


def write_job(
    folder: Path, ranks: Mapping[int, Sequence[Entry] | dict[str, Any]], **options: Any
) -> Path:
    """Writes a pickled dump for each rank; `options` are those of `dump`."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, told in ranks.items():
        values = told if isinstance(told, dict) else dump(told, **options)
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(values, protocol=2))
    return folder


def as_json(values: dict[str, Any]) -> str:
    """The JSON form of a dump: without stacks, with 0 for instants that are unknown."""
    entries = [
        {
            key: 0 if value is None else value
            for key, value in sorted(entry.items())
            if key != "frames"
        }
        for entry in values["entries"]
    ]
    return json.dumps({**values, "entries": entries}, sort_keys=True)
