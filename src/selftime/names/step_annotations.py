"""Recognises annotations that mark steps, and copies between host and device, by name."""

import re
from typing import Final

from selftime.names.host_slices import (
    is_collective_annotation,
    is_data_loading,
    profiler_step_number,
)

_ITERATION_WORDS: Final = (
    "step|iter|iteration|batch|minibatch|execute|execution|decode|prefill|generate|generation"
    "|request|round|episode|tick|update"
)
_CAPITALISED_ITERATION_WORDS: Final = "|".join(
    word.capitalize() for word in _ITERATION_WORDS.split("|")
)
_ITERATION_WORD: Final = re.compile(
    rf"(?:(?<![A-Za-z])(?i:{_ITERATION_WORDS})|(?<=[a-z])(?:{_CAPITALISED_ITERATION_WORDS}))(?![a-z]|_?[Nn]orm)"
)
_DIGITS_PATTERN: Final = re.compile(r"\d+")
_LIBRARY_ANNOTATION: Final = re.compile(
    r"Optimizer\.|(?:Distributed)?DataParallel\.|FullyShardedDataParallel|FSDP::"
    r"|## Call CompiledFxGraph|Torch-Compiled Region|TorchDynamo|CompiledFunction|Pregraph bytecode"
)
_UPLOAD_NAME: Final = re.compile(r"\bHtoD\b|HostToDevice|\bH2D\b|\bM2D\b")
_DOWNLOAD_NAME: Final = re.compile(r"\bDtoH\b|DeviceToHost|\bD2H\b|\bD2M\b")
_ALL_STEPS_ANNOTATION: Final = "ProfilerStep*"
"""Name of the row that sums all steps in tables of operators; no step has this name."""
_EPOCH_WORD: Final = re.compile(r"epoch", re.IGNORECASE)
_HOST_COLLECTIVE_ANNOTATION: Final = re.compile(r"(?:gloo|mpi)(?::|::)")


def has_step_word(annotation: str) -> bool:
    """Returns whether an annotation contains a word such as `iteration` or `step`.

    >>> [has_step_word(name) for name in ("Iteration#3", "trainStep", "forward", "BatchNorm")]
    [True, True, False, False]
    """
    return _ITERATION_WORD.search(annotation) is not None


def loop_annotation_family(annotation: str) -> str | None:
    """Returns an annotation with its iteration number as `#`; None if it marks no iterations.

    Numbers are replaced by `#` where a word says that they count iterations; numbers of layers and
    stages distinguish different things and stay.

    >>> loop_annotation_family("iteration 3"), loop_annotation_family("layer 3")
    ('iteration #', 'layer 3')
    >>> loop_annotation_family("Optimizer.step#SGD.step") is None
    True
    """
    if (
        profiler_step_number(annotation) is not None
        or is_data_loading(annotation)
        or is_collective_annotation(annotation)
    ):
        return None
    if _LIBRARY_ANNOTATION.match(annotation) or annotation == _ALL_STEPS_ANNOTATION:
        return None
    if has_step_word(annotation):
        return _DIGITS_PATTERN.sub("#", annotation)
    return None if _EPOCH_WORD.search(annotation) else annotation


def iteration_number(annotation: str) -> int | None:
    """Returns the iteration number in an annotation; None if it has no clear one.

    >>> iteration_number("epoch 1, iteration 30"), iteration_number("step")
    (30, None)
    """
    word = _ITERATION_WORD.search(annotation)
    after = _DIGITS_PATTERN.search(annotation, word.end()) if word else None
    found = [after[0]] if after else _DIGITS_PATTERN.findall(annotation)
    return int(found[0]) if len(found) == 1 and len(found[0]) < _MIN_IDENTIFIER_DIGITS else None


_MIN_IDENTIFIER_DIGITS: Final = 19
"""Numbers with at least this many digits count as identifiers, not as iteration numbers."""


def is_host_collective(annotation: str) -> bool:
    """Returns whether an annotation spans a whole collective on the host, as Gloo's do.

    Annotations of NCCL and similar backends span the launch only.

    >>> is_host_collective("gloo:all_reduce"), is_host_collective("nccl:all_reduce")
    (True, False)
    """
    return _HOST_COLLECTIVE_ANNOTATION.match(annotation) is not None


def is_host_to_device_copy(copy_name: str) -> bool:
    """Returns whether a copy goes from the host to a device.

    >>> copy_names = "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoD (Device -> Device)"
    >>> tuple(is_host_to_device_copy(copy_name) for copy_name in copy_names)
    (True, False)
    """
    return _UPLOAD_NAME.search(copy_name) is not None


def is_device_to_host_copy(copy_name: str) -> bool:
    """Returns whether a copy goes from a device to the host.

    >>> copy_names = "Memcpy DtoH (Device -> Pageable)", "CopyDeviceToHost"
    >>> tuple(is_device_to_host_copy(copy_name) for copy_name in copy_names)
    (True, True)
    """
    return _DOWNLOAD_NAME.search(copy_name) is not None
