"""What child processes get of the environment: by allow-list, because children run what a model
wrote.

Let through, by name or by the beginning of a name:

* finding programs, libraries and folders: PATH, LD_LIBRARY_PATH, LD_PRELOAD, HOME, USER, LOGNAME,
  TMPDIR, TEMP, TMP, VIRTUAL_ENV, CONDA_PREFIX, XDG_*, CC, CXX
* language and time: LANG, LANGUAGE, LC_*, TZ
* Python and what measures its coverage: PYTHON*, COVERAGE_*, COV_CORE_*
* the device: CUDA_*, CUDNN_*, CUBLAS_*, CUPY_*, NVIDIA_*, NVRTC_*, NCCL_*
* torch and its caches: TORCH*, PYTORCH_*, TRITON_*
* threads and memory of libraries: OMP_*, GOMP_*, KMP_*, MKL_*, OPENBLAS_*
  (OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE among them), MALLOC_*, GLIBC_TUNABLES
* ours: EVOENGINE_*; a variable that a reference reads needs a name of this form

Never let through, whatever its beginning (NVIDIA_API_KEY is a key): what `is_secret` or `has_user`
finds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

# fmt: off
_NAMES = {
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CC", "CXX",
    "LANG", "LANGUAGE", "TZ", "GLIBC_TUNABLES",
}
_BEGINNINGS = (
    "XDG_", "LC_", "PYTHON", "COVERAGE_", "COV_CORE_", "CUDA_", "CUDNN_", "CUBLAS_", "CUPY_",
    "NVIDIA_", "NVRTC_", "NCCL_", "TORCH",
    "PYTORCH_", "TRITON_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_", "EVOENGINE_",
)
# fmt: on
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|\AOPENAI_", re.IGNORECASE)
_USER_IN_ADDRESS = re.compile(r"://[^/\s]*@")


def is_secret(name: str) -> bool:
    """Whether a variable of this name may hold a secret; OPENAI_BASE_URL may hold a password."""
    return bool(_SECRET.search(name))


def has_user(value: str) -> bool:
    """Whether a value holds an address with a user, and so perhaps a password, as a proxy's may."""
    return bool(_USER_IN_ADDRESS.search(value))


def child_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of `environ` that a child process may see."""
    return {
        name: value
        for name, value in environ.items()
        if _is_for_children(name) and not has_user(value)
    }


def _is_for_children(name: str) -> bool:
    return (name in _NAMES or name.startswith(_BEGINNINGS)) and not is_secret(name)
