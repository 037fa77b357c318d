"""The generator that needs no model: it tries other values of the tunables that kernels declare.

Each proposal is a function of the request and of the outcomes told, so that a resumed run proposes
what the killed one would have.
"""

from __future__ import annotations

import math
from random import Random

from evoengine.digest import digest
from evoengine.generate.registry import GeneratorKind
from evoengine.generate.tpe import next_point
from evoengine.generate.tunable_kernels import FAILED, TunableKernel, TunableKernels
from evoengine.protocols import Exhausted, Replies, Request
from evoengine.records import Outcome, Proposal

# configurations of every promising kernel, its default included, before the faster ones are
# preferred
WARM_UP = 4
# the times of a shipped kernel differ by a factor of 4 at most, whatever its tunables
PROMISING = math.log(4)
FAR = 20.0  # keeps the weight of a failed kernel above zero


class TuneGenerator:
    """Implements protocols.Generator: searches the tunables of the starting kernels and of the
    elites with Optuna's TPE. No configuration of a source is proposed twice.
    """

    def __init__(self) -> None:
        self._known = TunableKernels()

    def tell(self, outcome: Outcome) -> None:
        self._known.tell(outcome)

    async def propose(self, request: Request, replies: Replies) -> Proposal:
        rng = Random(request.seed)  # noqa: S311 - must repeat, need not be secret
        kernels = self._kernels(request, await request.pending(lambda trial: True))
        known = len(kernels)
        while kernels:
            kernel = _choose(kernels, rng)
            point = next_point(kernel, request.seed, rng)
            if point is not None:
                return kernel.proposal(point)
            kernels.remove(kernel)
        if not known:
            raise Exhausted("there is no kernel whose tunables could be searched")
        raise Exhausted(
            f"every valid configuration of {known} kernel{'' if known == 1 else 's'} was tried"
        )

    async def close(self) -> None:
        """Nothing is open."""

    def _kernels(self, request: Request, pending: tuple[Proposal, ...]) -> list[TunableKernel]:
        """The sources that can be tuned: starting kernels first, then those of elites."""
        sources = {evaluated.outcome.source_digest: evaluated.source for evaluated in request.seeds}
        parents = {evaluated.outcome.source_digest: evaluated for evaluated in request.seeds}
        for proposal in pending:  # starting kernels without a verdict yet
            if proposal.operator == "seed" and proposal.source is not None:
                sources.setdefault(digest(proposal.source), proposal.source)
        # the best place last, so that it stays
        for _, evaluated in sorted(request.elites, key=lambda elite: -elite[0].place):
            sources[evaluated.outcome.source_digest] = evaluated.source
            parents[evaluated.outcome.source_digest] = evaluated
        found = (
            self._known.kernel(source, parents.get(name), request, pending)
            for name, source in sources.items()
        )
        return [kernel for kernel in found if kernel is not None]


def _choose(kernels: list[TunableKernel], rng: Random) -> TunableKernel:
    """The kernel to tune: every promising one in turn until all are warm, then faster ones more
    often.

    Tiers with a correct kernel are equally likely; within a tier, a kernel whose best time is r
    times that of the fastest one has the weight 1 / r^2.
    """
    working = [kernel for kernel in kernels if kernel.best < FAILED] or kernels
    fastest = {
        tier: min(kernel.best for kernel in working if kernel.precision == tier)
        for tier in {kernel.precision for kernel in working}
    }
    cold = [
        kernel for kernel in kernels if kernel.tries < WARM_UP and _is_promising(kernel, fastest)
    ]
    if cold:
        return min(cold, key=lambda kernel: kernel.tries)
    tier = rng.choice(sorted(fastest))
    rivals = [kernel for kernel in kernels if kernel.precision == tier]
    return rng.choices(
        rivals, [math.exp(-2 * _behind(kernel, fastest[tier])) for kernel in rivals]
    )[0]


def _behind(kernel: TunableKernel, fastest: float) -> float:
    """How far a kernel is behind the fastest of its tier, in logarithms."""
    return min(kernel.best - fastest, FAR) if math.isfinite(kernel.best) else FAR


def _is_promising(kernel: TunableKernel, fastest: dict[str, float]) -> bool:
    """Whether its tunables, which hardly gain more than a factor of 4, could still make it the
    fastest of its tier.
    """
    return (
        math.isinf(kernel.best)
        or _behind(kernel, fastest.get(kernel.precision, math.inf)) < PROMISING
    )


KIND = GeneratorKind(lambda context: TuneGenerator())
