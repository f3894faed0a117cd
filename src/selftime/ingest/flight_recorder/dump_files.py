"""Recognises a Flight Recorder's dump by its content, and reads it: a pickle, or JSON.

PyTorch names dumps as `TORCH_FR_DUMP_TEMP_FILE` tells, with the rank at the end. A dump does not
hold its rank: it is what the file's name tells, else the one rank that all of its groups share,
else what the folder's name tells.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from selftime import names
from selftime.errors import UnreadableTrace
from selftime.flight_recorder import Dump
from selftime.ingest.flight_recorder.dump_entries import dump_of_values, groups_of_values
from selftime.ingest.flight_recorder.restricted_pickle import read_restricted_pickle
from selftime.ingest.text.decompressed_text import DecompressedFile
from selftime.ingest.text.format_detection import is_pickle
from selftime.ingest.text.trace_text_stream import open_checking_for_changes
from selftime.names.recorded_collectives import rank_at_end_of_dump_name

MAX_DUMP_BYTES: Final = 256 << 20
"""Largest dump that is read, in bytes; one of 2,000 calls has about one MiB."""

_SMALL_PICKLE_BYTES: Final = 1 << 20
"""Size up to which any pickle is read, to say what it is."""
_DUMP_KEYS: Final = ("entries", "pg_config", "pg_status", "comm_lib_version", "nccl_comm_state")
"""Keys of which a dump has at least one, near its start."""
_TRACE_KEYS: Final = (b'"traceEvents"', b'"schemaVersion"')


def looks_like_dump(start: bytes, file_bytes: int) -> bool:
    """Returns whether a file that begins so is to be read as a dump.

    A small pickle of something else is, too: what it is refused for is worth a sentence.
    """
    has_key = any(key.encode() in start for key in _DUMP_KEYS)
    if is_pickle(start):
        return has_key or file_bytes <= _SMALL_PICKLE_BYTES
    is_object = start.lstrip().startswith(b"{") and not any(key in start for key in _TRACE_KEYS)
    return is_object and any(b'"%s"' % key.encode() in start for key in _DUMP_KEYS)


def read_dump(path: Path) -> Dump:
    """Returns the dump in a file.

    Raises:
        UnreadableTrace: The file is no dump, is damaged or too large, or its rank is unknown.
    """
    values = _values(_content(path))
    if not isinstance(values, dict) or not any(key in values for key in _DUMP_KEYS):
        raise UnreadableTrace("it holds something else than a dump of the Flight Recorder")
    return dump_of_values(values, _rank(path, values), str(path))


def _content(path: Path) -> bytes:
    parts, size = [], 0
    with open_checking_for_changes(str(path)) as (file, file_bytes):
        source = DecompressedFile(file, file_bytes)
        for block in source.text_blocks():
            parts.append(block)
            size += len(block)
            if size > MAX_DUMP_BYTES:
                raise UnreadableTrace(
                    f"it has more than {MAX_DUMP_BYTES >> 20} MiB; record fewer calls with "
                    "`TORCH_FR_BUFFER_SIZE`"
                )
    return b"".join(parts)


def _values(content: bytes) -> Any:
    if is_pickle(content):
        return read_restricted_pickle(content)
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableTrace(f"it is JSON that is cut off or damaged ({error})") from error
    except RecursionError as error:
        raise UnreadableTrace("it is JSON that is nested more deeply than a dump is") from error


def _rank(path: Path, values: Mapping[Any, Any]) -> int:
    """Returns the rank of a dump; what its name tells must be a rank of one of its groups."""
    groups = [group.ranks for _, group in groups_of_values(values)]
    stem = path.name.partition(".")[0]
    rank = names.rank_in_file_name(stem)
    rank = rank_at_end_of_dump_name(path.name) if rank is None else rank
    if rank is None:
        shared = set(groups[0]).intersection(*groups[1:]) if groups else set()
        rank = shared.pop() if len(shared) == 1 else names.rank_in_file_name(path.parent.name)
    if rank is None:
        raise UnreadableTrace(
            "its rank is unknown: name the file so that it ends in the rank, such as "
            "`nccl_trace_rank_3`"
        )
    known = {one for ranks in groups for one in ranks}
    if known and rank not in known:
        raise UnreadableTrace(
            f"it is named as of rank {rank}, but its process groups are of ranks "
            f"{min(known)} to {max(known)}: name it after its rank"
        )
    return rank
