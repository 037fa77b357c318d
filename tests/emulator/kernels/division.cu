// Quotients and remainders of 8, 16 and 32 bits, signed and unsigned, by variables and by constants.
extern "C" __global__ void division(const int* a, const int* b, int* out, unsigned int* uout, short* sout, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i];
    unsigned int ux = x, uy = y;
    out[6 * i + 0] = x / y;
    out[6 * i + 1] = x % y;
    out[6 * i + 2] = x / 7;
    out[6 * i + 3] = x % -12;
    out[6 * i + 4] = x / 16;
    out[6 * i + 5] = x % 16;
    uout[5 * i + 0] = ux / uy;
    uout[5 * i + 1] = ux % uy;
    uout[5 * i + 2] = ux / 7u;
    uout[5 * i + 3] = ux % 1000000007u;
    uout[5 * i + 4] = __umulhi(ux, uy) + (unsigned)__mulhi(x, y);
    short sx = (short)x, sy = (short)(y | 1);
    signed char cx = (signed char)x, cy = (signed char)(y | 1);
    sout[4 * i + 0] = sx / sy;
    sout[4 * i + 1] = sx % sy;
    sout[4 * i + 2] = cx / cy;
    sout[4 * i + 3] = (unsigned char)cx % (unsigned char)cy;
}
