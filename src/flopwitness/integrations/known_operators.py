"""The operators that are known to do no products, by what they do instead.

A name stands here only if it was looked at. An operator that PyTorch itself tags as pointwise or as a
reduction, or whose schema says that it returns a view, needs no line; any other that is new and stands
neither here nor among the formulas is unrecognised. So are all matrix factorisations (`linalg_*`, Cholesky,
triangular solves): how many operations they are depends on the algorithm.

Names are those of the `aten` namespace without the underscore of the in-place form, unless they carry one of
another namespace.
"""

from collections.abc import Mapping
from typing import Final

from flopwitness.integrations.operation_count import UncountedReason

__all__ = ["KNOWN_OPERATORS", "reason_of_foreach"]

_ELEMENTWISE: Final = """
__irshift__ __lshift__ __rshift__ _add_relu _amp_foreach_non_finite_check_and_unscale _amp_update_scale
_conj_physical _dirichlet_grad _fake_quantize_learnable_per_channel_affine
_fake_quantize_learnable_per_tensor_affine _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
_fused_adagrad _fused_adam _fused_adamw _fused_dropout _fused_moving_avg_obs_fq_helper
_fused_moving_avg_obs_fq_helper_functional _fused_sgd _masked_scale _prelu_kernel _prelu_kernel_backward
_standard_gamma_grad _thnn_fused_gru_cell _thnn_fused_gru_cell_backward _thnn_fused_lstm_cell
_thnn_fused_lstm_cell_backward_impl _transform_bias_rescale_qkv abs add batch_norm_backward_elemt
batch_norm_elemt binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits
bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor celu complex copysign dequantize div
elu elu_backward eq fake_quantize_per_channel_affine_cachemask fake_quantize_per_tensor_affine_cachemask
floor_divide gcd ge gelu gelu_backward glu glu_backward glu_backward_jvp glu_jvp gt hardshrink
hardshrink_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh hardtanh_backward
heaviside huber_loss huber_loss_backward isin isinf isnan lcm le leaky_relu leaky_relu_backward linalg_cross
log_sigmoid_backward log_sigmoid_forward lt masked_fill mish mish_backward mse_loss mse_loss_backward mul
native_dropout native_dropout_backward ne polar quantize_per_channel quantize_per_tensor
quantize_per_tensor_dynamic relu remainder rrelu_with_noise rrelu_with_noise_backward
rrelu_with_noise_functional rsub silu silu_backward smooth_l1_loss smooth_l1_loss_backward soft_margin_loss
soft_margin_loss_backward softplus softplus_backward softshrink softshrink_backward sub threshold
threshold_backward where xlogy
quantization::_Bfloat16QuantizedToFloat quantization::_FloatToBfloat16Quantized
quantized::add quantized::add_out quantized::add_relu quantized::add_relu_out quantized::add_scalar
quantized::add_scalar_out quantized::add_scalar_relu quantized::add_scalar_relu_out quantized::batch_norm
quantized::batch_norm1d quantized::batch_norm1d_relu quantized::batch_norm2d quantized::batch_norm2d_relu
quantized::batch_norm3d quantized::batch_norm3d_relu quantized::batch_norm_relu quantized::celu
quantized::clamp quantized::dropout quantized::elu quantized::hardswish quantized::leaky_relu quantized::mul
quantized::mul_out quantized::mul_relu quantized::mul_relu_out quantized::mul_scalar
quantized::mul_scalar_out quantized::mul_scalar_relu quantized::mul_scalar_relu_out quantized::prelu
quantized::relu6 quantized::sigmoid quantized::threshold _quantized::add onednn::qadd onednn::qadd_relu
onednn::qbatch_norm2d onednn::qmul
"""

