"""The code of a candidate as the runner loads, resets and launches it."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

from evoengine.candidate.binding import BoundLaunch, BufferArgument, ScalarArgument
from evoengine.evaluate.worker.cuda.harness.runner_messages import Load
from evoengine.evaluate.worker.cuda.runner import candidate_module
from evoengine.evaluate.worker.cuda.runner.candidate_module import CandidateModule, _arguments
from tests.evaluate.worker.cuda.host_device import HostRuntime

INF = float("inf")


def packed(argument: BufferArgument | ScalarArgument, size: int, **pointers: int) -> bytes:
    """The bytes that the driver copies for a parameter of `size` bytes."""
    launch = BoundLaunch(kernel="k", grid=(1,), block=(1,), shared_bytes=0, args=(argument,))
    arguments = _arguments(launch, pointers)
    (pointer,) = (ctypes.c_void_p * 1).from_address(arguments.address)
    return ctypes.string_at(pointer, size)


def float_bytes(value: float, dtype: torch.dtype) -> bytes:
    return torch.tensor([value], dtype=torch.float64).to(dtype).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 1 / 3, -2.5e-7, 65504.0, 1e30, INF, -INF, 7])
@pytest.mark.parametrize(
    ("dtype", "size"), [("float16", 2), ("bfloat16", 2), ("float32", 4), ("float64", 8)]
)
def test_floating_point_numbers_have_the_bytes_of_their_type(
    dtype: str, size: int, value: float
) -> None:
    found = packed(ScalarArgument(scalar=value, dtype=dtype), size)
    assert found == float_bytes(value, getattr(torch, dtype))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", -128),
        ("int8", 127),
        ("uint8", 255),
        ("int32", -(2**31)),
        ("int32", 2**31 - 1),
        ("int64", -(2**63)),
        ("int64", 2**63 - 1),
        ("int64", -1),
        ("bool", 1),
        ("bool", 0),
        ("bool", True),
    ],
)
def test_whole_numbers_have_the_bytes_of_their_type(dtype: str, value: int) -> None:
    wanted = numpy.array(value).astype(dtype).tobytes()
    assert packed(ScalarArgument(scalar=value, dtype=dtype), len(wanted)) == wanted


def test_a_buffer_is_the_address_of_this_call() -> None:
    for address in (0x7F00_1234_5600, 2**64 - 512):
        found = packed(BufferArgument(buffer="out"), 8, x=1, out=address)
        assert struct.unpack("<Q", found) == (address,)


def test_arguments_stand_in_their_order_and_none_is_no_fault() -> None:
    args = (
        BufferArgument(buffer="x"),
        ScalarArgument(scalar=-3, dtype="int32"),
        BufferArgument(buffer="y"),
    )
    launch = BoundLaunch(kernel="k", grid=(1,), block=(1,), shared_bytes=0, args=args)
    arguments = _arguments(launch, {"x": 11, "y": 13})
    found = (ctypes.c_void_p * 3).from_address(arguments.address)
    assert [ctypes.c_int32.from_address(pointer).value for pointer in found] == [11, -3, 13]
    assert _arguments(launch.model_copy(update={"args": ()}), {}).address


class FakeDriver:
    """Loads modules whose variables lie in the host's memory."""

    def __init__(self, variables: dict[str, bytes]) -> None:
        self.first_values = variables
        self.memory: dict[str, Any] = {}
        self.loaded = 0
        self.unloaded = 0
        self.attributes: list[tuple[int, int, int]] = []
        self.launched: list[tuple[Any, ...]] = []
        fake = self

        class FakeModule:
            ptr = 1

            def load(self, _: bytes) -> None:
                fake.loaded += 1
                fake.memory = {
                    name: ctypes.create_string_buffer(value, len(value))
                    for name, value in fake.first_values.items()
                }

            def get_function(self, name: str) -> Any:
                return SimpleNamespace(ptr={"_Z1k": 100, "_Z1m": 200}[name])

            def __del__(self) -> None:
                fake.unloaded += 1

        self.module = FakeModule

    def variable(self, _: Any, name: str) -> tuple[int, int]:
        if name not in self.memory:
            return 0, 0
        return ctypes.addressof(self.memory[name]), len(self.memory[name])

    def funcSetAttribute(self, function: int, attribute: int, value: int) -> None:  # noqa: N802
        self.attributes.append((function, attribute, value))

    def funcGetAttribute(self, _: int, function: int) -> int:  # noqa: N802
        return {100: 48, 200: 640}[function]

    def launchKernel(self, *arguments: Any) -> None:  # noqa: N802
        self.launched.append(arguments)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver({"counter": b"\3\0\0\0", "table": bytes(range(64))})
    monkeypatch.setattr(candidate_module, "Module", fake.module)
    monkeypatch.setattr(candidate_module, "driver", fake)
    monkeypatch.setattr(candidate_module, "runtime", HostRuntime())
    monkeypatch.setattr(candidate_module, "_variable", fake.variable)
    symbols = ("counter", "table", "$str")
    monkeypatch.setattr(candidate_module, "variable_symbols", lambda _: symbols)
    return fake


def loaded(folder: Path, *launches: BoundLaunch) -> CandidateModule:
    (folder / "code.cubin").write_bytes(b"code")
    return CandidateModule(
        Load(
            code_path=str(folder / "code.cubin"),
            functions={"k": "_Z1k", "m": "_Z1m"},
            launches=launches,
            buffers={"x": 4},
            written=frozenset(),
            silent=False,
        )
    )


def launch(kernel: str, shared_bytes: int, *grid: int) -> BoundLaunch:
    args = (BufferArgument(buffer="x"),)
    return BoundLaunch(kernel=kernel, grid=grid, block=(64,), shared_bytes=shared_bytes, args=args)


def test_every_variable_that_the_driver_knows_has_its_first_value_again(
    driver: FakeDriver, tmp_path: Path
) -> None:
    module = loaded(tmp_path, launch("k", 0, 1))
    module.reload()
    for memory in driver.memory.values():
        memory.raw = b"\xee" * len(memory)
    module.reset_variables(0)
    assert {name: memory.raw for name, memory in driver.memory.items()} == driver.first_values


def test_a_reload_is_a_new_module_and_the_one_before_is_unloaded_first(
    driver: FakeDriver, tmp_path: Path
) -> None:
    module = loaded(tmp_path, launch("k", 0, 1))
    for number in range(1, 4):
        module.reload()
        assert (driver.loaded, driver.unloaded) == (number, number - 1)
    module.unload()
    assert driver.unloaded == 3


def test_a_kernel_may_have_the_most_shared_memory_of_its_launches(
    driver: FakeDriver, tmp_path: Path
) -> None:
    module = loaded(tmp_path, launch("k", 1000, 1), launch("k", 90_000, 1), launch("m", 5, 1))
    module.reload()
    assert [(function, value) for function, _, value in driver.attributes] == [
        (100, 90_000),
        (200, 5),
    ]
    assert module.local_bytes == 640


def test_a_plan_is_launched_in_its_order_on_the_given_stream(
    driver: FakeDriver, tmp_path: Path
) -> None:
    module = loaded(tmp_path, launch("m", 5, 7), launch("k", 9, 2, 3))
    module.reload()
    run = module.bind({"x": 0x1234})
    assert driver.launched == []
    run(42)
    first, second = driver.launched
    assert first[:9] == (200, 7, 1, 1, 64, 1, 1, 5, 42)
    assert second[:9] == (100, 2, 3, 1, 64, 1, 1, 9, 42)
