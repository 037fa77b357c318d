// Loads, stores and arithmetic in the vector types: a colour image to grey and to premultiplied, packed offsets, pairs of doubles.
__device__ __forceinline__ float4 operator*(float4 v, float s) { return make_float4(v.x * s, v.y * s, v.z * s, v.w); }

extern "C" __global__ void vector_types(const uchar4* pixels, float4* colours, unsigned char* grey, const int4* boxes, int2* centres,
                                        const double2* points, double* lengths, const short2* steps, longlong2* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    uchar4 p = pixels[i];
    colours[i] = make_float4(p.x, p.y, p.z, p.w) * (p.w * (1.0f / 256.0f));
    grey[i] = (unsigned char)((p.x * 77 + p.y * 150 + p.z * 29) >> 8);

    int4 box = boxes[i];
    int2 centre;
    centre.x = (box.x + box.z) / 2;
    centre.y = (box.y + box.w) / 2;
    centres[i] = centre;

    double2 q = points[i];
    lengths[i] = __dadd_rn(__dmul_rn(q.x, q.x), __dmul_rn(q.y, q.y));

    short2 s = steps[i];
    sums[i] = make_longlong2((long long)s.x * s.y, (long long)s.x + s.y);
}
