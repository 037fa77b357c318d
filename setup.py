"""Lets a wheel carry prompts/, seeds/ and tasks/, which stand beside the package in a checkout."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("prompts", "seeds", "tasks")  # evoengine/paths.py looks for them in evoengine/shipped


class BuildWithShippedFolders(build_py):
    """Copies the folders into the package; an editable install needs none of it, it reads them
    where they stand.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "evoengine", "shipped")
        # an earlier build may have left files that are gone since
        shutil.rmtree(target, ignore_errors=True)
        for name in SHIPPED:
            shutil.copytree(
                name, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
            )


setup(cmdclass={"build_py": BuildWithShippedFolders})
