"""The files of one trial: its prompts, its replies, its kernel, its verdicts and its races."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.errors import CandidateError
from evoengine.records import Proposal
from evoengine.report import as_json
from evoengine.report.elite_files import race_documents
from evoengine.report.error_map_svg import svg_of
from evoengine.report.stored_trials import StoredTrials

WRITTEN_LAST = "verdict.json"  # written last: a folder that has it is complete


def trial_texts(number: int, stored: StoredTrials) -> dict[str, str]:
    """Name to text of every file in the trial's folder, `WRITTEN_LAST` at the end; empty for a
    trial without a verdict.
    """
    proposal, first, verified = (
        stored.proposal_of(number),
        stored.first_verdict_of(number),
        stored.verification_of(number),
    )
    if proposal is None or first is None:
        return {}
    files: dict[str, str] = {}
    for turn, reply in enumerate(stored.replies_of(number), start=1):
        suffix = "" if turn == 1 else f"_{turn}"
        files[f"prompt{suffix}.md"] = reply.prompt
        files[f"reply{suffix}.md"] = reply.text
    if proposal.source is not None:
        files["kernel.cu"] = as_tried(proposal, proposal.source)
    last = verified or first
    if last.forensics is not None and (svg := svg_of(last.forensics, f"trial {number}")):
        files["error_map.svg"] = svg
    if verified is not None:
        files["verdict_first.json"] = as_json.dumps(first) + "\n"
    if races := stored.races_of(number):
        files["races.json"] = (
            as_json.dumps({"trial": number, "races": race_documents(races)}) + "\n"
        )
    about = proposal.model_dump(mode="json", exclude={"source"})
    return {
        **files,
        WRITTEN_LAST: as_json.dumps({"trial": number, "proposal": about, "verdict": last}) + "\n",
    }


def as_tried(proposal: Proposal, source: str) -> str:
    """The source with the chosen tunables first; unchanged if its header cannot be used."""
    try:
        return kernel_file.parse(source).tuned(proposal.tunables).with_defaults()
    except CandidateError:
        return source
