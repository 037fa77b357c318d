// A struct of mixed sizes and alignments by value, with an array indexed at run time, and one more parameter behind it.
struct Inner {
    short a;
    signed char b;
    double c;
};

struct Params {
    int count;
    float weights[5];
    Inner inner;
    unsigned char flags[3];
    long long offset;
    float3 shift;
};

extern "C" __global__ void struct_parameter(const Params p, unsigned char last, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= p.count) return;
    double v = p.weights[i % 5];
    v += p.inner.a + p.inner.b * p.inner.c;
    if (p.flags[i % 3]) v += (double)p.offset;
    float s = i & 1 ? p.shift.x : (i & 2 ? p.shift.y : p.shift.z);
    out[i] = v + s + last;
}
