"""The normal form of a kernel file: equal for files that differ in what a compiler never sees.

Comments, white space, the order of keys and of the values of tunables in the header, that of
includes that stand together, and the kernel's name and summary do not count. The code is compared
as preprocessing tokens (C++17, [lex.pptoken]).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest, digest_json

# What the compiler makes of these depends on the layout of the file or on a splice within them, and
# not every compiler reads the second line's like the others: digraphs, trigraphs, letters by
# number, blanks between a splice and its line's end.
_LAYOUT = re.compile(
    r'__LINE__|__COUNTER__|__builtin_(?:LINE|COLUMN)|source_location|R"'
    r"|%:|%>|:>|<%|<:(?!:)|\?\?[=/'()!<>-]|\\[uU]|\\[ \t\v\f]+\n"
)
_SPLICE = re.compile(r"\\\n")  # joins two lines before anything else is read
# Nothing here is read twice, because a hostile text would take hours: what is not closed ends with
# its line, a comment with the file. Letters are also those beyond ASCII, as every compiler takes
# some of them; whichever it does not take, a blank among them, is told apart from others all the
# same.
_TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*(?s:.*?)(?:\*/|\Z))
    | (?P<text>(?:u8|[uUL])?(?:"(?:[^"\\\n]|\\.)*+(?:"[\w$]*+)?|'(?:[^'\\\n]|\\.)*+(?:'[\w$]*+)?))
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[A-Za-z0-9_$\x80-\U0010ffff]|\.)*+)
    | (?P<word>[A-Za-z_$\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*+)
    | (?P<line>\n)
    | (?P<blank>[ \t\v\f\r]++)
    | (?P<sign><<=|>>=|<=>|->\*|\.\*|\.\.\.|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|->|\+=|-=|\*=|/=|%=
        |&=|\|=|\^=|::|\#\#|.)
    """,
    re.VERBOSE,
)


def normal_digest(candidate: Candidate) -> str:
    """The digest of the normal form, without the chosen values of the tunables. Which of the values
    stands first, and is thus chosen unless another one is, does not count either.
    """
    plan = candidate.plan.model_dump(mode="json", exclude={"name", "summary"})
    plan["tunables"] = {name: sorted(values) for name, values in plan["tunables"].items()}
    code = _SPLICE.sub("", candidate.code)
    pieces = [] if _LAYOUT.search(code) else list(_pieces(code))
    if not pieces or any(map(_makes_tokens, pieces)):
        return digest(digest_json(plan), candidate.code)
    ordered = (
        sorted(group) if together else group
        for together, group in itertools.groupby(pieces, key=_includes)
    )
    return digest(
        digest_json(plan), *(token for group in ordered for piece in group for token in piece)
    )


def _makes_tokens(piece: tuple[str, ...]) -> bool:
    """Whether it defines a macro that makes text of its arguments, blanks included, or one token of
    two, perhaps one of _LAYOUT.
    """
    return piece[1:2] == ("#",) and ("#" in piece[2:] or "##" in piece[2:])


def _includes(piece: tuple[str, ...]) -> bool:
    return piece[1:3] == ("#", "include")


def _pieces(code: str) -> Iterator[tuple[str, ...]]:
    """The tokens of each directive, between line breaks, and of the code between two of them."""
    tokens: list[str] = []
    in_directive, begins_line, after_blank = False, True, False
    for match in _TOKEN.finditer(code):
        kind, word = match.lastgroup, match[0]
        if kind in ("blank", "comment"):
            after_blank = True
            continue
        if kind == "line":
            if in_directive:
                yield (*tokens, "\n")
                tokens = []
            in_directive, begins_line, after_blank = False, True, False
            continue
        if begins_line and word == "#":
            if tokens:
                yield tuple(tokens)
            tokens, in_directive = ["\n"], True
        elif in_directive and word == "(" and after_blank:
            tokens.append(" ")  # a macro with parameters has its bracket right after the name
        begins_line = after_blank = False
        tokens.append(word)
    yield tuple(tokens)
