"""The repository's own rules: who imports whom, and what nobody does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "evoengine"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file()}
TOPS_OF_IMPORTS = {"search", "cli"}  # they join the stages
CONCEPTS = {"task", "candidate"}  # what every stage may read
STAGES = FOLDERS - TOPS_OF_IMPORTS - CONCEPTS - {"emulator"}

MAY_JOIN_STAGES = ("search/", "cli/")
# child processes
MAY_IMPORT_TORCH_AND_CUPY = (
    "evaluate/worker/",
    "evaluate/compile/nvrtc.py",
    "evaluate/compile/nvrtc_worker.py",
)
# of a process
TOPS = (
    "cli/main.py",
    "evaluate/worker/serving.py",
    "evaluate/compile/compiler_loop.py",
    "evaluate/device/fork_server.py",
)

every_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE))
)


def within(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """The full name of everything that a module imports, also relatively and inside functions."""
    package = ["evoengine", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "importlib.import_module",
            "import_module",
            "__import__",
        ):
            yield from (
                argument.value for argument in node.args if isinstance(argument, ast.Constant)
            )


def stages_in(names: Iterator[str]) -> set[str]:
    parts = [name.split(".") for name in names]
    return {
        part[1] for part in parts if part[0] == "evoengine" and len(part) > 1 and part[1] in STAGES
    }


def test_the_stages_are_these() -> None:
    assert {"evaluate", "generate", "population", "report", "store"} == STAGES


@every_module
def test_a_stage_imports_no_other_stage_and_a_leaf_imports_none(path: Path) -> None:
    if within(path).startswith(MAY_JOIN_STAGES):
        return
    own = {path.relative_to(PACKAGE).parts[0]}
    assert stages_in(imported(path)) <= own


@every_module
def test_nothing_but_the_top_imports_search_or_cli(path: Path) -> None:
    if within(path).startswith((*MAY_JOIN_STAGES, "__main__.py")):
        return
    tops = {"evoengine.search", "evoengine.cli"}
    assert not [name for name in imported(path) if ".".join(name.split(".")[:2]) in tops]


@every_module
def test_torch_and_cupy_are_imported_in_child_processes_only(path: Path) -> None:
    if within(path).startswith(MAY_IMPORT_TORCH_AND_CUPY):
        return
    assert not [
        name for name in imported(path) if name.split(".")[0] in ("torch", "cupy", "cupy_backends")
    ]


def test_the_command_line_starts_without_torch_and_cupy() -> None:
    program = (
        "import sys, evoengine.cli.main, evoengine.search.start_run; print({'torch', 'cupy', 'numpy'} &"
        " set(sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout.strip() == "set()"


@every_module
def test_nothing_turns_data_into_code(path: Path) -> None:
    """What a model wrote is data: no eval, no exec, no pickle, no shell."""
    names = set(imported(path))
    assert not [
        name
        for name in names
        if name.split(".")[0] in ("pickle", "marshal", "shelve", "dill", "cloudpickle")
    ]
    assert not names & {"os.system", "os.popen", "subprocess.getoutput"}
    for call in (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)):
        assert ast.unparse(call.func) not in (
            "eval",
            "exec",
            "compile",
            "os.system",
            "os.popen",
            "yaml.load",
            "yaml.unsafe_load",
        )
        assert not ast.unparse(call.func).endswith("create_subprocess_shell")
        assert not [keyword for keyword in call.keywords if keyword.arg == "shell"]


@every_module
def test_a_broad_except_raises_again_or_is_the_top_of_a_process_with_its_reason(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for handler in (
        node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ExceptHandler)
    ):
        caught = (
            {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
            if handler.type
            else {"BaseException"}
        )
        if not caught & {"Exception", "BaseException"}:
            continue
        raises = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        reason = lines[handler.lineno - 1].partition("#")[2].replace("noqa: BLE001", "").strip(" -")
        assert raises or (within(path) in TOPS and reason), f"line {handler.lineno}"
        assert reason or "Exception" not in caught, f"line {handler.lineno}: no reason"


@every_module
def test_every_module_says_what_it_is(path: Path) -> None:
    tree = tree_of(path)
    assert not tree.body or ast.get_docstring(tree)


def test_no_module_is_called_after_nothing() -> None:
    assert not {path.stem for path in MODULES} & {"utils", "util", "common", "helpers", "misc"}


def test_prompts_are_templates_only() -> None:
    found = [path for path in (ROOT / "prompts").rglob("*") if path.is_file()]
    assert found
    assert not [path.name for path in found if path.suffix != ".jinja"]


def _texts() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    yield from (ROOT / name for name in ("Makefile", "pyproject.toml") if (ROOT / name).is_file())
    for folder in ("evoengine", "docs", "prompts", "seeds", "tasks", "benchmarks", ".ci"):
        yield from (
            path
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and path.suffix not in (".pyc", ".png", ".db")
        )


def test_no_text_names_a_place_on_a_developers_machine() -> None:
    place = re.compile(r"/(?:work|root|home)/\w+")
    found = {
        str(path.relative_to(ROOT)): place.findall(
            path.read_text(encoding="utf-8", errors="replace")
        )
        for path in _texts()
    }
    assert not {path: places for path, places in found.items() if places}


# A name that stands twice in the package -> why it may.
TWICE: dict[str, str] = {}


def test_no_file_name_stands_twice_without_a_reason() -> None:
    names = [path.stem for path in MODULES if not path.stem.startswith("__")]
    assert {name for name in names if names.count(name) > 1} <= TWICE.keys()


def test_no_public_class_name_stands_twice_without_a_reason() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(within(path))
    assert not {name: places for name, places in found.items() if len(places) > 1}.keys() - TWICE


MOST_ROOT_LEAVES = 11  # what everybody needs stands at the root; more would be a heap


def test_the_root_holds_few_leaves() -> None:
    leaves = [path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(leaves) <= MOST_ROOT_LEAVES, sorted(leaves)


# The way of a candidate from the task's YAML to its verdict: who names whom. A process is started by
# the name of its module.
MAIN_WALK = (
    ("cli/run.py", "search/choose_run.py"),
    ("search/choose_run.py", "task/load.py"),
    ("task/load.py", "task/yaml_source.py"),
    ("task/load.py", "task/schema.py"),
    ("search/choose_run.py", "candidate/kernel_file.py"),
    ("candidate/kernel_file.py", "candidate/header.py"),
    ("cli/run.py", "search/start_run.py"),
    ("search/start_run.py", "search/make_executor.py"),
    ("search/start_run.py", "search/run_engine.py"),
    ("search/run_engine.py", "search/engine.py"),
    ("search/make_executor.py", "evaluate/local_executor.py"),
    ("evaluate/local_executor.py", "evaluate/compile_candidate.py"),
    ("evaluate/compile_candidate.py", "candidate/binding.py"),
    ("evaluate/compile_candidate.py", "evaluate/compile/pool.py"),
    ("evaluate/compile/pool.py", "evaluate/compile/compiler_process.py"),
    ("evaluate/compile/compiler_process.py", "evaluate/compile/nvrtc_worker.py"),
    ("evaluate/compile/nvrtc_worker.py", "evaluate/compile/compiler_loop.py"),
    ("evaluate/compile/nvrtc_worker.py", "evaluate/compile/nvrtc.py"),
    ("search/make_executor.py", "evaluate/device_choice.py"),
    ("evaluate/device_choice.py", "evaluate/device/two_graders.py"),
    ("evaluate/device/two_graders.py", "evaluate/device/grader_device.py"),
    ("evaluate/device/grader_device.py", "evaluate/device/grader_process.py"),
    ("evaluate/device/grader_process.py", "evaluate/device/worker_process.py"),
    ("evaluate/device/grader_device.py", "evaluate/device/runner_pair.py"),
    ("evaluate/device/runner_pair.py", "evaluate/device/runner_process.py"),
    ("evaluate/device/worker_process.py", "evaluate/device/forked_process.py"),
    ("evaluate/device/forked_process.py", "evaluate/device/fork_client.py"),
    ("evaluate/device/fork_client.py", "evaluate/device/fork_server.py"),
    ("evaluate/device/grader_device.py", "evaluate/worker/cuda_worker.py"),
    ("evaluate/worker/cuda_worker.py", "evaluate/worker/serving.py"),
    ("evaluate/worker/cuda_worker.py", "evaluate/worker/cuda_session.py"),
    ("evaluate/worker/cuda_session.py", "evaluate/worker/judge.py"),
    ("evaluate/worker/judge.py", "evaluate/worker/backend.py"),
    ("evaluate/worker/cuda_session.py", "evaluate/worker/cuda/cuda_backend.py"),
    ("evaluate/worker/cuda/cuda_backend.py", "evaluate/worker/cuda/input_pool.py"),
    ("evaluate/worker/cuda/cuda_backend.py", "evaluate/worker/cuda/paired_cases.py"),
    ("evaluate/worker/cuda/paired_cases.py", "evaluate/worker/cuda/paired_timing.py"),
    ("evaluate/worker/cuda/paired_timing.py", "evaluate/worker/cuda/examination.py"),
    ("evaluate/worker/cuda/examination.py", "evaluate/worker/cuda/dealing.py"),
    ("evaluate/worker/cuda/examination.py", "evaluate/worker/cuda/pair_client.py"),
    ("evaluate/worker/cuda/pair_client.py", "evaluate/worker/cuda/runner_client.py"),
    ("evaluate/worker/cuda/examination.py", "evaluate/worker/cuda/output_comparison.py"),
    ("evaluate/worker/cuda_worker.py", "evaluate/worker/cuda/runner/runner_loop.py"),
    ("evaluate/worker/cuda/runner/runner_loop.py", "evaluate/worker/cuda/runner/replayer.py"),
    ("evaluate/worker/cuda/runner/replayer.py", "evaluate/worker/cuda/runner/candidate_module.py"),
    ("evaluate/local_executor.py", "evaluate/scoring.py"),
)


@pytest.mark.parametrize(("caller", "called"), MAIN_WALK)
def test_the_walk_from_yaml_to_verdict_never_climbs(caller: str, called: str) -> None:
    """No step leads to a folder above the one that it comes from, so it is read from top to bottom."""
    module = "evoengine." + called.removesuffix(".py").replace("/", ".")
    text = (PACKAGE / caller).read_text(encoding="utf-8")
    package, _, name = module.rpartition(".")
    assert module in text or re.search(rf"from {re.escape(package)} import .*\b{name}\b", text)
    before, after = Path(caller).parent.parts, Path(called).parent.parts
    assert not (len(after) < len(before) and before[: len(after)] == after)


def test_the_walk_from_yaml_to_verdict_is_one() -> None:
    """Every step begins where an earlier one has led, and ends where none has."""
    reached = {MAIN_WALK[0][0]}
    for caller, called in MAIN_WALK:
        assert caller in reached, caller
        assert called not in reached, called
        reached.add(called)
