"""Compilers and a device that say what compilers and devices have been seen to say, and worse, as a
digest of what they are asked decides.

All that crosses a process in a real run crosses the same models here, as JSON.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

from evoengine.candidate.binding import ITEM_BYTES, BufferArgument
from evoengine.digest import derived_seed
from evoengine.evaluate.compile import compiler_log
from evoengine.evaluate.compile.compile_cache import CompileCache, key_of
from evoengine.evaluate.compile.compile_unit import Built, CompileResult, CompileUnit
from evoengine.evaluate.compile.compiler_process import CLANG, NVRTC
from evoengine.evaluate.compile.compiler_protocol import CompileAnswer, CompileRequest
from evoengine.evaluate.compile.includes import IncludeRefused, check_includes
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.device import worker_protocol as device_wire
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_EMULATOR
from evoengine.protocols import Job, Progress, Report
from evoengine.records import CaseModel, Environment, KernelResources, LaunchModel, Status
from evoengine.task.schema import Task

PTX = b".version 8.3\n"


def elf(symbols: bytes, names: bytes) -> bytes:
    """An ELF file with the sections that are read of any cubin."""
    titles = b"\0.shstrtab\0.symtab\0.strtab\0"
    bodies = [b"", titles, symbols, names]
    offset, headers, data = 64, b"", b""
    for title, body in zip((0, 1, 11, 19), bodies, strict=True):
        headers += struct.pack(
            "<IIQQQQIIQQ", title, 1, 0, 0, offset + len(data), len(body), 0, 0, 1, 0
        )
        data += body
    head = (
        b"\x7fELF\x02\x01".ljust(0x28, b"\0")
        + struct.pack("<Q", offset + len(data))
        + bytes(10)
        + struct.pack("<HHH", 64, len(bodies), 1)
    )
    return head.ljust(64, b"\0") + data + headers


_DEFINED, _FOREIGN = (struct.pack("<IBBHQQ", 1, 0, 0, section, 0, 0) for section in (2, 0))
CUBINS = [elf(_DEFINED, b"\0scale\0")] * 20 + [
    elf(_FOREIGN, b"\0\xff\xfe\xc3\0"),
    elf(_FOREIGN, b"\0malloc\0"),
    elf(b"odd", b"\0"),
    b"\x7fELF",
    b"",
]


class ScriptedPool(CompilePool):
    """A CompilePool without processes; includes are checked and results are kept as in a real
    one.
    """

    def __init__(self, folder: Path, module: str) -> None:
        super().__init__(1, folder, module=module)
        self._cubins = [folder / f"{number}.cubin" for number in range(len(CUBINS))]
        folder.mkdir(parents=True)
        for path, data in zip(self._cubins, CUBINS, strict=True):
            path.write_bytes(data)
        self.keeps = CompileCache(folder / "kept", lambda _: None)

    async def start(self) -> str:
        return "1.0"

    async def warm(self) -> None: ...

    async def compile(self, unit: CompileUnit) -> CompileResult:
        try:
            check_includes(unit.code, unit.name)
        except IncludeRefused as refused:
            return CompileResult(status="refused", log=str(refused))
        asked = CompileRequest.model_validate_json(
            CompileRequest(id=1, unit=unit).model_dump_json().encode()
        ).unit
        chance = random.Random(derived_seed(self._module, asked.code, *asked.kernels))  # noqa: S311 - the same again
        built = self._ok(asked, chance) if chance.random() < 0.85 else self._failed(asked, chance)
        said = CompileAnswer.model_validate_json(
            CompileAnswer(id=1, built=built).model_dump_json().encode()
        ).built
        assert said is not None
        key_of(asked, "fingerprint")
        return CompileResult(
            **dict(said),
            code_path=str(chance.choice(self._cubins)) if said.status == "ok" else "",
            seconds=0.1,
        )

    def _ok(self, unit: CompileUnit, chance: random.Random) -> Built:
        if self._module == CLANG:
            return Built(
                status="ok",
                functions={kernel: f"_Z{kernel}\u00e9" for kernel in unit.kernels},
                code_digest=str(chance.random()),
            )
        assert self._module == NVRTC
        resources = tuple(
            KernelResources(
                kernel=kernel,
                arch=unit.arch,
                registers=chance.choice([*[40] * 12, 0, 255, 2**31]),
                static_shared_bytes=chance.choice([*[0] * 12, 200 * 1024]),
                dynamic_shared_bytes=0,
                local_bytes=chance.choice([*[0] * 12, 2**40]),
                spill_store_bytes=0,
                spill_load_bytes=0,
                cubin_bytes=1000,
            )
            for kernel in unit.kernels
        )
        params = {
            kernel: chance.choice([*[(8, 8, 8)] * 12, (8, 8, 4), (), (4096,)])
            for kernel in unit.kernels
        }
        names = dict.fromkeys(unit.kernels, "scale")
        return Built(
            status="ok",
            log=_log(unit, chance),
            functions=names,
            resources=resources,
            params=params,
            code_digest=str(chance.random()),
        )

    def _failed(self, unit: CompileUnit, chance: random.Random) -> Built:
        return Built(
            status=chance.choice(
                ["compile_error", "unsupported", "timeout", "out_of_memory", "failed"]
            ),
            log=_log(unit, chance),
        )


def _log(unit: CompileUnit, chance: random.Random) -> str:
    """A log as it comes out of a compiler process: bytes that quote the source, decoded and
    cleaned.
    """
    start = chance.randrange(len(unit.code) + 1)
    quoted = unit.code[start : start + 200].encode() + chance.choice(
        [b"", b"", b"\xff\xfe\x80", b"\0", b"\x1c\n\x85", b"\r\r", b"\xc3"]
    )
    wrapped = chance.choice(
        [
            b"%s",
            b"%s",
            b"kernel.cu(3): error: %s",
            b"\n\n \n",
            b"",
            b"x" * 20000 + b"%s",
            b"error\n" * 3000,
        ]
    )
    return compiler_log.cleaned(
        (wrapped % quoted if b"%s" in wrapped else wrapped).decode("utf-8", "replace"), ["/"]
    )


class ScriptedDevice:
    """A protocols.Device whose reports cross the wire's models."""

    def __init__(self, task: Task) -> None:
        self._task = task

    async def start(self, task: Task, task_path: str) -> Environment:
        return SCRIPTED_EMULATOR.model_copy(update={"arch": "sm_89", "max_shared_bytes": 101376})

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        asked = device_wire.REQUEST.validate_json(
            device_wire.Run(id=1, job=job).model_dump_json().encode()
        )
        assert isinstance(asked, device_wire.Run)
        for case in asked.job.cases:
            _bytes_of(case.plan.launches)
        answer = device_wire.Done(id=1, report=self._report(asked.job), healthy=True)
        done = device_wire.ANSWER.validate_json(answer.model_dump_json().encode())
        assert isinstance(done, device_wire.Done)
        return done.report

    def _report(self, job: Job) -> Report:
        # the same again, in whatever folder the code lies
        said_of = job.model_dump_json(
            exclude={"checked": True, "cases": {"__all__": {"code_path"}}}
        )
        chance = random.Random(derived_seed(said_of))  # noqa: S311
        status = chance.choice([*[Status.correct] * len(Status), *Status])
        if status is not Status.correct:
            said = chance.choice(
                ["", "\ufffd\x1b[2J", "line\nline", "[/bold]", "x" * 5000, "\u2028\x85"]
            )
            return Report(status=status, reason=said, detail=said)
        us = chance.uniform(5, 20)
        launch = LaunchModel(kernel="scale", us=us, limiter="tensor", bounds_us={})
        models = tuple(
            CaseModel(case=case, target="l4", launches=(launch,)) for case in self._task.cases
        )
        return Report(status=status, modelled=models)

    async def close(self) -> None: ...


def _bytes_of(launches: tuple[object, ...]) -> None:
    """Every argument as it would be put before a kernel."""
    for launch in launches:
        for argument in launch.args:  # type: ignore[attr-defined]  # plan.BoundLaunch
            if not isinstance(argument, BufferArgument):
                struct.pack("<d" if isinstance(argument.scalar, float) else "<q", argument.scalar)
                assert ITEM_BYTES[argument.dtype]
