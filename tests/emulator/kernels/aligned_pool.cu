// A swizzle in an aligned pool behind a static variable: an address's own bits say which piece of a row it is, so the
// pool must begin at a multiple of 128. A second extern array means the same memory with another alignment.
extern "C" __global__ void aligned_pool(const float4* x, float4* y, int rows, unsigned* starts) {
    __shared__ int turn;
    extern __shared__ __align__(128) unsigned char pool[];
    extern __shared__ __align__(1024) float4 page[];
    auto swizzled = [](unsigned address) { return address ^ (address >> 7 & 7) << 4; };
    const unsigned base = (unsigned)__cvta_generic_to_shared(pool);
    const int t = threadIdx.x, row = t / 8, piece = t % 8;
    if (t == 0) turn = rows;
    __syncthreads();
    if (row < turn) {
        float4 v = x[t];
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(swizzled(base + row * 128 + piece * 16)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
    }
    __syncthreads();
    if (row < turn) y[t] = *reinterpret_cast<const float4*>(pool + row * 128 + ((piece ^ ((base >> 7) + row & 7)) << 4));
    if (t == 0) starts[0] = base % 128, starts[1] = (unsigned)__cvta_generic_to_shared(page) % 1024;
}
