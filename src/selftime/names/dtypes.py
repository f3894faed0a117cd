"""Interpret dtypes: `Input type` has the C++ names, arguments have `c10::ScalarType` numbers."""

import re
from typing import Final

DTYPE_SIZES: Final = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float8": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
}
"""Bytes per element by the dtype's Python name; all 8-bit floats are `float8`."""

_WRITTEN: Final = {
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
    "short": "int16",
    "short int": "int16",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "long long int": "int64",
    "__int64": "int64",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "float": "float32",
    "double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float8_e4m3fn": "float8",
    "Float8_e5m2": "float8",
    "Float8_e4m3fnuz": "float8",
    "Float8_e5m2fnuz": "float8",
    "Float8_e8m0fnu": "float8",
    "complex<Half>": "complex32",
    "complex<c10::Half>": "complex32",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
}

_NUMBERED: Final = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
    23: "float8",
    24: "float8",
    25: "float8",
    26: "float8",
}
"""Python dtype names by their number in `c10::ScalarType` (c10/core/ScalarType.h)."""


def dtype_name(written: str) -> str | None:
    """Returns the Python dtype of a tensor in `Input type`; None if it is not a tensor.

    >>> dtype_name("c10::BFloat16"), dtype_name("long int"), dtype_name("ScalarList")
    ('bfloat16', 'int64', None)
    """
    return _WRITTEN.get(written.removeprefix("c10::"))


def dtype_of_number(number: int) -> str | None:
    """Returns the dtype with this `c10::ScalarType` number; None if unknown.

    >>> dtype_of_number(15), dtype_of_number(99)
    ('bfloat16', None)
    """
    return _NUMBERED.get(number)


_OF_LISTS: Final = re.compile(
    r"(?:multi_tensor_apply_kernel<.*?Functor|CatArrayBatchedCopy\w*)"
    r"<(?:[\w:() ]*OpaqueType<(?P<size>\d+)u?>|(?P<first>[^,<>]+(?:<[^<>]*>)?))"
    r", ?(?P<second>[^,<>]+)"
)


def element_size(kernel: str) -> int | None:
    """Returns the bytes per element of a multi-tensor kernel, from its name; None if unknown.

    >>> element_size("multi_tensor_apply_kernel<TensorListMetadata<1>, UnaryOpFunctor<float, 1> >")
    4
    >>> element_size("CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 3, 64, 64>")
    2
    >>> element_size("multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<int, long, 2> >")
    """
    found = _OF_LISTS.search(kernel)
    if found is None:
        return None
    if found["size"]:
        return int(found["size"])
    dtype, converted = dtype_name(found["first"]), dtype_name(found["second"])
    is_index = "CatArray" in found[0]
    return None if dtype is None or (converted and not is_index) else DTYPE_SIZES[dtype]
