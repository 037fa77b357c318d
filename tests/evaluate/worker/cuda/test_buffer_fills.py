"""What a runner fills buffers with before the launches of a call."""

from __future__ import annotations

import ctypes
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evoengine.candidate.binding import Fill
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.worker.cuda.runner import buffer_fills
from evoengine.evaluate.worker.cuda.runner.buffer_fills import fill_step
from evoengine.task.initial_value import element_bytes
from tests.evaluate.worker.cuda.host_device import HostRuntime, host_bytes

COUNT = 1000
VALUES = [
    ("float16", 0.0),
    ("float16", -math.inf),
    ("bfloat16", math.inf),
    ("float32", 1.25),
    ("float64", -math.inf),
    ("float64", 0.1),
    ("int8", -3),
    ("int32", 70000),
    ("int64", -(2**40) + 7),
    ("bool", 1),
]


def fill_of(dtype: str, value: float) -> Fill:
    element = element_bytes(value, dtype)
    return Fill(buffer="b", bytes=COUNT * len(element), element=element.hex())


def expected(dtype: str, value: float) -> torch.Tensor:
    return torch.full((COUNT,), value, dtype=getattr(torch, dtype)).view(torch.uint8)


class HostMemsets:
    """The driver's memsets, on host memory."""

    def cuMemsetD16Async(self, to: Any, value: Any, count: Any, _stream: Any) -> int:  # noqa: N802
        return self._write(to.value, value.value, 2, count.value, 2)

    def cuMemsetD32Async(self, to: Any, value: Any, count: Any, _stream: Any) -> int:  # noqa: N802
        return self._write(to.value, value.value, 4, count.value, 4)

    def cuMemsetD2D32Async(  # noqa: N802
        self, to: Any, pitch: Any, value: Any, width: Any, height: Any, _stream: Any
    ) -> int:
        assert width.value == 1
        return self._write(to.value, value.value, 4, height.value, pitch.value)

    def _write(self, address: int, value: int, size: int, count: int, step: int) -> int:
        for number in range(count):
            ctypes.memmove(address + number * step, value.to_bytes(size, "little"), size)
        return 0


@pytest.mark.parametrize(("dtype", "value"), VALUES)
def test_every_element_holds_the_value_and_nothing_else_changes(
    monkeypatch: pytest.MonkeyPatch, dtype: str, value: float
) -> None:
    monkeypatch.setattr(buffer_fills, "runtime", HostRuntime())
    monkeypatch.setattr(buffer_fills, "driver_library", HostMemsets)
    fill = fill_of(dtype, value)
    memory = ctypes.create_string_buffer(b"\xa5" * (fill.bytes + 16), fill.bytes + 16)
    address = ctypes.addressof(memory)
    fill_step(fill, {"b": address})(0)
    assert torch.equal(host_bytes(address, fill.bytes), expected(dtype, value))
    assert memory.raw[fill.bytes :] == b"\xa5" * 16


def test_a_copy_takes_the_bytes_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = HostRuntime()
    monkeypatch.setattr(HostRuntime, "memcpyDeviceToDevice", 3, raising=False)
    monkeypatch.setattr(buffer_fills, "runtime", runtime)
    source, target = (ctypes.create_string_buffer(text, 4) for text in (b"abcd", b"...."))
    pointers = {"b": ctypes.addressof(target), "x": ctypes.addressof(source)}
    fill_step(Fill(buffer="b", bytes=3, source="x"), pointers)(0)
    assert target.raw == b"abc."


def test_a_memset_that_the_driver_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = SimpleNamespace(cuMemsetD32Async=lambda *_: 1)
    monkeypatch.setattr(buffer_fills, "driver_library", lambda: refuses)
    # CuPy's own asks the driver for the text of the code
    driver = SimpleNamespace(CUDADriverError=lambda code: ValueError(f"code {code}"))
    monkeypatch.setattr(buffer_fills, "cupy", SimpleNamespace(cuda=SimpleNamespace(driver=driver)))
    with pytest.raises(ValueError, match="code 1"):
        fill_step(fill_of("float32", 1.25), {"b": 512})(0)


@pytest.mark.gpu
@pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device")
@pytest.mark.parametrize(("dtype", "value"), VALUES)
def test_a_gpu_fills_in_a_graph_and_leaves_the_rest(dtype: str, value: float) -> None:
    fill = fill_of(dtype, value)
    memory = torch.full((fill.bytes + 512,), 0xA5, dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        fill_step(fill, {"b": memory.data_ptr()})(stream.cuda_stream)
        graph.capture_end()
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(memory[: fill.bytes].cpu(), expected(dtype, value))
    assert bool((memory[fill.bytes :] == 0xA5).all())
