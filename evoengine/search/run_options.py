"""The options that `run` and `resume` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RunOptions:
    """Settings from the command line, which replace the defaults of a new run or the stored ones of
    a resumed run; None leaves a setting as it is.
    """

    trials: int | None = None
    plateau: int | None = None
    stop_at_roofline: float | None = None
    generator: str | None = None
    replay_from: str | None = None
    tune_share: float | None = None
    model: str | None = None
    # for a million prompt and a million completion tokens
    price_usd: tuple[float, float] | None = None
    cost_cap_usd: float | None = None
    token_cap: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_s: float | None = None
    retries: int | None = None
    patience_s: float | None = None
    prompt_tokens: int | None = None
    prompts_folder: str | None = None  # absolute path

    @property
    def prompt_settings(self) -> dict[str, Any]:
        """The given ones that are fields of PromptSettings, by name."""
        found: dict[str, Any] = {}
        if self.prompt_tokens is not None:
            found["tokens"] = self.prompt_tokens
        if self.prompts_folder is not None:
            # the digests belonged to the other folder
            found |= {"folder": self.prompts_folder, "templates": None}
        return found

    @property
    def model_settings(self) -> dict[str, Any]:
        """The given ones that are fields of ModelSettings, by name."""
        names = (
            "model",
            "cost_cap_usd",
            "token_cap",
            "temperature",
            "max_tokens",
            "timeout_s",
            "retries",
            "patience_s",
        )
        found = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.price_usd:
            found |= {
                "usd_per_million_prompt": self.price_usd[0],
                "usd_per_million_completion": self.price_usd[1],
            }
        return found
