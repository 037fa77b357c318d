"""Which names are CUDA's: a source that uses one that our headers have not is not wrong, we are.

By the interface that the CUDA C++ Programming Guide and the CUDA Math API reference describe for
CUDA 12; not exhaustive.
"""

from __future__ import annotations

import re

# fmt: off
_PREFIXES = (
    # intrinsics by what they begin with
    "__nv", "__nanosleep", "__shfl", "__match_", "__ballot", "__any_", "__all_", "__uni_",
    "__reduce_",
    "__syncthreads", "__syncwarp", "__threadfence", "__ld", "__float", "__int", "__short", "__char",
    "__st", "__ll", "__half", "__bfloat16", "__low", "__h", "__f", "__d", "__hiloint", "__u", "__v",
    "__sad", "__sin",
    "__cos", "__tan", "__exp", "__log", "__pow", "__saturate", "__mul", "__byte_perm",
    "__funnelshift", "__popc", "__clz", "__brev",
    "__fns", "__cvta", "__is", "__pipeline_", "__mbarrier", "__cluster", "__grid", "__block_size__",
    "__tma", "__activemask", "__prof",
    "__trap", "__brkpt", "__assertfail", "__viadd", "__vimax", "__vimin", "__vibmax", "__vibmin",
    "__global", "__constant",
    # functions and types
    "atomic", "cuda", "CUDA", "CUtensor", "CUdev", "curand", "cublas", "cufft", "cusparse",
    "cusolver", "cudnn", "nvcuda", "nvtx", "nv_",
    "h2", "make_", "CUDART_", "thrust", "cub", "cutlass", "cute", "tex1D", "tex2D", "tex3D",
    "texCube", "surf1D", "surf2D", "surf3D",
)
_NAMES = frozenset({
    "nv", "wmma", "cooperative_groups", "texture", "surface", "printf", "malloc", "free", "memcpy",
    "memmove", "memset", "clock", "clock64",
    "clusterDim", "clusterIdx", "warpSize", "hexp", "hexp2", "hexp10", "hlog", "hlog2", "hlog10",
    "hsqrt", "hrsqrt", "hrcp", "hceil",
    "hfloor", "hrint", "htrunc", "hsin", "hcos", "htanh", "htanh_approx", "bmma_sync", "max3",
    "min3", "alloca",
    # the Math API, double and single precision
    *(name + suffix for suffix in ("", "f") for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign",
        "cos", "cosh", "cospi", "cyl_bessel_i0",
        "cyl_bessel_i1", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp", "exp10", "exp2",
        "expm1", "fabs", "fdim", "fdivide", "floor",
        "fma", "fmax", "fmin", "fmod", "frexp", "hypot", "ilogb", "j0", "j1", "jn", "ldexp",
        "lgamma", "llrint", "llround", "log", "log10",
        "log1p", "log2", "logb", "lrint", "lround", "max", "min", "modf", "nan", "nearbyint",
        "nextafter", "norm", "norm3d", "norm4d",
        "normcdf", "normcdfinv", "pow", "rcbrt", "remainder", "remquo", "rhypot", "rint", "rnorm",
        "rnorm3d", "rnorm4d", "round", "rsqrt",
        "scalbln", "scalbn", "sin", "sincos", "sincospi", "sinh", "sinpi", "sqrt", "tan", "tanh",
        "tgamma", "trunc", "y0", "y1", "yn",
    )),
})
_HEADER_FOLDERS = (
    "cuda/", "cub/", "thrust/", "cooperative_groups/", "nv/", "crt/", "cute/", "cutlass/",
)
_HEADERS = frozenset({
    "cuComplex.h", "cublas_v2.h", "curand.h", "curand_kernel.h", "cusparse.h", "cufft.h",
    "cuda_awbarrier.h", "cuda_awbarrier_primitives.h",
    "cuda_fp4.h", "cuda_fp6.h", "cuda_tf32.h", "cuda_texture_types.h", "cuda_surface_types.h",
    "driver_types.h", "helper_functions.h",
    "library_types.h", "nvrtc.h", "sm_20_intrinsics.h", "sm_30_intrinsics.h", "sm_32_intrinsics.h",
    "texture_fetch_functions.h",
    "texture_types.h", "channel_descriptor.h",
    # C++ headers that users of NVRTC expect
    "atomic", "cctype", "complex", "functional", "initializer_list", "iterator", "memory",
    "numeric", "vector", "string", "iostream",
    "concepts", "ratio", "numbers", "optional", "variant", "chrono", "span", "bitset", "inttypes.h",
    "ctype.h",
})
# fmt: on
_NAMESPACE = re.compile(r"in namespace '(?:std|cuda|nvcuda|cooperative_groups)\b")


def is_name(name: str, context: str) -> bool:
    """Whether CUDA documents `name`; `context` is the rest of the message, which may name one of
    CUDA's namespaces.
    """
    return name in _NAMES or name.startswith(_PREFIXES) or bool(_NAMESPACE.search(context))


def is_header(name: str) -> bool:
    """Whether CUDA, or C++ for it, has a header of this name."""
    return name in _HEADERS or (name.startswith(_HEADER_FOLDERS) and ".." not in name)
