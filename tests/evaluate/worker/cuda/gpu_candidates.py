"""Candidates for the task `scale` (out = 2 x) that test the harness on a GPU, by what they do.

`launch` is the number of launches of the plan that came before in the same graph: the counter of
finished blocks begins with 0 in every graph, which the tests rely on and check.
"""

from __future__ import annotations

MAGIC = "0x600DF00Du"

SOURCE = """/* evoengine
name: scale
precision: fp32
launches:
  - {kernel: scale, grid: [GRID], block: [256], shared: SHARED, args: [x, out, N]}
*/
__device__ unsigned finished;  // blocks
GLOBALS
extern "C" __global__ void scale(const float* x, float* out, int n) {
  const unsigned launch = *(volatile unsigned*)&finished / gridDim.x;
  const int first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  bool right = true;
  (void)launch;
  { BEFORE }
  if (right) for (int i = first; i < n; i += step) { WORK }
  __syncthreads();
  { AFTER }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&finished, 1u);
}
"""


def source(
    before: str = "",
    after: str = "",
    work: str = "out[i] = 2.0f * x[i];",
    variables: str = "",
    grid: str = "SM_COUNT",
    shared: int = 0,
) -> str:
    """A kernel file; without changes an honest one."""
    text = SOURCE.replace("GRID", f'"{grid}"').replace("SHARED", str(shared))
    text = text.replace("GLOBALS", variables).replace("BEFORE", before)
    return text.replace("AFTER", after).replace("WORK", work).replace("MAGIC", MAGIC)


# ---------------------------------------------------------------- what keeps its contents


def _generic(address: str) -> str:
    """`v` is the address, of which the compiler does not know that it is constant."""
    return (
        f"unsigned long long p = (unsigned long long){address};"
        ' asm volatile("" : "+l"(p)); int* v = (int*)p;'
    )


# Each launch adds 1 to everything, so that launch k of a graph finds k more than the first value.
# 12 is the most launches of a timed graph.
_COUNTERS = {
    "plain": ("__device__ int plain = 7;", "int* v = &plain;", 7),
    "zeroed": ("__device__ int zeroed;", "int* v = &zeroed;", 0),
    "static": ("static __device__ int counter = 3;", "int* v = &counter;", 3),
    "static of a function": ("", "static int counted = 4; int* v = &counted;", 4),
    "template": (
        "template <int K> __device__ int of_template = K;",
        "int* v = &of_template<11>;",
        11,
    ),
    "nameless": ("namespace { __device__ int nameless = 5; }", "int* v = &nameless;", 5),
    "array": (
        "__device__ int values[100] = {1, 2, 3};",
        "int* v = &values[99]; if (values[2] != 3) right = false;",
        0,
    ),
    "constant": (
        "__constant__ int table[4] = {9, 8, 7, 6};",
        _generic("&table[1]"),
        8,
    ),
    "static constant": (
        "static __constant__ int table[4] = {9, 8, 7, 6};",
        _generic("&table[2]"),
        7,
    ),
}
COUNTERS = {
    name: source(
        before=f"{address} const int found = *(volatile int*)v - {first};"
        " if (found < 0 || found >= 12) right = false;"
        " __syncthreads(); if (threadIdx.x == 0) *(volatile int*)v = found + 1 + "
        f"{first};",
        variables=variables,
        grid="1",
    )
    for name, (variables, address, first) in _COUNTERS.items()
}

# Each looks for MAGIC where the launch before left it: in the first launch of a graph, or, to show
# that it finds what is there, in any.
_SHARED_BYTES = 48 * 1024 - 1024
_LEFTOVERS = {
    "shared memory": (
        f"extern __shared__ unsigned left[]; for (int i = threadIdx.x; i < {_SHARED_BYTES // 4};"
        " i += 256) if (((volatile unsigned*)left)[i] == MAGIC && WHEN) right = false;",
        f"extern __shared__ unsigned left[]; for (int i = threadIdx.x; i < {_SHARED_BYTES // 4};"
        " i += 256) ((volatile unsigned*)left)[i] = MAGIC;",
    ),
    "a frame": (
        # a frame whose address escapes lies in local memory, not in registers
        'unsigned words[64]; volatile unsigned* frame = words; asm volatile("" : "+l"(frame));'
        " for (int i = 0; i < 64; ++i) if (frame[i] == MAGIC && WHEN) right = false;"
        " for (int i = 0; i < 64; ++i) frame[i] = MAGIC;",
        "",
    ),
    "local memory without a frame": (
        "for (int at = 0; at < 768; at += 4) { unsigned word;"
        ' asm volatile("ld.local.u32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");'
        " if (word == MAGIC && WHEN) right = false; }",
        "for (int at = 0; at < 768; at += 4)"
        ' asm volatile("st.local.u32 [%0], %1;" ::"r"(at), "r"(MAGIC) : "memory");',
    ),
    "registers": (
        "unsigned word[16];"
        + "".join(
            f' asm volatile("{{ .reg .b32 a; mov.b32 %0, a; }}" : "=r"(word[{i}]));'
            for i in range(16)
        )
        + " for (int i = 0; i < 16; ++i) if (word[i] == MAGIC && WHEN) right = false;",
        # 48 registers that are alive across a barrier, among them the one that is read above
        "__shared__ volatile unsigned kept[64]; if (threadIdx.x < 64) kept[threadIdx.x] = MAGIC;"
        " __syncthreads(); unsigned held[48];"
        " for (int i = 0; i < 48; ++i) held[i] = kept[i]; __syncthreads();"
        " for (int i = 0; i < 48; ++i) kept[i] = held[i];",
    ),
}


