"""Tells names that PyTorch, the drivers and public libraries give from those that a user gives.

What is not known to be public counts as the user's: a name of a public library that is missing here
is hidden by `selftime redact --names`. What a user's name shares with a public one is kept: a
kernel of PyTorch whose template has an argument of the user's, without a namespace, is PyTorch's.
"""

import re
from typing import Final

from selftime.names.event_categories import CURRENT_CATEGORY_BY_OLD_NAME, TRACK_KIND_BY_CATEGORY

_LAYERS: Final = frozenset(
    """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d
    BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d BatchNorm3d Bilinear CELU CTCLoss
    ChannelShuffle CircularPad1d CircularPad2d ConstantPad1d ConstantPad2d ConstantPad3d Conv1d
    Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss
    CosineSimilarity CrossEntropyLoss DataParallel DistributedDataParallel Dropout Dropout1d
    Dropout2d Dropout3d ELU Embedding EmbeddingBag FeatureAlphaDropout Flatten Fold
    FractionalMaxPool2d FullyShardedDataParallel GELU GLU GRU GRUCell GaussianNLLLoss GroupNorm
    Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity InstanceNorm1d
    InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LPPool1d LPPool2d LSTM LSTMCell LayerNorm
    LazyConv2d LazyLinear LeakyReLU Linear LocalResponseNorm LogSigmoid LogSoftmax MSELoss
    MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d MaxUnpool2d Mish ModuleDict ModuleList
    MultiLabelMarginLoss MultiMarginLoss MultiheadAttention NLLLoss
    NonDynamicallyQuantizableLinear OptimizedModule PReLU PairwiseDistance ParameterDict
    ParameterList PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm RNN RNNCell RReLU ReLU ReLU6
    ReflectionPad1d ReflectionPad2d ReplicationPad1d ReplicationPad2d SELU Sequential SiLU Sigmoid
    SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign
    SyncBatchNorm Tanh Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer
    TransformerEncoder TransformerEncoderLayer TripletMarginLoss Unflatten Unfold Upsample
    UpsamplingBilinear2d UpsamplingNearest2d ZeroPad2d
    """.split()  # noqa: SIM905 - read best as words
)
"""Classes of torch.nn."""
_OPTIMIZERS: Final = (
    "Adadelta|Adafactor|Adagrad|AdamW?|Adamax|ASGD|LBFGS|Muon|NAdam|RAdam|RMSprop|Rprop|SGD"
    "|SparseAdam|Fused\\w*Adam\\w*|FusedSGD|FusedLAMB|ZeroRedundancyOptimizer"
)
_LIBRARIES: Final = (
    "aten|prims?|c10d(?:_functional)?|_c10d_functional(?:_autograd)?|torch|torchvision|torchaudio"
    "|quantized|quantized_decomposed|inductor|nccl|gloo|mpi|ucc|rccl|fbgemm|fbgemm_gpu|vllm|_C"
    "|_C_cache_ops|_moe_C|_rocm_C|sgl_kernel|sglang|aiter|flash_attn\\w*|xformers\\w*|mkldnn\\w*"
    "|onednn|symm_mem|fsdp|higher_order|profiler|rngprims|static_runtime|sparse|mkl|miopen|cudnn"
    "|bitsandbytes|torchao|transformer_engine|deepspeed|apex|triton"
)
_ANNOTATION: Final = re.compile(
    r"ProfilerStep\*|ProfilerStep#?\s*\d+|\d+"
    rf"|Optimizer\.(?:step|zero_grad)#(?:{_OPTIMIZERS})\.(?:step|zero_grad)"
    r"|enumerate\(DataLoader\)#_\w+DataLoaderIter\.__next__"
    r"|(?:DistributedDataParallel|DataParallel|FullyShardedDataParallel)\.\w+"
    r"|(?:nccl|gloo|mpi|ucc|rccl):\w+|Torch-Compiled Region: [\d/]+|TorchDynamo Cache Lookup"
    r"|(?:AOTDispatcher|Pregraph|CUDAGraph)[\w :]*|## Call CompiledFxGraph \w+ ##"
    r"|## (?:forward|backward|optimizer|zero_grad|load_batch|data_load) ##"
    r"|FSDP::\w+|Iteration Start: PyTorch Profiler|Record Window End|PyTorch Profiler \(\d+\)"
    r"|selftime[:.]?[ \w]*"
)
_AUTOGRAD_PREFIX: Final = re.compile(
    r"(autograd::engine::evaluate_function: |torch::autograd::(?:CppNode<)?)"
)
_OPERATOR: Final = re.compile(
    rf"(?:{_LIBRARIES})::.+|(?:torch[.:]+)?(?:autograd|distributed|jit)[.:]+.+"
    r"|torch\.distributed\.ddp\.reducer::\w+|[A-Z]\w*Backward\d+|AccumulateGrad|GraphRoot"
    r"|CompiledFunction(?:Backward)?|record_param_comms|detach_?|<(?:for|back)ward op>"
    r"|triton_(?:poi|per|red|tem|for|mm|bmm|unk|spl)_fused_\w+|\[memory\]|\[OutOfMemory\]"
)
_KERNEL: Final = re.compile(
    r"(?:void |std::enable_if<[^>]*>::type )?(?:at::|at_cuda_detail::|c10::|cutlass|cublas\w*::"
    r"|cudnn\w*"
    r"|cub::|thrust::|nccl(?:Dev)?Kernel|rccl\w*Kernel|(?:ampere|volta|turing|hopper|maxwell|pascal)_"
    r"|sm\d\d_|(?:\w+_)?xmma_|nvjet_|cask\w*::|gem[mv]\w*[_:]kernel|splitK\w*|dot_kernel|wgrad_alg"
    r"|dgrad_\w*engine|reduce_1Block_kernel|implicit_convolve|conv2d_grouped|fft[\w:]+|SubTensorOp\w+"
    r"|multi_tensor_apply_kernel|batched_transpose_\d|(?:trans)pose_(?:CNHW|NCHW)|tensorrt_llm::"
    r"|\(anonymous namespace\)::softmax_warp|flash::|flash_(?:fwd|bwd)|pytorch_flash::|fmha_|vllm::"
    r"|fbgemm_gpu::|Cijk_|ck::|ck_tile::|_ZN\d+(?:ck|ck_tile|at|cub|rocprim)\d|miopen\w*|MIOpen\w*"
    r"|mlopen\w*|hipblas\w*::|rocblas\w*|rocprim::|hipcub::|__amd_rocclr|bn_(?:fw|bw)_|nchwToNhwc"
    r"|nhwcToNchw|magma_|transformer_engine::|triton_(?:poi|per|red|tem|for|mm|bmm|unk|spl)_fused_"
    r"|fused_dropout_kernel|cunn_\w+|Memcpy|Memset|memcpy|memset)"
)
_NAMESPACE: Final = re.compile(r"(?<![\w:>)])(\w+)::")
"""Matches the outermost namespace of each C++ name in a kernel's name."""
_PUBLIC_NAMESPACE: Final = re.compile(
    r"at|at_\w+_detail|c10|const|ck|ck_tile|cub|cuda|cute|flash|pytorch_flash|std|thrust|torch"
    r"|(?:cask|cublas|cudnn|cutlass|hipblas|hipcub|rocblas|rocprim)\w*"
    r"|fbgemm_gpu|flashinfer|tensorrt_llm|transformer_engine|vllm"
)
_CALL: Final = re.compile(
    r"(?:cuda|hip|cu|hsa|nccl|rccl|ze)[A-Z_]\w*|Memcpy .*|Memset .*|Runtime Triggered \w+"
    r"|(?:Stream|Event|Context|Device) (?:Sync|Wait)\w*.*"
    r"|(?:Command|Activity|Buffer|Instrumentation|Resource|Overhead|Lazy|Kernel|Profiler)[\w /]*"
    r"|\[memory\]|\[OutOfMemory\]|ac2g|fwdbwd|async\w*"
)
_LABEL: Final = re.compile(
    r"(?:thread \S+ \(|)(?:python[\d.]*|pt_\w+|cuda\w*|)\)?|stream -?\d+ ?(?:\(\d+\))?|GPU \d+|CPU"
    r"|Device \d+|(?:Trace )?PyTorch Profiler(?: \(\d+\))?|Spans|Traces|thread \d+|\d+|\?"
)
_THREAD_LABEL: Final = re.compile(r"(thread \S+ \()(.+)(\))")
_MODULE: Final = re.compile(r"nn\.Module: (.*?)(_\d+)?")
_EXTENSION_CALL: Final = re.compile(r"(<built-in (?:method|function) )(\w+)( of .*PyCapsule.*>)")

