"""One thing that an analysis found out about a wrong output."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import JsonValue

from evoengine.records import Diagnosis, DiagnosisKind

# Words with which sentences begin, and no names.
BEGINNINGS = frozenset(
    (
        "along",
        "the",
        "a",
        "each",
        "half",
        "masked",
        "exp2",
        "perhaps",
        "probably",
        "neighbouring",
        "rows",
        "inside",
        "in",
        "when",
        "only",
        "where",
        "what",
    )
)
WHOLE = 0.98  # a lead that explains this share of the wrong elements explains the output


@dataclass(frozen=True)
class Lead:
    """A finding before it is ranked; `share` of the wrong elements follows from it.

    `weight` says how telling it is beside others of the same share: 1 for an explanation that
    reproduces the output, more for a fact about launches, less for a description.
    """

    kind: DiagnosisKind
    sentence: str
    share: float
    weight: float = 1.0
    evidence: dict[str, JsonValue] = field(default_factory=dict)
    # whether it is a mistake that would also change what is right: it was made in some places alone
    is_of_some: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it explains every wrong element, but for a few."""
        return self.share >= WHOLE

    @property
    def rank(self) -> float:
        """Greater is more telling."""
        return self.weight * self.share + (0.1 * self.weight if self.is_whole else 0.0)

    def diagnosis(self) -> Diagnosis:
        """The record of it."""
        return Diagnosis(
            kind=self.kind,
            sentence=self.sentence,
            share=round(self.share, 4),
            evidence=self.evidence,
        )


def figure(value: float) -> str:
    """A number in three digits."""
    return f"{value:.3g}"


def begun(said: str) -> str:
    """A sentence: what begins with a name or a number stays as it is written."""
    return said[0].upper() + said[1:] if said.split()[0] in ("the", "in", "for", "keys") else said


def capital(said: str) -> str:
    """A sentence; what begins with a name or a sign stays as it is written."""
    first = said.split(maxsplit=1)[0].rstrip(":,")
    return said[0].upper() + said[1:] if first in BEGINNINGS else said


def step_lead(said: str, share: float, where: str) -> Lead:
    """That a step is done as `said`, which explains a share of the output; `where` names it."""
    sure = share >= WHOLE
    return Lead(
        DiagnosisKind.changed_step,
        f"{begun(said) if sure else f'Probably {said}'}: the output"
        f" {'equals' if sure else 'is nearly'} the reference with it so ({where}).",
        share,
        1.0,
        {"step": where},
    )
