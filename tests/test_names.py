"""What names mean, on names that real traces hold."""

import pytest

from selftime import names
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


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp)",
        "ampere_sgemm_128x64_tn",
        "Memcpy DtoH (Device -> Pageable)",
        "triton_poi_fused_add_0",
        "void cudnn::bn_bw_1C11_singleread<float>",
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
