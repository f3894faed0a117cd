"""Tokens as models count them, by vocabularies that a package carries: nothing is fetched."""

import warnings
from functools import cache
from typing import Any, Final

__all__ = ["MODELS", "tokens"]

MODELS: Final = ("cl100k_base", "o200k_base", "voyage3_base")
"""Two of OpenAI's, and one that splits numbers into digits."""


def tokens(model: str, text: str) -> int:
    return len(_encoding(model).encode(text.encode("utf-8", "replace").decode()))


@cache
def _encoding(model: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it opens its own files
        import bpe_openai  # noqa: PLC0415 - the warning comes with the import

        return bpe_openai.get_encoding(model)
