"""What the opcodes of machine code do: the lowest 9 bits of an instruction.

Each was read beside its name in the output of nvdisasm 13.5, over the machine code that NVRTC 13.0
makes of 640 files for sm_75 to sm_120. An opcode that is not here counts as `other`.
"""

from __future__ import annotations

NOP = 0x118
LDG, STG, LDL, STL, LDS, STS = 0x181, 0x186, 0x183, 0x187, 0x184, 0x188
LD, ST = 0x180, 0x185  # generic addresses
LDGSTS, LDSM, STSM = 0x1AE, 0x03B, 0x044
BAR, FCHK = 0x11D, 0x102  # FCHK: only exact division of floats has it
I2F, I2F_64 = 0x106, 0x112
HMMA, IMMA, DMMA, QMMA, HGMMA, IGMMA, QGMMA, UTCMMA = (
    *(0x03C, 0x037, 0x03F, 0x07A),
    *(0x1F0, 0x1F1, 0x1F3, 0x1EA),
)
BRA, BRX, JMX, EXIT, RET, BSSY, BSYNC = 0x147, 0x149, 0x14C, 0x14D, 0x150, 0x145, 0x141

# The kinds in the order in which reports list them.
_OPCODES = {
    "tensor": (HMMA, IMMA, DMMA, QMMA, HGMMA, IGMMA, QGMMA, UTCMMA),
    # FMUL FADD FFMA IMAD IDP HADD2 HFMA2 HMUL2: single and half precision, integer products
    "fma": (0x020, 0x021, 0x023, 0x024, 0x025, 0x026, 0x027, 0x030, 0x031, 0x032, 0x035),
    "fp64": (0x028, 0x029, 0x02A, 0x02B),  # DMUL DADD DSETP DFMA
    # integers, logic, comparisons, selections, moves, packing
    "alu": (
        *(0x002, 0x003, 0x004, 0x005, 0x007, 0x008, 0x009, 0x00B, 0x00C, 0x010, 0x011, 0x012),
        *(0x013, 0x014, 0x016, 0x017, 0x019, 0x01A, 0x01B, 0x01C, 0x01F, 0x033, 0x034, 0x036),
        *(0x03E, 0x040, 0x043, 0x045, 0x046, 0x048, 0x076),
    ),
    # MUFU, conversions, FRND FCHK FLO BREV POPC
    "xu": (
        *(0x100, 0x101, FCHK, 0x104, 0x105, I2F, 0x107, 0x108, 0x109),
        *(0x110, 0x111, I2F_64, 0x113),
    ),
    # RED ATOM ATOMG and UBLKCP among them
    "global": (
        *(LD, ST, LDG, STG, LDGSTS, 0x18A, 0x18B, 0x18E, 0x1A2, 0x1A3, 0x1A6, 0x1A8, 0x1A9),
        0x1BA,
    ),
    "local": (LDL, STL),
    "shared": (LDS, STS, LDSM, STSM, 0x18C, 0x18D),  # ATOMS
    "shuffle": (0x189, 0x006, 0x1A1, 0x1C4, 0x03A),  # SHFL VOTE MATCH REDUX MOVM
    "constant": (0x182, 0x1AC, 0x0B9),  # LDC LDCU ULDC
    # the datapath that computes once for a warp
    "uniform": (
        *(0x04A, 0x055, 0x056, 0x05A, 0x082, 0x086, 0x087, 0x08C, 0x090, 0x091, 0x092, 0x096),
        *(0x097, 0x099, 0x09C, 0x0A4, 0x0A5, 0x0BD, 0x0BF, 0x0CA, 0x0CB, 0x0CC, 0x1C2, 0x1C3),
    ),
    # BAR, mbarriers, fences, waits for copies, and what holds a warp together
    "sync": (
        *(0x02F, 0x11A, 0x11B, 0x11C, BAR, 0x148, 0x15D, 0x18F, 0x192, 0x1A7, 0x1AB, 0x1AF),
        *(0x1B2, 0x1C5, 0x1C6, 0x1C7),
    ),
    # BREAK, CALL, YIELD, LEPC, BMOV and BPT among them
    "branch": (
        *(BSYNC, 0x142, 0x143, 0x144, BSSY, 0x146, BRA, BRX, JMX, EXIT, 0x14E, RET),
        *(0x155, 0x15C),
    ),
    "other": (),
}
_BY_OPCODE = {opcode: kind for kind, opcodes in _OPCODES.items() for opcode in opcodes}
KINDS = tuple(_OPCODES)

_ONE_ADD = 0x035  # HFMA2.MMA up to sm_90, IADD on sm_120


def kind_of(opcode: int, compute: int) -> str:
    """The kind of an instruction on compute capability `compute`, e.g. 90."""
    if opcode == _ONE_ADD and compute >= 100:
        return "alu"
    if opcode == 0x036 and compute < 90:
        return "other"  # VIADD came with sm_90
    return _BY_OPCODE.get(opcode, "other")


def tensor_shape(low: int, high: int) -> str:
    """The instruction and the shape of a tensor instruction, e.g. `mma m16n8k16`; the instruction
    alone where its bits mean none of the shapes below.
    """
    opcode, bits = low & 0x1FF, high >> 11 & 0x1FFF
    if opcode in (HGMMA, IGMMA, QGMMA):
        return _wgmma(opcode, low, high)
    if opcode == UTCMMA:
        return "tcgen05.mma"
    shapes, mask = _SHAPES[opcode]
    return f"{_NAMES[opcode]} {shapes.get(bits & mask, '')}".rstrip()


def _wgmma(opcode: int, low: int, high: int) -> str:
    columns = ((low >> 53 & 31) + 1) * 8
    depth = 32 if opcode != HGMMA else 8 if high >> 12 & 3 == 2 else 16
    sparse = high >> 9 & 1
    return f"wgmma{'.sp' * sparse} m64n{columns}k{depth << sparse}"


_NAMES = {HMMA: "mma", IMMA: "integer mma", DMMA: "fp64 mma", QMMA: "fp8 mma"}
# opcode -> shapes by bits 75 to 87 of the instruction under a mask
_SHAPES = {
    HMMA: ({0: "m16n8k8", 1: "m16n8k16", 8: "m16n8k4", 9: "m16n8k32"}, 0x9),
    IMMA: ({0: "m8n8k16", 0x800: "m16n8k16", 0x801: "m16n8k32", 0xC00: "m16n8k64"}, 0xC01),
    DMMA: ({0: "m8n8k4", 2: "m16n8k4", 4: "m16n8k8", 6: "m16n8k16"}, 0x6),
    QMMA: ({4: "m16n8k16", 5: "m16n8k32", 6: "m16n8k64"}, 0x7),
}


def access_bytes(low: int, high: int, compute: int) -> int:
    """The bytes of a thread that a load or store moves; 0 for an instruction that is neither."""
    opcode = low & 0x1FF
    if opcode == LDGSTS:
        return 4 << (high >> 10 & 3) if compute >= 100 else 4 << ((high >> 9 & 7) - 4 & 3)
    if opcode in (LD, ST, LDG, STG, LDL, STL, LDS, STS):
        return (1, 1, 2, 2, 4, 8, 16, 16)[high >> 9 & 7]
    return 4 << (high >> 8 & 3) if opcode in (LDSM, STSM) else 0


def divides_integers(low: int, high: int) -> bool:
    """Whether this is the conversion that rounds up, with which every division or remainder of
    integers by a variable begins.
    """
    return low & 0x1FF in (I2F, I2F_64) and high >> 14 & 3 == 2
