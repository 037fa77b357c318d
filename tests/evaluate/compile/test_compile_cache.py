import json
from pathlib import Path
from typing import Any

import pytest

from evoengine.evaluate.compile.compile_cache import CompileCache, key_of
from evoengine.evaluate.compile.compile_unit import Built, CompileUnit

UNIT = CompileUnit(code="x", arch="sm_80", kernels=("k",), macros={"A": "1", "B": "2"})
BUILT = Built(status="ok", functions={"k": "_Z1kv"}, params={"k": (8, 4)}, code_digest="c")


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path, pytest.fail)


def test_what_was_kept_is_found_with_its_cubin(cache: CompileCache) -> None:
    path = cache.keep("abc", BUILT, b"machine code")
    found = cache.find("abc")
    assert found is not None
    assert found.cached
    assert found.code_path == path
    assert Path(found.code_path).read_bytes() == b"machine code"
    assert found.params == {"k": (8, 4)}


def test_a_compile_error_is_kept_a_timeout_is_not(cache: CompileCache) -> None:
    cache.keep("error", Built(status="compile_error", log="k.cu(1): error"), b"")
    cache.keep("slow", Built(status="timeout"), b"")
    cache.keep("large", Built(status="out_of_memory"), b"")
    found = cache.find("error")
    assert found is not None
    assert (found.status, found.log, found.code_path) == ("compile_error", "k.cu(1): error", "")
    assert cache.find("slow") is None
    assert cache.find("large") is None


@pytest.mark.parametrize("suffix", [".json", ".cubin"])
@pytest.mark.parametrize("change", ["truncate", "flip", "empty", "remove"])
def test_a_changed_entry_is_as_if_it_were_not_there(
    cache: CompileCache, suffix: str, change: str
) -> None:
    cache.keep("abc", BUILT, b"machine code")
    path = cache.folder / "ab" / f"abc{suffix}"
    data = path.read_bytes()
    changed = {
        "truncate": data[:-3],
        "flip": data[:5] + bytes([data[5] ^ 1]) + data[6:],
        "empty": b"",
    }
    path.unlink() if change == "remove" else path.write_bytes(changed[change])
    assert cache.find("abc") is None


def test_an_entry_that_was_edited_or_moved_is_not_believed(cache: CompileCache) -> None:
    cache.keep("abc", BUILT, b"machine code")
    path = cache.folder / "ab" / "abc.json"
    entry = json.loads(path.read_text())
    (cache.folder / "ab" / "abd.json").write_bytes(path.read_bytes())
    (cache.folder / "ab" / "abd.cubin").write_bytes(b"machine code")
    assert cache.find("abd") is None
    entry["built"]["params"]["k"] = [8]
    path.write_text(json.dumps(entry))
    assert cache.find("abc") is None


def test_everything_that_changes_machine_code_is_in_the_key() -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({}, "13.0"),
        ({}, "13.1"),
        ({"code": "y"}, "13.0"),
        ({"arch": "sm_90"}, "13.0"),
        ({"macros": {"A": "1"}}, "13.0"),
        ({"macros": {"A": "1", "B": "3"}}, "13.0"),
        ({"kernels": ("k", "l")}, "13.0"),
        ({"name": "other.cu"}, "13.0"),
    ]
    keys = {key_of(UNIT.model_copy(update=change), fingerprint) for change, fingerprint in changes}
    assert len(keys) == 8
    assert key_of(UNIT, "13.0") == key_of(
        UNIT.model_copy(update={"timeout_s": 1.0, "memory_bytes": 5}), "13.0"
    )


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said: list[str] = []
    cache = CompileCache(tmp_path / "file", said.append)
    assert cache.keep("abc", BUILT, b"x") is None
    assert cache.keep("abd", BUILT, b"x") is None
    assert len(said) == 1
    assert "cannot be written" in said[0]
    assert "EVOENGINE_CACHE_DIR" in said[0]
    assert cache.find("abc") is None


def test_writing_leaves_no_temporary_files(cache: CompileCache) -> None:
    cache.keep("abc", BUILT, b"x")
    assert sorted(path.name for path in (cache.folder / "ab").iterdir()) == [
        "abc.cubin",
        "abc.json",
    ]
