"""Classify frames of PyTorch's data loading by name."""

import re
from typing import Final, Literal, TypeAlias

LoadingPart: TypeAlias = Literal["iterator", "fetch", "shutdown"]

_PARTS: Final[dict[str, LoadingPart]] = {
    "_get_iterator": "iterator",
    "fetch": "fetch",
    "_shutdown_workers": "shutdown",
}
_LOADER: Final = re.compile(
    r"(?:.*[/\\])?torch[/\\]utils[/\\]data[/\\]"
    r"(?:dataloader\.py\(\d+\): (_get_iterator|_shutdown_workers)"
    r"|_utils[/\\]fetch\.py\(\d+\): (fetch))"
)
_PROCESS_START: Final = re.compile(r"(?:.*[/\\])?multiprocessing[/\\]process\.py\(\d+\): start")
_SAMPLE: Final = re.compile(
    r".*\): (?:<listcomp>|<genexpr>|__getitem__|__getitems__|__next__|__iter__)"
    r"|<built-in (?:function next|method __(?:getitem|next)__ )"
)

_HAND_OVER: Final = re.compile(
    r"(?:.*[/\\])?torch[/\\]multiprocessing[/\\]reductions\.py\(\d+\): rebuild_\w+"
)
_COMPREHENSION: Final = re.compile(r"(?:.*: )?<(?:list|dict|set)comp>|(?:.*: )?<genexpr>")
_ELEMENTS: Final = frozenset(
    f"aten::{name}" for name in ("unbind", "select", "split", "chunk", "item")
)


def loading_part(name: str) -> LoadingPart | None:
    """Returns the loader's part that a frame is: new iterator, batch fetch or shutdown.

    >>> loading_part("torch/utils/data/dataloader.py(433): _get_iterator")
    'iterator'
    >>> loading_part("torch/utils/data/_utils/fetch.py(47): fetch"), loading_part("a.py(1): fetch")
    ('fetch', None)
    """
    found = _LOADER.fullmatch(name)
    return _PARTS[found[1] or found[2]] if found else None


def starts_process(name: str) -> bool:
    """Whether a Python frame starts a process through `multiprocessing`.

    >>> starts_process("multiprocessing/process.py(110): start"), starts_process("a.py(1): start")
    (True, False)
    """
    return _PROCESS_START.fullmatch(name) is not None


def is_sampling(name: str) -> bool:
    """Whether a frame called by a batch fetch loads samples, rather than collating them.

    >>> is_sampling("torch/utils/data/_utils/fetch.py(54): <listcomp>")
    True
    >>> is_sampling("train.py(3): __getitem__"), is_sampling("train.py(9): collate")
    (True, False)
    """
    return _SAMPLE.match(name) is not None


def unpacks_elements(name: str) -> bool:
    """Whether an operator only passes the elements of a tensor to Python one by one.

    >>> unpacks_elements("aten::unbind"), unpacks_elements("aten::stack")
    (True, False)
    """
    return name in _ELEMENTS


def receives_tensor(name: str) -> bool:
    """Whether a Python frame receives a tensor from another process.

    >>> receives_tensor("torch/multiprocessing/reductions.py(537): rebuild_storage_fd")
    True
    """
    return _HAND_OVER.fullmatch(name) is not None


def is_comprehension(name: str) -> bool:
    """Whether a frame or function is a comprehension, which begins on its own line.

    >>> is_comprehension("train.py(11): <listcomp>"), is_comprehension("train.py(11): main")
    (True, False)
    """
    return _COMPREHENSION.fullmatch(name) is not None
