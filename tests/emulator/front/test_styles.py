"""Kernels in the styles that people and language models write, through clang, our headers and the
emulator, against numpy in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.corpus import Case, In, Kernel, Out, wrong
from tests.emulator.corpus_launch import launch
from tests.emulator.float_formats import values
from tests.emulator.lower import small_kernels
from tests.emulator.narrow_formats import Array

STYLES = Path(__file__).parent / "assets" / "styles"
KNOWN: dict[str, Callable[[np.random.Generator], list[Case]]] = {}


def style(
    cases: Callable[[np.random.Generator], list[Case]],
) -> Callable[[np.random.Generator], list[Case]]:
    """Registers the cases of a kernel under its name."""
    KNOWN[cases.__name__] = cases
    return cases


def bfloat(x: Array) -> Array:
    """The bits of `x` truncated to bfloat16, the kernel's input."""
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


@style
def fused_linear(random: np.random.Generator) -> list[Case]:
    rows, inputs, outputs = 3, 84, 10
    x, w, bias = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((rows, inputs), (outputs, inputs), outputs)
    )
    z = x.astype(np.float64) @ w.astype(np.float64).T + bias
    fast = 0.5 * z * (1 + np.tanh(0.7978845608028654 * (z + 0.044715 * z**3)))
    args = (
        In(x),
        In(w),
        In(bias),
        Out((rows, outputs), "float32"),
        *map(np.int32, (rows, inputs, outputs)),
        np.float32(1.5),
    )
    return [
        Case(
            "fast",
            "fused_linear<true, 4>",
            (3, rows, 1),
            (128, 1, 1),
            args,
            {3: 1.5 * fast},
            atol=2e-5,
            rtol=1e-5,
        )
    ]


@style
def online_softmax(random: np.random.Generator) -> list[Case]:
    x = (random.standard_normal((4, 301)) * 5).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    args = (In(x), Out(x.shape, "float32"), np.int32(301))
    return [
        Case(
            "rows",
            "softmax<128>",
            (4, 1, 1),
            (128, 1, 1),
            args,
            {1: e / e.sum(1, keepdims=True)},
            atol=1e-7,
            rtol=1e-5,
        )
    ]


