"""Requests in the middle of a search, for counts of prompts and for tests of them.

The starting kernels of a task are real. Their verdicts are made up, of the size of those that the
emulator gives: bounds of a modelled time, machine code, errors of every input set.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from evoengine.candidate import binding, kernel_file
from evoengine.candidate.arch import limits_of
from evoengine.evaluate.scripted import scripted_findings as findings
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.parsed_reply import ParsedReply
from evoengine.generate.prompt_parts import PromptText
from evoengine.generate.prompt_templates import Prompts
from evoengine.paths import find_kernel, find_task
from evoengine.protocols import Evaluated, Request
from evoengine.records import (
    CaseModel,
    Diagnosis,
    DiagnosisKind,
    Elite,
    Environment,
    Forensics,
    Interval,
    KernelResources,
    LaunchModel,
    MachineCode,
    Proposal,
    Reply,
    Status,
    Verdict,
    outcome_of,
)
from evoengine.task.load import load_task
from evoengine.task.schema import Task

PLACES = 3
TRIAL = 40  # of the request
ON_EMULATOR = Environment(
    device="emulator:h200 NVIDIA H200 (modelled on 2 cores)",
    kind="emulator",
    arch="sm_90",
    sm_count=132,
    max_shared_bytes=232448,
    l2_bytes=50 * 1024**2,
    memory_bytes=0,
    versions={"clang": "22.1.8", "nvrtc": "13.0"},
)
ON_GPU = ON_EMULATOR.model_copy(
    update={
        "device": "cuda:0 NVIDIA H200",
        "kind": "cuda",
        "memory_bytes": 140 * 1024**3,
        "versions": {"driver": "13.0", "torch": "2.11"},
    }
)

# part of a launch's time that each bound takes
_LATENCY_SHARES = {"loads": 0.41, "barriers": 0.22, "issue": 0.18, "shuffles": 0.15, "pipes": 0.04}
_BOUNDS = {
    "latency": 0.71, "issue": 0.42, "shared": 0.38, "alu": 0.33, "fma": 0.28, "mufu": 0.2,
    "lsu": 0.17, "l2_port": 0.12, "l2": 0.09, "imad": 0.06, "shuffle": 0.05, "dispatch": 0.01,
}  # fmt: skip
_CODE = MachineCode(
    instructions=1240,
    kinds=(("alu", 420), ("fma", 310), ("shared", 160), ("imad", 110), ("global", 48), ("sfu", 36)),
    loop_kinds=(("alu", 330), ("fma", 280), ("shared", 140), ("imad", 60), ("sfu", 34)),
    accesses=(("global load", 16, 24), ("global store", 16, 8), ("shared load", 16, 96)),
    loop_accesses=(("asynchronous copy", 16, 16), ("shared load", 16, 88), ("shared load", 4, 20)),
    loop_barriers=2,
)
_COMPILER = """\
kernel.cu(143): error: identifier "row_scale" is undefined
          acc[i] *= row_scale[i / 2];
                    ^
kernel.cu(188): error: argument of type "unsigned int *" is incompatible with type "half *"
          load_matrix(fragment, tile + row * STRIDE);
                      ^
