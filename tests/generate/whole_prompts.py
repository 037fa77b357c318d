"""Every prompt of two packaged tasks in the middle of a search, as files to be read and compared.

    python -m tests.generate.whole_prompts

writes them anew. Read the difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.prompt_requests import ON_EMULATOR, ON_GPU, prompts_of

FOLDER = Path(__file__).resolve().parent / "golden" / "whole"
ENVIRONMENTS = {"layernorm": ON_EMULATOR, "matmul_fp16": ON_GPU}


def whole_prompts() -> dict[str, str]:
    """File name -> the prompt that belongs there."""
    return {
        f"{task}.{operator}.txt": prompt.text
        for task, environment in ENVIRONMENTS.items()
        for operator, prompt in prompts_of(task, environment).items()
    }


def main() -> None:
    """Writes all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in whole_prompts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
