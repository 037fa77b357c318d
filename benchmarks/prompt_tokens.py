"""How many tokens the prompts of packaged tasks have, by part.

    python -m benchmarks.prompt_tokens [--before FILE.json] [--json FILE.json] [--parts]

The requests are those of benchmarks/prompt_requests.py: the middle of a search, with real kernels
and made-up verdicts, once with modelled and once with measured times. Tokens are estimated as
`evoengine prompt` does it, by bytes. --before compares with the rows that an earlier commit wrote
with --json; --parts also prints the tokens of each part. Nothing is compiled, run or sent.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.prompt_requests import ON_EMULATOR, ON_GPU, prompts_of
from benchmarks.table import Row, machine, publish, table
from evoengine.config import PROMPT_TOKENS
from evoengine.generate.prompt_parts import PromptText
from evoengine.generate.token_estimate import COUNTED_AS

TASKS = ("sdpa_h200", "matmul_fp16", "layernorm", "adamw")
ENVIRONMENTS = {"modelled": ON_EMULATOR, "measured": ON_GPU}
Key = tuple[str, str, str]  # task, times, operator


def all_prompts() -> dict[Key, PromptText]:
    """The prompt of every task, kind of times and operator."""
    return {
        (task, times, operator): prompt
        for times, environment in ENVIRONMENTS.items()
        for task in TASKS
        for operator, prompt in prompts_of(task, environment).items()
    }


def rows(prompts: dict[Key, PromptText], before: dict[Key, int]) -> list[Row]:
    """One row for each prompt, and one for all together where they can be compared."""
    found: list[Row] = []
    for key, prompt in prompts.items():
        task, times, operator = key
        row: dict[str, str | int | float | None] = {
            "task": task,
            "times": times,
            "operator": operator,
            "tokens": prompt.tokens,
        }
        if key in before:
            row |= {"before": before[key], "tokens / before": prompt.tokens / before[key]}
        found.append(row)
    if before and before.keys() >= prompts.keys():
        now, then = (
            sum(item.tokens for item in prompts.values()),
            sum(before[key] for key in prompts),
        )
        found.append({"task": "all", "tokens": now, "before": then, "tokens / before": now / then})
    return found


def read_rows(file: Path) -> dict[Key, int]:
    """The tokens of the rows that this command has written to `file`."""
    data = json.loads(file.read_text(encoding="utf-8"))
    return {
        (row["task"], row["times"], row["operator"]): row["tokens"]
        for row in data["rows"]
        if row["task"] != "all"
    }


def parts(prompts: dict[Key, PromptText]) -> list[Row]:
    """The tokens of each part of each prompt."""
    return [
        {
            "task": task,
            "times": times,
            "operator": operator,
            **{f"{part.name} part": part.tokens for part in prompt.parts},
        }
        for (task, times, operator), prompt in prompts.items()
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--parts", action="store_true")
    arguments = parser.parse_args()
    prompts = all_prompts()
    where = machine(tokens=COUNTED_AS, budget=str(PROMPT_TOKENS))
    before = read_rows(arguments.before) if arguments.before else {}
    publish(where, rows(prompts, before), arguments.json)
    if arguments.parts:
        print()
        print(table(parts(prompts)))


if __name__ == "__main__":
    main()
