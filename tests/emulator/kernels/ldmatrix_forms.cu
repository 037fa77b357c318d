// What each lane receives from x1, x2 and x4, plain and transposed. Shared memory holds four 8x8 matrices of 16-bit numbers.
__global__ void ldmatrix_forms(const unsigned short* in, unsigned* out) {
    __shared__ __align__(16) unsigned short tile[4 * 64];
    const int lane = threadIdx.x % 32, block = blockIdx.x * 256;
    for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] = in[block + i];
    __syncthreads();
    unsigned* to = out + blockIdx.x * 14 * 32 + lane;
    const unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(&tile[lane * 8]));
    unsigned r[14];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[1]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[2]), "=r"(r[3]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[4]), "=r"(r[5]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[6]), "=r"(r[7]), "=r"(r[8]), "=r"(r[9]) : "r"(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]) : "r"(row));
#pragma unroll
    for (int i = 0; i < 14; ++i) to[i * 32] = r[i];
}
