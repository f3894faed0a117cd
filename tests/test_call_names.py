"""What names of calls and of pauses mean, on names that runtimes and recorders write."""

from collections.abc import Callable

import pytest

from selftime import names


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("cudaStreamSynchronize", "stream"),
        ("cudaStreamSynchronize_ptsz", "stream"),
        ("cuStreamSynchronize", "stream"),
        ("hipStreamSynchronize", "stream"),
        ("urQueueFinish", "stream"),
        ("zeCommandListHostSynchronize", "stream"),
        ("aclrtSynchronizeStreamWithTimeout", "stream"),
        ("cudaDeviceSynchronize", "device"),
        ("cuCtxSynchronize", "device"),
        ("hipDeviceSynchronize", "device"),
        ("cudaEventSynchronize", "event"),
        ("hipEventSynchronize", "event"),
        ("urEventWait", "event"),
        ("zeEventHostSynchronize", "event"),
        ("cudaMemcpy", "copy"),
        ("cudaMemcpy2D", "copy"),
        ("cudaMemcpyToSymbol", "copy"),
        ("cuMemcpyHtoD_v2", "copy"),
        ("hipMemcpy", "copy"),
        ("hipMemcpyWithStream", "copy"),
        ("hipMemcpyDtoH", "copy"),
    ],
)
def test_calls_that_hold_the_host(call: str, what: str) -> None:
    assert names.blocking_call_target(call) == what
    assert names.is_blocking_call(call)
    assert not names.is_blocking_call(f"{call}Async")


@pytest.mark.parametrize(
    "call",
    [
        "cudaEventQuery",
        "cudaStreamQuery",
        "cudaEventRecord",
        "cudaStreamWaitEvent",
        "hipStreamWaitEvent",
        "cudaMemcpyAsync",
        "cuMemcpyHtoDAsync_v2",
        "hipMemcpyDtoHAsync",
        "cudaMemcpy2DAsync",
        "cudaMemsetAsync",
        "cudaLaunchKernel",
        "cudaMalloc",
        "cudaPeekAtLastError",
        "zeEventQueryStatus",
        "my_cudaStreamSynchronize",
        "INVALID",
        "",
    ],
)
def test_calls_that_return_at_once(call: str) -> None:
    assert not names.is_blocking_call(call)


@pytest.mark.parametrize(
    ("means", "yes", "no"),
    [
        (
            names.is_device_allocation,
            "cudaMalloc cudaFree cudaMallocAsync cudaHostAlloc cudaFreeHost cuMemAlloc_v2 cuMemMap",
            "cudaMemcpy cudaMemset cudaMallocs malloc cuMemcpy cudaMemGetInfo",
        ),
        (
            names.is_device_allocation,
            "cuMemAddressReserve hipMalloc hipFree hipHostMalloc urUSMDeviceAlloc zeMemFree",
            "hipMemcpy hipMemset zeMemGetAllocProperties",
        ),
        (
            names.is_stream_wait,
            "cudaStreamWaitEvent hipStreamWaitEvent cuStreamWaitEvent",
            "cudaEventSynchronize cudaStreamSynchronize",
        ),
        (
            names.is_kernel_loading,
            "cuModuleLoadData hipModuleLoadData cuLibraryLoadData cuModuleGetFunction",
            "cudaLaunchKernel hipModuleLaunchKernel",
        ),
    ],
)
def test_other_calls(means: Callable[[str], bool], yes: str, no: str) -> None:
    assert [call for call in yes.split() if not means(call)] == []
    assert [call for call in no.split() if means(call)] == []


@pytest.mark.parametrize(
    ("means", "name"),
    [
        (names.is_garbage_collection, "Python GC"),
        (names.is_compilation, "_compile.compile_inner (dynamo_timed)"),
        (names.is_compilation, "GraphLowering.run (dynamo_timed)"),
        (names.is_compilation, "entire_frame_compile_data: fn_name=f, compile_id=0/1"),
        (names.is_compilation, "/x/torch/_dynamo/convert_frame.py(1337): __call__"),
        (names.is_compilation, "torch/_inductor/compile_fx.py(1500): compile_fx_inner"),
        (names.is_compilation, "triton/compiler/compiler.py(226): compile"),
        (names.is_checkpoint_frame, "/usr/lib/torch/serialization.py(943): save"),
        (names.is_checkpoint_frame, "torch/distributed/checkpoint/state_dict_saver.py(61): save"),
        (names.is_logging_frame, "logging/__init__.py(1467): info"),
        (names.is_logging_frame, "torch/_tensor_str.py(700): _str"),
        (names.is_next_batch_frame, "/usr/lib/torch/utils/data/dataloader.py(701): __next__"),
        (names.is_collective_call, "nccl:all_reduce"),
        (names.is_collective_call, "c10d::allreduce_"),
        (names.is_collective_call, "record_param_comms"),
        (names.is_collective_call, "torch/distributed/distributed_c10d.py(4000): barrier"),
        (names.is_collective_call, "torch/distributed/distributed_c10d.py(2806): all_reduce"),
        (names.is_profiler_overhead, "Activity Buffer Request"),
    ],
)
def test_pauses(means: Callable[[str], bool], name: str) -> None:
    assert means(name)
    assert means(name.replace("/", "\\"))


@pytest.mark.parametrize(
    "name",
    [
        "TorchDynamo Cache Lookup",
        "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph fal4xpiah2v6 ##",
        "torch/_dynamo/eval_frame.py(791): compile_wrapper",
        "torch/compiler/__init__.py(367): is_compiling",
        "torch/_inductor/runtime/triton_heuristics.py(1242): run",
        "triton/runtime/jit.py(708): run",
        "torch/_inductor/runtime/autotune_cache.py(487): end_compile",
    ],
)
def test_what_compiled_code_does_at_every_call_is_no_compilation(name: str) -> None:
    assert not names.is_compilation(name)


@pytest.mark.parametrize(
    "name",
    [
        "torch/distributed/distributed_c10d.py(1331): get_backend_config",
        "torch/distributed/distributed_c10d.py(5661): _get_process_group_name",
        "train.py(3): all_reduce",
    ],
)
def test_questions_to_the_process_group_are_no_collectives(name: str) -> None:
    assert not names.is_collective_call(name)


@pytest.mark.parametrize(
    "name",
    ["loader.py(7): __next__", "train.py(3): save", "train.py(4): print", "model.py(5): compile"],
)
def test_a_program_may_use_the_same_words(name: str) -> None:
    assert not names.is_next_batch_frame(name)
    assert not names.is_checkpoint_frame(name)
    assert not names.is_logging_frame(name)
    assert not names.is_compilation(name)


def test_work_for_the_program_is_no_overhead_of_the_recorder() -> None:
    assert not names.is_profiler_overhead("Lazy Function Loading")
    assert not names.is_profiler_overhead("Command Buffer Full")
