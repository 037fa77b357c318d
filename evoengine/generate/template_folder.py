"""Templates: those of the package, each replaced by one of the same name in a person's own folder.

Both run in jinja's sandbox, without access to Python's internals. A fault in one is an error that
names its file and line.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evoengine import paths
from evoengine.digest import digest
from evoengine.errors import UsageError, hint

SUFFIX = ".jinja"


class TemplateFolder:
    """The templates of the package, with those in `own` in place of those of the same name; raises
    UsageError for a folder, a file or a template in `own` that cannot be used.
    """

    def __init__(
        self, own: Path | None = None, filters: dict[str, Callable[..., str]] | None = None
    ):
        folders = [paths.prompts_dir()]
        if own is not None:
            _check_names(own)
            folders.insert(0, own)
        self._environment = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader(folders),
            undefined=StrictUndefined,
            autoescape=False,  # prompts are plain text, no browser reads them
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            # a run keeps the templates that it began with, and whose digests it stores
            auto_reload=False,
        )
        self._environment.filters.update(filters or {})
        for name in self._environment.list_templates(extensions=[SUFFIX[1:]]):
            self._compile(name)

    def render(self, name: str, context: dict[str, Any]) -> str:
        """The text of the template `name`; raises UsageError for a fault in it."""
        template = self._compile(name)
        try:
            return str(template.render(context))
        # a template can divide by zero, compare a text with a number, or include itself
        except (
            TemplateError,
            ArithmeticError,
            TypeError,
            ValueError,
            LookupError,
            RecursionError,
        ) as error:
            raise UsageError(f"{_place(error, name)}: {_words(error)}") from None

    def _compile(self, name: str) -> Any:
        try:
            return self._environment.get_template(name)
        except TemplateSyntaxError as error:
            where = error.filename or error.name or name
            raise UsageError(f"{where}:{error.lineno}: {error.message}") from None
        except (TemplateError, UnicodeDecodeError, OSError) as error:
            raise UsageError(f"{name}: the template cannot be read: {_words(error)}") from None


def template_digests(folder: Path) -> dict[str, str]:
    """The digests of the templates in `folder`, by name; raises UsageError."""
    try:
        return {
            str(path.relative_to(folder)): digest(path.read_bytes())
            for path in sorted(folder.rglob(f"*{SUFFIX}"))
            if path.is_file()
        }
    except OSError as error:
        raise UsageError(f"--prompts: {folder} cannot be read: {error}") from None


def _check_names(own: Path) -> None:
    """Raises UsageError for a folder without templates, and for one that nothing would use."""
    try:
        found = {path.name: path for path in sorted(own.glob(f"*{SUFFIX}")) if path.is_file()}
        text = "\n".join(path.read_text(encoding="utf-8") for path in found.values())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompts: {own} cannot be read: {error}") from None
    known = sorted(path.name for path in paths.prompts_dir().glob(f"*{SUFFIX}"))
    if not found:
        raise UsageError(
            f"--prompts: expected a folder with templates ({', '.join(known)}; missing ones come"
            f" from the package), got {own}"
        )
    for name in found:
        if name not in known and not re.search(rf"['\"]{re.escape(name)}['\"]", text):
            raise UsageError(
                f"{own / name}: no prompt uses a template of this name{hint(name, known)}"
            )


def _place(error: BaseException, name: str) -> str:
    """File and line of the template in which `error` arose."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename.endswith(SUFFIX)]
    return f"{inside[-1].filename}:{inside[-1].lineno}" if inside else name


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
