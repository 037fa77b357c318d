"""Stand-ins for compiler, device and model, so that what is measured is the loop between them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.evaluate.scripted import scripted_findings as findings
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_GPU
from evoengine.protocols import Replies, Request
from evoengine.records import Interval, Outcome, Proposal, Reply, Status, Usage, Verdict
from evoengine.task.schema import Task

SAMPLES = 200  # of each side of a case, hot and cold alike
# different sets of raw samples; each is compressed on its own, so more would change nothing
TEMPLATES = 16
PROMPT_CHARACTERS, ANSWER_CHARACTERS = 16_000, 8_000


def correct_verdicts(task: Task) -> Callable[[Candidate, bool], Verdict]:
    """A `verdict_of` for a ScriptedExecutor: correct verdicts of the size of real ones, with checks
    and samples that are drawn beforehand, so that drawing them is not measured.
    """
    templates = [_template(task, Random(number)) for number in range(TEMPLATES)]  # noqa: S311 - not secret

    def verdict_of(candidate: Candidate, verify: bool) -> Verdict:
        luck = derived_seed(candidate.digest)
        score = 0.5 + luck / 2**32
        interval = Interval(value=score, low=score * 0.995, high=score * 1.005)
        update = {
            "score": interval,
            "latency_us": interval,
            "tier": candidate.plan.precision,
            "code_digest": candidate.digest,
        }
        return templates[luck % TEMPLATES].model_copy(update=update)

    return verdict_of


def _template(task: Task, luck: Random) -> Verdict:
    kernels = [f"kernel<{number}>" for number in range(3)]
    return Verdict(
        status=Status.correct,
        reason="correct on every case",
        resources=findings.resources(kernels, task, SCRIPTED_GPU)[0],
        checks=findings.checks(Status.correct, task, SCRIPTED_GPU, True, luck),
        timings=findings.timings(findings.BASELINE_US, task, SAMPLES, luck),
        phases_s={"compile": 0.25, "check": 0.3, "timing": 0.3, "total": 0.85},
        environment=SCRIPTED_GPU,
    )


class Renaming:
    """protocols.Generator: the first starting kernel under a new name, so that each header is read
    anew; `replies` as of a model, or none.
    """

    def __init__(self, replies: bool) -> None:
        self._replies = replies
        words = Random(0)  # noqa: S311 - not secret
        self._text = " ".join(f"{words.getrandbits(20):x}" for _ in range(PROMPT_CHARACTERS // 5))

    def tell(self, outcome: Outcome) -> None:
        """Learns nothing."""

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        if self._replies:
            await replies.get_or_ask(0, lambda: self._reply(request.trial))
        parents = tuple(elite.outcome.trial for elite, _ in request.elites)[:1]
        source = request.seeds[0].source.replace("name: ", f"name: variant_{request.trial}_of_", 1)
        return Proposal(operator="mutate", parents=parents, source=source)

    async def close(self) -> None:
        """Nothing to let go of."""

    async def _reply(self, trial: int) -> Reply:
        usage = Usage(prompt_tokens=4000, completion_tokens=2000, cost_usd=0.01)
        text = f"{trial} {self._text[:ANSWER_CHARACTERS]}"
        return Reply(
            model="scripted", prompt=self._text, text=text, usage=usage, finish_reason="stop"
        )
