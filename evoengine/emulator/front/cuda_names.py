"""Which names are CUDA's: a source that uses one that our headers have not is not wrong, we are.

CUDA C++ Programming Guide 12.x, CUDA Math API reference, headers of the toolkit as they are documented there.
"""

from __future__ import annotations

import re

# fmt: off
_PREFIXES = (
    "__nv_", "__nvvm_", "__nanosleep", "__shfl", "__match", "__ballot", "__any", "__all", "__reduce_", "__syncthreads", "__syncwarp",
    "__threadfence", "__ldg", "__ldc", "__ldlu", "__ldcv", "__stwb", "__stc", "__stwt", "__float", "__double", "__int", "__uint", "__ll",
    "__ull", "__half", "__bfloat16", "__low", "__high", "__h", "__b", "__f", "__d", "__u", "__v", "__s", "__e", "__l", "__p", "__c",
    "__t", "__r", "__a", "__i", "__mul", "__byte_perm", "__funnelshift", "__popc", "__clz", "__brev", "__cvta", "__isGlobal", "__isShared",
    "__isConstant", "__isLocal", "__is", "__pipeline_", "__managed__", "__cluster", "__grid", "__nvfp", "__tma",
    "atomic", "cuda", "CUDA", "cu", "nv", "wmma", "h2", "hexp", "hlog", "hsqrt", "hrsqrt", "hrcp", "hceil", "hfloor", "hrint", "htrunc",
    "hsin", "hcos", "htanh", "make_", "CUDART_", "thrust", "cub", "cutlass", "cute", "cg", "coalesced_", "tiled_", "labeled_", "binary_partition",
    "memcpy_async", "this_", "cluster_", "grid_", "multi_grid", "invoke_one", "experimental",
)
_NAMES = frozenset({
    "mma_sync", "bmma_sync", "load_matrix_sync", "store_matrix_sync", "fill_fragment", "precision", "layout_t", "plus", "less", "greater",
    "bit_and", "bit_or", "bit_xor", "reduce", "reduce_update_async", "inclusive_scan", "exclusive_scan", "wait", "wait_prior", "pipeline",
    "barrier", "assert", "printf", "malloc", "free", "memcpy", "memset", "clock", "clock64", "clusterDim", "clusterIdx", "warpSize",
    "surf2Dread", "surf2Dwrite", "tex1D", "tex1Dfetch", "tex2D", "tex3D", "texture", "dim3", "half", "half2", "nv_bfloat16", "nv_bfloat162",
    # The Math API, single and double precision.
    *(name + suffix for suffix in ("", "f") for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "cospi", "cyl_bessel_i0",
        "cyl_bessel_i1", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "fdivide", "floor",
        "fma", "fmax", "fmin", "fmod", "frexp", "hypot", "ilogb", "j0", "j1", "jn", "ldexp", "lgamma", "llrint", "llround", "log", "log10",
        "log1p", "log2", "logb", "lrint", "lround", "max", "min", "modf", "nan", "nearbyint", "nextafter", "norm", "norm3d", "norm4d",
        "normcdf", "normcdfinv", "pow", "rcbrt", "remainder", "remquo", "rhypot", "rint", "rnorm", "rnorm3d", "rnorm4d", "round", "rsqrt",
        "scalbln", "scalbn", "sin", "sincos", "sincospi", "sinh", "sinpi", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0", "y1", "yn",
    )),
})
_HEADER_FOLDERS = ("cuda/", "cub/", "thrust/", "cooperative_groups/", "nv/", "crt/", "cute/", "cutlass/")
_HEADERS = frozenset({
    "cuComplex.h", "cublas_v2.h", "curand.h", "curand_kernel.h", "cusparse.h", "cufft.h", "cuda_awbarrier.h", "cuda_awbarrier_primitives.h",
    "cuda_fp4.h", "cuda_fp6.h", "cuda_tf32.h", "cuda_texture_types.h", "cuda_surface_types.h", "device_functions.h", "driver_types.h",
    "helper_functions.h", "library_types.h", "math_constants.h", "math_functions.h", "nvrtc.h", "sm_20_intrinsics.h", "texture_fetch_functions.h",
    "texture_types.h", "vector_functions.h", "host_defines.h", "builtin_types.h", "channel_descriptor.h", "device_atomic_functions.h",
    # Headers of C and C++ that NVRTC users expect.
    "algorithm", "array", "atomic", "bit", "cassert", "cctype", "cfloat", "climits", "cmath", "complex", "cstddef", "cstdint", "cstdio",
    "cstdlib", "cstring", "functional", "initializer_list", "iterator", "limits", "memory", "numeric", "tuple", "type_traits", "utility",
    "vector", "string", "iostream", "stdbool.h", "stddef.h", "stdlib.h", "string.h", "concepts", "ratio", "numbers", "optional", "variant",
})
# fmt: on
_STD = re.compile(r"in namespace '(?:std|cuda::std|cuda|nvcuda|nvcuda::wmma|cooperative_groups)(?:::\w+)?'")


def is_name(name: str, context: str, guessed: bool) -> bool:
    """Whether `name` is one that CUDA documents; `context` is the rest of the message.

    `guessed`: the compiler found a similar name, so a misspelling is likelier than a gap of ours, unless the name is exactly CUDA's.
    """
    if name in _NAMES or _STD.search(context):
        return True
    return not guessed and name.startswith(_PREFIXES)


def is_header(name: str) -> bool:
    """Whether CUDA, or C++ for it, has a header of this name."""
    return name in _HEADERS or (name.startswith(_HEADER_FOLDERS) and ".." not in name)
