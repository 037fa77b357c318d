// Double precision: a Newton iteration until it stands still, Kahan sums, transcendental functions, conversions.
extern "C" __global__ void double_precision(const double* x, double* out, float* narrow, long long* whole, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i], a = fabs(v) + 0.5;

    double root = a;
    for (int k = 0; k < 60; ++k) {
        double next = 0.5 * (root + a / root);
        if (next == root) break;
        root = next;
    }
    double sum = 0.0, carry = 0.0;
    for (int k = 1; k <= 50; ++k) {
        double term = __dsub_rn(__ddiv_rn(v, (double)k), carry);
        double t = __dadd_rn(sum, term);
        carry = __dsub_rn(__dsub_rn(t, sum), term);
        sum = t;
    }
    out[0 * n + i] = root;
    out[1 * n + i] = sum;
    out[2 * n + i] = exp(v) + log(a);
    out[3 * n + i] = sin(v) * cos(v);
    out[4 * n + i] = pow(a, 1.5) + cbrt(v);
    out[5 * n + i] = sqrt(a);
    out[6 * n + i] = 1.0 / a;
    out[7 * n + i] = fma(v, a, -1.0);
    out[8 * n + i] = rsqrt(a) + tanh(v);
    out[9 * n + i] = floor(v) + ceil(a) + trunc(v) + rint(v);
    out[10 * n + i] = fmin(v, 0.25) + fmax(v, -0.25);
    out[11 * n + i] = erf(v) + atan2(v, a);
    narrow[i] = (float)v;
    whole[i] = __double2ll_rn(v * 1e6) + (long long)(v * 1e3) + __double_as_longlong(1.0);
}