_REDUCTION: Final = """
_aminmax _batch_norm_no_update _batch_norm_with_update _batch_norm_with_update_functional _coalesce
_ctc_loss _ctc_loss_backward _cudnn_ctc_loss _cummax_helper _cummin_helper
_fake_quantize_learnable_per_channel_affine_backward _fake_quantize_learnable_per_tensor_affine_backward
_fused_rms_norm _fused_rms_norm_backward _histogramdd_bin_edges _histogramdd_from_bin_cts
_histogramdd_from_bin_tensors _is_all_true _is_any_true _linalg_check_errors _log_softmax
_log_softmax_backward_data _logcumsumexp _masked_softmax _masked_softmax_backward _native_batch_norm_legit
_native_batch_norm_legit_functional _native_batch_norm_legit_no_training _nested_sum_backward
_nested_tensor_softmax_with_shape _safe_softmax _segment_reduce_backward _softmax _softmax_backward_data
_sparse_csr_prod _sparse_csr_sum _sparse_log_softmax _sparse_log_softmax_backward_data _sparse_softmax
_sparse_softmax_backward_data _sparse_sum _sparse_sum_backward _unique _unique2 _weight_norm_interface
_weight_norm_interface_backward allclose batch_norm_backward batch_norm_backward_reduce
batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats bincount
bucketize count_nonzero cudnn_batch_norm cudnn_batch_norm_backward cummax cummin cumprod cumsum dist histc
histogram kthvalue log_softmax logcumsumexp max median min miopen_batch_norm miopen_batch_norm_backward
miopen_ctc_loss mode multi_margin_loss multi_margin_loss_backward multilabel_margin_loss_backward
multilabel_margin_loss_forward nanmedian native_batch_norm native_batch_norm_backward native_group_norm
native_group_norm_backward native_layer_norm native_layer_norm_backward native_norm nll_loss2d_backward
nll_loss2d_forward nll_loss_backward nll_loss_forward norm prod quantized_batch_norm renorm searchsorted
segment_reduce softmax sort std_mean sum topk trace unique_consecutive unique_dim unique_dim_consecutive
var_mean
quantized::group_norm quantized::instance_norm quantized::layer_norm quantized::softmax
"""

_RESAMPLING: Final = """
_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward
_grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward _upsample_bicubic2d_aa
_upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward
_upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward _upsample_nearest_exact1d
_upsample_nearest_exact1d_backward _upsample_nearest_exact2d _upsample_nearest_exact2d_backward
_upsample_nearest_exact3d _upsample_nearest_exact3d_backward adaptive_avg_pool1d adaptive_avg_pool2d
adaptive_avg_pool3d adaptive_avg_pool3d_backward adaptive_max_pool2d adaptive_max_pool2d_backward
adaptive_max_pool3d adaptive_max_pool3d_backward affine_grid_generator avg_pool1d avg_pool2d
avg_pool2d_backward avg_pool3d avg_pool3d_backward cudnn_affine_grid_generator
cudnn_affine_grid_generator_backward cudnn_grid_sampler cudnn_grid_sampler_backward fractional_max_pool2d
fractional_max_pool2d_backward fractional_max_pool3d fractional_max_pool3d_backward grid_sampler_2d
grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward max_pool2d_backward max_pool2d_with_indices
max_pool2d_with_indices_backward max_pool3d_with_indices max_pool3d_with_indices_backward max_unpool2d
max_unpool3d mkldnn_adaptive_avg_pool2d mkldnn_adaptive_avg_pool2d_backward mkldnn_max_pool2d
mkldnn_max_pool2d_backward mkldnn_max_pool3d mkldnn_max_pool3d_backward quantized_max_pool1d
quantized_max_pool2d quantized_max_pool3d upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d
upsample_bilinear2d_backward upsample_linear1d upsample_linear1d_backward upsample_nearest1d
upsample_nearest1d_backward upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d
upsample_nearest3d_backward upsample_trilinear3d upsample_trilinear3d_backward
quantized::max_pool1d quantized::max_pool2d
"""

