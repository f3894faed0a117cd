"""What the names of Python frames mean: file, line, function, and whose code it is."""

import re
import sys
from typing import Final, NamedTuple


class Frame(NamedTuple):
    """A Python frame as its name tells it."""

    file: str
    line: int
    function: str
    origin: str
    """`user`, `library`, or `system`: torch, the standard library, generated code."""


_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")
_MODULE: Final = re.compile(r"nn\.Module: (.*?)(?:_(\d+))?")
_LIGHTNING: Final = re.compile(r"\[pl\]\[module\]([\w.]+): ([\w.]+)")
_WAITING_BUILT_IN: Final = re.compile(
    r"<built-in (?:method (?:acquire|poll|control|get|recv\w*|accept) of (?:_thread\.R?[lL]ock"
    r"|_multiprocessing\.SemLock|select\.\w+|_queue\.SimpleQueue|(?:_socket\.)?socket) object.*"
    r"|function (?:sleep|select|wait\w*|sigwait\w*))>"
)
_WAITING: Final = re.compile(
    r"(?:.*/lib/python[\d.]+/|.*/python[\d.]+/)?(?:"
    r"threading\.py\(\d+\): (?:wait|wait_for|acquire|join|_wait_for_tstate_lock)"
    r"|queue\.py\(\d+\): (?:get|put|join)"
    r"|selectors\.py\(\d+\): select"
    r"|socket\.py\(\d+\): (?:accept|readinto)"
    r"|subprocess\.py\(\d+\): (?:wait|_wait|_try_wait)"
    r"|multiprocessing/(?:connection\.py\(\d+\): (?:wait|poll|_poll|_recv|_recv_bytes|recv)"
    r"|popen_fork\.py\(\d+\): (?:wait|poll)"
    r"|synchronize\.py\(\d+\): (?:wait|__enter__)|queues\.py\(\d+\): get)"
    r"|concurrent/futures/_base\.py\(\d+\): (?:wait|result))"
)
"""The standard library's own functions that wait, should the built-in below not be recorded."""
_FRAME: Final = re.compile(r"(.+)\((\d+)\): (.+)")
_SYSTEM: Final = re.compile(
    r"^<|/torch/|^torch/|(?:^|/)torch(?:inductor|dynamo)|/lib/python\d|/python\d\.\d+/(?!site-packages)"
    r"|^selftime/|/selftime/(?:capture|session)"
)
_LIBRARY: Final = re.compile(r"site-packages/|dist-packages/")
_LIBRARIES: Final = frozenset(
    """
    accelerate apex axolotl bitsandbytes colossalai composer deepspeed fairscale fairseq fastai
    galore_torch ignite lightning lightning_fabric liger_kernel megatron optimum peft
    pytorch_lightning ray skorch torchao torchtitan torchtune transformer_engine trl unsloth
    xformers
    detectron2 diffusers flash_attn gpytorch mmcv mmdet mmengine mmpretrain mmseg monai
    open_clip pyro segmentation_models_pytorch sentence_transformers sglang speechbrain
    stable_baselines3 tensordict timm torch_geometric torchrl torchvision torchaudio
    torchmetrics torchtext transformers triton ultralytics vllm
    albumentations cv2 datasets decord ffcv gymnasium h5py imageio kornia
    librosa lmdb nltk nvidia PIL pyarrow safetensors sentencepiece skimage soundfile spacy
    tiktoken tokenizers torchdata torchcodec webdataset zarr
    clearml comet_ml hydra loguru matplotlib mlflow neptune omegaconf optuna plotly pytest
    rich seaborn tensorboard tensorboardX tqdm wandb
    cupy dask einops joblib numba numpy opt_einsum pandas polars scipy sklearn
    boto3 botocore click httpx huggingface_hub psutil pydantic requests s3fs urllib3 yaml
    filelock fsspec jinja2 markupsafe mpmath networkx sympy typing_extensions
    """.split()  # noqa: SIM905 - read best as words
)
"""First folders of paths that are relative to a folder of installed packages: what trains, models,
data, what tells of a run, numbers, others; the last line is what PyTorch itself needs."""
_MODULES: Final = frozenset({"six.py", "typing_extensions.py"})
"""Libraries of one file; any other, such as `datasets.py`, is the program's own."""


def frame(text: str) -> Frame | None:
    """A Python frame from its text; None for built-in functions and modules' rows.

    >>> frame("train.py(12): main")
    Frame(file='train.py', line=12, function='main', origin='user')
    >>> frame("torch/nn/functional.py(99): relu").origin, frame("<built-in method relu>")
    ('system', None)
    >>> frame("ray/experimental/tqdm_ray.py(37): safe_print").origin
    'library'
    >>> frame("datasets.py(7): __getitem__").origin
    'user'
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
    first, _, below = path.partition("/")
    standard = first.removesuffix(".py") in sys.stdlib_module_names
    if _SYSTEM.search(path) or (standard and not path.startswith("/")):
        return "system"
    is_library = first in _LIBRARIES if below else first in _MODULES
    return "library" if is_library else "user"


def is_waiting_frame(text: str) -> bool:
    """Whether a thread whose innermost frame this is waits: for a lock, a timer, a socket, a child.

    >>> is_waiting_frame("<built-in method acquire of _thread.lock object at 0x7f00>")
    True
    >>> is_waiting_frame("threading.py(359): wait"), is_waiting_frame("train.py(3): wait")
    (True, False)
    """
    found = (_WAITING_BUILT_IN if text.startswith("<") else _WAITING).fullmatch(text)
    return found is not None


def is_own_work(text: str) -> bool:
    """Whether a frame is of the program or its libraries, and neither PyTorch's nor a wait.

    Of built-in functions those are that PyTorch does not bring.

    >>> is_own_work("serve.py(30): detokenize"), is_own_work("torch/_ops.py(9): __call__")
    (True, False)
    >>> is_own_work("<built-in method sort of list object at 0x7f3e8>")
    True
    >>> is_own_work("<built-in method add of Tensor object at 0x7f3e8>")
    False
    """
    if is_waiting_frame(text) or text.startswith("nn.Module"):
        return False
    found = frame(text)
    if found is None:
        return "ensor" not in text and "torch" not in text
    return found.origin != "system"


def without_address(text: str) -> str:
    """A name without the address of its object, which says nothing and differs from run to run.

    >>> without_address("<built-in method add_ of Tensor object at 0x7f3e8bc17c00>")
    '<built-in method add_ of Tensor object>'
    """
    return _ADDRESS.sub("", text)


def module_of(text: str) -> str:
    """The class of a module, from the frame of its call.

    >>> module_of("nn.Module: Linear_12"), module_of("nn.Module: Model_v2_0")
    ('Linear', 'Model_v2')
    """
    found = _MODULE.fullmatch(text)
    return found[1] if found else text


def lightning_module(text: str) -> tuple[str, str] | None:
    """The class of a module and the attributes that lead to it, from Lightning's annotation.

    >>> lightning_module("[pl][module]torch.nn.modules.linear.Linear: encoder.layers.0")
    ('Linear', 'encoder.layers.0')
    """
    found = _LIGHTNING.fullmatch(text)
    return (found[1].rpartition(".")[2], found[2]) if found else None
