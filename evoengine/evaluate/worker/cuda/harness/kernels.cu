// Our own kernels on the GPU; harness_kernels.py launches them. No header is needed.

typedef unsigned char byte;
typedef unsigned long long u64;

constexpr unsigned FULL = 0xffffffffu;

// ---------------------------------------------------------------- buffers

// One buffer in its slot: bytes [offset, offset + bytes) are its own, the rest of the slot is guard.
struct Slot {
    uint4* base;         // the slot's first byte, aligned to 2 MiB
    u64 slot_bytes;      // a multiple of 16
    u64 offset, bytes;   // offset: a multiple of 16
    const byte* source;  // what the buffer holds; null: every byte is `fill`
    u64 guard, fill;     // one byte each
    u64 key;             // what `deal` masks the buffer with; 0: nothing
};

__device__ __forceinline__ unsigned four(u64 value) { return unsigned(value) * 0x01010101u; }

// The 16 bytes that word `word` of a slot should hold.
__device__ __forceinline__ uint4 wanted(const Slot& slot, u64 word) {
    const u64 first = word * 16, end = slot.offset + slot.bytes;
    const unsigned guard = four(slot.guard), fill = four(slot.fill);
    if (first + 16 <= slot.offset || first >= end) return make_uint4(guard, guard, guard, guard);
    if (first + 16 <= end)
        return slot.source ? reinterpret_cast<const uint4*>(slot.source)[(first - slot.offset) / 16]
                           : make_uint4(fill, fill, fill, fill);
    uint4 mixed = make_uint4(guard, guard, guard, guard);  // the word in which the buffer ends
    byte* bytes = reinterpret_cast<byte*>(&mixed);
    for (u64 at = first; at < end; ++at)
        bytes[at - first] = slot.source ? slot.source[at - slot.offset] : byte(slot.fill);
    return mixed;
}

// 16 bytes that nobody can tell without the key: Philox4x32-10 (Salmon and others, SC 2011).
__device__ __forceinline__ uint4 mask_of(u64 key, u64 counter) {
    unsigned k0 = unsigned(key), k1 = unsigned(key >> 32);
    uint4 c = make_uint4(unsigned(counter), unsigned(counter >> 32), 0, 0);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u64 p0 = u64(0xD2511F53u) * c.x, p1 = u64(0xCD9E8D57u) * c.z;
        c = make_uint4(unsigned(p1 >> 32) ^ c.y ^ k0, unsigned(p1), unsigned(p0 >> 32) ^ c.w ^ k1, unsigned(p0));
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return c;
}
__device__ __forceinline__ uint4 masked(uint4 value, uint4 mask) {
    return make_uint4(value.x ^ mask.x, value.y ^ mask.y, value.z ^ mask.z, value.w ^ mask.w);
}

// Writes every slot whole; a buffer with a key is masked, with the rest of its last word.
// Grid: (blocks, slots).
extern "C" __global__ void deal(const Slot* slots) {
    const Slot slot = slots[blockIdx.y];
    const u64 step = u64(gridDim.x) * blockDim.x, end = slot.offset + slot.bytes;
    for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < slot.slot_bytes / 16; i += step) {
        const bool hidden = slot.key && i * 16 >= slot.offset && i * 16 < end;
        const uint4 value = wanted(slot, i);
        slot.base[i] = hidden ? masked(value, mask_of(slot.key, i - slot.offset / 16)) : value;
    }
}

// A buffer that `deal` has masked, where this process maps it.
struct Masked { uint4* first; u64 bytes, key; };

// Takes the masks away. Grid: (blocks, buffers).
extern "C" __global__ void unmask(const Masked* buffers) {
    const Masked buffer = buffers[blockIdx.y];
    const u64 step = u64(gridDim.x) * blockDim.x, words = (buffer.bytes + 15) / 16;
    for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < words; i += step)
        buffer.first[i] = masked(buffer.first[i], mask_of(buffer.key, i));
}

