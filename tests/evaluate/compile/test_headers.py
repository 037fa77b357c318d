from pathlib import Path

from evoengine.evaluate.compile.headers import REQUIRED, find_headers, unpack_bundled
from evoengine.evaluate.compile.nvrtc import load


def place(folder: Path, headers: tuple[str, ...], version: tuple[int, int] | None) -> Path:
    for header in headers:
        (folder / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / header).write_text("")
    if version:
        (folder / "cuda_runtime_api.h").write_text(
            f"#define CUDART_VERSION  {version[0] * 1000 + version[1] * 10}\n"
        )
    return folder


def test_the_installed_headers_are_complete_and_of_the_compilers_version() -> None:
    loaded = load()
    headers = find_headers(loaded.version)
    assert headers.is_complete
    assert headers.version == loaded.version


def test_wheels_of_cuda_13_are_found_below_one_folder(tmp_path: Path) -> None:
    include = place(
        tmp_path / "nvidia" / "cu13" / "include",
        tuple(h for h in REQUIRED if not h.startswith("cuda/")),
        (13, 9),
    )
    place(include / "cccl", ("cuda/std/cstdint",), None)
    headers = find_headers((13, 9), path=[str(tmp_path)], environ={})
    assert headers.is_complete
    assert headers.folders == (include, include / "cccl")
    assert headers.found["cuda/std/cstdint"] == include / "cccl" / "cuda" / "std" / "cstdint"


def test_wheels_of_cuda_12_are_found_in_three_folders(tmp_path: Path) -> None:
    runtime = place(
        tmp_path / "nvidia" / "cuda_runtime" / "include",
        tuple(h for h in REQUIRED if "/" not in h),
        (12, 4),
    )
    crt = place(tmp_path / "nvidia" / "cuda_nvcc" / "include", ("crt/mma.h",), None)
    cccl = place(
        tmp_path / "nvidia" / "cuda_cccl" / "include", ("cuda/std/cstdint", "nv/target"), None
    )
    headers = find_headers((12, 4), path=[str(tmp_path)], environ={})
    assert headers.is_complete
    assert headers.folders == (runtime, crt, cccl)


def test_a_toolkit_of_the_compilers_version_is_preferred_to_wheels_of_another(
    tmp_path: Path,
) -> None:
    place(tmp_path / "site" / "nvidia" / "cu13" / "include", REQUIRED, (13, 9))
    toolkit = place(tmp_path / "toolkit" / "include", REQUIRED, (13, 8))
    headers = find_headers(
        (13, 8), path=[str(tmp_path / "site")], environ={"CUDA_HOME": str(tmp_path / "toolkit")}
    )
    assert headers.folders == (toolkit,)
    assert headers.source == f"toolkit in {tmp_path / 'toolkit'}"


def test_wheels_without_crt_are_completed_from_a_toolkit_of_the_same_major_version(
    tmp_path: Path,
) -> None:
    wheel = place(
        tmp_path / "site" / "nvidia" / "cu13" / "include",
        tuple(h for h in REQUIRED if h != "crt/mma.h"),
        (19, 0),
    )
    toolkit = place(tmp_path / "toolkit" / "include", ("crt/mma.h",), (19, 1))
    headers = find_headers(
        (19, 0), path=[str(tmp_path / "site")], environ={"CUDA_PATH": str(tmp_path / "toolkit")}
    )
    assert headers.is_complete
    assert headers.folders == (wheel, toolkit)
    assert "completed from" in headers.source


def test_another_major_version_is_not_used(tmp_path: Path) -> None:
    place(tmp_path / "nvidia" / "cu13" / "include", REQUIRED, (13, 9))
    headers = find_headers((19, 0), path=[str(tmp_path)], environ={})
    assert headers.folders == ()
    assert headers.missing == REQUIRED


def test_headers_that_the_compiler_carries_come_before_a_mixture(tmp_path: Path) -> None:
    place(tmp_path / "site" / "nvidia" / "cu13" / "include", REQUIRED, (13, 9))
    carried = place(tmp_path / "carried", REQUIRED, (13, 7))
    headers = find_headers((13, 7), lambda: carried, path=[str(tmp_path / "site")], environ={})
    assert headers.folders == (carried,)


def test_the_real_compiler_unpacks_the_headers_that_it_carries(tmp_path: Path) -> None:
    loaded = load()
    folder = unpack_bundled(loaded.library, tmp_path / "headers")
    if loaded.version < (13, 3):
        assert folder is None
        return
    assert folder is not None
    headers = find_headers(loaded.version, lambda: folder, path=[], environ={})
    assert headers.is_complete
    assert str(headers.folders[0]).startswith(str(tmp_path))
