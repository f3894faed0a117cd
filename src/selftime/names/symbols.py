"""Shorten kernel names: without template arguments, parameters and mangling."""

import re
from typing import Final

_LENGTH: Final = re.compile(r"\d+")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_PLUMBING: Final = re.compile(
    r"std::(?:__\d+::)?(?:array|tuple)|(?:at|c10)::(?:detail|native::memory)::|OffsetCalculator"
    r"|^(?:char|void|float|double|int|long|unsigned|bool)\b|\*$|^\(?-?\d|^(?:true|false)$"
    r"|TensorListMetadata|^(?:c10::)?(?:BFloat16|Half|Float8\w*|complex)\b|^__?\w*bfloat16"
)
"""Template arguments about how a kernel addresses memory, not what it computes."""
_GENERIC: Final = (
    "elementwise_kernel",
    "elementwise_kernel_manual_unroll",
    "reduce_kernel",
    "multi_tensor_apply_kernel",
)
"""Generic kernels: the function that they apply is one of their template arguments."""
_ADAPTERS: Final = (
    "gpu_kernel_impl",
    "ReduceOp",
    "func_wrapper_t",
    "BinaryFunctor",
    "AUnaryFunctor",
    "BUnaryFunctor",
    "UnaryOpFunctor",
    "BinaryOpListAlphaFunctor",
    "BinaryOpScalarFunctor",
)
"""Wrappers between a generic kernel and the functor that it applies."""
_ENTRIES: Final = ("Kernel", "Kernel2", "kentry")
"""Generic entry points in mangled names: the kernel is a template argument."""
_SHORT: Final = 3
"""Mangled parameters may look like names of up to this many letters."""
_WRAPPERS: Final = ("::Kernel", "::Kernel2", "::device_kernel", "::kentry", "::trampoline_kernel")
"""Entry points of CUTLASS, Composable Kernel and rocPRIM: the kernel is a template argument."""
_ENABLERS: Final = re.compile(r"::enable_\w+$")
"""Wrappers that compile a kernel for one architecture only."""


def short_kernel_name(name: str) -> str:
    """Returns the kernel's function name, with the functor for generic kernels.

    >>> short_kernel_name("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512>(float)")
    'cudnn::bn_fw_tr_1C11_kernel_NCHW'
    >>> short_kernel_name(
    ...     "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    ...     "at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>)"
    ... )
    'vectorized_elementwise_kernel<FillFunctor>'
    >>> short_kernel_name("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256EEEvPT0_")
    'aiter::add_rmsnorm_quant_kernel'
    """
    if name.startswith("_Z"):
        return _demangle(name)
    text = name.replace("(anonymous namespace)::", "").replace("{anonymous}::", "")
    if text.startswith("std::enable_if"):
        text = text.rpartition(">::type ")[2]
    head, arguments = _split(text)
    function = head.split(" ")[-1] or name
    function = function.removeprefix("at::native::")
    if function.endswith(_WRAPPERS) and arguments:
        return _wrapped_kernel(arguments) or function
    if not function.endswith(_GENERIC):
        return function
    told = (argument for argument in arguments if not _PLUMBING.search(argument))
    functor = next((_functor_name(argument) for argument in told), "")
    return f"{function}<{functor}>" if functor else function


def _wrapped_kernel(arguments: list[str]) -> str:
    """Returns the kernel among the template arguments of an entry point."""
    told = (argument for argument in arguments if not _PLUMBING.search(argument))
    kernel, inner = _split(next(told, ""))
    return _wrapped_kernel(inner) if _ENABLERS.search(kernel) and inner else kernel


def _split(text: str) -> tuple[str, list[str]]:
    """Returns the text before the last template or the parameters, and the template's arguments."""
    depth = 0
    head: list[str] = []
    argument: list[str] = []
    arguments: list[str] = []
    for letter in text:
        if letter == "<":
            depth += 1
            if depth == 1:
                arguments, argument = [], []
                continue
        elif letter == ">" and depth:
            depth -= 1
            if depth == 0:
                arguments.append("".join(argument).strip())
                continue
        if depth == 0:
            if letter == "(":
                break
            head.append(letter)
        elif depth == 1 and letter == ",":
            arguments.append("".join(argument).strip())
            argument = []
        else:
            argument.append(letter)
    return "".join(head).strip(), arguments


def _functor_name(argument: str) -> str:
    """Returns the last part of a functor's name, or of the function that contains a lambda."""
    inner, nested = _split(argument)
    parts = [part.strip() for part in inner.split("::")]
    last = next((part for part in reversed(parts) if not part.startswith("operator")), "")
    if last.startswith(_ADAPTERS) and nested:
        useful = [_functor_name(text) for text in nested if not _PLUMBING.search(text)]
        return next((text for text in useful if text), last)
    return last if _IDENTIFIER.fullmatch(last) else ""


def _demangle(name: str) -> str:
    """Returns the nested names of an Itanium C++ ABI symbol, up to its template arguments.

    A symbol that cannot be parsed is returned unchanged.
    """
    at = 2
    nested = name[at : at + 1] == "N"
    at += nested
    parts: list[str] = []
    while found := _LENGTH.match(name, at):
        size = int(found[0])
        part = name[found.end() : found.end() + size]
        if len(part) < size:
            return name
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
        at = found.end() + size
        if not nested:
            break
    if parts and parts[-1] in _ENTRIES:
        parts += _first_type(name[at:])
    return "::".join(parts).removeprefix("at::native::") if parts else name


def _first_type(arguments: str) -> list[str]:
    """Returns the first capitalised name in mangled arguments: what an entry point runs."""
    at = 0
    while found := _LENGTH.search(arguments, at):
        part = arguments[found.end() : found.end() + int(found[0])]
        whole = len(part) == int(found[0]) > _SHORT and _IDENTIFIER.fullmatch(part)
        if whole and part[0].isupper():
            return [part]
        at = found.end() + (int(found[0]) if _IDENTIFIER.fullmatch(part) else 0)
    return []