// Compares every slot with what `deal` wrote: flags[i] |= 1 if the buffer of a slot with a source
// differs, 2 if its guard does. The contents of buffers without a source are not compared.
extern "C" __global__ void audit(const Slot* slots, unsigned* flags) {
    const Slot slot = slots[blockIdx.y];
    const u64 step = u64(gridDim.x) * blockDim.x, end = slot.offset + slot.bytes;
    unsigned found = 0;
    for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < slot.slot_bytes / 16; i += step) {
        const u64 first = i * 16;
        const bool inside = first >= slot.offset && first + 16 <= end;
        if (inside && !slot.source) continue;
        const uint4 is = slot.base[i], should = wanted(slot, i);
        if (is.x == should.x && is.y == should.y && is.z == should.z && is.w == should.w) continue;
        for (int b = 0; b < 16; ++b) {
            const bool own = first + b >= slot.offset && first + b < end;
            if (own && !slot.source) continue;
            if (reinterpret_cast<const byte*>(&is)[b] != reinterpret_cast<const byte*>(&should)[b])
                found |= own ? 1u : 2u;
        }
    }
    if (found) atomicOr(&flags[blockIdx.y], found);
}

// ---------------------------------------------------------------- comparison

// One output of one call; figures as gate.py defines them.
struct Comparison {
    const void* output;
    const double* reference;
    u64 elements;
    u64 row;      // elements of a slice that is bounded on its own; 0: none
    u64 dtype;    // harness_kernels.DTYPES
    double atol, rtol, tiny;
};
struct Figures {
    double max_abs, needed_atol, squared_error, squared_reference, worst_row;
    u64 failing, nan, infinite;  // infinite: elements of the reference, which count in no square
};

__device__ __forceinline__ double half_as_double(unsigned short bits) {
    float wide;
    asm("{.reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h;}" : "=f"(wide) : "h"(bits));
    return wide;
}

__device__ __forceinline__ double element(const void* data, u64 at, int dtype) {
    switch (dtype) {
        case 0: return half_as_double(static_cast<const unsigned short*>(data)[at]);
        case 1: return __uint_as_float(unsigned(static_cast<const unsigned short*>(data)[at]) << 16);
        case 2: return static_cast<const float*>(data)[at];
        case 3: return static_cast<const double*>(data)[at];
        case 4: return static_cast<const signed char*>(data)[at];
        case 5: return static_cast<const byte*>(data)[at];
        case 6: return static_cast<const int*>(data)[at];
        case 7: return double(static_cast<const long long*>(data)[at]);
        default: return static_cast<const byte*>(data)[at] != 0;
    }
}

__device__ __forceinline__ double warp_sum(double value) {
    for (int lanes = 16; lanes; lanes /= 2) value += __shfl_xor_sync(FULL, value, lanes);
    return value;
}
__device__ __forceinline__ double warp_max(double value) {
    for (int lanes = 16; lanes; lanes /= 2) value = fmax(value, __shfl_xor_sync(FULL, value, lanes));
    return value;
}
// Numbers that are not negative order as their bits do; infinity is the largest.
__device__ __forceinline__ void atomic_max(double* to, double value) {
    atomicMax(reinterpret_cast<u64*>(to), u64(__double_as_longlong(value)));
}

