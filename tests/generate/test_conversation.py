"""A conversation: prompt, reply and repair, whatever the source of the replies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine.evaluate.compile.includes import check_includes
from evoengine.generate.circuit_breaker import RequestRefused
from evoengine.generate.conversation import Conversation, Prompt
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.parsed_reply import ParsedReply
from evoengine.generate.prompt_templates import Prompts
from evoengine.records import Proposal, Reply
from tests.generate.row_sums_task import evaluated, kernel, request

GOOD = f"```\n{kernel('wanted')}```"
BAD = "no kernel here"
PARENT = evaluated(3)

Answer = str | None | Exception


class Answers:
    """Answers the turns of a conversation one after another, as `ask`."""

    def __init__(self, task_path: Path, *answers: Answer) -> None:
        self.prompts: list[str] = []
        self._templates = Prompts(task_path)
        self._answers = answers

    async def ask(self, turn: int, prompt: Prompt) -> Reply | None:
        self.prompts.append(prompt(self._templates))
        assert turn == len(self.prompts) - 1
        answer = self._answers[turn]
        if isinstance(answer, Exception):
            raise answer
        return None if answer is None else Reply(model="m", prompt="p", text=answer)


def converse(task_path: Path, answers: Answers) -> Proposal:
    choice = OperatorChoice("mutate", "fp32", (PARENT,))
    asked = request(task_path, elites=(PARENT,))
    return asyncio.run(Conversation(asked, choice, answers.ask, check_includes).proposal())


def test_a_usable_first_reply_ends_it(task_path: Path) -> None:
    answers = Answers(task_path, GOOD)
    proposal = converse(task_path, answers)
    assert (proposal.operator, proposal.parents, proposal.source) == (
        "mutate",
        (3,),
        kernel("wanted"),
    )
    assert "Make this kernel faster." in answers.prompts[0]


def test_the_repair_prompt_holds_the_first_one_the_reply_and_its_problem(task_path: Path) -> None:
    answers = Answers(task_path, BAD, GOOD)
    proposal = converse(task_path, answers)
    assert (proposal.operator, proposal.parents, proposal.label) == ("repair", (3,), "wanted")
    first, second = answers.prompts
    assert second.startswith(first)
    assert BAD in second and "the reply holds no code block" in second


def test_the_repair_prompt_of_a_kernel_holds_the_task_and_this_kernel_only(task_path: Path) -> None:
    unknown = kernel("wanted").replace("precision: fp32", "precision: fp99")
    answers = Answers(task_path, f"```cuda\n{unknown}```", GOOD)
    assert converse(task_path, answers).operator == "repair"
    first, second = answers.prompts
    common = first[: first.index("# What to think about")]
    assert second.startswith(common) and unknown in second and "no tier" in second
    assert PARENT.source not in second and "Make this kernel faster." not in second
    assert len(second) < len(first)


def test_a_reply_that_was_cut_is_repaired_with_the_whole_first_prompt(task_path: Path) -> None:
    asked, choice = (
        request(task_path, elites=(PARENT,)),
        OperatorChoice("mutate", "fp32", (PARENT,)),
    )
    prompts = Prompts(task_path)
    reply = Reply(model="m", prompt="p", text="", finish_reason="length")
    found = prompts.repair(choice, asked, reply, ParsedReply(kernel(), "cut", "", "")).text
    assert found.startswith(prompts.render(choice, asked).text)
    assert "The reply was cut because it became too long." in found


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ((None,), "no reply"),
        ((RequestRefused("too long"),), "no reply: too long"),
        ((BAD, None), "the reply holds no code block; expected one fenced block"),
        (
            (BAD, RequestRefused("too long")),
            "the reply holds no code block; expected one fenced block",
        ),
        ((BAD, ""), "the reply is empty"),
    ],
    ids=["no reply", "refused", "no second reply", "repair refused", "second without kernel"],
)
def test_without_a_usable_reply_the_proposal_says_why_and_keeps_its_operator(
    task_path: Path, answers: tuple[Answer, ...], problem: str
) -> None:
    proposal = converse(task_path, Answers(task_path, *answers))
    assert (proposal.operator, proposal.parents, proposal.source) == ("mutate", (3,), None)
    assert proposal.problem.startswith(problem)
    refused = any(isinstance(answer, RequestRefused) for answer in answers)
    assert proposal.problem.endswith("too long") == refused
