// Integer types, dim3 and the vector types.
#pragma once
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
#define NULL __null

// nvcc has these from the C library (sys/types.h of glibc), which has no uchar.
typedef unsigned char u_char;
typedef unsigned short ushort, u_short;
typedef unsigned int uint, u_int;
typedef unsigned long ulong, u_long;
typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef long ssize_t, clock_t;

// Names, component type, alignment of the vectors with two and four components (CUDA C++ Programming Guide, table of
// alignments): 16 bytes at most, 3-component vectors have that of their component.
#define EV_VECTORS(NAME, T, TWO, FOUR)                                                                     \
    struct NAME##1 { T x; };                                                                               \
    struct __align__(TWO) NAME##2 { T x, y; };                                                             \
    struct NAME##3 { T x, y, z; };                                                                         \
    struct __align__(FOUR) NAME##4 { T x, y, z, w; };                                                      \
    EV_BOTH NAME##1 make_##NAME##1(T x) { return {x}; }                                                    \
    EV_BOTH NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                            \
    EV_BOTH NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                                    \
    EV_BOTH NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EV_VECTORS(char, signed char, 2, 4)
EV_VECTORS(uchar, unsigned char, 2, 4)
EV_VECTORS(short, short, 4, 8)
EV_VECTORS(ushort, unsigned short, 4, 8)
EV_VECTORS(int, int, 8, 16)
EV_VECTORS(uint, unsigned int, 8, 16)
EV_VECTORS(long, long, 16, 16)
EV_VECTORS(ulong, unsigned long, 16, 16)
EV_VECTORS(longlong, long long, 16, 16)
EV_VECTORS(ulonglong, unsigned long long, 16, 16)
EV_VECTORS(float, float, 8, 16)
EV_VECTORS(double, double, 16, 16)
#undef EV_VECTORS

struct dim3 {
    unsigned int x, y, z;
    __host__ __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __host__ __device__ constexpr operator uint3() const { return uint3{x, y, z}; }
};