_OTHER_CATEGORIES: Final = (
    "ac2g", "async", "async_cpu_to_gpu", "async_gpu", "cpu_instant_event", "fwdbwd", "__metadata",
    "memory", "trace", "overhead", "",
)  # fmt: skip
_CATEGORIES: Final = frozenset(
    {*TRACK_KIND_BY_CATEGORY, *CURRENT_CATEGORY_BY_OLD_NAME, *map(str.lower, _OTHER_CATEGORIES)}
)
EVENT_KEYS: Final = frozenset(
    """
    ph cat name pid tid ts dur id s bp args sort_index labels Addr Bytes kind device stream
    correlation grid block context queued cbid cid ptr src dst size bytes scope finished kernel
    kernel_backend kernel_file kernel_hash kernel_kwargs kernel_name num_stages num_warps dtype
    cuda_sync_kind wait_on_stream wait_on_cuda_event_id wait_on_cuda_event_record_corr_id
    """.split()  # noqa: SIM905 - read best as words
) | {
    "Call stack", "Collective name", "Concrete Inputs", "Device", "Device Id", "Device Type",
    "Ev Idx", "External id", "Fwd thread id", "Global rank start", "Global rank stride",
    "Group size",
    "In msg nelems", "In split size", "Input Dims", "Input Strides", "Input type",
    "Module Hierarchy", "Op count", "Out msg nelems", "Out split size", "Process Group Description",
    "Process Group ID", "Process Group Name", "Process Group Ranks",
    "Profiler Event Index", "Python id",
    "Python module id", "Python parent id", "Rank", "Src Rank", "Dst Rank", "Seq",
    "Record function id", "Sequence number", "Total Allocated", "Total Reserved",
    "Trace iteration",
    "Trace name", "blocks per SM", "est. achieved occupancy %", "external id", "external ts",
    "memory bandwidth (GB/s)", "registers per thread", "shared memory", "warps per SM", "graph id",
    "graph node id", "stack", "begin", "end",
}  # fmt: skip
"""Keys of events and of their arguments that recorders write."""
TEXT_KEYS: Final = frozenset(
    {"ph", "id", "s", "bp", "kind", "Device", "scope", "kernel_backend", "dtype", "cuda_sync_kind",
     "Collective name", "Input type", "Input Dims", "Input Strides", "Group size", "name", "labels",
     "cat", "Call stack", "kernel_file", "kernel_hash", "Concrete Inputs", "grid", "stack"}
)  # fmt: skip
"""Keys whose texts recorders write, or that are looked at by their form or by what they name."""
FILE_KEYS: Final = frozenset(
    """
    schemaVersion traceEvents deviceProperties distributedInfo displayTimeUnit baseTimeNanoseconds
    cuda_driver_version cuda_runtime_version cupti_version hip_driver_version hip_runtime_version
    roctracer_version profile_memory record_shapes with_flops with_modules with_stack traceName
    trace_id selftime selftime_tracks selftime_clock otherData
    """.split()  # noqa: SIM905 - read best as words
)
"""Keys beside the events that recorders write."""
FACT_KEYS_OF_NAMES: Final = {
    "functions": "function", "function": "function", "class_name": "class", "dataset": "class",
}  # fmt: skip
"""Keys of selftime's facts whose texts are names of the user's code, each with what they name."""
FACT_KEYS_OF_FILES: Final = frozenset({"files", "file"})
_PUBLIC_CLASSES: Final = re.compile(
    rf"(?:{_OPTIMIZERS})|(?:Iterable)?DataLoader|torch\.\w+|\w+dict"
)


