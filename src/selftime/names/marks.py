"""What the names of annotations tell of a program's steps."""

import re
from typing import Final

from selftime.names.host import is_collective_annotation, is_data_loading, step_number

_WORDS: Final = (
    "step|iter|iteration|batch|minibatch|execute|execution|decode|prefill|generate|generation"
    "|request|round|episode|tick|update"
)
_CAPITAL_WORDS: Final = "|".join(word.capitalize() for word in _WORDS.split("|"))
_STEP_WORD: Final = re.compile(
    rf"(?:(?<![A-Za-z])(?i:{_WORDS})|(?<=[a-z])(?:{_CAPITAL_WORDS}))(?![a-z]|_?[Nn]orm)"
)
_NUMBER: Final = re.compile(r"\d+")
_OF_A_LIBRARY: Final = re.compile(
    r"Optimizer\.|(?:Distributed)?DataParallel\.|FullyShardedDataParallel|FSDP::"
    r"|## Call CompiledFxGraph|Torch-Compiled Region|TorchDynamo|CompiledFunction|Pregraph bytecode"
)
_UPLOAD: Final = re.compile(r"\bHtoD\b|HostToDevice|\bH2D\b|\bM2D\b")
_DOWNLOAD: Final = re.compile(r"\bDtoH\b|DeviceToHost|\bD2H\b|\bD2M\b")
_ALL_STEPS: Final = "ProfilerStep*"
"""What tables of operators call all steps together: it is no step."""
_EPOCH: Final = re.compile(r"epoch", re.IGNORECASE)
_HOST_COLLECTIVE: Final = re.compile(r"(?:gloo|mpi)(?::|::)")


def has_step_word(name: str) -> bool:
    """Whether a name has a word for one round of a loop.

    >>> [has_step_word(name) for name in ("Iteration#3", "trainStep", "forward", "BatchNorm")]
    [True, True, False, False]
    """
    return _STEP_WORD.search(name) is not None


def mark_family(name: str) -> str | None:
    """What the marks of one loop have in common; None for what libraries annotate, and for epochs.

    Numbers tell the rounds of a loop apart where a word says that they are rounds; the numbers of
    layers and stages tell different things apart and stay.

    >>> mark_family("iteration 3"), mark_family("layer 3"), mark_family("Optimizer.step#SGD.step")
    ('iteration #', 'layer 3', None)
    """
    if step_number(name) is not None or is_data_loading(name) or is_collective_annotation(name):
        return None
    if _OF_A_LIBRARY.match(name) or name == _ALL_STEPS:
        return None
    if has_step_word(name):
        return _NUMBER.sub("#", name)
    return None if _EPOCH.search(name) else name


def mark_number(name: str) -> int | None:
    """The number after the word for a round, else the only number; None if there is none.

    >>> mark_number("epoch 1, iteration 30"), mark_number("7th step"), mark_number("step")
    (30, 7, None)
    """
    word = _STEP_WORD.search(name)
    after = _NUMBER.search(name, word.end()) if word else None
    found = [after[0]] if after else _NUMBER.findall(name)
    return int(found[0]) if len(found) == 1 and len(found[0]) < _DIGITS else None


_DIGITS: Final = 19
"""Longer numbers are identifiers, and do not fit into 64 bits."""


def is_host_collective(name: str) -> bool:
    """Whether a collective's annotation spans the exchange itself: its backend runs on the host.

    That of NCCL and its kin spans the launch alone.

    >>> is_host_collective("gloo:all_reduce"), is_host_collective("nccl:all_reduce")
    (True, False)
    """
    return _HOST_COLLECTIVE.match(name) is not None


def is_upload(name: str) -> bool:
    """Whether a copy goes from the host to a device.

    >>> is_upload("Memcpy HtoD (Pinned -> Device)"), is_upload("Memcpy DtoD (Device -> Device)")
    (True, False)
    """
    return _UPLOAD.search(name) is not None


def is_download(name: str) -> bool:
    """Whether a copy goes from a device to the host.

    >>> is_download("Memcpy DtoH (Device -> Pageable)"), is_download("CopyDeviceToHost")
    (True, True)
    """
    return _DOWNLOAD.search(name) is not None
