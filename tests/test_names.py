"""What names mean, on names that real traces hold."""

import pytest

from selftime import names
from selftime.names.collective_kernels import collective_of_kernel
from selftime.schema import TRACK_KINDS


def test_every_category_lies_on_a_kind_of_track() -> None:
    assert set(names.TRACK_KIND_BY_CATEGORY.values()) <= set(TRACK_KINDS)
    assert set(names.CURRENT_CATEGORY_BY_OLD_NAME.values()) <= set(names.TRACK_KIND_BY_CATEGORY)
    assert not set(names.CURRENT_CATEGORY_BY_OLD_NAME) & set(names.TRACK_KIND_BY_CATEGORY)
    assert all(
        category == category.lower()
        for category in (*names.CURRENT_CATEGORY_BY_OLD_NAME, *names.TRACK_KIND_BY_CATEGORY)
    )


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ProfilerStep#0", 0),
        ("ProfilerStep#120", 120),
        ("ProfilerStep*", None),
        ("ProfilerStep#", None),
        ("ProfilerStep#1 ", None),
        ("my ProfilerStep#1", None),
        ("", None),
    ],
)
def test_steps(name: str, number: int | None) -> None:
    assert names.profiler_step_number(name) == number


@pytest.mark.parametrize(
    "name",
    [
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "[pl][profile]enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "enumerate(DataPipe)#Mapper",
        "[pl][profile][_TrainingEpochLoop].train_dataloader_next",
    ],
)
def test_data_loading(name: str) -> None:
    assert names.is_data_loading(name)
    assert not names.is_data_loading(f"not {name}")


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
        "void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)",
        "void deep_ep::internode::dispatch<false>(int4*)",
    ],
)
def test_kernels_of_collectives(name: str) -> None:
    assert names.is_collective_kernel(name)


_KERNELS_OF_KIND = {
    "allreduce": (
        "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs4K)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1, 8>()",
        "void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half>, __half>()",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true>(AllReduceParams)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>()",
        "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<float, 4>()",
        "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>()",
        "userbuffers_fp16_sum_inplace_gpu_rw(int, int, int)",
    ),
    "allgather": ("userbuffers_fp16_sum_inplace_gpu_rw_ag(int, int, int)",),
    "reducescatter": ("userbuffers_fp16_sum_inplace_gpu_rr_rs(int, int, int)",),
    "barrier": ("c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int)",),
    "send": (
        "c10d::symmetric_memory::put_signal_kernel(unsigned int**, int, int)",
        "kuserbuffers_pushsend(int*, int*, int4*, int4*, int)",
    ),
    "recv": (
        "c10d::symmetric_memory::wait_signal_kernel(unsigned int**, int, int)",
        "kuserbuffers_pushrecv(int, int, int*, int*, int)",
    ),
    "exchange": (
        "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>()",
        "void deep_ep::internode_ll::dispatch<false, false, 7168>()",
        "EpDispatchIntraNodeKernel_bf16",
        "void mori::moe::EpCombineInterNodeKernel<float>(EpDispatchCombineArgs<float>)",
        "c10d::nvshmem_extension::exchangeSplitAndOffset(long*, int, int)",
        "void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8, 4>()",
    ),
    None: ("nvshmemi_transfer_kernel(void*, void const*)",),
}
"""Kernels of libraries whose exchanges no process group of PyTorch records, by what they do."""


@pytest.mark.parametrize("kind", _KERNELS_OF_KIND)
def test_what_a_kernel_exchanges(kind: str | None) -> None:
    for name in _KERNELS_OF_KIND[kind]:
        assert names.is_collective_kernel(name), name
        assert collective_of_kernel(name) == kind, name


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp)",
        "ampere_sgemm_128x64_tn",
        "Memcpy DtoH (Device -> Pageable)",
        "triton_poi_fused_add_0",
        "void cudnn::bn_bw_1C11_singleread<float>",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
        "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits>()",
        "void moe::warpAllReduceKernel<float>(float*)",
        "void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, int>()",
        "void tensorrt_llm::kernels::moeTopKFuncAllToAll<float>()",
    ],
)
def test_other_kernels(name: str) -> None:
    assert not names.is_collective_kernel(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudaLaunchKernel", True),
        ("cudaLaunchKernelExC", True),
        ("cuLaunchKernelEx", True),
        ("hipLaunchKernel", True),
        ("hipExtModuleLaunchKernel", True),
        ("cudaGraphLaunch", True),
        ("hipGraphLaunch", True),
        ("cudaMemcpyAsync", True),
        ("cudaLaunchCooperativeKernel", True),
        ("cudaDeviceSynchronize", False),
        ("cudaMalloc", False),
        ("cudaMemsetAsync", False),
        ("aten::cudaLaunchKernel", False),
    ],
)
def test_launches(name: str, *, expected: bool) -> None:
    assert names.is_launch(name) is expected


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("train.py(12): main", "user"),
        ("/data/project/train.py(12): main", "user"),
        ("/data/torch_project/train.py(12): main", "user"),
        ("C:\\Users\\me\\train.py(12): main", "user"),
        ("torch/nn/modules/module.py(1501): _call_impl", "system"),
        ("/env/lib/python3.10/site-packages/torch/nn/functional.py(1): f", "system"),
        ("/env/lib/python3.10/threading.py(1): run", "system"),
        ("threading.py(1): run", "system"),
        ("<string>(1): <module>", "system"),
        ("/env/lib/python3.10/site-packages/timm/layers.py(1): forward", "library"),
        ("transformers/models/bert/modeling_bert.py(1): forward", "library"),
    ],
)
def test_whose_frame_it_is(text: str, origin: str) -> None:
    found = names.parse_frame(text)
    assert found is not None
    assert found.origin == origin


@pytest.mark.parametrize("text", ["", "nn.Module: Linear_0", "<built-in method relu>", "a.py: f"])
def test_what_is_no_frame(text: str) -> None:
    assert names.parse_frame(text) is None
