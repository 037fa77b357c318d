"""The generators by name: what `--generator` takes, and how a run gets one.

A new generator is a module of this folder with a `KIND`, and one line in `MODULES`. Nothing is
imported before it is asked for: the help of the command line must be quick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from evoengine.errors import UsageError, hint

if TYPE_CHECKING:
    from evoengine.config import RunConfig
    from evoengine.protocols import Generator, Store

# name -> the module that has it
MODULES = {
    "openai": "evoengine.generate.llm",
    "tune": "evoengine.generate.tune",
    "replay": "evoengine.generate.replay",
}


@dataclass(frozen=True)
class GeneratorContext:
    """What a generator can be made from."""

    config: RunConfig
    store: Store  # of the run itself
    recorded: Store | None  # of the run that `config.replay_from` names
    notify: Callable[[str], None]  # shows a line to the user
    refuse: Callable[[str], None]  # raises CandidateError for code that may not be compiled
    environ: Mapping[str, str]


def _check_nothing(config: RunConfig, environ: Mapping[str, str]) -> None:
    """Returns."""


@dataclass(frozen=True)
class GeneratorKind:
    """One kind of generator.

    `check` raises EvoError for settings that can never work, before a device is started.
    """

    make: Callable[[GeneratorContext], Generator]
    check: Callable[[RunConfig, Mapping[str, str]], None] = _check_nothing


def kind_of(name: str) -> GeneratorKind:
    """The generator called `name`; raises UsageError for an unknown one."""
    if name not in MODULES:
        raise UsageError(f"no generator {name!r}{hint(name, MODULES)}")
    kind = import_module(MODULES[name]).KIND
    assert isinstance(kind, GeneratorKind)
    return kind
