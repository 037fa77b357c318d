"""A person's own templates: which are used, and what is said of a fault in one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evoengine import paths
from evoengine.config import PromptSettings
from evoengine.errors import UsageError
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.prompt_templates import Prompts, fenced, one_line
from evoengine.generate.template_folder import TemplateFolder
from tests.generate.row_sums_task import request

FIRST = OperatorChoice("first", "fp32")
FILTERS = {"fenced": fenced, "one_line": one_line, "size": str}


def own(folder: Path, **texts: str) -> PromptSettings:
    """Settings with a folder of templates, each with its text."""
    folder = folder / "mine"
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.jinja").write_text(text)
    return PromptSettings(folder=str(folder))


def test_an_own_template_takes_the_place_of_the_packages_and_the_others_stay(
    tmp_path: Path, task_path: Path
) -> None:
    asked = request(task_path)
    plain = Prompts(task_path).render(FIRST, asked).text
    settings = own(tmp_path, _reply="# Mine\n\nOnly the file, tier {{ tier }}.\n")
    changed = Prompts(task_path, settings).render(FIRST, asked).text
    assert changed == plain.partition("# Your reply")[0] + "# Mine\n\nOnly the file, tier fp32.\n"


def test_a_copy_of_the_packages_templates_gives_the_same_prompts(
    tmp_path: Path, task_path: Path
) -> None:
    texts = {path.stem: path.read_text() for path in paths.prompts_dir().glob("*.jinja")}
    settings = own(tmp_path, **texts)
    asked = request(task_path)
    mine = Prompts(task_path, settings).render(FIRST, asked)
    assert mine == Prompts(task_path).render(FIRST, asked)


def test_an_own_template_may_include_another_own_one(tmp_path: Path, task_path: Path) -> None:
    settings = own(tmp_path, _reply='# R\n{% include "_more.jinja" %}', _more="more of it\n")
    text = Prompts(task_path, settings).render(FIRST, request(task_path)).text
    assert text.endswith("# R\nmore of it\n")


@pytest.mark.parametrize(
    ("template", "place"),
    [
        ("one\n{{ no_such_name }}\n", r"_reply.jinja:2: 'no_such_name' is undefined"),
        ("{% if %}\n", r"_reply.jinja:1: Expected an expression"),
        ("a\nb\n{% endfor %}\n", r"_reply.jinja:3: Encountered unknown tag 'endfor'"),
        ("{{ 1 / 0 }}\n", r"_reply.jinja:1: division by zero"),
        ("{{ 'a' + 1 }}\n", r"_reply.jinja:1: can only concatenate str"),
        ('{% include "nowhere" %}\n', r"_reply.jinja:1: 'nowhere' not found"),
        ("{{ tier.__class__.__mro__ }}\n", r"_reply.jinja:1: .*unsafe"),
        ("\n{{ cases.append(1) }}\n", r"_reply.jinja:2: .*(unsafe|not safely callable)"),
        ('{% include "_reply.jinja" %}', r"_reply.jinja:1: maximum recursion depth"),
        ("{{ range(10**9) | list }}\n", r"_reply.jinja:1: Range too big"),
    ],
)
def test_a_fault_in_an_own_template_is_an_error_with_its_file_and_line(
    tmp_path: Path, task_path: Path, template: str, place: str
) -> None:
    with pytest.raises(UsageError, match=f"mine/{place}"):
        Prompts(task_path, own(tmp_path, _reply=template)).render(FIRST, request(task_path))


def test_a_template_that_nothing_uses_is_an_error_with_the_near_names(
    tmp_path: Path, task_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"mutat.jinja: no prompt uses .*did you mean 'mutate"):
        Prompts(task_path, own(tmp_path, mutat="x"))


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_templates_is_an_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=rf"expected a folder with templates .*got .*{folder}"):
        TemplateFolder(tmp_path / folder)


def test_a_run_keeps_the_templates_that_it_began_with(tmp_path: Path) -> None:
    own = tmp_path / "mine"
    own.mkdir()
    (own / "_reply.jinja").write_text("before")
    folder = TemplateFolder(own, FILTERS)
    (own / "_reply.jinja").write_text("after")
    os.utime(own / "_reply.jinja", (0, 0))
    assert folder.render("_reply.jinja", {}) == "before"
    assert TemplateFolder(own, FILTERS).render("_reply.jinja", {}) == "after"
