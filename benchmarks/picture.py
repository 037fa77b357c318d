"""The picture of the live view in the README: a real search, and its view as it is when a number of
trials are settled.

    python -m benchmarks.picture                  # writes docs/images/live-view.svg

The run is left in a temporary folder. Elapsed time in the picture is that of the machine at hand.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.terminal_svg import recording_console, svg_of_recording
from evoengine.events import Event, TrialSettled
from evoengine.paths import RunPaths
from evoengine.records import Outcome
from evoengine.report.elite_evidence import EliteEvidence
from evoengine.report.live_view import LiveView
from evoengine.search.choose_run import choose_run
from evoengine.search.control import Control
from evoengine.search.run_options import RunOptions
from evoengine.search.run_reader import RunReader
from evoengine.search.start_run import start_run

OUT = Path(__file__).resolve().parent.parent / "docs" / "images" / "live-view.svg"
COLUMNS = 112


def main() -> None:
    arguments = _arguments()
    picture = asyncio.run(_search(arguments))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(picture, encoding="utf-8")
    print(f"{arguments.out}: {len(picture)} bytes")


async def _search(arguments: argparse.Namespace) -> str:
    """The view as SVG when `--at` trials are settled; the search goes no further."""
    options = RunOptions(trials=arguments.trials, generator="tune")
    choice = choose_run(arguments.task, options, device=arguments.device)
    stop, stop_now = asyncio.Event(), asyncio.Event()
    pictures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = RunPaths(Path(folder) / choice.task.name)

        def evidence_of(trial: int) -> EliteEvidence:
            with RunReader(paths) as reader:
                return reader.stored.evidence_of(trial)

        def changed_of(outcome: Outcome) -> dict[str, int]:
            with RunReader(paths) as reader:
                return reader.stored.changed_of(outcome)

        console = recording_console(COLUMNS)
        view = LiveView(console, time.monotonic, evidence_of, changed_of)

        def observe(event: Event) -> None:
            view(event)
            if isinstance(event, TrialSettled) and event.outcome.trial + 1 == arguments.at:
                asyncio.get_running_loop().call_later(arguments.later_s, take)

        def take() -> None:
            console.print(view.render())
            title = f"evoengine run {arguments.task}"
            pictures.append(svg_of_recording(console, title, "live-view"))
            stop.set()
            stop_now.set()

        await start_run(choice, paths, Control(observe, stop, stop_now))
    if not pictures:
        raise SystemExit(
            f"expected --at to be at most the number of settled trials, got {arguments.at}"
        )
    return pictures[0]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="sdpa_l4")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--at", type=int, default=14)
    parser.add_argument(
        "--later-s",
        type=float,
        default=2.0,
        help="so long after that trial, when the next ones are under way",
    )
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
