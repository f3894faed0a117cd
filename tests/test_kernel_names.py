"""What kernels' names mean, on names of every generation and vendor."""

import pytest

from selftime import names

TENSOR_CORES = [
    "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn",
    "volta_h884gemm_64x128_ldg8_nn",
    "turing_fp16_s1688gemm_fp16_64x64_ldg8_f2f_tn",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
    "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1>(int)",
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32>(int)",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tensor16x8x8_kernel",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
    "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64",
    "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT",
    "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN",
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(int)",
    "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel::Params)",
    "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128",
    "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1",
    "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_4EEvv",
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8",
    "void cutlass::device_kernel<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<5>>(x)",
    "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<int>>>(x)",
    "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_f16_knob_7_64x64x64_4x1x1_kernel0_0",
    "void ck::kernel_gemm_wmma_cshuffle<int>(x)",
    "ampere_d884gemm_64x64_nn",
    "void DeepGEMM::fp8_gemm<1>()",
]
SCALAR = [
    "volta_sgemm_64x64_nt",
    "ampere_sgemm_128x64_nn",
    "ampere_gcgemm_64x64_nt",
    "volta_scudnn_128x128_stridedB_splitK_small_nn_v1",
    "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)",
    "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_stage3_g1_ffma_aligna4",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm50(PyTorchMemEffAttention::AttentionKernel::Params)",
    "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64>>(int)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128>(int)",
    "Cijk_Ailk_Bljk_SB_MT64x64x8_SE_1LDSB0",
    "triton_poi_fused__to_copy_1",
    "triton_poi_fused__scaled_dot_product_flash_attention_mul_3",
    "SubTensorOpWithScalar1d",
    "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<int>>(x)",
    "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::arch::OpClassSimt>>(x)",
    "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<float>(x)",
    "void gemmSN_NN_kernel<float, 128>(x)",
    "void scal_kernel<float, float>(x)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
]
UNKNOWN = [
    "attn_fwd",
    "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1",
    "triton_tem_fused_mm_3",
    "fused_moe_kernel",
    "rmsnorm_gemm_kernel",
    "index_conv_kernel",
    "mystery",
    "",
]


@pytest.mark.parametrize("name", TENSOR_CORES)
def test_runs_on_tensor_cores(name: str) -> None:
    assert names.uses_tensor_cores(name) is True


@pytest.mark.parametrize("name", SCALAR)
def test_runs_on_scalar_units(name: str) -> None:
    assert names.uses_tensor_cores(name) is False


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_name_that_says_nothing_is_unknown(name: str) -> None:
    assert names.uses_tensor_cores(name) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("volta_sgemm_64x64_nt", "gemm"),
        ("nvjet_tst_64x64_64x16_2x1_v_bz_TNT", "gemm"),
        ("Cijk_Alik_Bljk_BBS_BH_MT256x192x64_MI16x16x1", "gemm"),
        ("volta_scudnn_128x128_stridedB_splitK_small_nn_v1", "convolution"),
        ("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tensor16x8x8", "convolution"),
        ("void pytorch_flash::flash_fwd_kernel<int>(int)", "attention"),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2>(float)", "normalization"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float>(float*)", "softmax"),
        (
            "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>()",
            "optimizer",
        ),
        (
            "void multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<float>>()",
            "copy",
        ),
        ("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)", "copy"),
        ("void cub::DeviceRadixSortOnesweepKernel<cub::Policy>(int*)", "sort"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "collective"),
        ("triton_poi_fused_add_1", "elementwise"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_mul_3", "elementwise"),
        ("triton_poi_fused_0", "elementwise"),
        ("triton_poi_fused__to_copy_cat_12", "copy"),
        ("triton_red_fused_mystery_1", "reduction"),
        ("triton_per_fused__softmax_mul_2", "softmax"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "normalization"),
        ("triton_tem_fused_addmm_1", "gemm"),
        ("triton_", "compiled"),
        (
            "void at::native::reduce_kernel<512, ReduceOp<float, NormTwoOps<float>>>(x)",
            "reduction",
        ),
        (
            "void at::native::elementwise_kernel<128, at::_scatter_gather_elementwise<int>>(x)",
            "index",
        ),
        ("SubTensorOpWithScalar1d", "elementwise"),
        (
            "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<int>>>(x)",
            "attention",
        ),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>(x)", "gemm"),
        ("void ck_tile::kentry<256, 1, ck_tile::FmhaFwdKernel<int>>(x)", "attention"),
        ("vllm::scaled_fp8_quant_kernel_strided", "quantization"),
        ("fused_moe_kernel", "gemm"),
        ("mystery", "other"),
        ("", "other"),
    ],
)
def test_class(name: str, kind: str) -> None:
    assert names.kernel_class(name) == kind
    assert kind in names.KERNEL_CLASSES


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("volta_sgemm_64x64_nt", "volta_sgemm_64x64_nt"),
        ("void cudnn::ops::nchwToNhwcKernel<float, (T)2>(float)", "cudnn::ops::nchwToNhwcKernel"),
        (
            (
                "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<"
                "at::native::(anonymous namespace)::direct_copy_kernel_cuda(at::Base&)"
                "::{lambda()#3}::operator()() const::{lambda(float)#1}>(at::Base&)>(int)"
            ),
            "elementwise_kernel<direct_copy_kernel_cuda>",
        ),
        (
            (
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
                "at::native::(anonymous namespace)::TensorListMetadata<2>, "
                "at::native::(anonymous namespace)::AdamFunctor<float>, float>(float)"
            ),
            "multi_tensor_apply_kernel<AdamFunctor>",
        ),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x32>(int)", "cutlass_80_simt_sgemm_128x32"),
        (
            "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16EEv",
            "sgl_hip::activation::act_and_mul_kernel",
        ),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27EEEv", "ck_tile::kentry::Rmsnorm2dFwd"),
        ("_ZN99short", "_ZN99short"),
        ("a<b", "a"),
        ("", ""),
    ],
)
def test_short_name(name: str, short: str) -> None:
    assert names.short_kernel_name(name) == short