_MOVEMENT: Final = """
_assert_async _assert_scalar _assert_tensor_metadata _chunk_cat _coalesced _convert_indices_from_coo_to_csr
_convert_indices_from_csr_to_coo _convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu _copy_from
_copy_from_and_resize _cslt_compress _cudnn_init_dropout_state _cudnn_rnn_flatten_weight
_dyn_quant_pack_4bit_weight _efficientzerotensor _embedding_bag _embedding_bag_backward
_embedding_bag_dense_backward _embedding_bag_forward_only _empty_affine_quantized
_empty_per_channel_affine_quantized _fill_mem_eff_dropout_mask _functional_assert_async
_functional_assert_scalar _has_same_storage_numel _index_put_impl _jagged_to_padded_dense_forward
_lazy_clone _local_scalar_dense _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor
_mkldnn_reshape _mkldnn_transpose _nested_compute_contiguous_strides_offsets _nested_from_padded
_nested_from_padded_and_nested_example _nested_from_padded_tensor _nested_select_backward
_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned _nested_tensor_from_tensor_list
_nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides _new_zeros_with_same_feature_meta
_pack_padded_sequence _padded_dense_to_jagged_forward _philox_key_fold_in _philox_key_split _philox_normal
_philox_uniform _pin_memory _resize_output _sample_dirichlet _sparse_compressed_tensor_with_dims
_sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors _sparse_mask_projection
_sparse_semi_structured_apply _sparse_semi_structured_apply_dense _sparse_semi_structured_tile _spdiags
_stack _standard_gamma _to_copy _to_dense _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc
_to_sparse_csr _to_sparse_semi_structured _unsafe_index _unsafe_index_put _unsafe_masked_index
_unsafe_masked_index_put_accumulate _validate_compressed_sparse_indices arange as_strided_scatter
bartlett_window bernoulli binomial blackman_window block_diag cat cauchy channel_shuffle clone col2im
constant_pad_nd copy copy_sparse_to_sparse diag_embed diagonal_backward diagonal_scatter embedding
embedding_dense_backward embedding_renorm empty empty_like empty_permuted empty_quantized empty_strided
exponential eye fft_fftfreq fft_rfftfreq fill flip from_file full full_like gather geometric hamming_window
hann_window hash_tensor im2col index index_add index_copy index_fill index_put index_reduce index_select
int_repr is_coalesced is_pinned is_same_size is_set_to kaiser_window lift lift_fresh linspace log_normal
logspace lu_unpack masked_scatter masked_scatter_backward masked_select mkldnn_reorder_conv2d_weight
mkldnn_reorder_conv3d_weight multinomial narrow_copy new_empty new_empty_strided new_full new_ones new_zeros
nonzero nonzero_static normal normal_functional ones ones_like pixel_shuffle pixel_unshuffle poisson put
q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme rand rand_like
randint randint_like randn randn_like random randperm range record_stream reflection_pad1d
reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward reflection_pad3d
reflection_pad3d_backward repeat repeat_interleave replication_pad1d replication_pad1d_backward
replication_pad2d replication_pad2d_backward replication_pad3d replication_pad3d_backward resize resize_as
resize_as_sparse roll rot90 scalar_tensor scatter scatter_add scatter_reduce select_backward select_scatter
set slice_backward slice_scatter sparse_compressed_tensor sparse_coo_tensor sparse_mask sparse_resize
sparse_resize_and_clear split_with_sizes_copy stack take to_mkldnn to_padded_tensor tril tril_indices triu
triu_indices unfold_backward uniform unsafe_split unsafe_split_with_sizes zero zeros zeros_like
fsdp::all_gather_copy_in fsdp::chunk_cat fsdp::split_with_sizes_copy
inductor::_reinterpret_tensor inductor::resize_storage_bytes_
mkl::_mkl_reorder_linear_weight mkldnn::_reorder_convolution_transpose_weight
mkldnn::_reorder_convolution_weight mkldnn::_reorder_linear_weight
mkldnn::_reorder_mkldnn_rnn_layer_weight
onednn::linear_prepack_fp16 onednn::qconv_prepack onednn::qlinear_prepack
quantized::cat quantized::cat_out quantized::cat_relu quantized::cat_relu_out quantized::conv1d_prepack
quantized::conv2d_prepack quantized::conv3d_prepack quantized::conv_prepack
quantized::conv_transpose1d_prepack quantized::conv_transpose2d_prepack quantized::conv_transpose3d_prepack
quantized::embedding_4bit quantized::embedding_byte quantized::embedding_bag_prepack
quantized::embedding_bag_4bit_prepack quantized::embedding_bag_byte_prepack quantized::linear_prepack
quantized::linear_prepack_fp16 quantized::linear_unpack quantized::linear_unpack_fp16
quantized::make_quantized_cell_params quantized::make_quantized_cell_params_dynamic
quantized::make_quantized_cell_params_fp16
"""

