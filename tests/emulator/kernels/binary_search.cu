// lower_bound of every query in a sorted array, and whether it is there.
template <typename T>
__device__ int lower_bound(const T* __restrict__ a, int n, T key) {
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = lo + ((hi - lo) >> 1);
        if (a[mid] < key) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

template <typename T>
__global__ void binary_search(const T* sorted, int n, const T* queries, int* where, bool* found, int m) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= m) return;
    int at = lower_bound<T>(sorted, n, queries[i]);
    where[i] = at;
    found[i] = at < n && sorted[at] == queries[i];
}
