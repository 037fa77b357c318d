"""A search led by a model, with kernels that models have written played back as its replies.

    python -m benchmarks.found_replies [--device cuda] [--task sdpa_h200] [--trials 90]
        [--tune-share 0.5] [--all | --replies FOLDER] [--kernel FILE ...] [--reply-s 0]
        [--price 2/8] [--runs-dir FOLDER] [--json FILE]

An endpoint on this machine answers with the kernels of tests/honest that models wrote for the
task, in turn, then with the same ones again (whose trials are rejected at once); with --all also
with the task's other honest kernels. `evoengine run` starts from the task's own kernels and asks
that endpoint. Shown are the trials, how many of them tuned, the elites, and for each structure how
many of its configurations were tried, the time of the first one, and the best time: what tuning
gained. No model is asked and nothing is paid.

The order of the replies is that in which requests arrive, so two runs may differ a little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.corpora import HONEST, honest
from benchmarks.playing_server import playing_server
from benchmarks.table import Row, machine, publish, table

# by task: unedited replies of models to prompts of version 0.1.0, oldest first
FOUND = {
    "sdpa_h200": (
        "sdpa_register_resident.cu",
        "sdpa_mma_private_keys.cu",
        "sdpa_private_slices.cu",
        "sdpa_direct_qk_private_v.cu",
        "sdpa_streamed_slices.cu",
    ),
    "matmul_fp16": ("matmul_sliced_k.cu", "matmul_big_warp_tiles_sliced_k.cu"),
    "layernorm": ("layernorm_register_rows.cu", "layernorm_stationary_columns.cu"),
}
RUN = "found"


def replies(task: str, everything: bool, folder: Path | None = None) -> list[str]:
    """What the endpoint answers, in this order: the files TASK-*.reply.txt of a folder, else the
    found kernels.
    """
    if folder is not None:
        files = sorted(folder.glob(f"{task}-*.reply.txt"))
        if not files:
            raise SystemExit(f"{folder} has no {task}-*.reply.txt")
        return [file.read_text(encoding="utf-8") for file in files]
    names = list(FOUND[task])
    if everything:
        names += [
            name
            for name, entry in honest().items()
            if entry.task == task and "/" not in name and name not in names
        ]
    return [f"```cuda\n{(HONEST / name).read_text(encoding='utf-8')}```\n" for name in names]


def search(options: argparse.Namespace, runs_dir: Path) -> tuple[float, int]:
    """Runs the search; returns its seconds and the number of requests to the endpoint."""
    given_replies = replies(options.task, options.all, options.replies)
    with playing_server(given_replies, options.reply_s) as server:
        environ = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
        environ |= {"OPENAI_API_KEY": "none-is-needed", "OPENAI_BASE_URL": server.url}
        environ |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        given = {
            "--generator": "openai",
            "--model": "playing",
            "--price": options.price,
            "--device": options.device,
            "--trials": options.trials,
            "--tune-share": options.tune_share,
            "--run": RUN,
            "--runs-dir": runs_dir,
        }
        began = time.perf_counter()
        subprocess.run(  # noqa: S603 - our own command
            [
                *_evoengine("run", options.task),
                *(str(part) for pair in given.items() for part in pair),
                *(part for kernel in options.kernel for part in ("--kernel", kernel)),
            ],
            env=environ,
            check=True,
        )
        return time.perf_counter() - began, server.asked


def rows_of_run(runs_dir: Path) -> Mapping[str, Any]:
    """The run as `show --json` prints it."""
    shown = subprocess.run(  # noqa: S603 - our own command
        [*_evoengine("show", RUN), "--runs-dir", str(runs_dir), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    found: Mapping[str, Any] = json.loads(shown.stdout)
    return found


def _evoengine(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "evoengine", *arguments]


def structures(trials: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """A row for each structure that was tried, in the order of its first trial; a reply that came
    again adds nothing.
    """
    members: dict[str, list[Mapping[str, Any]]] = {}
    name_of: dict[int, str] = {}
    for trial in trials:
        tuned = trial["operator"] == "tune"
        name = name_of[trial["trial"]] = name_of[trial["parents"][0]] if tuned else trial["name"]
        if tuned or name not in members:
            members.setdefault(name, []).append(trial)
    for name, tried in members.items():
        guess = _us(tried[0])
        best = min((us for trial in tried if (us := _us(trial)) is not None), default=None)
        yield {
            "structure": name,
            "trial": tried[0]["trial"],
            "tier": tried[0]["tier"],
            "configurations": len(tried),
            "correct": sum(trial["status"] == "correct" for trial in tried),
            "first us": guess,
            "best us": best,
            "gain": guess / best if guess and best else None,
        }


def _us(trial: Mapping[str, Any]) -> float | None:
    return trial["latency_us"]["value"] if trial["latency_us"] else None


def elites(rows: Mapping[str, Any]) -> Iterator[Row]:
    """A row for each elite."""
    for elite in rows["elites"]:
        yield {
            "elite": f"{elite['tier']} {elite['place']}",
            "trial": elite["trial"],
            "name": elite["name"],
            "operator": elite["operator"],
            "us": _us(elite),
            "speed-up": elite["speedup"]["value"] if elite["speedup"] else None,
        }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.found_replies", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--device", default="cuda", help="as of `evoengine run` (%(default)s)")
    parser.add_argument(
        "--task",
        default="sdpa_h200",
        help=f"without --replies one of those with found kernels: {', '.join(FOUND)} (%(default)s)",
    )
    parser.add_argument("--trials", type=int, default=90)
    parser.add_argument("--tune-share", type=float, default=0.5)
    parser.add_argument("--all", action="store_true", help="the other honest kernels, too")
    parser.add_argument("--replies", type=Path, help="a folder of replies to play back instead")
    parser.add_argument(
        "--kernel", action="append", default=[], help="as of `evoengine run`; repeatable"
    )
    parser.add_argument("--reply-s", type=float, default=0.0, help="what each reply takes")
    parser.add_argument(
        "--price", default="0/0", help="as of `evoengine run`, to see what it would cost"
    )
    parser.add_argument("--runs-dir", type=Path, help="where the run is kept; else it is removed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there as well")
    options = parser.parse_args(arguments)
    if options.replies is None and options.task not in FOUND:
        parser.error(f"no found kernels of {options.task}; give a folder with --replies")
    with tempfile.TemporaryDirectory(prefix="evoengine-found-") as folder:
        runs_dir = options.runs_dir or Path(folder)
        seconds, asked = search(options, runs_dir)
        run = rows_of_run(runs_dir)
    tuned = f"tuned {run['tuned']} of {run['settled']} trials"
    print(f"\n{tuned}; {asked} requests to the endpoint; {seconds:.0f} s\n")
    print(f"{table([*elites(run)])}\n")
    publish(machine(device=run["device"]), [*structures(run["trials"])], options.json)


if __name__ == "__main__":
    main()
