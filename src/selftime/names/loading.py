"""What the frames of PyTorch's own data loading mean."""

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
    """Which part of a loader a Python frame is: a new iterator, a batch, the end of its workers.

    >>> loading_part("torch/utils/data/dataloader.py(433): _get_iterator")
    'iterator'
    >>> loading_part("torch/utils/data/_utils/fetch.py(47): fetch"), loading_part("a.py(1): fetch")
    ('fetch', None)
    """
    found = _LOADER.fullmatch(name)
    return _PARTS[found[1] or found[2]] if found else None


def starts_process(name: str) -> bool:
    """Whether a Python frame starts a process by `multiprocessing`.

    >>> starts_process("multiprocessing/process.py(110): start"), starts_process("a.py(1): start")
    (True, False)
    """
    return _PROCESS_START.fullmatch(name) is not None


def is_sampling(name: str) -> bool:
    """Whether a frame that fetches a batch called makes samples of it, and does not join them.

    >>> is_sampling("torch/utils/data/_utils/fetch.py(54): <listcomp>")
    True
    >>> is_sampling("train.py(3): __getitem__"), is_sampling("train.py(9): collate")
    (True, False)
    """
    return _SAMPLE.match(name) is not None


def hands_out_elements(name: str) -> bool:
    """Whether an operator gives Python the parts of a tensor one by one, and computes nothing.

    >>> hands_out_elements("aten::unbind"), hands_out_elements("aten::stack")
    (True, False)
    """
    return name in _ELEMENTS


def is_hand_over(name: str) -> bool:
    """Whether a Python frame takes over a tensor that another process has ready.

    >>> is_hand_over("torch/multiprocessing/reductions.py(537): rebuild_storage_fd")
    True
    """
    return _HAND_OVER.fullmatch(name) is not None


def is_comprehension(name: str) -> bool:
    """Whether a frame, or a function, is a comprehension: it begins on the line that it stands on.

    >>> is_comprehension("train.py(11): <listcomp>"), is_comprehension("train.py(11): main")
    (True, False)
    """
    return _COMPREHENSION.fullmatch(name) is not None