_VIEW: Final = """
_dimI _dimV _fused_sdp_choice _indices _nested_get_jagged_dummy _nested_get_lengths
_nested_get_max_seqlen _nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_get_values
_nested_view_from_buffer _nested_view_from_jagged _nnz _unsafe_view _use_cudnn_ctc_loss _use_miopen_ctc_loss
_values as_strided dense_dim detach is_contiguous is_non_overlapping_and_dense is_strides_like_format numel
sparse_dim squeeze sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel
sym_size sym_storage_offset sym_stride t transpose unsqueeze
prim::device prim::layout prims::view_of profiler::_record_function_enter
profiler::_record_function_enter_new profiler::_record_function_exit
"""

_COMMUNICATION: Final = """
_c10d_functional::all_gather_into_tensor _c10d_functional::all_gather_into_tensor_coalesced
_c10d_functional::all_gather_into_tensor_out _c10d_functional::all_reduce _c10d_functional::all_reduce_
_c10d_functional::all_reduce_coalesced _c10d_functional::all_reduce_coalesced_
_c10d_functional::all_to_all_single _c10d_functional::batch_p2p_ops _c10d_functional::broadcast
_c10d_functional::broadcast_ _c10d_functional::irecv _c10d_functional::isend
_c10d_functional::reduce_scatter_tensor _c10d_functional::reduce_scatter_tensor_coalesced
_c10d_functional::reduce_scatter_tensor_out _c10d_functional::wait_tensor
_c10d_functional_autograd::all_gather_into_tensor _c10d_functional_autograd::all_to_all_single
_c10d_functional_autograd::reduce_scatter_tensor _c10d_functional::_wrap_tensor_autograd
_dtensor::shard_dim_alltoall
c10d::_allgather_base_ c10d::_reduce_scatter_base_ c10d::allgather_ c10d::allgather_coalesced_
c10d::allgather_into_tensor_coalesced_ c10d::allreduce_ c10d::allreduce_coalesced_ c10d::alltoall_
c10d::alltoall_base_ c10d::barrier c10d::broadcast_ c10d::check_for_nan c10d::gather_
c10d::monitored_barrier_ c10d::recv_ c10d::recv_any_source_ c10d::reduce_ c10d::reduce_scatter_
c10d::reduce_scatter_tensor_coalesced_ c10d::scatter_ c10d::send
"""

_LISTS: Final = {
    UncountedReason.ELEMENTWISE: _ELEMENTWISE,
    UncountedReason.REDUCTION: _REDUCTION,
    UncountedReason.RESAMPLING: _RESAMPLING,
    UncountedReason.MOVEMENT: _MOVEMENT,
    UncountedReason.VIEW: _VIEW,
    UncountedReason.COMMUNICATION: _COMMUNICATION,
}

KNOWN_OPERATORS: Final[Mapping[str, UncountedReason]] = {
    name if "::" in name else f"aten::{name}": reason
    for reason, names in _LISTS.items()
    for name in names.split()
}
"""The reason not to count each operator known to do no products, by namespace and name."""

_FOREACH_ELEMENTWISE: Final = """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac
    lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh
    sqrt sub tan tanh trunc
"""
_FOREACH_REDUCTION: Final = "max norm powsum"
_FOREACH_MOVEMENT: Final = "clone copy zero"


def reason_of_foreach(base: str) -> UncountedReason | None:
    """The reason for an operator over lists, by the name of what it does to each member; None if unknown."""
    for names, reason in (
        (_FOREACH_ELEMENTWISE, UncountedReason.ELEMENTWISE),
        (_FOREACH_REDUCTION, UncountedReason.REDUCTION),
        (_FOREACH_MOVEMENT, UncountedReason.MOVEMENT),
    ):
        if base in names.split():
            return reason
    return None
