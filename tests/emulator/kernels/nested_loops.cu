// break and continue in nested loops whose bounds differ between lanes, with a goto out of both.
extern "C" __global__ void nested_loops(const int* x, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int acc = 0, limit = x[i] & 15;
    for (int a = 0; a < limit; ++a) {
        if (a % 3 == 2) continue;
        int b = a;
        while (true) {
            b += 2;
            if (b % 5 == 0) continue;
            if (b > limit + a) break;
            acc += a * b;
            if (acc > 400) goto done;
            for (int c = b; c > 0; c -= 3) {
                if ((c ^ i) & 4) continue;
                if (c == 7) break;
                acc += 1;
            }
        }
        do {
            acc ^= a;
            limit -= (acc & 1);
        } while (acc % 4 == 3 && limit > 3);
    }
    acc += 10000;
done:
    out[i] = acc;
}
