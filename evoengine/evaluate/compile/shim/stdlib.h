// abs, malloc and free are built in; the types are those that glibc's <stdlib.h> brings (its sys/types.h), which has no uchar.
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef unsigned char u_char;
typedef unsigned short ushort, u_short;
typedef unsigned int uint, u_int;
typedef unsigned long ulong, u_long;
typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef long ssize_t;
