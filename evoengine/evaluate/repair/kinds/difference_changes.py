"""Changes back to what a like kernel has, one that is right: each place where the two differ.

Most wrong kernels are edits of a right one, and one of the edits is the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.source_tokens import Token, TokenList

AS_A_LIKE_KERNEL = "as a like kernel has it"
LIKE_SHARE = 0.5  # of the lines of two kernels that are the same, in the same order
MOST_PLACES = 200  # in which they may differ
MOST_PAIRS = 900  # of lines that are compared in one block
SAME_LINE = 0.5  # of the tokens of two lines, to take one for the other changed
NEAR = 8  # tokens between two differences that may be one edit
_PLAN_TOKEN = re.compile(r"#[^\n]*|^[ \t]*(?:name|summary):[^\n]*|(?P<token>\w+|\S)", re.MULTILINE)

_Line = tuple[str, ...]  # the texts of its tokens
_Place = tuple[int, int, int, int]  # first token and the one behind the last: own ones, the like's


def difference_changes(candidate: Candidate, like: Candidate) -> Iterator[SourceChange]:
    """Each place where `candidate` differs from `like`, with what stands there in its place; those
    that are near one another also together. None where the two have little in common.
    """
    own, other = _tokens(candidate), _tokens(like)
    places = _places(_lines(candidate, own), _lines(like, other), own, other)
    if len(places) > MOST_PLACES:
        return
    for begin, end, first, last in places:
        start = own[begin].start if begin < end else own[begin - 1].end if begin else 0
        stop = own[end - 1].end if begin < end else start
        # what is missing comes with what stands between it and the token before
        left = other[first - 1].end if begin == end and first else other[first].start
        new = like.source[left : other[last - 1].end] if first < last else ""
        yield SourceChange(start, stop, new, AS_A_LIKE_KERNEL, like=like.plan.name)


def _tokens(candidate: Candidate) -> list[Token]:
    """The tokens of the launch plan and of the device code, with their places in the source."""
    source = candidate.source
    offset = len(source) - len(candidate.code.lstrip("\n"))
    plan = [
        Token("plan", found["token"], found.start())
        for found in _PLAN_TOKEN.finditer(source, 0, offset)
        if found["token"]
    ]
    code = TokenList(source[offset:]).tokens
    return [*plan, *(Token(item.kind, item.text, item.start + offset) for item in code)]


def _lines(candidate: Candidate, tokens: Sequence[Token]) -> list[int]:
    """The positions of the tokens that begin a line, and the number of tokens."""
    starts = [0]
    for position, (before, token) in enumerate(pairwise(tokens), start=1):
        if "\n" in candidate.source[before.end : token.start]:
            starts.append(position)
    return [*starts, len(tokens)]


def _places(
    own_lines: list[int], other_lines: list[int], own: list[Token], other: list[Token]
) -> list[_Place]:
    """Lines that differ, the tokens within them that do, and those that are near one another; none
    where too few lines are the same.
    """
    texts = _texts_of_lines(own, own_lines), _texts_of_lines(other, other_lines)
    matcher = SequenceMatcher(None, *texts, autojunk=False)
    alike = sum(block.size for block in matcher.get_matching_blocks())
    if alike < LIKE_SHARE * (max(len(own_lines), len(other_lines)) - 1):
        return []
    found: list[_Place] = []
    for tag, begin, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        for one, behind, two, past in _pairs(texts[0][begin:end], texts[1][first:last]):
            own_range = own_lines[begin + one], own_lines[begin + behind]
            pair = (*own_range, other_lines[first + two], other_lines[first + past])
            found += [*_within(pair, own, other), pair]
        found.append((own_lines[begin], own_lines[end], other_lines[first], other_lines[last]))
    return sorted(dict.fromkeys(found))


def _pairs(own: list[_Line], other: list[_Line]) -> list[_Place]:
    """Lines that differ beside those of the like kernel that they were, or that it alone has: runs
    of lines, first one and the one behind the last of both.
    """
    if len(own) * len(other) > MOST_PAIRS:
        return [(0, len(own), 0, len(other))]
    alike = [[_share(one, two) for two in other] for one in own]
    # the best sum of shares that lines from here on can have, each paired with at most one
    best = [[0.0] * (len(other) + 1) for _ in range(len(own) + 1)]
    for i in range(len(own) - 1, -1, -1):
        for j in range(len(other) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], alike[i][j] + best[i + 1][j + 1])
    found: list[_Place] = []
    i = j = begin = first = 0
    while i < len(own) and j < len(other):
        if alike[i][j] and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            found += [(begin, i, first, j), (i, i + 1, j, j + 1)]
            i, j = i + 1, j + 1
            begin, first = i, j
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    found.append((begin, len(own), first, len(other)))
    return [place for place in found if place[0] < place[1] or place[2] < place[3]]


def _share(own: _Line, other: _Line) -> float:
    """How much of two lines is the same; 0 where it is little."""
    share = SequenceMatcher(None, own, other, autojunk=False).ratio()
    return share if share >= SAME_LINE else 0.0


def _within(block: _Place, own: list[Token], other: list[Token]) -> list[_Place]:
    """The tokens that differ in lines that do, and those that are near one another as one."""
    begin, end, first, last = block
    texts = _texts(own[begin:end]), _texts(other[first:last])
    matcher = SequenceMatcher(None, *texts, autojunk=False)
    apart = [
        (begin + item[1], begin + item[2], first + item[3], first + item[4])
        for item in matcher.get_opcodes()
        if item[0] != "equal"
    ]
    joined: list[_Place] = []
    for place in apart:
        if joined and place[0] - joined[-1][1] <= NEAR:
            place = (joined[-1][0], place[1], joined.pop()[2], place[3])
        joined.append(place)
    return [*apart, *joined]


def _texts(tokens: Sequence[Token]) -> list[str]:
    return [token.text for token in tokens]


def _texts_of_lines(tokens: list[Token], lines: list[int]) -> list[_Line]:
    return [tuple(_texts(tokens[first:behind])) for first, behind in pairwise(lines)]
