"""Renders every kind of prompt once, before anything is paid for: a fault in a template of the user
would otherwise stop the run at the first trial that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evoengine.config import RunConfig
from evoengine.emulator import targets
from evoengine.evaluate.device_description import modelled_gpu
from evoengine.generate import operators
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.parsed_reply import ParsedReply
from evoengine.generate.prompt_templates import Prompts
from evoengine.protocols import Request
from evoengine.records import Environment, Proposal, Reply
from evoengine.search.unevaluated_request import unevaluated, unevaluated_request
from evoengine.task.schema import Task

ALL_PARTS = 1_000_000  # a budget of tokens that leaves out nothing


def try_templates(config: RunConfig, task: Task, proposals: Sequence[Proposal]) -> None:
    """Raises UsageError for a fault in a template of `config` that prompts about the starting
    kernels, `proposals`, meet, on a GPU or on the emulator. What needs the results of trials is not
    tried.
    """
    if config.generator != "openai" or config.prompts.folder is None:
        return
    prompts = Prompts(Path(config.task), config.prompts.model_copy(update={"tokens": ALL_PARTS}))
    found = [unevaluated(trial, proposal) for trial, proposal in enumerate(proposals)]
    seeds = tuple(seed for seed in found if seed.outcome.tier in task.tiers)
    for environment in _devices():
        request = replace(unevaluated_request(task, environment, seeds), recent=seeds)
        _try(prompts, request)


def _devices() -> tuple[Environment, Environment]:
    """A GPU, modelled and measured: templates may say different things of them."""
    target = targets.TARGETS["h200"]
    modelled = modelled_gpu(target, threads=1)
    measured = {"device": f"cuda:0 {target.title}", "kind": "cuda"}
    return modelled, modelled.model_copy(update=measured)


def _try(prompts: Prompts, request: Request) -> None:
    """Renders the prompt of every operator, and the repairs that can follow it."""
    seeds = request.seeds
    tier = seeds[0].outcome.tier if seeds else next(iter(request.task.tiers))
    choices = [operators.first(request, tier)]
    if seeds:
        choices.append(OperatorChoice("mutate", tier, seeds[:1]))
        # with one kernel twice where there is one
        choices.append(OperatorChoice("crossover", tier, (seeds[0], seeds[-1])))
    for choice in choices:
        prompts.render(choice, request)
        for kernel in (None, "/* evoengine */"):
            unusable = ParsedReply(kernel, problem="a problem", insight="", name="")
            reply = Reply(model="", prompt="", text="a reply")
            prompts.repair(choice, request, reply, unusable)
