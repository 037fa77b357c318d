"""The generator of a run, by the name that its settings have."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from evoengine.config import RunConfig
from evoengine.evaluate.compile.includes import check_includes
from evoengine.events import Notice
from evoengine.generate.registry import GeneratorContext, kind_of
from evoengine.paths import RunPaths
from evoengine.protocols import Generator, Store
from evoengine.search.control import Control
from evoengine.store.run_folder import RunFolder, open_run


def check_generator(config: RunConfig, environ: Mapping[str, str]) -> None:
    """Raises EvoError for what would stop the generator at once, before a device is brought up."""
    kind_of(config.generator).check(config, environ)
    if recorded := _recorded(config):
        recorded.close()


@asynccontextmanager
async def made_generator(
    config: RunConfig, store: Store, control: Control
) -> AsyncIterator[Generator]:
    """The generator, closed with the block; raises EvoError."""

    def notify(text: str) -> None:
        # Said between a reply and its commit: a view that cannot print fails at the next event.
        with contextlib.suppress(OSError):
            control.observe(Notice(text))

    recorded = _recorded(config)
    try:
        context = GeneratorContext(
            config,
            store,
            recorded.store if recorded else None,
            notify,
            check_includes,
            control.environ,
        )
        generator = kind_of(config.generator).make(context)
        try:
            yield generator
        finally:
            await generator.close()
    finally:
        if recorded is not None:
            recorded.close()


def _recorded(config: RunConfig) -> RunFolder | None:
    """The run that a replay answers from, opened for reading."""
    if config.generator != "replay" or config.replay_from is None:
        return None
    return open_run(RunPaths(Path(config.replay_from)), read_only=True)
