"""Every seed compiles for both architectures, with its own macros and kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.emulator.front.clang import compile_cuda

SEEDS = sorted((Path(__file__).parents[3] / "seeds").glob("*.cu"))
# what the plans give for (1, 8, 512, 64)
KNOWN = {
    "D": 64,
    "M": 64,
    "N": 64,
    "V": 4,
    "SPLITS": 4,
    "causal": 1,
}


def kernels_of(seed: kernel_file.Candidate) -> list[str]:
    names = []
    for launch in seed.plan.launches:
        arguments = [
            str(seed.tunables.get(argument, KNOWN.get(argument, 0)))
            for argument in launch.template_arguments
        ]
        names.append(f"{launch.function}<{', '.join(arguments)}>" if arguments else launch.function)
    return names


@pytest.mark.parametrize("arch", ["sm_89", "sm_90"])
@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_seed_compiles_and_its_kernels_are_found(path: Path, arch: str) -> None:
    seed = kernel_file.parse(path.read_text(), path.name)
    kernels = kernels_of(seed)
    compiled = compile_cuda(
        seed.code, name=path.name, macros=seed.tunables, arch=arch, kernels=kernels
    )
    assert list(compiled.functions) == kernels
    for symbol in compiled.functions.values():
        assert f".entry {symbol}(" in compiled.ptx
    assert f'"{path.name}"' in compiled.ptx


def test_there_are_seeds() -> None:
    assert len(SEEDS) >= 8
