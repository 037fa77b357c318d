"""Sources that take a compiler's time or memory."""

_TENFOLD = "#define A0 + 1\n" + "".join(
    f"#define A{i + 1} {' '.join([f'A{i}'] * 10)}\n" for i in range(9)
)

SLOW = {
    "macros": _TENFOLD + "__device__ int y = 0 A9;\n__global__ void k() {}\n",
    "constant expression": (
        "constexpr unsigned long f(unsigned long n) {\n  unsigned long s = 0;\n"
        "  for (unsigned long i = 0; i < 50000; ++i) s += i ^ n;\n  return s;\n}\n"
        + "__global__ void k(unsigned long* p) {\n"
        + "".join(f"  constexpr unsigned long v{i} = f({i}); p[{i}] = v{i};\n" for i in range(2000))
        + "}\n"
    ),
    "templates": (
        "template <int N, unsigned long M> struct T { static constexpr unsigned long v = T<N - 1, 2"
        " * M>::v + T<N - 1, 2 * M + 1>::v; };\ntemplate <unsigned long M> struct T<0, M> { static"
        " constexpr unsigned long v = M; };\n__global__ void k(unsigned long* p) { *p = T<30,"
        " 1>::v; }\n"
    ),
    "long kernel": (
        "__global__ void k(float* p, int n) {\n"
        + "".join(f"  float a{i} = p[{i} * n];\n" for i in range(32))
        + "".join(
            f"  a{i} = sinf(a{(i * 7 + j) % 32}) * p[{j} * n] + a{i};\n"
            for j in range(100)
            for i in range(32)
        )
        + "".join(f"  p[{i} * n] = a{i};\n" for i in range(32))
        + "}\n"
    ),
}

LARGE = {
    "one array": (
        "__device__ int a[1ull << 33] = {1, 2, 3};\n__global__ void k(int* p) { *p = a[5]; }\n"
    ),
    "many values": (
        "#define R(x) x, x, x, x, x, x, x, x\n__device__ int a[] ="
        " {R(R(R(R(R(R(R(R(R(1)))))))))};\n__global__ void k(int* p) { *p = a[*p]; }\n"
    ),
    "parentheses": (
        "__global__ void k(int* p) { *p = " + "(" * 200000 + "1" + ")" * 200000 + "; }\n"
    ),
}

REFUSED = {
    "endless templates": (
        "template <int N> struct T { static constexpr long v = T<N + 1>::v + 1; };\n__global__ void"
        " k(long* p) { *p = T<0>::v; }\n"
    ),
    "endless constant": (
        "constexpr int f() { int s = 0; while (true) ++s; return s; }\n__global__ void k(int* p) {"
        " constexpr int v = f(); *p = v; }\n"
    ),
}
