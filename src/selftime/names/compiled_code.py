"""Recognises by name slices of `torch.compile`: compiled regions, recompilations, graph breaks."""

import re
from typing import Final

_COMPILED_REGION: Final = re.compile(r"Torch-Compiled Region: (\d+)/(\d+)")
_GRAPH_COMPILATION: Final = re.compile(
    r"_compile\.(?:<locals>\.)?compile_inner(?: \(dynamo_timed\))?"
)
_RECOMPILATION_COUNT: Final = re.compile(
    r"(?:entire_frame_compile|dynamo)_data: .*compile_id=(?:!\d+/)?(\d+)/(\d+).*"
)
_COMPILE_WRAPPER_FRAME: Final = re.compile(
    r"(?:.*/)?torch/_dynamo/eval_frame\.py\(\d+\): compile_wrapper$"
)
_GRAPH_WRAPPER_FRAME: Final = re.compile(
    r"(?:.*/)?torch/_functorch/(?:_aot_autograd/)?\w+\.py\(\d+\): "
)
_REASON_OF_VERSION: Final = re.compile(r"\s*\d+/\d+:\s*")
_GUARD_CODE_COMMENT: Final = re.compile(r"\s+#.*")
_RESUMED_FUNCTION: Final = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")


def compiled_region(slice_name: str) -> tuple[int, int] | None:
    """Returns a compiled region's (function number, version number) from its name; else None.

    >>> compiled_region("Torch-Compiled Region: 2/1"), compiled_region("aten::mm")
    ((2, 1), None)
    """
    found = _COMPILED_REGION.fullmatch(slice_name)
    return (int(found[1]), int(found[2])) if found else None


def is_compiled_function_call(slice_name: str) -> bool:
    """Returns whether a Python frame encloses one call of a function that `torch.compile` returned.

    >>> is_compiled_function_call("torch/_dynamo/eval_frame.py(1076): compile_wrapper")
    True
    """
    return _COMPILE_WRAPPER_FRAME.match(slice_name.replace("\\", "/")) is not None


def is_compiled_graph_wrapper(slice_name: str) -> bool:
    """Returns whether a Python frame runs a compiled graph once, with the checks around it.

    >>> is_compiled_graph_wrapper("torch/_functorch/aot_autograd.py(9): runtime_wrapper")
    True
    """
    return _GRAPH_WRAPPER_FRAME.match(slice_name.replace("\\", "/")) is not None


def is_graph_compilation(slice_name: str) -> bool:
    """Returns whether a host slice is the whole compilation of a function by Dynamo.

    >>> is_graph_compilation("_compile.compile_inner (dynamo_timed)")
    True
    >>> is_graph_compilation("backend_compile"), is_graph_compilation("entire_frame_compile")
    (False, False)
    """
    return _GRAPH_COMPILATION.fullmatch(slice_name) is not None


def recompilation_count(slice_name: str) -> int | None:
    """Returns how often a function was compiled before, from a Dynamo slice's name, or None.

    >>> recompilation_count("dynamo_data: fn_name=_compile.compile_inner, compile_id=0/3")
    3
    """
    found = _RECOMPILATION_COUNT.fullmatch(slice_name)
    return int(found[2]) if found else None


def graph_break_location(function: str) -> tuple[str, int] | None:
    """Returns a graph break's function and line, by Dynamo's name for the rest of the function.

    >>> graph_break_location("torch_dynamo_resume_in_forward_at_31")
    ('forward', 31)
    """
    found = _RESUMED_FUNCTION.fullmatch(function)
    return (found[1], int(found[2])) if found else None


def is_compiled_call(slice_name: str) -> bool:
    """Returns whether a slice is a call of a graph that Inductor compiled, by its name.

    >>> is_compiled_call("## Call CompiledFxGraph fhzp4x ##"), is_compiled_call("aten::mm")
    (True, False)
    """
    return slice_name.startswith("## Call CompiledFxGraph")


def is_compiler_primitive(slice_name: str) -> bool:
    """Returns whether an operator is one of the compiler's primitives, such as `prims::mul`.

    >>> is_compiler_primitive("prims::convert_element_type"), is_compiler_primitive("aten::add")
    (True, False)
    """
    return slice_name.startswith("prims::")


def is_compiled_code_lookup(slice_name: str) -> bool:
    """Returns whether an operator is Dynamo's search for compiled code that fits the inputs.

    >>> is_compiled_code_lookup("TorchDynamo Cache Lookup"), is_compiled_code_lookup("aten::mm")
    (True, False)
    """
    return slice_name == "TorchDynamo Cache Lookup"


def recompilation_reason(reason: str) -> str:
    """Returns in one line the guard that failed first, of torch's reason for a recompilation.

    >>> recompilation_reason("0/0: L['n'] == 3    # y = x * n  # train.py:12 in f")
    "L['n'] == 3"
    """
    lines = [line for line in reason.splitlines() if line.strip()]
    first = _REASON_OF_VERSION.sub("", lines[0], count=1) if lines else ""
    return _GUARD_CODE_COMMENT.sub("", first).strip() or "a guard failed"
