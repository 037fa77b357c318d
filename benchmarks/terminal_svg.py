"""A terminal's text as a picture: the text of an SVG file."""

from __future__ import annotations

import io
import re

from rich.console import Console, RenderableType

# rich has a reader's browser fetch fonts from elsewhere
FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def recording_console(columns: int) -> Console:
    """A console that prints nowhere and keeps what it was given, with its colours."""
    return Console(
        record=True,
        file=io.StringIO(),
        width=columns,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )


def svg_of_recording(console: Console, title: str, name: str) -> str:
    """What `console` recorded, as SVG; `name` is unique among the pictures of a page."""
    return FONT_FACE.sub("", console.export_svg(title=title, unique_id=name))


def svg_of_terminal(shown: RenderableType, title: str, name: str, columns: int) -> str:
    """`shown` as a terminal of so many columns shows it, as SVG."""
    console = recording_console(columns)
    console.print(shown)
    return svg_of_recording(console, title, name)
