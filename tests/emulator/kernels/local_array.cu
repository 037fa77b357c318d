// Arrays in local memory, indexed by values known only at run time: insertion sort and a lookup, with 8-, 32- and 64-bit elements.
template <int N>
__global__ void local_array(const int* x, int* sorted, unsigned char* ranks, long long* picked, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int a[N];
    unsigned char index[N];
    long long squares[N];
    for (int k = 0; k < N; ++k) {
        a[k] = x[i * N + k];
        index[k] = k;
        squares[k] = (long long)a[k] * a[k];
    }
    for (int k = 1; k < N; ++k) {
        int v = a[k];
        unsigned char from = index[k];
        int j = k - 1;
        while (j >= 0 && a[j] > v) {
            a[j + 1] = a[j];
            index[j + 1] = index[j];
            --j;
        }
        a[j + 1] = v;
        index[j + 1] = from;
    }
    for (int k = 0; k < N; ++k) {
        sorted[i * N + k] = a[k];
        ranks[i * N + k] = index[k];
    }
    picked[i] = squares[index[i % N]] + squares[(unsigned)a[0] % N];
}
