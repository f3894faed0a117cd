"""Parses Python frames: file, line, function, and whether it is user, library or system code."""

import re
import sys
from typing import Final, NamedTuple


class Frame(NamedTuple):
    """A Python frame, parsed from its name in a trace."""

    file: str
    line: int
    function: str
    origin: str
    """Whose code the file is: `user`, `library`, or `system` (torch, the standard library,
    generated code).
    """


_OBJECT_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")
_MODULE_FRAME: Final = re.compile(r"nn\.Module: (.*?)(?:_(\d+))?")
_LIGHTNING_ANNOTATION: Final = re.compile(r"\[pl\]\[module\]([\w.]+): ([\w.]+)")
_WAITING_BUILT_IN_FRAME: Final = re.compile(
    r"<built-in (?:method (?:acquire|poll|control|get|recv\w*|accept) of (?:_thread\.R?[lL]ock"
    r"|_multiprocessing\.SemLock|select\.\w+|_queue\.SimpleQueue|(?:_socket\.)?socket) object.*"
    r"|method wait of pybind11_builtins\..*"
    r"|function (?:sleep|select|wait\w*|sigwait\w*))>"
)
_WAITING_PYTHON_FRAME: Final = re.compile(
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
"""Matches functions of the standard library that wait, for traces without frames of built-in
functions.
"""
_PYTHON_FRAME: Final = re.compile(r"(.+)\((\d+)\): (.+)")
_DECORATING_FUNCTION: Final = re.compile(
    r"_*(?:inner|new|decorat\w*|wrap\w*)(?:_(?:f|fn|func\w*))?"
)
"""Matches the names that functions which decorators return have by convention."""
_SYSTEM_FILE_PATH: Final = re.compile(
    r"^<|/torch/|^torch/|(?:^|/)torch(?:inductor|dynamo)|/lib/python\d|/python\d\.\d+/(?!site-packages)"
    r"|^selftime/|/selftime/(?:capture|session)"
)
_PACKAGE_FOLDER: Final = re.compile(r"site-packages/|dist-packages/")
_LIBRARY_FOLDERS: Final = frozenset(
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
    cachetools dateutil dm_control gym jax lightgbm mujoco narwhals nibabel pycocotools pytz rdkit
    SimpleITK statsmodels tensorflow threadpoolctl xgboost
    """.split()  # noqa: SIM905 - read best as words
)
"""Names of the top-level packages of known libraries, for paths relative to an installation folder.
"""
_RUNNING_PACKAGES: Final = (
    *("typer/", "click/"),
    *(
        "IPython/",
        "ipykernel/",
        "ipykernel_launcher.py",
        "jupyter_client/",
        "traitlets/",
        "tornado/",
        "zmq/",
    ),
)
"""Packages that run a command, such as `selftime run`, or the cells of a notebook: they are around
all that the program does.
"""
_SYSTEM_PACKAGES: Final = ("torch/", "selftime/", *_RUNNING_PACKAGES)
"""Installed packages whose lines are never named for what they call."""
_LIBRARY_FILES: Final = frozenset({"six.py", "typing_extensions.py"})
"""Single-file libraries; any other file, such as `datasets.py`, counts as the user's."""


def parse_frame(frame_name: str) -> Frame | None:
    """Parses a Python frame's name; returns None for built-in functions and `nn.Module` calls.

    >>> parse_frame("train.py(12): main")
    Frame(file='train.py', line=12, function='main', origin='user')
    >>> parse_frame("torch/functional.py(99): relu").origin, parse_frame("<built-in method relu>")
    ('system', None)
    >>> parse_frame("ray/experimental/tqdm_ray.py(37): safe_print").origin
    'library'
    >>> parse_frame("narwhals/_utils.py(1601): _hasattr_static").origin
    'library'
    >>> parse_frame("typer/main.py(1445): wrapper").origin
    'system'
    >>> parse_frame("datasets.py(7): __getitem__").origin
    'user'
    """
    found = _PYTHON_FRAME.fullmatch(frame_name.strip())
    if found is None:
        return None
    return Frame(found[1], int(found[2]), found[3], _file_origin(found[1]))


def _file_origin(file: str) -> str:
    """Returns the origin of a source file: `user`, `library` or `system`."""
    path = file.replace("\\", "/")
    if _PACKAGE_FOLDER.search(path):
        inside = _PACKAGE_FOLDER.split(path)[-1]
        return "system" if inside.startswith(_SYSTEM_PACKAGES) else "library"
    if path.startswith(_RUNNING_PACKAGES):
        return "system"
    first, _, below = path.partition("/")
    standard = first.removesuffix(".py") in sys.stdlib_module_names
    if _SYSTEM_FILE_PATH.search(path) or (standard and not path.startswith("/")):
        return "system"
    is_library = first in _LIBRARY_FOLDERS if below else first in _LIBRARY_FILES
    return "library" if is_library else "user"


def is_decorating_frame(frame_name: str) -> bool:
    """Returns whether a frame is a decorator's, by the name that it has by convention.

    >>> is_decorating_frame("sklearn/utils/_param_validation.py(187): wrapper")
    True
    >>> is_decorating_frame("sklearn/metrics/_ranking.py(499): roc_auc_score")
    False
    """
    known = parse_frame(frame_name)
    return known is not None and _DECORATING_FUNCTION.fullmatch(known.function) is not None


def qualified_function(frame: Frame) -> str:
    """Returns the function of a library with its module, up to the first private one.

    >>> qualified_function(parse_frame("sklearn/metrics/_ranking.py(499): roc_auc_score"))
    'sklearn.metrics.roc_auc_score'
    >>> qualified_function(parse_frame("/venv/site-packages/pandas/core/frame.py(9): groupby"))
    'pandas.core.frame.groupby'
    """
    path = _PACKAGE_FOLDER.split(frame.file.replace("\\", "/"))[-1]
    modules = path.removesuffix(".py").removesuffix("/__init__").lstrip("/").split("/")
    private = next((at for at, name in enumerate(modules) if name.startswith("_")), len(modules))
    return ".".join([*modules[: max(private, 1)], frame.function])


def is_users_file(file: str) -> bool:
    """Returns whether a source file is the user's own, and neither PyTorch's nor a library's.

    >>> is_users_file("/data/me/train.py"), is_users_file("/venv/site-packages/timm/layers.py")
    (True, False)
    """
    return _file_origin(file) == "user"


def is_waiting_frame(frame_name: str) -> bool:
    """Returns whether an innermost Python frame waits for a lock, timer, socket or child process.

    >>> is_waiting_frame("<built-in method acquire of _thread.lock object at 0x7f00>")
    True
    >>> is_waiting_frame("threading.py(359): wait"), is_waiting_frame("train.py(3): wait")
    (True, False)
    """
    found = (
        _WAITING_BUILT_IN_FRAME if frame_name.startswith("<") else _WAITING_PYTHON_FRAME
    ).fullmatch(frame_name)
    return found is not None


def is_program_work(frame_name: str) -> bool:
    """Returns whether a frame is work of the program or its libraries: neither PyTorch nor a wait.

    Built-in functions count unless they belong to PyTorch.

    >>> is_program_work("serve.py(30): detokenize"), is_program_work("torch/_ops.py(9): __call__")
    (True, False)
    >>> is_program_work("<built-in method sort of list object at 0x7f3e8>")
    True
    >>> is_program_work("<built-in method add of Tensor object at 0x7f3e8>")
    False
    """
    if is_waiting_frame(frame_name) or frame_name.startswith("nn.Module"):
        return False
    found = parse_frame(frame_name)
    if found is None:
        return "ensor" not in frame_name and "torch" not in frame_name
    return found.origin != "system"


def without_object_address(frame_name: str) -> str:
    """Returns a frame's name without its object's address, which differs in every run.

    >>> without_object_address("<built-in method add_ of Tensor object at 0x7f3e8bc17c00>")
    '<built-in method add_ of Tensor object>'
    """
    return _OBJECT_ADDRESS.sub("", frame_name)


def module_class(frame_name: str) -> str:
    """Returns the class of an `nn.Module`, from the name of the frame of its call.

    >>> module_class("nn.Module: Linear_12"), module_class("nn.Module: Model_v2_0")
    ('Linear', 'Model_v2')
    """
    found = _MODULE_FRAME.fullmatch(frame_name)
    return found[1] if found else frame_name


def lightning_module(frame_name: str) -> tuple[str, str] | None:
    """Returns a module's class and attribute path, from the annotation of PyTorch Lightning.

    >>> lightning_module("[pl][module]torch.nn.modules.linear.Linear: encoder.layers.0")
    ('Linear', 'encoder.layers.0')
    """
    found = _LIGHTNING_ANNOTATION.fullmatch(frame_name)
    return (found[1].rpartition(".")[2], found[2]) if found else None
