// Each thread moves a 4 x 4 patch with four vector loads and four vector stores.
extern "C" __global__ void transpose_float4(const float4* __restrict__ in, float4* __restrict__ out, int rows, int cols) {
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px * 4 >= cols || py * 4 >= rows) return;

    float4 r[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) r[k] = in[(py * 4 + k) * (cols / 4) + px];

    int pitch = rows / 4;
    out[(px * 4 + 0) * pitch + py] = make_float4(r[0].x, r[1].x, r[2].x, r[3].x);
    out[(px * 4 + 1) * pitch + py] = make_float4(r[0].y, r[1].y, r[2].y, r[3].y);
    out[(px * 4 + 2) * pitch + py] = make_float4(r[0].z, r[1].z, r[2].z, r[3].z);
    out[(px * 4 + 3) * pitch + py] = make_float4(r[0].w, r[1].w, r[2].w, r[3].w);
}
