"""The limits of each compute capability.

Source: CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute
Capability" (maximum shared memory per block, opt-in; 65,536 registers per block at most;
resident threads per SM).
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.records import Environment

MAX_THREADS_PER_BLOCK = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
WARP_SIZE = 32
MAX_REGISTERS_PER_THREAD = 255
DEFAULT_ARCH = "sm_90"  # used if there is neither a device nor a target

_MAX_SHARED_KIB = {
    "sm_75": 64,
    "sm_80": 163,
    "sm_86": 99,
    "sm_87": 163,
    "sm_89": 99,
    "sm_90": 227,
    "sm_100": 227,
    "sm_103": 227,
    "sm_120": 99,
}
_THREADS_PER_SM = {"sm_75": 1024, "sm_86": 1536, "sm_87": 1536, "sm_89": 1536, "sm_120": 1536}
# T4, A100, A40, L4, H100 and H200, B200, RTX PRO 6000
_SM_COUNT = {
    "sm_75": 40,
    "sm_80": 108,
    "sm_86": 84,
    "sm_89": 58,
    "sm_90": 132,
    "sm_100": 148,
    "sm_120": 188,
}


@dataclass(frozen=True)
class DeviceLimits:
    """The properties of a device that a launch plan may use."""

    arch: str
    max_shared_bytes: int  # per block, opt-in
    sm_count: int

    @property
    def resident_threads(self) -> int:
        """The most threads that run on the device at once."""
        return self.sm_count * self.threads_per_sm

    @property
    def threads_per_sm(self) -> int:
        """The most threads that run on an SM at once."""
        return _THREADS_PER_SM.get(self.arch.rstrip("af"), 2048)

    def scope(self) -> dict[str, int]:
        """The names of the limits in expressions, with their values."""
        return {
            "MAX_SHARED_BYTES": self.max_shared_bytes,
            "SM_COUNT": self.sm_count,
            "WARP_SIZE": WARP_SIZE,
        }


def limits_of(environment: Environment) -> DeviceLimits:
    """The limits of the device in `environment`."""
    return DeviceLimits(environment.arch, environment.max_shared_bytes, environment.sm_count)


def limits_of_arch(arch: str) -> DeviceLimits:
    """The limits of an architecture; unknown ones get the smallest limits."""
    plain = arch.rstrip("a")
    return DeviceLimits(arch, _MAX_SHARED_KIB.get(plain, 48) * 1024, _SM_COUNT.get(plain, 1))
