// The CUDA C++ interface for the emulator; included before every source, as nvcc does it.
// The interface is the one that the CUDA C++ Programming Guide, the CUDA Math API reference and the PTX ISA describe; the code is ours.
#pragma once
#include <ev/qualifiers.h>
#include <ev/types.h>
#include <ev/threads.h>
#include <ev/externals.h>
#include <ev/integer.h>
#include <ev/rounding.h>
#include <ev/math.h>
#include <ev/video.h>
#include <ev/memory.h>
#include <ev/warp.h>
#include <ev/atomics.h>
#include <ev/output.h>
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <stdint.h>
#include <algorithm>
