"""What goes into a compiler process and what comes out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evoengine.records import Frozen, KernelResources
from evoengine.task.names import FileName, Name, NameExpression

MacroValue = Annotated[str, Field(pattern=r"^[^\r\n\x00]*$", max_length=1000)]

# failed: the compiler process failed on this source, although it compiles others
CompileStatus = Literal[
    "ok", "refused", "compile_error", "unsupported", "timeout", "out_of_memory", "failed"
]


class CompileUnit(Frozen):
    """One source to be compiled for one architecture.

    `name` appears in messages and in the line table of the machine code, so it is part of the
    cache's key: a constant name finds more in the cache.
    """

    code: str
    arch: Annotated[str, Field(pattern=r"^sm_[0-9]+[af]?$")]
    kernels: tuple[NameExpression, ...]
    macros: dict[Name, MacroValue] = Field(default_factory=dict)
    name: FileName = "kernel.cu"
    # The largest kernel met so far took 26 s; a loop that never ends should not take much longer.
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    # Address space of the process: it takes 0.5 GiB before the first line is read, 0.8 GiB with
    # libcu++; the rest is for the source.
    memory_bytes: Annotated[int, Field(gt=0)] = 4 << 30


class Built(Frozen):
    """What a compilation gave; the same whether it was cached or not."""

    status: CompileStatus
    log: str = ""  # cleaned and cut; the candidate's file name only
    # name expression -> name in the machine code
    functions: dict[str, str] = Field(default_factory=dict)
    resources: tuple[
        KernelResources, ...
    ] = ()  # in the order of the unit's kernels; dynamic_shared_bytes is 0
    # name expression -> bytes of each parameter, in order
    params: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    # name expression -> number formats of its instructions (task/instruction_formats.py)
    formats: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    # of the instructions and constants alone: comments and line numbers do not count
    code_digest: str = ""


class CompileResult(Built):
    """The result for a unit. Only status ok has code: a cubin, or PTX from clang."""

    code_path: str = ""
    seconds: float = 0.0
    cached: bool = False


class Toolchain(Frozen):
    """What a compiler process found at its start; `problem` is empty when it can work."""

    nvrtc: str = ""  # version, e.g. "13.5"
    clang: str = ""  # version, e.g. "22.1.8"; a process has one of the two compilers
    library: str = ""  # the path of libnvrtc
    architectures: tuple[int, ...] = ()
    folders: tuple[str, ...] = ()  # searched for headers, in this order
    headers: dict[str, str] = Field(default_factory=dict)  # header -> where it was found
    missing: tuple[str, ...] = ()
    source: str = ""  # in words: which set of headers is used
    confined: bool = False  # the process can open nothing but these folders
    fingerprint: str = ""  # changes when the same source could give other machine code
    problem: str = ""  # what is wrong and what to do

    @property
    def version(self) -> str:
        """The version of its compiler."""
        return self.nvrtc or self.clang