// Grid: (blocks, comparisons), blocks of 256 threads. A warp takes one row at a time; an output
// without rows is cut into pieces of 1024 elements. `figures` begin with zeros. Where the reference
// is infinite, the output must be the same infinity.
extern "C" __global__ void __launch_bounds__(256) compare(const Comparison* comparisons, Figures* figures) {
    const Comparison c = comparisons[blockIdx.y];
    const u64 length = c.row ? c.row : 1024, rows = (c.elements + length - 1) / length;
    const int lane = threadIdx.x % 32, dtype = int(c.dtype);
    const u64 warp = (blockIdx.x * u64(blockDim.x) + threadIdx.x) / 32, warps = u64(gridDim.x) * blockDim.x / 32;
    const double infinity = __longlong_as_double(0x7ff0000000000000ll);
    double max_abs = 0, needed_atol = 0, squared_error = 0, squared_reference = 0, worst = 0;
    u64 failing = 0, nan = 0, infinite = 0;
    for (u64 row = warp; row < rows; row += warps) {
        const u64 end = min(c.elements, (row + 1) * length);
        double row_error = 0, row_reference = 0;
        unsigned row_infinite = 0;
#pragma unroll 4
        for (u64 i = row * length + lane; i < end; i += 32) {
            const double reference = c.reference[i], output = element(c.output, i, dtype);
            double error = fabs(output - reference), beyond;
            if (output != output) error = infinity, ++nan;
            if (fabs(reference) == infinity) {
                beyond = error = output == reference ? 0 : infinity;
                ++row_infinite;
            } else {
                beyond = error - c.rtol * fabs(reference);
                row_error += error * error, row_reference += reference * reference;
            }
            failing += !(beyond <= c.atol);
            max_abs = fmax(max_abs, error), needed_atol = fmax(needed_atol, beyond);
        }
        infinite += row_infinite;
        squared_error += row_error, squared_reference += row_reference;
        if (c.row) {
            row_error = warp_sum(row_error), row_reference = warp_sum(row_reference);
            const double counted = fmax(1.0, length - warp_sum(double(row_infinite)));
            const double rmse = sqrt(row_error / counted), rms = sqrt(row_reference / counted);
            const double above = fmax(0.0, rmse - c.tiny);
            worst = fmax(worst, above == 0 ? 0.0 : rms > 0 ? above / rms : infinity);
        }
    }
    max_abs = warp_max(max_abs), needed_atol = warp_max(needed_atol), worst = warp_max(worst);
    squared_error = warp_sum(squared_error), squared_reference = warp_sum(squared_reference);
    const double failures = warp_sum(double(failing)), nans = warp_sum(double(nan));
    const double infinities = warp_sum(double(infinite));
    if (lane) return;
    Figures& f = figures[blockIdx.y];
    atomic_max(&f.max_abs, max_abs), atomic_max(&f.needed_atol, needed_atol), atomic_max(&f.worst_row, worst);
    atomicAdd(&f.squared_error, squared_error), atomicAdd(&f.squared_reference, squared_reference);
    if (failures > 0) atomicAdd(&f.failing, u64(failures));
    if (nans > 0) atomicAdd(&f.nan, u64(nans));
    if (infinities > 0) atomicAdd(&f.infinite, u64(infinities));
}

// ---------------------------------------------------------------- caches and leftovers

struct Span { const uint4* first; u64 bytes; };

// Reads all spans, so that they lie in L2 as far as they fit. Grid: (blocks, spans).
extern "C" __global__ void touch(const Span* spans, unsigned* sink) {
    const Span span = spans[blockIdx.y];
    unsigned all = 0;
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < span.bytes / 16; i += step) {
        const uint4 value = span.first[i];
        all ^= value.x ^ value.y ^ value.z ^ value.w;
    }
    if (all == 0x9e3779b9u && sink) *sink = all;
}

// Reads a buffer `times` times past L1, with as many loads under way as bandwidth takes.
extern "C" __global__ void __launch_bounds__(256) read_often(const uint4* buffer, u64 bytes, int times, unsigned* sink) {
    constexpr int AT_ONCE = 4;
    const u64 step = u64(gridDim.x) * blockDim.x, words = bytes / 16;
    unsigned all = 0;
    for (int time = 0; time < times; ++time)
        for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < words; i += AT_ONCE * step) {
            uint4 values[AT_ONCE] = {};
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
                if (i + k * step < words)
                    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(values[k].x), "=r"(values[k].y), "=r"(values[k].z), "=r"(values[k].w)
                                 : "l"(buffer + i + k * step));
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) all ^= values[k].x ^ values[k].y ^ values[k].z ^ values[k].w;
        }
    if (all == 0x9e3779b9u && sink) *sink = all;
}

