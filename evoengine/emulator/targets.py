"""The GPUs that the timing model supports: their figures, each with its source.

Every figure of a target has an entry in `TargetGpu.sources`. A figure that no vendor and no paper
gives is scaled from a related GPU; its entry says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches

from evoengine.emulator.emulator_errors import EmulatorError

WARP = 32
# per SM, one warp instruction per clock each: tuning guides of Turing, Ampere, Ada, Hopper
SCHEDULERS = 4
# CUDA C++ Programming Guide, technical specifications, compute capability 7.5 to 9.0
REGISTERS_PER_SM = 65536
REGISTER_UNIT = 256  # allocation granularity of a warp's registers: cuda_occupancy.h
LAUNCH_US = 0.8  # see _LAUNCH, also for DISPATCH_NS
DISPATCH_NS = 0.6
# 32 banks of 4 bytes: Programming Guide, "Shared Memory", 5.x and later
SHARED_BYTES_PER_CLOCK = 128


class UnknownTarget(EmulatorError):  # noqa: N818 - reads better without a suffix
    """No target has that name; the message lists the known ones."""


@dataclass(frozen=True)
class Rates:
    """Throughput of each pipe in lanes per clock and SM: 32 is one warp instruction per clock."""

    fma: float  # float32 add, multiply, multiply-add
    imad: float  # 32-bit integer multiply-add
    alu: float  # integer add, logic, shift, compare, minimum, select
    half: float  # 16-bit instructions, scalar or packed: one or two values per lane
    mufu: float  # ex2, lg2, rcp, rsqrt, sin, cos; also int <-> float and population count
    fp64: float
    shuffle: float
    lsu: float  # memory instructions of any space

    def of(self, pipe: str) -> float:
        """The throughput of the pipe of that name, in lanes per clock."""
        return float(getattr(self, pipe))


@dataclass(frozen=True)
class Latencies:
    """Clocks from the issue of an instruction to that of one that needs its result."""

    fixed: float  # fma, imad, alu, half
    mufu: float
    fp64: float
    shuffle: float
    shared: float
    l1: float
    l2: float
    dram: float
    tensor: float  # one m16n8k16 in half precision
    barrier: float  # bar.sync of one warp when all have arrived
    barrier_warp: float  # and for each further warp of the block
    # from the end of a block to the start of the next one in its place, with its own start and end
    block: float


@dataclass(frozen=True)
class TargetGpu:
    """One GPU. Bandwidths in 10^9 bytes per second, clock in MHz, sizes in bytes."""

    name: str
    title: str
    arch: str
    sms: int
    clock_mhz: float
    warps_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_per_block: int  # opt-in
    shared_reserved: int  # per block, reserved by the system
    l2_bytes: int
    dram_gb_s: float
    l2_gb_s: float
    rates: Rates
    # dense floating-point or integer operations per clock and SM, by kind of the inputs; a
    # multiply-add is two
    tensor: Mapping[str, float]
    latencies: Latencies
    l1_bytes: int  # per SM, including shared memory
    # time of an empty kernel of one block in a CUDA graph, from kernel to kernel
    launch_us: float
    dispatch_ns: float  # for each further block
    sources: Mapping[str, str]  # field -> where its figure comes from

    @property
    def clocks_per_us(self) -> float:
        """SM clocks in a microsecond."""
        return self.clock_mhz


_GUIDE = "CUDA C++ Programming Guide 13.0, technical specifications per compute capability"
_ARITHMETIC = "CUDA C++ Programming Guide 13.0, throughput of native arithmetic instructions"
_HOPPER_PAPER = (
    "Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499,"
    " memory latencies"
)
_TENSOR_PAPER = "Sun et al., Dissecting Tensor Cores via Microbenchmarks, arXiv 2206.02874"
_AMPERE_PAPER = "Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture, arXiv 2208.11174"
_TURING_PAPER = (
    "Jia et al., Dissecting the NVidia Turing T4 GPU via Microbenchmarking, arXiv 1903.07486"
)
_RATES = (
    "measured on an NVIDIA H200, 2026-11-21, python -m benchmarks.rates"
    " (docs/measurements/h200-rates.json)"
)
_LAUNCH = (
    f"{_RATES}, launch: empty kernels back to back in a CUDA graph; taken over for the other"
    " targets"
)

_TURING = Rates(fma=64, imad=64, alu=64, half=64, mufu=16, fp64=2, shuffle=32, lsu=16)
_GA100 = Rates(fma=64, imad=64, alu=64, half=128, mufu=16, fp64=32, shuffle=32, lsu=32)
_GA102 = Rates(fma=128, imad=64, alu=64, half=64, mufu=16, fp64=2, shuffle=32, lsu=32)
_HOPPER = Rates(fma=128, imad=64, alu=64, half=128, mufu=16, fp64=64, shuffle=32, lsu=32)

_MEASURED_CLOCKS = {"barrier": 12, "barrier_warp": 2, "block": 350}  # as _OTHERS says
_TURING_CLOCKS = Latencies(
    fixed=4,
    mufu=21,
    fp64=48,
    shuffle=22,
    shared=27,
    l1=32,
    l2=188,
    dram=434,
    tensor=32,
    **_MEASURED_CLOCKS,
)
_GA100_CLOCKS = Latencies(
    fixed=4,
    mufu=18,
    fp64=8,
    shuffle=23,
    shared=29,
    l1=38,
    l2=262,
    dram=466,
    tensor=25,
    **_MEASURED_CLOCKS,
)
_ADA_CLOCKS = Latencies(
    fixed=4,
    mufu=18,
    fp64=48,
    shuffle=23,
    shared=30,
    l1=40,
    l2=296,
    dram=636,
    tensor=33,
    **_MEASURED_CLOCKS,
)
_HOPPER_CLOCKS = Latencies(
    fixed=4,
    mufu=17,
    fp64=8,
    shuffle=24,
    shared=23,
    l1=34,
    l2=326,
    dram=708,
    tensor=24,
    **_MEASURED_CLOCKS,
)

_SM = {
    "sm_75": (32, 16, 96 * 1024, 64 * 1024, 64 * 1024, 0, _TURING),
    "sm_80": (64, 32, 192 * 1024, 164 * 1024, 163 * 1024, 1024, _GA100),
    "sm_86": (48, 16, 128 * 1024, 100 * 1024, 99 * 1024, 1024, _GA102),
    "sm_89": (48, 24, 128 * 1024, 100 * 1024, 99 * 1024, 1024, _GA102),
    "sm_90": (64, 32, 256 * 1024, 228 * 1024, 227 * 1024, 1024, _HOPPER),
}


def _tensor(
    half: float,
    *,
    tf32: float = 0.0,
    fp8: float = 0.0,
    int8: float = 0.0,
    bf16: bool = True,
    fp64: float = 0.0,
) -> dict[str, float]:
    rates = {
        "f16": half,
        "bf16": half if bf16 else 0.0,
        "tf32": tf32,
        "fp8": fp8,
        "int8": int8,
        "fp64": fp64,
    }
    return {kind: rate for kind, rate in rates.items() if rate}


def _target(
    name: str,
    title: str,
    arch: str,
    sms: int,
    clock_mhz: float,
    *,
    l2_mib: int,
    dram_gb_s: float,
    l2_gb_s: float,
    tensor: dict[str, float],
    latencies: Latencies,
    sheet: str,
    l2_source: str,
    latency_source: str,
    tensor_source: str = "",
) -> TargetGpu:
    warps, blocks, l1_bytes, shared_sm, shared_block, reserved, rates = _SM[arch]
    of_sheet = dict.fromkeys(("title", "sms", "clock_mhz", "l2_bytes", "dram_gb_s"), sheet)
    of_guide = dict.fromkeys(
        (
            "arch",
            "warps_per_sm",
            "blocks_per_sm",
            "shared_per_sm",
            "shared_per_block",
            "shared_reserved",
            "l1_bytes",
        ),
        _GUIDE,
    )
    sources = (
        of_sheet
        | of_guide
        | {
            "rates": _ARITHMETIC,
            "l2_gb_s": l2_source,
            "tensor": tensor_source or f"{sheet}: dense peak / (SMs x boost clock)",
            "latencies": latency_source,
            "launch_us": _LAUNCH,
            "dispatch_ns": _LAUNCH,
        }
    )
    return TargetGpu(
        name=name,
        title=title,
        arch=arch,
        sms=sms,
        clock_mhz=clock_mhz,
        warps_per_sm=warps,
        blocks_per_sm=blocks,
        shared_per_sm=shared_sm,
        shared_per_block=shared_block,
        shared_reserved=reserved,
        l2_bytes=l2_mib * 1024 * 1024,
        dram_gb_s=dram_gb_s,
        l2_gb_s=l2_gb_s,
        rates=rates,
        tensor=tensor,
        latencies=latencies,
        l1_bytes=l1_bytes,
        launch_us=LAUNCH_US,
        dispatch_ns=DISPATCH_NS,
        sources=sources,
    )


_NO_L2_FIGURE = "an estimate, no vendor gives one:"
_ADA_L2 = f"{_NO_L2_FIGURE} 15.5 bytes a clock and SM"
_AMPERE_L2 = (
    f"{_NO_L2_FIGURE} two thirds of the 5120 bytes a clock of the A100 whitepaper; the same for"
    " each SM of an A10, by its clock, at half"
)
_HOPPER_L2 = (
    f"{_RATES}, stream_read: from 8 to 32 MiB in L2, 8000 GB/s; an H100 has the same SMs and L2"
)
_HOPPER_TENSOR = (
    f"half precision: {_RATES}, rate_mma: 0.65 of the dense peak of NVIDIA's H100 datasheet / (132"
    " SMs x 1830 MHz); the rest needs wgmma. Other kinds: the same part of their peaks"
)
_OTHERS = f"shuffle, mufu, fp64: {_AMPERE_PAPER}; barrier, block: those of an H200, {_RATES}"
_LATENCY_TABLE = "github.com/markdewing/AI_kernels, latency/README.md"
_TURING_LATENCY = f"{_TURING_PAPER}; barrier, block: those of an H200, {_RATES}"
_ADA_LATENCY = (
    f"L1, L2, DRAM: {_LATENCY_TABLE} (RTX 4090); shared, tensor: {_HOPPER_PAPER}; {_OTHERS}"
)
_HOPPER_LATENCY = f"{_RATES}, chain_*; an H100 has the same SMs; fp64: {_AMPERE_PAPER}"
_AMPERE_LATENCY = f"{_HOPPER_PAPER} (A100); tensor: {_TENSOR_PAPER}; {_OTHERS}"
_MMA_SYNC = 0.65  # as _HOPPER_TENSOR says

_ALL = (
    _target(
        "t4", "NVIDIA T4", "sm_75", 40, 1590, l2_mib=4, dram_gb_s=320, l2_gb_s=1270,
        tensor=_tensor(1024, int8=2048, bf16=False), latencies=_TURING_CLOCKS,
        sheet="NVIDIA T4 datasheet; NVIDIA Turing GPU Architecture whitepaper",
        l2_source=_TURING_PAPER, latency_source=_TURING_LATENCY,
    ),
    _target(
        "a10", "NVIDIA A10", "sm_86", 72, 1695, l2_mib=6, dram_gb_s=600, l2_gb_s=1900,
        tensor=_tensor(1024, tf32=512, int8=2048), latencies=_GA100_CLOCKS,
        sheet="NVIDIA A10 datasheet; NVIDIA Ampere GA102 whitepaper",
        l2_source=_ADA_L2, latency_source=f"those of an A100: {_AMPERE_LATENCY}",
    ),
    _target(
        "l4", "NVIDIA L4", "sm_89", 58, 2040, l2_mib=48, dram_gb_s=300, l2_gb_s=1830,
        tensor=_tensor(1024, tf32=512, fp8=2048, int8=2048), latencies=_ADA_CLOCKS,
        sheet="NVIDIA L4 datasheet; NVIDIA Ada GPU Architecture whitepaper", l2_source=_ADA_L2,
        latency_source=_ADA_LATENCY,
    ),
    _target(
        "l40s", "NVIDIA L40S", "sm_89", 142, 2520, l2_mib=96, dram_gb_s=864, l2_gb_s=5500,
        tensor=_tensor(1024, tf32=512, fp8=2048, int8=2048), latencies=_ADA_CLOCKS,
        sheet="NVIDIA L40S datasheet; NVIDIA Ada GPU Architecture whitepaper", l2_source=_ADA_L2,
        latency_source=_ADA_LATENCY,
    ),
    _target(
        "rtx4090", "NVIDIA GeForce RTX 4090", "sm_89", 128, 2520, l2_mib=72, dram_gb_s=1008,
        l2_gb_s=5000,
        tensor=_tensor(512, tf32=256, fp8=1024, int8=2048), latencies=_ADA_CLOCKS,
        sheet="NVIDIA Ada GPU Architecture whitepaper 2.0, appendix A (float32 accumulation)",
        l2_source=_ADA_L2, latency_source=_ADA_LATENCY,
    ),
    _target(
        "a100", "NVIDIA A100 SXM 80GB", "sm_80", 108, 1410, l2_mib=40, dram_gb_s=2039, l2_gb_s=4700,
        tensor=_tensor(2048, tf32=1024, int8=4096, fp64=128), latencies=_GA100_CLOCKS,
        sheet="NVIDIA A100 datasheet; NVIDIA A100 Tensor Core GPU Architecture whitepaper",
        l2_source=_AMPERE_L2,
        latency_source=_AMPERE_LATENCY,
    ),
    _target(
        "h100", "NVIDIA H100 SXM", "sm_90", 132, 1980, l2_mib=50, dram_gb_s=3350, l2_gb_s=8000,
        tensor=_tensor(
            4096 * _MMA_SYNC, tf32=2048 * _MMA_SYNC, fp8=8192 * _MMA_SYNC,
            int8=8192 * _MMA_SYNC, fp64=256 * _MMA_SYNC,
        ),
        latencies=_HOPPER_CLOCKS,
        sheet="NVIDIA H100 datasheet; NVIDIA H100 Tensor Core GPU Architecture whitepaper",
        l2_source=_HOPPER_L2, latency_source=_HOPPER_LATENCY, tensor_source=_HOPPER_TENSOR,
    ),
    _target(
        "h200", "NVIDIA H200", "sm_90", 132, 1980, l2_mib=50, dram_gb_s=4800, l2_gb_s=8000,
        tensor=_tensor(
            4096 * _MMA_SYNC, tf32=2048 * _MMA_SYNC, fp8=8192 * _MMA_SYNC,
            int8=8192 * _MMA_SYNC, fp64=256 * _MMA_SYNC,
        ),
        latencies=_HOPPER_CLOCKS,
        sheet="NVIDIA H200 datasheet; NVIDIA H100 Tensor Core GPU Architecture whitepaper",
        l2_source=_HOPPER_L2, latency_source=_HOPPER_LATENCY, tensor_source=_HOPPER_TENSOR,
    ),
)  # fmt: skip

TARGETS: Mapping[str, TargetGpu] = {target.name: target for target in _ALL}
FIGURES = tuple(field.name for field in fields(TargetGpu) if field.name not in ("name", "sources"))
_TYPICAL = {"sm_75": "t4", "sm_80": "a100", "sm_86": "a10", "sm_89": "l4", "sm_90": "h100"}


def find(name: str) -> TargetGpu:
    """The target of that name, in any case and with or without spaces; raises UnknownTarget."""
    plain = (
        name.lower()
        .replace(" ", "")
        .replace("-", "")
        .removeprefix("nvidia")
        .removeprefix("geforce")
    )
    if plain in TARGETS:
        return TARGETS[plain]
    near = get_close_matches(plain, TARGETS, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownTarget(f"no target {name!r}; {hint}known: {', '.join(TARGETS)}")


def for_arch(arch: str) -> TargetGpu:
    """The usual target of an architecture such as sm_89 or sm_90a; raises UnknownTarget."""
    plain = arch.rstrip("af")
    if plain not in _TYPICAL:
        raise UnknownTarget(f"no target of architecture {arch!r}; known: {', '.join(_TYPICAL)}")
    return TARGETS[_TYPICAL[plain]]
