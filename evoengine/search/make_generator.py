"""Makes the generator that the settings of a run name."""

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
from evoengine.search.changes import current_info
from evoengine.search.control import Control
from evoengine.search.known_settings import refuse_unknown_settings
from evoengine.store.run_folder import RunFolder, open_run


def check_generator(config: RunConfig, environ: Mapping[str, str]) -> None:
    """Raises EvoError for anything that would stop the generator at once; called before a device is
    started.
    """
    kind_of(config.generator).check(config, environ)
    if replayed_run := _open_replayed_run(config):
        replayed_run.close()


@asynccontextmanager
async def open_generator(
    config: RunConfig, store: Store, control: Control
) -> AsyncIterator[Generator]:
    """The generator, closed at the end of the block; raises EvoError."""

    def notify(text: str) -> None:
        # Called between a reply and its commit, so an error must not escape: a view that cannot
        # print fails at the next event.
        with contextlib.suppress(OSError):
            control.observe(Notice(text))

    replayed_run = _open_replayed_run(config)
    try:
        context = GeneratorContext(
            config,
            store,
            replayed_run.store if replayed_run else None,
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
        if replayed_run is not None:
            replayed_run.close()


def _open_replayed_run(config: RunConfig) -> RunFolder | None:
    """The run whose replies are replayed, opened for reading; None for other generators."""
    if config.generator != "replay" or config.replay_from is None:
        return None
    paths = RunPaths(Path(config.replay_from))
    folder = open_run(paths, read_only=True)
    try:
        if (info := current_info(folder.store)) is not None:
            refuse_unknown_settings(info, paths.database)
    except BaseException:
        folder.close()
        raise
    return folder
