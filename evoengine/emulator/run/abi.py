"""The structures that lowered kernels, the C driver and Python share; run/native/runtime.h mirrors
them.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

BARRIERS = 16  # PTX ISA 9.7.13.1: named barriers of a block
REGISTERS_OFFSET = 512  # of the saved registers, after the fields of a warp
WARP_ALIGN = 64  # of AVX-512's vectors


class StopReason(IntEnum):
    """Why a warp returned to the driver, or the driver to Python."""

    done = 0
    waiting = 1
    trapped = 2
    no_fuel = 3
    deadlock = 4
    strayed = 5  # to memory that is not there, in a launch that is guarded


class WarpRecord(ctypes.Structure):
    """The state of a warp; its saved registers follow at REGISTERS_OFFSET."""

    _fields_ = [
        ("resume", ctypes.c_uint32),
        ("live", ctypes.c_uint32),
        ("index", ctypes.c_uint32),
        ("released", ctypes.c_uint32),
        ("yielded", ctypes.c_uint32),
        ("waits_at", ctypes.c_uint32),  # the site of its last barrier
        ("unused", ctypes.c_uint32 * 10),
        ("arrived", ctypes.c_uint32 * BARRIERS),
        ("expected", ctypes.c_uint32 * BARRIERS),
        ("voted", ctypes.c_uint32 * BARRIERS),
        ("votes", ctypes.c_uint32 * BARRIERS),
        ("voters", ctypes.c_uint32 * BARRIERS),
        ("passed", ctypes.c_uint32 * BARRIERS),
        ("pad", ctypes.c_uint32 * 16),
    ]


PRINT = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32
)


class BlockRecord(ctypes.Structure):
    """The thread block that a host thread is running."""

    _fields_ = [
        ("index", ctypes.c_uint32 * 3),
        ("grid", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint64),
        ("local", ctypes.c_uint64),
        ("globals", ctypes.c_uint64),
        ("params", ctypes.c_uint64),
        ("counters", ctypes.c_void_p),
        ("checker", ctypes.c_void_p),
        ("print", PRINT),
        ("fail", PRINT),
        ("fuel", ctypes.c_int64),
        ("fault_site", ctypes.c_uint32),
        ("fault_lanes", ctypes.c_uint32),
        ("fault_warp", ctypes.c_uint32),
        ("dynamic_shared_bytes", ctypes.c_uint32),
    ]


class LaunchRecord(ctypes.Structure):
    """One launch, for one host thread."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
        ("end", ctypes.c_uint64),
        ("chosen", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("threads", ctypes.c_uint32),
        ("warps", ctypes.c_uint32),
        ("warp_bytes", ctypes.c_uint32),
        ("shared_bytes", ctypes.c_uint32),
        ("dynamic_shared_bytes", ctypes.c_uint32),
        ("poison", ctypes.c_uint32),
        ("stop", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
        ("nodes", ctypes.c_uint64),
        ("block_work", ctypes.c_void_p),
        ("block_work_end", ctypes.c_uint64),
        ("warp_work", ctypes.c_void_p),
        ("warp_work_end", ctypes.c_uint64),
    ]


assert ctypes.sizeof(WarpRecord) == REGISTERS_OFFSET and REGISTERS_OFFSET % WARP_ALIGN == 0