2 errors detected in the compilation of "kernel.cu"."""
_DIAGNOSES = (
    "All wrong elements are in rows 48 to 63 of each tile of 64: the last warp of a block.",
    "There the output is 1.37 to 2.02 times the reference, and the factor is the same in each row.",
    "The first launch differs from the second on the same inputs in 212 elements: a race.",
)


def late_request(name: str, environment: Environment = ON_EMULATOR) -> Request:
    """The request of trial 40 for the packaged task `name`: three elites in each tier that has
    starting kernels (variants of them where there are fewer), and eight trials without a place.
    """
    path = find_task(name)
    task = load_task(path)
    sources = [find_kernel(item, path.parent).read_text() for item in task.seeds_from]
    seeds = tuple(
        _correct(n, source, 40.0 + 20 * (len(sources) - n), task, environment)
        for n, source in enumerate(sources)
    )
    elites = tuple(_elites(seeds, task, environment))
    last = elites[-1][1].source
    return Request(
        trial=TRIAL,
        seed=1,
        task=task,
        environment=environment,
        seeds=seeds,
        elites=elites,
        recent=tuple(_without_place(last, task, environment)),
        pending=_nothing_pending,
        settled=TRIAL,
        asking=TRIAL - len(seeds),
        asking_settled=TRIAL - len(seeds),
    )


def _elites(
    seeds: tuple[Evaluated, ...], task: Task, environment: Environment
) -> Iterator[tuple[Elite, Evaluated]]:
    """The fastest kernels of each tier; the later a starting kernel, the faster."""
    for tier in task.tiers:
        held = [item for item in reversed(seeds) if item.outcome.tier == tier]
        while held and len(held) < PLACES:
            source = _variant(held[0].source, len(held))
            us = 60.0 + 10 * len(held)
            held.append(_correct(20 + len(held), source, us, task, environment))
        for place, item in enumerate(held[:PLACES], start=1):
            yield Elite(tier=tier, place=place, outcome=item.outcome), item


def _variant(source: str, number: int) -> str:
    return source.replace("\nname: ", f"\nname: variant_{number}_of_", 1)


def _without_place(source: str, task: Task, environment: Environment) -> Iterator[Evaluated]:
    """Trials 30 to 37, oldest first: three are slow, two do not compile, two are wrong, one has a
    race.
    """
    main = task.objective.cases[0]
    wrong = f"case {main}: 3 of 15 input sets fail; normal: 4096 of 262144 elements beyond the gate"
    race = "case 'a hidden case': a race on shared memory between two warps"
    forensics = Forensics(
        case=main,
        distribution="normal",
        output=next(iter(task.outputs)),
        diagnoses=tuple(
            Diagnosis(kind=DiagnosisKind.unknown, sentence=sentence, share=1.0)
            for sentence in _DIAGNOSES
        ),
    )
    failures: dict[int, Verdict] = {
        32: Verdict(status=Status.compile_error, reason="2 errors", detail=_COMPILER),
        33: Verdict(status=Status.wrong_result, reason=wrong, detail="worst at (0, 3, 48, 7)"),
        35: Verdict(status=Status.fault, reason=race),
        36: Verdict(status=Status.compile_error, reason="1 error", detail=_COMPILER[:160]),
        37: Verdict(status=Status.wrong_result, reason=f"{wrong} ", forensics=forensics),
    }
    for trial in range(30, 38):
        text = _variant(source, trial)
        if trial in failures:
            yield _evaluated(trial, text, failures[trial])
        else:
            yield _correct(trial, text, 160.0 + trial, task, environment)


def _correct(trial: int, source: str, us: float, task: Task, environment: Environment) -> Evaluated:
    """A correct verdict on a kernel that takes `us` in every case."""
    candidate = kernel_file.parse(source)
    bound = [binding.bind(candidate, task, case, limits_of(environment)) for case in task.cases]
    luck = Random(trial)  # noqa: S311 - must repeat
    verdict = Verdict(
        status=Status.correct,
        reason="correct on every case",
        tier=candidate.plan.precision,
        resources=tuple(
            _resources(launch.kernel, launch.block[0], environment) for launch in bound[0].launches
        ),
        checks=findings.checks(Status.correct, task, environment, True, luck),
    )
    kernels = [[launch.kernel for launch in plan.launches] for plan in bound]
    if not environment.is_modelled:
        timings = findings.timings(us, task, 20, luck)
        score = Interval(value=us / 12, low=us / 12.1, high=us / 11.9)
        update = {"timings": timings, "score": score, "latency_us": score}
        return _evaluated(trial, source, verdict.model_copy(update=update))
    modelled = tuple(
        CaseModel(case=case, target="h200", launches=tuple(_launches(names, us)))
        for case, names in zip(task.cases, kernels, strict=True)
    )
    interval = Interval(value=us, low=us, high=us)
    update = {"modelled": modelled, "score": interval, "latency_us": interval}
    return _evaluated(trial, source, verdict.model_copy(update=update))


def _launches(kernels: list[str], us: float) -> Iterator[LaunchModel]:
    each = us / len(kernels)
    for kernel in kernels:
        bounds = {name: share * each for name, share in _BOUNDS.items()}
        yield LaunchModel(
            kernel=kernel,
            us=each,
            limiter="issue",
            bounds_us=bounds,
            latency_shares=_LATENCY_SHARES,
        )


def _resources(kernel: str, threads: int, environment: Environment) -> KernelResources:
    return KernelResources(
        kernel=kernel,
        arch=environment.arch,
        registers=96,
        static_shared_bytes=512,
        dynamic_shared_bytes=40960,
        local_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
        block_threads=threads,
        machine_code=_CODE,
    )


def _evaluated(trial: int, source: str, verdict: Verdict) -> Evaluated:
    plan = kernel_file.parse(source).plan
    proposal = Proposal(operator="mutate", source=source, label=plan.name)
    verdict = verdict.model_copy(update={"tier": plan.precision})
    return Evaluated(outcome_of(trial, proposal, verdict), source, verdict)


async def _nothing_pending(wanted: object) -> tuple[Proposal, ...]:
    return ()


def prompts_of(name: str, environment: Environment = ON_EMULATOR) -> dict[str, PromptText]:
    """Operator -> its prompt for the late request of a task, in the tier that comes first: a
    mutation of the second-best kernel, a crossover of the best two, and the repair of a reply of
    the second-best kernel's length.
    """
    asked = late_request(name, environment)
    prompts, tier = Prompts(find_task(name)), next(iter(asked.task.tiers))
    best, second, *_ = (item for elite, item in asked.elites if elite.tier == tier)
    choices = {
        "first": OperatorChoice("first", tier),
        "mutate": OperatorChoice("mutate", tier, (second,)),
        "crossover": OperatorChoice("crossover", tier, (best, second)),
    }
    rendered = {key: prompts.render(choice, asked) for key, choice in choices.items()}
    reply = Reply(model="", prompt="", text="")
    parsed = ParsedReply(second.source, "kernel.cu:3:1: no tier 'half'", "", "")
    return {**rendered, "repair": prompts.repair(choices["mutate"], asked, reply, parsed)}
