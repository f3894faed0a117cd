"""No model makes more tokens of a text than it is said to be at most."""

import random
import string
from base64 import b64encode
from typing import Final

import pytest
from tests.reports.models import MODELS, tokens
from tests.security.adversary import PAYLOADS

from selftime.reports.advice.tokens import estimate_max_tokens

DRAW: Final = random.Random(7)  # noqa: S311 - no secret


def drawn(letters: str, least: int = 1, most: int = 14, between: str = " ") -> str:
    words = ("".join(DRAW.choices(letters, k=DRAW.randint(least, most))) for _ in range(300))
    return between.join(words)


def characters(first: int, last: int) -> str:
    return "".join(chr(DRAW.randint(first, last)) for _ in range(500))


TEXTS: Final = {
    "prose": "The host waits for a number; keep it on the device, or look at it a step later. " * 9,
    "path": "/very/long_folder/site-packages/torch/nn/modules/conv.py:463 in _conv_forward " * 9,
    "kernel": "void at::native::elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int) "
    * 9,
    "base64": b64encode(DRAW.randbytes(900)).decode(),
    "hex": DRAW.randbytes(600).hex(),
    "digits": drawn(string.digits, 1, 9),
    "words that are none": drawn("aeiouyxqzjk", 3, 14),
    "words of any letters": drawn(string.ascii_lowercase),
    "short words": drawn(string.ascii_letters, 1, 2),
    "capitals": drawn(string.ascii_letters, 3, 9),
    "joined": drawn("aeiouyxqzjk", 3, 14, "_"),
    "one long word": "xqzjkxqwvq" * 90,
    "punctuation": drawn(string.punctuation, 1, 5),
    "blanks": f"{' ' * 7}a" * 90,
    "Chinese": characters(0x4E00, 0x9FFF),
    "rare Chinese": characters(0x20000, 0x2A6DF),
    "emoji": characters(0x1F300, 0x1F9FF),
    "Arabic": characters(0x620, 0x64A),
    "accents": characters(0xC0, 0x24F),
    "attacks": "\n".join(PAYLOADS),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("model", MODELS)
def test_a_text_is_no_more_tokens_than_said(model: str, text: str) -> None:
    assert tokens(model, text) <= estimate_max_tokens(text)


def test_the_bound_is_of_use_on_prose() -> None:
    assert estimate_max_tokens(TEXTS["prose"]) < len(TEXTS["prose"]) / 1.5


def test_nothing_is_no_token() -> None:
    assert estimate_max_tokens("") == 0
