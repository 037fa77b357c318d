// Conversions between integers and floats, with the four roundings where there are four.
extern "C" __global__ void conversions(const float* f, const int* k, int* whole, float* real, double* wide, short* narrow, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = f[i];
    int j = k[i];
    whole[6 * i + 0] = __float2int_rn(x);
    whole[6 * i + 1] = __float2int_rd(x);
    whole[6 * i + 2] = __float2int_ru(x);
    whole[6 * i + 3] = (int)x;
    whole[6 * i + 4] = __float_as_int(x);
    whole[6 * i + 5] = (int)lrintf(x) + (int)llroundf(x);
    real[5 * i + 0] = (float)j;
    real[5 * i + 1] = __int2float_rz(j);
    real[5 * i + 2] = __uint2float_ru((unsigned int)j);
    real[5 * i + 3] = (float)((long long)j * 1000003ll);
    real[5 * i + 4] = __int_as_float((j & 0x007fffff) | 0x40000000);
    wide[2 * i + 0] = (double)j + (double)x;
    wide[2 * i + 1] = (double)((unsigned long long)(unsigned int)j << 31);
    narrow[3 * i + 0] = (short)(int)x;
    narrow[3 * i + 1] = (short)j;
    narrow[3 * i + 2] = (signed char)j + (unsigned char)(j >> 8);
}
