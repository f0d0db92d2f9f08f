/* Tensor maps, written by the driver. */
#include "tensor_map.h"

#include <string.h>

#include "cuda_compat.h"

gx_status gx_tensor_map_find(PFN_cuTensorMapEncodeTiled_v12000 *encode, gx_error *err)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *symbol = NULL;

    *encode = NULL;
    GX_TRY(
        GX_CUDA(gx_compat_driver_entry("cuTensorMapEncodeTiled", &symbol, &found), err));
    if (found != cudaDriverEntryPointSuccess || symbol == NULL)
        return GX_FAIL(err, GX_ERR_UNSUPPORTED, "the driver has no %s",
                       "cuTensorMapEncodeTiled");
    memcpy(encode, &symbol, sizeof *encode);
    return GX_OK;
}

static CUtensorMapDataType type_of(const gx_mapped *matrix)
{
    switch (matrix->dtype) {
    case GX_BF16:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case GX_F16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    default:
        return matrix->to_tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                               : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    }
}

gx_status gx_tensor_map_encode(PFN_cuTensorMapEncodeTiled_v12000 encode,
                               const gx_mapped *matrix, CUtensorMap *map, gx_error *err)
{
    const cuuint64_t sizes[] = { (cuuint64_t)matrix->columns, (cuuint64_t)matrix->rows };
    const cuuint64_t strides[] = { (cuuint64_t)matrix->ld *
                                   gx_dtype_bytes(matrix->dtype) };
    const cuuint32_t box[] = { (cuuint32_t)matrix->box_columns,
                               (cuuint32_t)matrix->box_rows };
    const cuuint32_t steps[] = { 1, 1 };
    void *data;

    /* The driver's type says that it may be written; through this map nothing is. */
    memcpy(&data, &matrix->data, sizeof data);
    const CUresult result =
        encode(map, type_of(matrix), 2, data, sizes, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

    if (result == CUDA_SUCCESS)
        return GX_OK;
    return GX_FAIL_NATIVE(err, GX_ERR_CUDA, (int)result,
                          "cuTensorMapEncodeTiled(%lld x %lld, rows %lld apart, at %p): "
                          "driver error %d",
                          (long long)matrix->rows, (long long)matrix->columns,
                          (long long)matrix->ld, data, (int)result);
}
