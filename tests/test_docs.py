"""What the documents show holds: links resolve, commands parse, nothing is of one machine alone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

from evoengine.cli.main import DEBUG, app

ROOT = Path(__file__).resolve().parent.parent
# those that show commands
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/tasks.md",
    "docs/kernels.md",
    "docs/verdict.md",
    "docs/forensics.md",
)
# Not documents of the project: what is hidden, what runs write, what is a test's material.
NOT_OURS = re.compile(r"(^|/)\.|^(runs|build|dist)/|^tests/.*/")
BLOCK = re.compile(
    r"^(?P<fence>```+|~~~+)[ \t]*(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(
    r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)=\"([^\"]+)\"",
    re.MULTILINE,
)
MACHINE_PATH = re.compile(r"(?<![\w./:-])/(?:home|root|Users|work|workspace|mnt)/[\w.-]+")

SAMPLE = """\
`evoengine inline`
```console
$ KEY=1 evoengine run a \\
>   --trials 3  # few
evoengine printed this
$ make run | tee log
```
```sh
# a comment
.venv/bin/evoengine show b > out.txt && cd c
```
```yaml
name: evoengine
```
"""


@dataclass(frozen=True)
class Shown:
    """A command as a document shows it."""

    place: str
    words: tuple[str, ...]


def documents() -> list[Path]:
    found = (
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not NOT_OURS.search(path.relative_to(ROOT).as_posix())
    )
    return [path for path in found if path.read_text(encoding="utf-8").strip()]


def prose(path: Path) -> str:
    return BLOCK.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    found: dict[str, int] = {}
    names = set()
    for title in re.findall(r"^#+\s+(.*?)\s*#*$", prose(path), re.MULTILINE):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
        names.add(f"{slug}-{found[slug]}" if found[slug] else slug)
    return names


def shown_lines(text: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each command line in the console and shell blocks."""
    for block in BLOCK.finditer(text):
        console = block["language"] == "console"
        if not console and block["language"] not in ("sh", "bash", "shell"):
            continue
        first = text.count("\n", 0, block.start("text")) + 1
        lines = block["text"].splitlines()
        while lines:
            number, line = first, lines.pop(0)
            while line.endswith("\\") and lines:
                line = line[:-1] + lines.pop(0).removeprefix(">")
                first += 1
            first += 1
            if not console or line.startswith("$ "):
                yield number, line.removeprefix("$ ") if console else line


def shown_commands(path: Path) -> Iterator[Shown]:
    """Each simple command that a page shows, without the variables before it and the comment behind
    it.
    """
    for number, line in shown_lines(path.read_text(encoding="utf-8")):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in (*lexer, ";"):
            if word and not word.strip("|&;"):
                if words:
                    yield Shown(f"{path.name}:{number}", tuple(words))
                words = []
            elif words or not re.match(r"\w+=", word):
                words.append(word)


def commands_of(program: str) -> list[Shown]:
    """The shown calls of a program, with its arguments alone."""
    found = []
    for page in (ROOT / name for name in PAGES):
        for shown in shown_commands(page) if page.is_file() else ():
            words = shown.words[2:] if shown.words[1:2] == ("-m",) else shown.words
            if words and Path(words[0]).name == program:
                arguments = words[1:]
                for place, word in enumerate(arguments):
                    if not word.strip("<>"):  # what follows is where the output goes
                        arguments = arguments[:place]
                        break
                found.append(Shown(shown.place, tuple(arguments)))
    return found


def test_relative_links_resolve() -> None:
    broken = []
    for path in documents():
        for target in (next(filter(None, groups)) for groups in LINK.findall(prose(path))):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            place = (path.parent / file).resolve() if file else path
            if not place.exists() or (
                anchor and place.suffix == ".md" and anchor not in anchors(place)
            ):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken


def test_shown_evoengine_commands_parse() -> None:
    group = typer.main.get_command(app)
    for command in group.commands.values():  # type: ignore[attr-defined]
        command.callback = lambda **_: 0
    wrong = []
    for shown in commands_of("evoengine"):
        try:
            group.main(
                [word for word in shown.words if word != DEBUG],
                prog_name="evoengine",
                standalone_mode=False,
            )
        except Exception as error:  # noqa: BLE001 - typer gives the complaints of its parser no public name
            words = getattr(error, "format_message", error.__str__)()
            wrong.append(f"{shown.place}: evoengine {shlex.join(shown.words)}: {words}")
    assert not wrong


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_shown_make_commands_name_targets_and_variables_of_the_makefile() -> None:
    variables = set(
        re.findall(r"^(\w+)\s*\?=", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    wrong = []
    for shown in dict.fromkeys(commands_of("make")):
        unknown = [
            word for word in shown.words if "=" in word and word.partition("=")[0] not in variables
        ]
        call = ["make", "--dry-run", *shown.words]
        done = subprocess.run(
            call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if unknown or done.returncode:
            wrong.append(f"{shown.place}: {shlex.join(call)}: {unknown or done.stderr.strip()}")
    assert not wrong


def test_shown_extras_and_scripts_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    wrong = []
    for page in (ROOT / name for name in PAGES):
        for shown in shown_commands(page) if page.is_file() else ():
            named = {
                name.strip()
                for word in shown.words
                if "pip" in shown.words
                for name in re.findall(r"\[([\w, ]+)\]$", word)
            }
            wrong += [
                f"{shown.place}: no extra {name!r}"
                for names in named
                for name in names.split(",")
                if name.strip() not in extras
            ]
            program = ROOT / shown.words[0]
            if shown.words[0].startswith(
                ("scripts/", "./scripts/", ".ci/", "./.ci/")
            ) and not os.access(program, os.X_OK):
                wrong.append(f"{shown.place}: {shown.words[0]} cannot be executed")
    assert not wrong


def test_no_document_names_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {hit}"
        for path in documents()
        for hit in MACHINE_PATH.findall(path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_readme_shows_the_two_commands_that_set_up_and_run() -> None:
    shown = {shown.words for shown in commands_of("make") if shown.place.startswith("README.md")}
    assert {("run",), ("test",)} <= shown


def test_commands_are_found_in_console_and_shell_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SAMPLE, encoding="utf-8")
    assert [(shown.place, *shown.words) for shown in shown_commands(page)] == [
        ("page.md:3", "evoengine", "run", "a", "--trials", "3"),
        ("page.md:6", "make", "run"),
        ("page.md:6", "tee", "log"),
        ("page.md:10", ".venv/bin/evoengine", "show", "b", ">", "out.txt"),
        ("page.md:10", "cd", "c"),
    ]


RUN_BLOCK = re.compile(
    r"^\$ evoengine run (?P<task>\S+)(?P<options>[^\n]*)\n(?P<output>.*?)(?=^\$ |\Z)",
    re.MULTILINE | re.DOTALL,
)


def test_a_shown_run_prints_the_name_that_its_command_gives_it() -> None:
    """By --run, or the task's with the time."""
    found = 0
    for path in documents():
        for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
            for run in RUN_BLOCK.finditer(block["text"]):
                given = re.search(r"--run (\S+)", run["options"])
                name = re.escape(given[1]) if given else re.escape(run["task"]) + r"-\d{8}-\d{6}"
                started = re.search(r"^run (\S+) started", run["output"], re.MULTILINE)
                assert started is None or re.fullmatch(name, started[1]), (
                    f"{path.name}: {run[0].splitlines()[0]} prints {started[1]!r}"
                )
                found += started is not None
    assert found


def test_readme_lists_every_command() -> None:
    named = re.findall(
        r"^\| `evoengine (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(named) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
