"""Classifies the Python frames of PyTorch's data loading by name."""

import re
from typing import Final, Literal, TypeAlias

DataLoaderPart: TypeAlias = Literal["iterator", "fetch", "shutdown"]
"""What a DataLoader does: it creates an iterator, fetches a batch, or shuts down its workers."""

_PART_BY_FUNCTION: Final[dict[str, DataLoaderPart]] = {
    "_get_iterator": "iterator",
    "fetch": "fetch",
    "_shutdown_workers": "shutdown",
}
"""Maps a function of PyTorch's DataLoader to what it does: iterator, fetch or shutdown."""
_DATA_LOADER_FRAME: Final = re.compile(
    r"(?:.*[/\\])?torch[/\\]utils[/\\]data[/\\]"
    r"(?:dataloader\.py\(\d+\): (_get_iterator|_shutdown_workers)"
    r"|_utils[/\\]fetch\.py\(\d+\): (fetch))"
)
_PROCESS_START_FRAME: Final = re.compile(
    r"(?:.*[/\\])?multiprocessing[/\\]process\.py\(\d+\): start"
)
_SAMPLE_LOADING_FRAME: Final = re.compile(
    r".*\): (?:<listcomp>|<genexpr>|__getitem__|__getitems__|__next__|__iter__)"
    r"|<built-in (?:function next|method __(?:getitem|next)__ )"
)

_TENSOR_RECEPTION_FRAME: Final = re.compile(
    r"(?:.*[/\\])?torch[/\\]multiprocessing[/\\]reductions\.py\(\d+\): rebuild_\w+"
)
_TENSOR_ROW_FRAME: Final = re.compile(r"(?:.*/)?torch/utils/data/dataset\.py\(\d+\): <genexpr>")
_COMPREHENSION_FRAME: Final = re.compile(r"(?:.*: )?<(?:list|dict|set)comp>|(?:.*: )?<genexpr>")
_UNPACKING_OPERATORS: Final = frozenset(
    f"aten::{name}" for name in ("unbind", "select", "split", "chunk", "item")
)


def data_loader_part(frame_name: str) -> DataLoaderPart | None:
    """Returns what a DataLoader frame does: iterator, fetch or shutdown; None for other frames.

    >>> data_loader_part("torch/utils/data/dataloader.py(433): _get_iterator")
    'iterator'
    >>> frames = "torch/utils/data/_utils/fetch.py(47): fetch", "a.py(1): fetch"
    >>> tuple(data_loader_part(frame) for frame in frames)
    ('fetch', None)
    """
    found = _DATA_LOADER_FRAME.fullmatch(frame_name)
    return _PART_BY_FUNCTION[found[1] or found[2]] if found else None


def starts_process(frame_name: str) -> bool:
    """Returns whether a Python frame starts a process through `multiprocessing`.

    >>> starts_process("multiprocessing/process.py(110): start"), starts_process("a.py(1): start")
    (True, False)
    """
    return _PROCESS_START_FRAME.fullmatch(frame_name) is not None


def loads_samples(frame_name: str) -> bool:
    """Returns whether a frame below a DataLoader's fetch loads samples, and does not collate them.

    >>> loads_samples("torch/utils/data/_utils/fetch.py(54): <listcomp>")
    True
    >>> loads_samples("train.py(3): __getitem__"), loads_samples("train.py(9): collate")
    (True, False)
    """
    return _SAMPLE_LOADING_FRAME.match(frame_name) is not None


def unpacks_elements(operator: str) -> bool:
    """Returns whether an operator only hands a tensor's elements to Python, one by one.

    >>> unpacks_elements("aten::unbind"), unpacks_elements("aten::stack")
    (True, False)
    """
    return operator in _UNPACKING_OPERATORS


def receives_tensor(frame_name: str) -> bool:
    """Returns whether a Python frame receives a tensor from another process.

    >>> receives_tensor("torch/multiprocessing/reductions.py(537): rebuild_storage_fd")
    True
    """
    return _TENSOR_RECEPTION_FRAME.fullmatch(frame_name) is not None


def may_take_tensor_row(frame_name: str) -> bool:
    """Returns whether a frame may be that in which a `TensorDataset` indexes its tensors.

    >>> may_take_tensor_row("torch/utils/data/dataset.py(206): <genexpr>")
    True
    """
    return _TENSOR_ROW_FRAME.fullmatch(frame_name.replace("\\", "/")) is not None


def is_comprehension(frame_name: str) -> bool:
    """Returns whether a frame or function is a comprehension or a generator expression.

    >>> is_comprehension("train.py(11): <listcomp>"), is_comprehension("train.py(11): main")
    (True, False)
    """
    return _COMPREHENSION_FRAME.fullmatch(frame_name) is not None
