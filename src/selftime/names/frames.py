"""What the names of Python frames mean: file, line, function, and whose code it is."""

import re
import sys
from typing import Final, NamedTuple

__all__ = ["Frame", "frame"]


class Frame(NamedTuple):
    """A Python frame as its name tells it."""

    file: str
    line: int
    function: str
    origin: str
    """`user`, `library`, or `system`: torch, the standard library, generated code."""


_FRAME: Final = re.compile(r"(.+)\((\d+)\): (.+)")
_SYSTEM: Final = re.compile(
    r"^<|/torch/|^torch/|(?:^|/)torch(?:inductor|dynamo)|/lib/python\d|/python\d\.\d+/(?!site-packages)"
    r"|^selftime/|/selftime/(?:capture|session)"
)
_LIBRARY: Final = re.compile(r"site-packages/|dist-packages/")
_LIBRARIES: Final = frozenset(
    "accelerate datasets deepspeed diffusers einops flash_attn huggingface_hub lightning"  # noqa: SIM905 - read best as words
    " matplotlib"
    " megatron mmcv mmengine numpy pandas peft pytorch_lightning safetensors scipy sglang sklearn"
    " timm tokenizers torchaudio torchmetrics torchtext torchvision tqdm transformers triton vllm"
    " wandb xformers".split()
)
"""First folders of paths that are relative to a folder of installed packages."""


def frame(text: str) -> Frame | None:
    """A Python frame from its text; None for built-in functions and modules' rows.

    >>> frame("train.py(12): main")
    Frame(file='train.py', line=12, function='main', origin='user')
    >>> frame("torch/nn/functional.py(99): relu").origin, frame("<built-in method relu>")
    ('system', None)
    """
    found = _FRAME.fullmatch(text.strip())
    if found is None:
        return None
    return Frame(found[1], int(found[2]), found[3], _origin(found[1]))


def _origin(file: str) -> str:
    path = file.replace("\\", "/")
    if _LIBRARY.search(path):
        inside = _LIBRARY.split(path)[-1]
        return "system" if inside.startswith(("torch/", "selftime/")) else "library"
    first = path.partition("/")[0].removesuffix(".py")
    if _SYSTEM.search(path) or (not path.startswith("/") and first in sys.stdlib_module_names):
        return "system"
    return "library" if first in _LIBRARIES else "user"
