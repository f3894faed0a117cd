"""Interprets names and numbers of dtypes in a trace: C++ names, and `c10::ScalarType` numbers."""

import re
from typing import Final

DTYPE_SIZES_IN_BYTES: Final = {
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
"""Maps a dtype's Python name to its bytes per element; all 8-bit floats are `float8`."""

_PYTHON_DTYPE_OF_CPP_NAME: Final = {
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
"""Maps C++ names of dtypes in `Input type` to Python dtype names."""

_DTYPE_BY_SCALAR_TYPE_NUMBER: Final = {
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
"""Maps a number of `c10::ScalarType` to the Python dtype name (c10/core/ScalarType.h)."""


def dtype_name(cpp_name: str) -> str | None:
    """Returns the torch dtype name of a C++ type name; None if the type is not a tensor's.

    >>> dtype_name("c10::BFloat16"), dtype_name("long int"), dtype_name("ScalarList")
    ('bfloat16', 'int64', None)
    """
    return _PYTHON_DTYPE_OF_CPP_NAME.get(cpp_name.removeprefix("c10::"))


def dtype_of_scalar_type_number(number: int) -> str | None:
    """Returns the name of the dtype with this `c10::ScalarType` number; None if unknown.

    >>> dtype_of_scalar_type_number(15), dtype_of_scalar_type_number(99)
    ('bfloat16', None)
    """
    return _DTYPE_BY_SCALAR_TYPE_NUMBER.get(number)


_LIST_KERNEL_DTYPE: Final = re.compile(
    r"(?:multi_tensor_apply_kernel<.*?Functor|CatArrayBatchedCopy\w*)"
    r"<(?:[\w:() ]*OpaqueType<(?P<size>\d+)u?>|(?P<first>[^,<>]+(?:<[^<>]*>)?))"
    r", ?(?P<second>[^,<>]+)"
)
"""Matches the dtypes in the template arguments of a kernel that processes lists of tensors."""


def kernel_element_size(kernel_name: str) -> int | None:
    """Returns a multi-tensor or `cat` kernel's bytes per element, from its name; None if unknown.

    >>> kernel_element_size("multi_tensor_apply_kernel<List<1>, UnaryOpFunctor<float, 1> >")
    4
    >>> kernel_element_size("CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 3, 64>")
    2
    >>> kernel_element_size("multi_tensor_apply_kernel<List<2>, CopyFunctor<int, long, 2> >")
    """
    found = _LIST_KERNEL_DTYPE.search(kernel_name)
    if found is None:
        return None
    if found["size"]:
        return int(found["size"])
    dtype, converted = dtype_name(found["first"]), dtype_name(found["second"])
    is_index = "CatArray" in found[0]
    return None if dtype is None or (converted and not is_index) else DTYPE_SIZES_IN_BYTES[dtype]
