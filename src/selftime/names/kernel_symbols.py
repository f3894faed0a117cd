"""Shortens kernel names: removes template arguments, parameters and C++ name mangling."""

import re
from typing import Final

_MANGLED_LENGTH: Final = re.compile(r"\d+")
_CPP_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_ADDRESSING_ARGUMENT: Final = re.compile(
    r"std::(?:__\d+::)?(?:array|tuple)|(?:at|c10)::(?:detail|native::memory)::|OffsetCalculator"
    r"|^(?:char|void|float|double|int|long|unsigned|bool)\b|\*$|^\(?-?\d|^(?:true|false)$"
    r"|TensorListMetadata|^(?:c10::)?(?:BFloat16|Half|Float8\w*|complex)\b|^__?\w*bfloat16"
)
"""Matches template arguments that say how a kernel addresses memory, not what it computes."""
_GENERIC_KERNELS: Final = (
    "elementwise_kernel",
    "elementwise_kernel_manual_unroll",
    "reduce_kernel",
    "multi_tensor_apply_kernel",
)
"""Names of generic kernels, which take the function to apply as a template argument."""
_FUNCTOR_ADAPTERS: Final = (
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
"""Names of wrappers between a generic kernel and the functor that it applies."""
_MANGLED_ENTRY_POINTS: Final = ("Kernel", "Kernel2", "kentry")
"""Generic kernel functions in mangled names, which take the real kernel as a template argument."""
_MAX_LETTERS_OF_MANGLED_PARAMETER: Final = 3
"""Largest number of letters of a mangled parameter; parameters this short can look like names."""
_ENTRY_POINT_SUFFIXES: Final = (
    "::Kernel",
    "::Kernel2",
    "::device_kernel",
    "::kentry",
    "::trampoline_kernel",
)
"""Suffixes of kernel functions of CUTLASS, Composable Kernel and rocPRIM that take the real kernel
as a template argument.
"""
_ARCHITECTURE_WRAPPER: Final = re.compile(r"::enable_\w+$")
"""Matches wrappers that compile a kernel for one GPU architecture only."""


def short_kernel_name(kernel_name: str) -> str:
    """Returns a kernel's function name; for a generic kernel, with the functor that it applies.

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
    if kernel_name.startswith("_Z"):
        return _demangled_names(kernel_name)
    text = kernel_name.replace("(anonymous namespace)::", "").replace("{anonymous}::", "")
    if text.startswith("std::enable_if"):
        text = text.rpartition(">::type ")[2]
    head, arguments = _split_template(text)
    function = head.split(" ")[-1] or kernel_name
    function = function.removeprefix("at::native::")
    if function.endswith(_ENTRY_POINT_SUFFIXES) and arguments:
        return _wrapped_kernel(arguments) or function
    if not function.endswith(_GENERIC_KERNELS):
        return function
    told = (argument for argument in arguments if not _ADDRESSING_ARGUMENT.search(argument))
    functor = next((_functor_name(argument) for argument in told), "")
    return f"{function}<{functor}>" if functor else function


def _wrapped_kernel(template_arguments: list[str]) -> str:
    """Returns the name of the kernel that a generic kernel function takes as template argument."""
    told = (
        argument for argument in template_arguments if not _ADDRESSING_ARGUMENT.search(argument)
    )
    kernel, inner = _split_template(next(told, ""))
    return _wrapped_kernel(inner) if _ARCHITECTURE_WRAPPER.search(kernel) and inner else kernel


def _split_template(name: str) -> tuple[str, list[str]]:
    """Splits a name at its last template or parameter list; returns (head, template arguments)."""
    depth = 0
    head: list[str] = []
    argument: list[str] = []
    arguments: list[str] = []
    for letter in name:
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


def _functor_name(template_argument: str) -> str:
    """Returns the last part of a functor's name, or of the function that contains a lambda."""
    inner, nested = _split_template(template_argument)
    parts = [part.strip() for part in inner.split("::")]
    last = next((part for part in reversed(parts) if not part.startswith("operator")), "")
    if last.startswith(_FUNCTOR_ADAPTERS) and nested:
        useful = [_functor_name(text) for text in nested if not _ADDRESSING_ARGUMENT.search(text)]
        return next((text for text in useful if text), last)
    return last if _CPP_IDENTIFIER.fullmatch(last) else ""


def _demangled_names(symbol: str) -> str:
    """Returns the nested names of a mangled C++ symbol, up to its template arguments.

    The mangling is that of the Itanium C++ ABI. A symbol that cannot be parsed is returned
    unchanged.
    """
    at = 2
    nested = symbol[at : at + 1] == "N"
    at += nested
    parts: list[str] = []
    while found := _MANGLED_LENGTH.match(symbol, at):
        size = int(found[0])
        part = symbol[found.end() : found.end() + size]
        if len(part) < size:
            return symbol
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
        at = found.end() + size
        if not nested:
            break
    if parts and parts[-1] in _MANGLED_ENTRY_POINTS:
        parts += _first_capitalised_name(symbol[at:])
    return "::".join(parts).removeprefix("at::native::") if parts else symbol


def _first_capitalised_name(mangled_arguments: str) -> list[str]:
    """Returns a list with the first capitalised name in mangled arguments; empty without one."""
    at = 0
    while found := _MANGLED_LENGTH.search(mangled_arguments, at):
        part = mangled_arguments[found.end() : found.end() + int(found[0])]
        whole = len(part) == int(
            found[0]
        ) > _MAX_LETTERS_OF_MANGLED_PARAMETER and _CPP_IDENTIFIER.fullmatch(part)
        if whole and part[0].isupper():
            return [part]
        at = found.end() + (int(found[0]) if _CPP_IDENTIFIER.fullmatch(part) else 0)
    return []