def _leftovers(name: str, when: str) -> str:
    before, after = _LEFTOVERS[name]
    shared = _SHARED_BYTES if name == "shared memory" else 0
    # the blocks of a launch fill half of all warps: the next launch may have the other half
    grid = "4*SM_COUNT" if name in ("a frame", "registers") else "SM_COUNT"
    return source(before.replace("WHEN", when), after, grid=grid, shared=shared)


LEFTOVERS = {name: _leftovers(name, "launch == 0") for name in _LEFTOVERS}
LEFTOVERS_OF_ANY_LAUNCH = {name: _leftovers(name, "launch > 0") for name in _LEFTOVERS}

# ---------------------------------------------------------------- times and caches

SPIN_US = 300
_NOW = 'asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory");'
_READ = "createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
TIMED = {
    "honest": source(grid="8*SM_COUNT"),
    "spins": source(
        after=f"unsigned long long now, end; {_NOW} end = now + {SPIN_US * 1000}ull;"
        f" do {{ {_NOW} }} while (now < end);",
        grid="1",
    ),
    "keeps its inputs in L2": source(
        work='float value; asm volatile("{ .reg .b64 policy; ' + _READ + " ld.global.L2::"
        'cache_hint.f32 %0, [%1], policy; }" : "=f"(value) : "l"(x + i) : "memory");'
        " out[i] = 2.0f * value;",
        grid="8*SM_COUNT",
    ),
}

# ---------------------------------------------------------------- cheats, by their right verdict

_ALL = "for (int i = threadIdx.x; i < n; i += 256)"
_KEPT = "__device__ const float* kept_x[16]; __device__ float* kept_out[16];"
WRONG = {
    "defers to the next call": source(
        before=f"if (launch > 1) {_ALL} kept_out[0][i] = 2.0f * kept_x[0][i]; __syncthreads();"
        " if (threadIdx.x == 0) kept_x[0] = x, kept_out[0] = out; right = launch == 0;",
        variables=_KEPT,
        grid="1",
    ),
    "defers all calls but the first to the fifth": source(
        before="if (threadIdx.x == 0 && launch < 16) kept_x[launch] = x, kept_out[launch] = out;"
        f" __syncthreads(); if (launch == 4) for (int k = 1; k < 4; ++k) {_ALL}"
        " kept_out[k][i] = 2.0f * kept_x[k][i]; right = launch == 0 || launch >= 4;",
        variables=_KEPT,
        grid="1",
    ),
    "copies the output of an earlier call": source(
        before=f"if (launch > 0) {_ALL} out[i] = kept_out[0][i];"
        " else if (threadIdx.x == 0) kept_out[0] = out; right = launch == 0;",
        variables=_KEPT,
        grid="1",
    ),
    "idles in one of eight calls": source(
        before=f"unsigned long long now; {_NOW} __shared__ bool idles;"
        " if (threadIdx.x == 0) idles = (now >> 5) % 8 == 0; __syncthreads(); right = !idles;",
        grid="1",
    ),
    "idles in one of four graphs": source(
        before=f"unsigned long long now; {_NOW}"
        " if (threadIdx.x == 0 && launch == 0) idles = (now >> 5) % 4 == 0; __syncthreads();"
        " right = !*(volatile bool*)&idles;",
        variables="__device__ bool idles;",
        grid="1",
    ),
    "leaves one element out": source(work="if (i != 4095) out[i] = 2.0f * x[i];"),
}
PAGE_FLOATS = 2 * 1024**2 // 4
CRASHES = {
    "writes a page beyond": source(after=f"if (first == 0) out[{PAGE_FLOATS}] = 1.0f;"),
    "writes a page before": source(after=f"if (first == 0) out[-{PAGE_FLOATS}] = 1.0f;"),
    "reads a page beyond its input": source(
        after=f"if (first == 0 && ((volatile const float*)x)[{PAGE_FLOATS}] == 1.0f) out[0] = 1;"
    ),
}
CHEATS = {
    "writes behind its output": source(after="if (first == 0) out[n + 8] = 1.0f;"),
    "writes before its output": source(after="if (first == 0) out[-1] = 1.0f;"),
    "overwrites its input": source(
        after="if (first == 0 && launch == 1) ((float*)x)[n - 1] = 7.0f;"
    ),
}
ENDLESS = source(after="while (*(volatile float*)out == *(volatile float*)out) {}")
DEEP_STACK = source(
    before="volatile unsigned deep[1800]; for (int i = 0; i < 1800; ++i) deep[i] = n + i;"
    " right = deep[n % 1800] == n + n % 1800;"
)
# wrong in the hidden case of 77 elements alone
PRINTS = source(
    before='if (first == 0) printf(n == 77 ? "of 77: %d\\n" : "of many: %d\\n", n);'
    " right = n != 77;"
)

# Without a frame, an access to local memory may be out of range: it is judged, not run in the lab.
FRAMELESS = "local memory without a frame"
IN_THE_LAB = {
    **{f"counter: {name}": text for name, text in COUNTERS.items()},
    **{f"leftovers: {name}": text for name, text in LEFTOVERS.items() if name != FRAMELESS},
    **{
        f"leftovers of any launch: {name}": text
        for name, text in LEFTOVERS_OF_ANY_LAUNCH.items()
        if name != FRAMELESS
    },
    **TIMED,
}
JUDGED = {
    **WRONG,
    **CRASHES,
    **CHEATS,
    FRAMELESS: LEFTOVERS[FRAMELESS],
    "endless": ENDLESS,
    "deep stack": DEEP_STACK,
    "prints": PRINTS,
}