def is_public_name(category: str, name: str) -> bool:
    """Returns whether a recorder or a public library gave an event of a category its name.

    >>> is_public_name("cpu_op", "aten::mm"), is_public_name("cpu_op", "acme::mm")
    (True, False)
    >>> is_public_name("user_annotation", "ProfilerStep#3"), is_public_name("kernel", "acme_fwd")
    (True, False)
    """
    category = category.lower()
    if _ANNOTATION.fullmatch(name):
        return True
    if category == "python_function":
        return _is_public_frame(name)
    if category in {"cpu_op", "operator"}:
        bare = _AUTOGRAD_PREFIX.sub("", name)
        return _OPERATOR.fullmatch(bare) is not None
    if category == "kernel":
        return _KERNEL.match(name) is not None and all(
            _PUBLIC_NAMESPACE.fullmatch(root) for root in _NAMESPACE.findall(name)
        )
    return _CALL.fullmatch(name) is not None


def _is_public_frame(name: str) -> bool:
    module = _MODULE.fullmatch(name)
    if module is not None:
        return module[1] in _LAYERS
    return _EXTENSION_CALL.fullmatch(name) is None


def is_public_category(category: str) -> bool:
    """Returns whether recorders write a category of events."""
    return category.lower() in _CATEGORIES


def is_public_label(text: str) -> bool:
    """Returns whether the label of a process or thread is one that recorders give.

    >>> is_public_label("thread 7 (python3)"), is_public_label("loader of acme")
    (True, False)
    """
    return _LABEL.fullmatch(text.strip()) is not None


def is_public_class(text: str) -> bool:
    """Returns whether a class is one of torch's own, such as `Adam`."""
    return _PUBLIC_CLASSES.fullmatch(text) is not None or text in _LAYERS


def private_part(name: str) -> tuple[str, str, str, str]:
    """Returns (kind, text before, private text, text after) of a name that is not public.

    >>> private_part("nn.Module: Falcon_0")
    ('module', 'nn.Module: ', 'Falcon', '_0')
    >>> private_part("autograd::engine::evaluate_function: FalconBackward")[2]
    'FalconBackward'
    """
    module = _MODULE.fullmatch(name)
    if module is not None:
        return "module", "nn.Module: ", module[1], module[2] or ""
    call = _EXTENSION_CALL.fullmatch(name)
    if call is not None:
        return "function", call[1], call[2], call[3]
    label = _THREAD_LABEL.fullmatch(name.strip())
    if label is not None:
        return "label", label[1], label[2], label[3]
    prefix = _AUTOGRAD_PREFIX.match(name)
    head = prefix[0] if prefix else ""
    return "name", head, name[len(head) :], ""
