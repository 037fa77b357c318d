// The inverse of ldmatrix: registers of a warp become 8x8 matrices in shared memory, plain and transposed.
__global__ void stmatrix_forms(const unsigned* in, unsigned short* out) {
    __shared__ __align__(16) unsigned short tile[8 * 64];
    const int lane = threadIdx.x;
    unsigned r[4];
    for (int i = 0; i < 4; ++i) r[i] = in[(blockIdx.x * 4 + i) * 32 + lane];
    for (int i = lane; i < 512; i += 32) tile[i] = 0;
    __syncwarp();
    auto row = [&](int matrix) { return static_cast<unsigned>(__cvta_generic_to_shared(&tile[matrix * 64 + lane * 8])); };
    const unsigned whole = row(0), pair = static_cast<unsigned>(__cvta_generic_to_shared(&tile[4 * 64 + lane % 16 * 8]));
    const unsigned one = static_cast<unsigned>(__cvta_generic_to_shared(&tile[6 * 64 + lane % 8 * 8]));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 ::"r"(whole), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(pair), "r"(r[0]), "r"(r[1]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(one), "r"(r[3]) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(one + 128), "r"(r[2]) : "memory");
    __syncwarp();
    for (int i = lane; i < 512; i += 32) out[blockIdx.x * 512 + i] = tile[i];
}
