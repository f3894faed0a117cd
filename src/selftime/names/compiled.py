"""Recognise compiled code by name: its regions, recompilations and graph breaks."""

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
    """Returns (function, version) of the compiled region that an operator runs, or None.

    >>> compiled_region("Torch-Compiled Region: 2/1"), compiled_region("aten::mm")
    ((2, 1), None)
    """
    found = _REGION.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def is_compiled_entry(name: str) -> bool:
    """Whether a Python frame encloses one call of a function that `torch.compile` returned.

    >>> is_compiled_entry("torch/_dynamo/eval_frame.py(1076): compile_wrapper")
    True
    """
    return _ENTRY.match(name.replace("\\", "/")) is not None


def is_graph_wrapper(name: str) -> bool:
    """Whether a Python frame encloses one run of a compiled graph, with its checks.

    >>> is_graph_wrapper("torch/_functorch/_aot_autograd/runtime_wrappers.py(9): runtime_wrapper")
    True
    """
    return _WRAPPER.match(name.replace("\\", "/")) is not None


def is_graph_compilation(name: str) -> bool:
    """Whether a host slice is the whole compilation of a function by Dynamo.

    >>> is_graph_compilation("_compile.compile_inner (dynamo_timed)")
    True
    >>> is_graph_compilation("backend_compile"), is_graph_compilation("entire_frame_compile")
    (False, False)
    """
    return _WHOLE.fullmatch(name) is not None


def recompilation_count(name: str) -> int | None:
    """Returns how often the function was compiled before; None if the name does not say.

    >>> recompilation_count("dynamo_data: fn_name=_compile.compile_inner, compile_id=0/3")
    3
    """
    found = _NUMBER.fullmatch(name)
    return int(found[2]) if found else None


def graph_break_location(function: str) -> tuple[str, int] | None:
    """Returns the (function, line) of a graph break, from the name of the resumed function.

    >>> graph_break_location("torch_dynamo_resume_in_forward_at_31")
    ('forward', 31)
    """
    found = _RESUME.fullmatch(function)
    return (found[1], int(found[2])) if found else None


def is_compiled_call(name: str) -> bool:
    """Whether an operator is the run of Inductor's code, whose kernels are not listed.

    >>> is_compiled_call("## Call CompiledFxGraph fhzp4x ##"), is_compiled_call("aten::mm")
    (True, False)
    """
    return name.startswith("## Call CompiledFxGraph")


def is_primitive(name: str) -> bool:
    """Whether an operator is a compiler primitive, which runs in Python if not compiled.

    >>> is_primitive("prims::convert_element_type"), is_primitive("aten::add")
    (True, False)
    """
    return name.startswith("prims::")


def is_code_lookup(name: str) -> bool:
    """Whether an operator is Dynamo's search for compiled code with matching guards.

    >>> is_code_lookup("TorchDynamo Cache Lookup"), is_code_lookup("aten::mm")
    (True, False)
    """
    return name == "TorchDynamo Cache Lookup"
