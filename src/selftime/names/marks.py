"""Recognise annotations that mark a program's steps, and copies between host and device."""

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
"""The name for all steps together in tables of operators; not a step itself."""
_EPOCH: Final = re.compile(r"epoch", re.IGNORECASE)
_HOST_COLLECTIVE: Final = re.compile(r"(?:gloo|mpi)(?::|::)")


def has_step_word(name: str) -> bool:
    """Whether a name contains a word for one iteration of a loop.

    >>> [has_step_word(name) for name in ("Iteration#3", "trainStep", "forward", "BatchNorm")]
    [True, True, False, False]
    """
    return _STEP_WORD.search(name) is not None


def annotation_family(name: str) -> str | None:
    """Returns the name shared by annotations of one loop; None for libraries' and epochs.

    Numbers are replaced by `#` where a word says that they count iterations; numbers of layers and
    stages distinguish different things and stay.

    >>> annotation_family("iteration 3"), annotation_family("layer 3")
    ('iteration #', 'layer 3')
    >>> annotation_family("Optimizer.step#SGD.step") is None
    True
    """
    if step_number(name) is not None or is_data_loading(name) or is_collective_annotation(name):
        return None
    if _OF_A_LIBRARY.match(name) or name == _ALL_STEPS:
        return None
    if has_step_word(name):
        return _NUMBER.sub("#", name)
    return None if _EPOCH.search(name) else name


def annotation_number(name: str) -> int | None:
    """Returns the number after the iteration word, else the only number; None if ambiguous.

    >>> annotation_number("epoch 1, iteration 30"), annotation_number("step")
    (30, None)
    """
    word = _STEP_WORD.search(name)
    after = _NUMBER.search(name, word.end()) if word else None
    found = [after[0]] if after else _NUMBER.findall(name)
    return int(found[0]) if len(found) == 1 and len(found[0]) < _DIGITS else None


_DIGITS: Final = 19
"""Numbers with this many digits or more are identifiers, and may not fit into 64 bits."""


def is_host_collective(name: str) -> bool:
    """Whether a collective's annotation spans its communication, as it runs on the host.

    Annotations of NCCL and similar backends span the launch only.

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
