"""What prompts say of a wrong output."""

from __future__ import annotations

from evoengine.generate.prompt_context import MAX_DIAGNOSIS_WORDS, diagnosis_lines
from evoengine.records import Diagnosis, DiagnosisKind, Forensics, Status, Verdict
from tests.small import small_task


def verdict(*sentences: str) -> Verdict:
    kinds = list(DiagnosisKind)
    diagnoses = tuple(
        Diagnosis(kind=kinds[number], sentence=words, share=1.0)
        for number, words in enumerate(sentences)
    )
    found = Forensics(case="plain", distribution="normal", output="out", diagnoses=diagnoses)
    return Verdict(status=Status.wrong_result, reason="wrong", forensics=found)


def test_sentences_come_whole_and_in_their_order_up_to_the_limit() -> None:
    sentences = [f"Sentence {number} {'word ' * 38}ends." for number in range(4)]
    lines = list(diagnosis_lines(verdict(*sentences), small_task()))
    assert [line.split()[1] for line in lines] == ["0", "1"]
    assert sum(len(line.split()) for line in lines) <= MAX_DIAGNOSIS_WORDS


def test_what_was_found_on_a_small_case_names_it_and_a_fault_names_its_own() -> None:
    fault, other = (
        Diagnosis(kind=kind, sentence=words, share=0.0)
        for kind, words in (
            (DiagnosisKind.fault, "race: lines 3 and 4 (following every access on plain)"),
            (DiagnosisKind.sign, "Signs are reversed."),
        )
    )
    found = Forensics(case="plain with N=7", diagnoses=(fault, other, other))
    wrong = Verdict(status=Status.wrong_result, reason="wrong", forensics=found)
    lines = list(diagnosis_lines(wrong, small_task()))
    assert [line.startswith("On plain with N=7: ") for line in lines] == [False, True, False]


def test_a_verdict_without_forensics_has_no_lines() -> None:
    plain = Verdict(status=Status.wrong_result, reason="wrong")
    assert list(diagnosis_lines(plain, small_task())) == []


def test_a_stored_verdict_of_before_reads_as_one_without_forensics() -> None:
    assert Verdict.model_validate({"status": "wrong_result", "reason": "x"}).forensics is None


def test_a_line_that_mentions_a_hidden_case_loses_its_numbers() -> None:
    (line,) = diagnosis_lines(verdict("wrong in a hidden case at 77 of every 128"), small_task())
    assert not any(letter.isdigit() for letter in line)