@style
def lambdas(random: np.random.Generator) -> list[Case]:
    n, threads = 777, 256
    x = random.standard_normal(n).astype(np.float32)
    leaky = np.where(x > 0, x, np.float32(0.25) * x).astype(np.float64)
    expected = leaky**2 + 2 * (1 + np.arange(n) // threads)  # a thread counts how many it has done
    args = (In(x), Out(n, "float32"), np.float32(0.25), np.int32(n))
    return [
        Case(
            "grid_stride",
            "lambdas",
            (2, 1, 1),
            (threads // 2, 1, 1),
            args,
            {1: expected},
            rtol=1e-6,
        )
    ]


@style
def chain(random: np.random.Generator) -> list[Case]:
    n = 100
    x = random.standard_normal(n).astype(np.float32)
    params = np.zeros((), [("p", "<f4", 4)])
    params["p"] = [0.5, 2.0, 0.0, 1.25]
    args = (In(x), Out(n, "float32"), params[()], np.int32(n))
    expected = np.clip(relu((x.astype(np.float64) + 0.5) * 2), -1.25, 1.25) + 1 + 2 + 4
    name = "chain<Op::kAdd, Op::kMul, Op::kRelu, Op::kClamp>"
    return [Case("four", name, (1, 1, 1), (128, 1, 1), args, {1: expected}, rtol=1e-6)]


@style
def packs(random: np.random.Generator) -> list[Case]:
    n, found = 1003, []
    real = [random.standard_normal(n) for _ in range(2)]
    for name, dtype, rtol in (
        ("float", "float32", 1e-6),
        ("__half", "float16", 1e-3),
        ("__nv_bfloat16", "bfloat16", 8e-3),
    ):
        x, gate = (bfloat(a) if dtype == "bfloat16" else a.astype(dtype) for a in real)
        wide, by = values(x, dtype).astype(np.float64), values(gate, dtype).astype(np.float64)
        args = (In(x, dtype), In(gate, dtype), Out(n, dtype), np.int64(n))
        expected = wide / (1 + np.exp(-wide)) * by
        found.append(
            Case(
                dtype,
                f"swiglu<{name}>",
                (8, 1, 1),
                (32, 1, 1),
                args,
                {2: expected},
                atol=1e-6,
                rtol=rtol,
            )
        )
    return found


@style
def inline_asm(random: np.random.Generator) -> list[Case]:
    v = random.standard_normal((128, 4)).astype(np.float32)
    a, b, c, _ = v.view(np.uint32).astype(np.uint64).T
    wide = v.astype(np.float64)
    words = np.stack(
        [
            (a & b) | c,
            a >> np.uint64(23) & np.uint64(255),
            np.where(v[:, 0] > v[:, 1], 1, 2**32 - 5),
            np.arange(128) % 32,
        ],
        1,
    )
    both = (b << np.uint64(32)) + a + np.uint64(1)
    expected = {
        1: (wide[:, 1] * wide[:, 2] + wide[:, 0])
        .astype(np.float32)
        .astype(np.float16)
        .view(np.uint16),
        2: words.astype(np.uint32).view(np.int32),
        3: (both & np.uint64(2**32 - 1)) * (both >> np.uint64(32)) + np.uint64(7),
    }
    args = (In(v), Out(128, "uint16"), Out((128, 4), "int32"), Out(128, "uint64"))
    return [Case("constraints", "inline_asm", (1, 1, 1), (128, 1, 1), args, expected)]


@style
def bit_tricks(random: np.random.Generator) -> list[Case]:
    x = (random.standard_normal(64) * 100).astype(np.float32)
    bits, thread = x.view(np.uint32), np.arange(64)
    keys = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    powers = np.array([1 << max(int(i) - 1, 0).bit_length() for i in thread])
    exponents = (bits >> 23 & 255).astype(np.int64) - 127 + np.where(bits >> 31, 1000, 0) + powers
    order = np.concatenate(
        [warp[np.argsort(warp & 1, kind="stable")] for warp in bits.reshape(2, 32)]
    )
    inverse = 1 / np.sqrt(np.abs(x.astype(np.float64)) + 1e-3)
    expected = {1: keys.astype(np.float64), 2: inverse, 3: exponents, 4: order.astype(np.float64)}
    args = (In(x), Out(64, "uint32"), Out(64, "float32"), Out(64, "int32"), Out(64, "uint32"))
    # two steps of Newton's give 5e-6
    return [Case("warps", "bit_tricks", (1, 1, 1), (64, 1, 1), args, expected, rtol=1e-5)]


@style
def wmma_epilogue(random: np.random.Generator) -> list[Case]:
    m, n, k = 32, 48, 64
    a, b = (
        random.standard_normal((m, k)).astype(np.float16),
        random.standard_normal((k, n)).astype(np.float16),
    )
    bias = random.standard_normal(n).astype(np.float32)
    expected = relu(a.astype(np.float64) @ b.astype(np.float64) * 0.125 + bias)
    args = (In(a), In(b), In(bias), Out((m, n), "float16"), *map(np.int32, (m, n, k)))
    return [
        Case(
            "relu",
            "wmma_epilogue",
            (2, 1, 1),
            (128, 1, 1),
            args,
            {3: expected},
            atol=1e-3,
            rtol=1e-3,
        )
    ]


@style
def conv_pool(random: np.random.Generator) -> list[Case]:
    planes, height, width = 2, 20, 36
    x = random.standard_normal((planes, height, width)).astype(np.float32)
    weights = np.array([[0, -1, 0.5], [-1, 4, -1], [0.25, -1, 0]])
    around = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    z = 0.1 + sum(
        weights[i, j] * around[:, i : i + height, j : j + width] for i in range(3) for j in range(3)
    )
    active = {"ACT_RELU": relu(z), "ACT_HARDSWISH": z * np.clip(z + 3, 0, 6) / 6}
    args = (
        In(x),
        Out((planes, height // 2, width // 2), "float32"),
        np.int32(height),
        np.int32(width),
    )
    shared = 4 * (32 + 2) * (8 + 2)
    return [
        Case(
            *(name.lower(), f"conv_pool<32, 8, {name}>", (2, 3, planes), (16, 4, 1), args),
            {1: y.reshape(planes, height // 2, 2, width // 2, 2).max((2, 4))},
            *(1e-5, 1e-5),
            shared_bytes=shared,
        )
        for name, y in active.items()
    ]


@style
def batch_norm(random: np.random.Generator) -> list[Case]:
    batch, channels, spatial = 5, 3, 77
    x = (random.standard_normal((batch, channels, spatial)) * 3 + 1).astype(np.float32)
    affine = random.standard_normal((channels, 2)).astype(np.float32)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean((0, 2), keepdims=True)) / np.sqrt(
        wide.var((0, 2), keepdims=True) + 1e-5
    )
    expected = normal * affine[None, :, :1] + affine[None, :, 1:]
    args = (
        In(x),
        In(affine),
        Out(x.shape, "float32"),
        *map(np.int32, (batch, channels, spatial)),
        np.float32(1e-5),
    )
    return [
        Case(
            "welford",
            "batch_norm<128>",
            (channels, 1, 1),
            (128, 1, 1),
            args,
            {2: expected},
            atol=1e-5,
            rtol=1e-5,
        )
    ]


@style
def bf16_norm(random: np.random.Generator) -> list[Case]:
    rows, cols = 3, 512
    x, residual, weight = (
        bfloat(random.standard_normal(shape)) for shape in ((rows, cols), (rows, cols), cols)
    )
    summed = values(x, "bfloat16").astype(np.float64) + values(residual, "bfloat16")
    expected = (
        summed / np.sqrt((summed**2).mean(1, keepdims=True) + 1e-6) * values(weight, "bfloat16")
    )
    args = (
        *(In(a, "bfloat16") for a in (x, residual, weight)),
        Out((rows, cols), "bfloat16"),
        Out(rows, "float32"),
    )
    wanted = {3: expected, 4: np.abs(summed).max(1)}
    return [
        Case(
            "rows", "bf16_norm<512>", (rows, 1, 1), (64, 1, 1), args, wanted, atol=1e-6, rtol=0.016
        )
    ]


@style
def argmax_quantise(random: np.random.Generator) -> list[Case]:
    rows, cols = 3, 200
    x = random.standard_normal((rows, cols)).astype(np.float32)
    scales = np.abs(x).max(1) / np.float32(127)
    q = np.rint(x / scales[:, None]).astype(np.int8)
    positive, more = (
        np.maximum(q, 0).view(np.uint8).astype(int),
        (q.view(np.uint8).astype(int) + 1) % 256,
    )
    mixed = np.abs(positive - more) ^ np.where(q > 32, 255, 0)
    expected = {
        1: x.argmax(1).astype(np.int32),
        2: q,
        3: scales,
        4: mixed.astype(np.uint8).view(np.uint32),
    }
    args = (
        In(x),
        Out(rows, "int32"),
        Out((rows, cols), "int8"),
        Out(rows, "float32"),
        Out((rows, cols // 4), "uint32"),
        np.int32(cols),
    )
    return [Case("rows", "argmax_quantise", (rows, 1, 1), (64, 1, 1), args, expected)]


@pytest.mark.parametrize("name", KNOWN)
def test_a_kernel_of_this_style_computes_what_numpy_does(name: str) -> None:
    cases = KNOWN[name](np.random.default_rng(1))
    kernel, emulator = (
        Kernel(name, (STYLES / f"{name}.cu").read_text(), tuple(cases)),
        small_kernels.emulator(),
    )
    for case in cases:
        launched = launch(emulator, kernel, case)
        assert [wrong(case, index, got) for index, got in launched.results.items()] == [""] * len(
            case.expected
        ), case.name


def test_every_source_has_a_case() -> None:
    assert {path.stem for path in STYLES.iterdir()} == set(KNOWN)
