"""From a request to a proposal in at most two turns: a prompt, and a repair prompt where the first
reply holds no usable kernel.

Where replies come from is a parameter: a model behind its endpoint, or an earlier run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from evoengine.generate import parsed_reply
from evoengine.generate.circuit_breaker import RequestRefused
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.parsed_reply import ParsedReply, Refuse
from evoengine.generate.prompt_templates import Prompts
from evoengine.protocols import Request
from evoengine.records import Proposal, Reply

# Renders the prompt of one turn. It is called only where its text is needed: a replay needs none.
Prompt = Callable[[Prompts], str]

# Returns the reply of turn 0 or of turn 1, the repair; None where there is no reply. It raises
# RequestRefused where this prompt alone is refused; the proposal then has that as its problem.
Ask = Callable[[int, Prompt], Awaitable[Reply | None]]


class Conversation:
    """At most two turns about one request, by the operator of `choice`.

    `refuse` raises CandidateError for code that may not be compiled; its words go into the repair
    turn.
    """

    def __init__(self, request: Request, choice: OperatorChoice, ask: Ask, refuse: Refuse) -> None:
        self._request = request
        self._choice = choice
        self._ask = ask
        self._refuse = refuse

    async def proposal(self) -> Proposal:
        """The candidate in the replies, or a Proposal that says why there is none."""
        operator = self._choice.operator
        try:
            reply = await self._ask(0, self._first_prompt)
        except RequestRefused as refused:
            return self._proposal(operator, _without_kernel(f"no reply: {refused}"))
        if reply is None:
            return self._proposal(operator, _without_kernel("no reply"))
        parsed = self._read(reply)
        if parsed.source is None:
            parsed = await self._repaired(reply, parsed)
            operator = "repair" if parsed.source else operator
        return self._proposal(operator, parsed)

    def _first_prompt(self, prompts: Prompts) -> str:
        return prompts.render(self._choice, self._request).text

    async def _repaired(self, reply: Reply, parsed: ParsedReply) -> ParsedReply:
        """The second reply, parsed; `parsed`, the first one, where there is no second."""

        def repair_prompt(prompts: Prompts) -> str:
            return prompts.repair(self._choice, self._request, reply, parsed).text

        try:
            second = await self._ask(1, repair_prompt)
        except RequestRefused as refused:
            why = f"no reply to the request to repair it: {refused}"
            first, *more = parsed.problem.splitlines()
            return replace(parsed, problem="\n".join([f"{first}; {why}", *more]))
        return self._read(second) if second else parsed

    def _read(self, reply: Reply) -> ParsedReply:
        return parsed_reply.read(reply, self._request, self._refuse)

    def _proposal(self, operator: str, parsed: ParsedReply) -> Proposal:
        return parsed.proposal(operator, self._choice.trials)


def _without_kernel(problem: str) -> ParsedReply:
    return ParsedReply(kernel=None, problem=problem, insight="", name="")