// Evicts all else from L2: every line of a buffer larger than L2 is written with the priority that
// a hint can give, so that lines which a hint protects go too, and is then demoted.
extern "C" __global__ void flush(uint4* buffer, u64 bytes, unsigned value) {
    const u64 step = u64(gridDim.x) * blockDim.x, first = blockIdx.x * u64(blockDim.x) + threadIdx.x;
#if __CUDA_ARCH__ >= 800
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    for (u64 i = first; i < bytes / 16; i += step)
        asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %1, %1, %1}, %2;" ::"l"(buffer + i), "r"(value), "l"(policy) : "memory");
    for (u64 i = first; i < bytes / 128; i += step)
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(reinterpret_cast<byte*>(buffer) + i * 128) : "memory");
#else
    for (u64 i = first; i < bytes / 16; i += step) buffer[i] = make_uint4(value, value, value, value);
#endif
}

// Takes the protection of hints from the lines of all spans. Grid: (blocks, spans).
extern "C" __global__ void demote(const Span* spans) {
#if __CUDA_ARCH__ >= 800
    const Span span = spans[blockIdx.y];
    const u64 step = u64(gridDim.x) * blockDim.x;
    for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < span.bytes / 128; i += step)
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(reinterpret_cast<const byte*>(span.first) + i * 128) : "memory");
#endif
}

// Overwrites the shared memory of a multiprocessor, and 64 registers of each of 1024 threads: all
// of them. One block takes a whole multiprocessor.
extern "C" __global__ void __launch_bounds__(1024, 1) scrub(int shared_words, unsigned value) {
    extern __shared__ unsigned shared[];
    for (int i = threadIdx.x; i < shared_words; i += blockDim.x)
        reinterpret_cast<volatile unsigned*>(shared)[i] = value;
    __syncthreads();
    unsigned registers[56];  // all live across the barrier: read before it, written after it
    volatile unsigned* words = reinterpret_cast<volatile unsigned*>(shared);
#pragma unroll
    for (int i = 0; i < 56; ++i) registers[i] = words[threadIdx.x + 32 * i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 56; ++i) words[threadIdx.x + 32 * i] = registers[i];
}

// Overwrites registers once more, 224 of each of 256 threads: which ones a compiler leaves out
// differs from the kernel above.
extern "C" __global__ void __launch_bounds__(256, 1) scrub_registers(unsigned value) {
    extern __shared__ unsigned shared[];
    volatile unsigned* words = reinterpret_cast<volatile unsigned*>(shared);
    words[threadIdx.x] = words[threadIdx.x + 256] = value;
    __syncthreads();
    unsigned registers[224];
#pragma unroll
    for (int i = 0; i < 224; ++i) registers[i] = words[threadIdx.x + i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 224; ++i) words[threadIdx.x + i] = registers[i];
}

// Overwrites the local memory of all resident threads, WORDS words of each.
template <int WORDS>
__device__ __forceinline__ void scrub_local(unsigned value, unsigned* sink) {
    volatile unsigned words[WORDS];
#pragma unroll 1
    for (int i = 0; i < WORDS; ++i) words[i] = value;
    if (words[threadIdx.x % WORDS] != value && sink) *sink = value;
}
extern "C" __global__ void __launch_bounds__(256) scrub_local_1024(unsigned value, unsigned* sink) { scrub_local<256>(value, sink); }
extern "C" __global__ void __launch_bounds__(256) scrub_local_4096(unsigned value, unsigned* sink) { scrub_local<1024>(value, sink); }
extern "C" __global__ void __launch_bounds__(256) scrub_local_8192(unsigned value, unsigned* sink) { scrub_local<2048>(value, sink); }
extern "C" __global__ void __launch_bounds__(256) scrub_local_16384(unsigned value, unsigned* sink) { scrub_local<4096>(value, sink); }

extern "C" __global__ void nothing() {}

// The device's own clock, in nanoseconds, to a place that a candidate does not know.
extern "C" __global__ void stamp(u64* to) {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    *to = now;
}
