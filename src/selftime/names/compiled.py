"""What the names of slices say of compiled code: its regions, recompilations and graph breaks."""

import re
from typing import Final

_REGION: Final = re.compile(r"Torch-Compiled Region: (\d+)/(\d+)")
_WHOLE: Final = re.compile(r"_compile\.(?:<locals>\.)?compile_inner(?: \(dynamo_timed\))?")
_NUMBER: Final = re.compile(
    r"(?:entire_frame_compile|dynamo)_data: .*compile_id=(?:!\d+/)?(\d+)/(\d+).*"
)
_ENTRY: Final = re.compile(r"(?:.*/)?torch/_dynamo/eval_frame\.py\(\d+\): compile_wrapper$")
_WRAPPER: Final = re.compile(r"(?:.*/)?torch/_functorch/(?:_aot_autograd/)?\w+\.py\(\d+\): ")
_RESUME: Final = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")


def compiled_region(name: str) -> tuple[int, int] | None:
    """The function and the version of it that an operator's row is the run of, as numbers.

    >>> compiled_region("Torch-Compiled Region: 2/1"), compiled_region("aten::mm")
    ((2, 1), None)
    """
    found = _REGION.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def enters_compiled(name: str) -> bool:
    """Whether a Python frame is around one call of what `torch.compile` returned.

    >>> enters_compiled("torch/_dynamo/eval_frame.py(1076): compile_wrapper")
    True
    """
    return _ENTRY.match(name.replace("\\", "/")) is not None


def wraps_graph(name: str) -> bool:
    """Whether a Python frame is around one graph of compiled code: what it checks, and its run.

    >>> wraps_graph("torch/_functorch/_aot_autograd/runtime_wrappers.py(1129): runtime_wrapper")
    True
    """
    return _WRAPPER.match(name.replace("\\", "/")) is not None


def is_graph_compilation(name: str) -> bool:
    """Whether a host slice is the compilation of a function, from its bytecode to code.

    >>> is_graph_compilation("_compile.compile_inner (dynamo_timed)")
    True
    >>> is_graph_compilation("backend_compile"), is_graph_compilation("entire_frame_compile")
    (False, False)
    """
    return _WHOLE.fullmatch(name) is not None


def recompilation(name: str) -> int | None:
    """How many times the function had been compiled before; None if the name does not tell.

    >>> recompilation("entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/3")
    3
    """
    found = _NUMBER.fullmatch(name)
    return int(found[2]) if found else None


def resumed_at(function: str) -> tuple[str, int] | None:
    """The function and line at which a graph broke, from the function that runs what follows.

    >>> resumed_at("torch_dynamo_resume_in_forward_at_31"), resumed_at("forward")
    (('forward', 31), None)
    """
    found = _RESUME.fullmatch(function)
    return (found[1], int(found[2])) if found else None


def is_compiled_call(name: str) -> bool:
    """Whether an operator's row is the run of generated code, whose kernels have no rows.

    >>> is_compiled_call("## Call CompiledFxGraph fhzp4x ##"), is_compiled_call("aten::mm")
    (True, False)
    """
    return name.startswith("## Call CompiledFxGraph")


def is_primitive(name: str) -> bool:
    """Whether an operator is one of the compiler, which runs in Python where nothing compiled it.

    >>> is_primitive("prims::convert_element_type"), is_primitive("aten::add")
    (True, False)
    """
    return name.startswith("prims::")


def is_code_lookup(name: str) -> bool:
    """Whether an operator's row is the search for compiled code whose guards hold.

    >>> is_code_lookup("TorchDynamo Cache Lookup"), is_code_lookup("aten::mm")
    (True, False)
    """
    return name == "TorchDynamo Cache Lookup"
