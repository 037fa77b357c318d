"""What an online softmax forgets: to rescale sums that lie in arrays, to keep the new maximum, to
weigh a part by its maximum, to guard rows that see no key, to scale the scores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_EXPONENTIAL = re.compile(r"\b(?:\w*exp2?\w*|ex2\w*)\s*\(")
_LARGER = re.compile(r"f?max\w*\(")
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLACE = r"[A-Za-z_]\w*(?:\.\w+|\[[^\[\]]*\])*"
_DIFFERENCE = re.compile(rf"\b\w*ex(?:p|2)\w*\(({_PLACE}) - ({_PLACE})\)")
_COMPARED = re.compile(r"\w+ (<|<=|>|>=) \w+")
_MOST_PLACES = 4  # behind which a statement may stand
_MOST_FACTORS = 3
_MOST_CONDITIONS = 3
_MOST_OTHERS = 8  # factors of other updates
_BEGINS, _ENDS = frozenset(("=", "(", "return", ",", ":")), frozenset((";", ")", ","))
_HEAD_SIZES = {"32": "0.17677670f", "64": "0.125f", "128": "0.08838835f"}  # one by their root

Range = tuple[int, int]


def rescaled_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Updates by an exponential that are missing, and guards of one; factors of other updates."""
    yield from _as_another(code)
    if not _EXPONENTIAL.search(code.tokens.code):
        return
    blocks = StatementBlocks(code)
    factors = [
        item
        for item, value in first_values(code)
        if item.sort == "float" and _EXPONENTIAL.match(code.tokens.source(*value))
    ]
    yield from _elements(code, blocks, factors)
    yield from _by_elements(code, blocks, factors)
    yield from _in_loops(code, blocks)
    yield from _kept(code, blocks)
    yield from _weighed(code, factors)
    yield from _without_keys(code)
    yield from _empty_sums(code)
    yield from _masked(code)
    yield from _scaled(code)
    yield from _turned(code)
    yield from _from_another(code)
    yield from _ones(code)


def _ones(code: KernelCode) -> Iterator[SourceChange]:
    """`total += 1.0f` made `total += share`: the sum of weights, not their number."""
    tokens = code.tokens
    for first, last in code.statements:
        if tokens.text(last - 1) in ("1.0f", "1.f", "1") and tokens.text(last - 2) == "+=":
            near = [it for it in code.visible(first, "float") if it.name != tokens.text(first)]
            for item in [it for it in near if not it.is_parameter][:_MOST_FACTORS]:
                yield code.replaced(
                    last - 1, last - 1, item.name, "number of weights for their sum"
                )


def _turned(code: KernelCode) -> Iterator[SourceChange]:
    """`exp(new - old)` made `exp(old - new)`."""
    for found in _DIFFERENCE.finditer(code.tokens.code):
        span = found.start(1) + code.offset, found.end(2) + code.offset
        new = f"{found[2]} - {found[1]}"
        yield SourceChange(*span, new, "difference the wrong way round")


def _from_another(code: KernelCode) -> Iterator[SourceChange]:
    """`exp(theirs - own)` made `exp(theirs - top)`: what another exponential subtracts, or what is
    the larger one of two.
    """
    found = list(_DIFFERENCE.finditer(code.tokens.code))
    largest = [
        item.name
        for item, value in first_values(code)
        if item.sort == "float" and _LARGER.match(code.tokens.source(*value))
    ]
    for one in found:
        others = [*largest, *(other[2] for other in found)]
        place, _ = code.token_places(*one.span(2)) or (0, 0)
        visible = {item.name for item in code.names.visible(place)}
        for name in dict.fromkeys(others):
            if name not in (one[1], one[2]) and set(_NAME.findall(name)) <= visible:
                span = one.start(2) + code.offset, one.end(2) + code.offset
                yield SourceChange(*span, name, "difference from another")


def _sums(code: KernelCode, blocks: StatementBlocks) -> Iterator[DeclaredName]:
    """The arrays of a thread's own that are added to and never multiplied."""
    text = code.tokens.code
    for item in code.names.all:
        if item.sort != "array" or item.is_parameter or blocks.is_shared(item):
            continue
        if not code.function_places[item.position]:
            continue
        element = rf"\b{item.name}(\[[^\[\]]*\])+"
        if not re.search(rf"{element} \*=|{element} = {element} \*", text):
            yield item


def _elements(
    code: KernelCode, blocks: StatementBlocks, factors: list[DeclaredName]
) -> Iterator[SourceChange]:
    """`total[h] *= shrink` behind the factor, where total[h] is added to."""
    for item in _sums(code, blocks):
        found = re.findall(rf"\b{item.name}\[([^\[\]]*)\] \+=", code.tokens.code)
        for factor in factors:
            if not item.position < factor.position <= item.last:
                continue
            block = code.tokens.enclosing[factor.position]
            names = {one.name for one in code.names.visible(factor.position)}
            behind = [it.last for it in blocks.items(block) if it.last > factor.position]
            for index in dict.fromkeys(found):
                if set(re.findall(r"[A-Za-z_]\w*", index)) <= names:
                    for place in behind[:_MOST_PLACES]:
                        new = f" {item.name}[{index}] *= {factor.name};"
                        yield code.inserted(place, new, "rescaling of an element missing")


def _by_elements(
    code: KernelCode, blocks: StatementBlocks, factors: list[DeclaredName]
) -> Iterator[SourceChange]:
    """`sum[o] *= factors[g]` before the loop that adds to sum[o]; the factors are shared."""
    tokens = code.tokens
    names = "|".join(item.name for item in factors) or "evo_none"
    given = re.findall(rf"(\w+)\[[^\[\]]*\] = (?:{names});", tokens.code)
    for item in _sums(code, blocks):
        for first, _ in code.statements if given else ():
            end = code.extents.postfix(first)
            if code.names.at(first) != item or tokens.text(end + 1) != "+=":
                continue
            target, place = tokens.source(first, end), first - 1
            while tokens.text(place) == ")" and tokens.text(tokens.partners[place] - 1) == "for":
                place = tokens.partners[place] - 2
            near = [it.name for it in code.visible(place + 1, "int") if not it.is_parameter]
            for array in dict.fromkeys(given):
                for index in [name for name in near if not name.isupper()][:_MOST_FACTORS]:
                    new = f" {target} *= {array}[{index}];"
                    yield code.inserted(place, new, "rescaling of an element missing")


def _in_loops(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`for c, for e: sum[c][e] *= shrink[e / 2]`, the factors of two rows in an array."""
    text, tokens = code.tokens.code, code.tokens
    given = list(dict.fromkeys(re.findall(r"\b(\w+)\[[^\[\]]*\] = \w*ex(?:p|2)\w*\(", text)))
    for item in _sums(code, blocks) if given else ():
        sizes = re.match(r"\w+\[([^\[\]]+)\]\[([^\[\]]+)\]", tokens.code[_start(code, item) :])
        if sizes is None:
            continue
        heads = [_loop_heads(text, size) for size in sizes.groups()]
        chosen = [
            (*outer, *inner, found[1])
            for outer in heads[0][:1]
            for inner in heads[1]
            if (found := re.search(rf"\[({inner[1]} / \d+)\]", text)) and inner != outer
        ]
        for outer, one, inner, other, index in chosen[:1]:
            for array in given:
                new = f" {outer} {inner} {item.name}[{one}][{other}] *= {array}[{index}];"
                for place in _behind_last(code, blocks, array) if array != item.name else ():
                    yield code.inserted(place, new, "rescaling of an element missing")


def _start(code: KernelCode, item: DeclaredName) -> int:
    return code.tokens.span(item.position, item.position)[0]


def _loop_heads(text: str, size: str) -> list[tuple[str, str]]:
    """The heads of the kernel's loops over so many, each with its variable."""
    found = re.finditer(rf"for \(int (\w+) = 0; \1 < {re.escape(size)}; \+\+\1\)", text)
    return list(dict.fromkeys((head[0], head[1]) for head in found))


def _behind_last(code: KernelCode, blocks: StatementBlocks, array: str) -> list[int]:
    """The ends of the statements of a loop from the one that gives an array its values on."""
    tokens = code.tokens
    for first, _ in reversed(code.statements):
        end = code.extents.postfix(first)
        if tokens.text(first) != array or tokens.text(end + 1) != "=":
            continue
        found: list[int] = []
        block = tokens.enclosing[first]
        while block >= 0 and tokens.text(block) == "{" and len(found) <= _MOST_PLACES:
            behind = [it.last for it in blocks.items(block) if it.last >= first]
            found += behind[:_MOST_PLACES]
            block = tokens.enclosing[block]
        return found
    return []


def _kept(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`top = higher` behind `exp(top - higher)`, where nothing gives top another value."""
    tokens, text = code.tokens, code.tokens.code
    for first, last in code.statements:
        for old, newer in _DIFFERENCE.findall(tokens.source(first, last)):
            root = old.partition("[")[0]
            items = [
                it for it in code.names.by_name.get(root, ()) if it.position < first <= it.last
            ]
            is_state = any(not it.is_parameter and not blocks.is_constant(it) for it in items)
            is_kept = re.search(rf"\b{root}(\[[^\[\]]*\])* = (?!-|\{{|lowest|minus)", text)
            if not is_state or is_kept or old == newer:
                continue
            block = tokens.enclosing[first]
            behind = [it.last for it in blocks.items(block) if it.last >= last]
            for place in behind[:_MOST_PLACES]:
                yield code.inserted(place, f" {old} = {newer};", "new maximum not kept")


def _weighed(code: KernelCode, factors: list[DeclaredName]) -> Iterator[SourceChange]:
    """`total += totals[s]` made `total += factor * totals[s]`, behind the factor of part s."""
    tokens = code.tokens
    names = {item.name for item in factors}
    for factor in factors:
        for first, last in code.statements:
            end = code.extents.postfix(first)
            is_sum = tokens.text(end + 1) == "+=" and code.names.at(first) is not None
            if not factor.position < first <= last <= factor.last or not is_sum:
                continue
            value = end + 2, last - 1
            own = {tokens.text(place) for place in range(value[0], value[1] + 1)}
            if not own & names and "shfl" not in tokens.source(*value):
                new = f"{factor.name} * ({tokens.source(*value)})"
                yield code.replaced(*value, new, "weight by the maximum missing")


def _without_keys(code: KernelCode) -> Iterator[SourceChange]:
    """`base = top` made `top == -INFINITY ? 0.0f : top`, which is subtracted in exponents."""
    tokens = code.tokens
    for item, value in first_values(code):
        text = tokens.source(*value)
        is_place = item.sort == "float" and re.fullmatch(_PLACE, text)
        if is_place and re.search(rf"\bex?\w*\([^;]* - {item.name}\)", code.scope(item)):
            new = f"{text} == -INFINITY ? 0.0f : {text}"
            yield code.replaced(*value, new, "guard of a row without keys missing")


def _empty_sums(code: KernelCode) -> Iterator[SourceChange]:
    """`1.0f / sum` made `(sum > 0.0f ? 1.0f / sum : 0.0f)`: nothing may have been added."""
    tokens = code.tokens
    for place in range(len(tokens)):
        is_quotient = tokens.text(place - 1) == "/" and code.function_places[place]
        item = code.names.at(place) if is_quotient else None
        last = code.extents.postfix(place)
        if item is None or item.sort not in ("float", "array") or item.is_parameter:
            continue
        first, _ = code.extents.operand_before(place - 1)
        value, sum_ = tokens.source(first, last), tokens.source(place, last)
        is_whole = tokens.text(first - 1) in _BEGINS and tokens.text(last + 1) in _ENDS
        if is_whole and "?" not in value:
            new = f"({sum_} > 0.0f ? {value} : 0.0f)"
            yield code.replaced(first, last, new, "guard of an empty sum missing")


def _masked(code: KernelCode) -> Iterator[SourceChange]:
    """`exp(score - top)` made `key < end ? exp(score - top) : 0.0f`."""
    tokens = code.tokens
    known = [
        pair
        for pair in code.conditions
        if _COMPARED.fullmatch(tokens.source(*pair)) and code.loop_of(pair[0]) is None
    ]
    for first, last in code.values:
        if not _EXPONENTIAL.match(tokens.source(first, last)) or tokens.text(last + 1) == ":":
            continue
        near = sorted(known, key=lambda pair: abs(pair[0] - first))
        fitting = [pair for pair in near if code.can_stand(*pair, first)]
        texts = dict.fromkeys(tokens.source(*pair) for pair in fitting)
        for condition in list(texts)[:_MOST_CONDITIONS]:
            new = f"{condition} ? {tokens.source(first, last)} : 0.0f"
            yield code.replaced(first, last, new, "weight of what is masked")


def _scaled(code: KernelCode) -> Iterator[SourceChange]:
    """`score *= scale` behind the sum over the lanes that makes a score."""
    tokens = code.tokens
    numbers = Counter(token.text for token in tokens.tokens if token.text in _HEAD_SIZES)
    for first, last in code.statements:
        found = re.match(r"(\w+) \+= __shfl\w*\(", tokens.source(first, last))
        if found is None or re.search(rf"\b{found[1]} \*=|\b{found[1]} \* \w", tokens.code):
            continue
        if not re.search(rf"\([^;]*\b{found[1]} - |fmaxf?\([^;]*\b{found[1]}\b", tokens.code):
            continue
        scales = [
            item.name
            for item in code.visible(first, "float")
            if item.is_parameter and "scale" in item.name.lower()
        ]
        for scale in (*scales, *(_HEAD_SIZES[size] for size, _ in numbers.most_common())):
            new = f" {found[1]} *= {scale};"
            yield code.inserted(last, new, "scores that nothing scales")


def _as_another(code: KernelCode) -> Iterator[SourceChange]:
    """An element that is set, or added, times what another statement multiplies by."""
    tokens = code.tokens
    factors: dict[str, tuple[int, int]] = {}
    for first, last in code.statements:
        sign = next((at for at in range(first, last) if tokens.text(at) == "*="), None)
        if sign is not None and last - 1 > sign + 1:
            factors.setdefault(tokens.source(sign + 1, last - 1), (sign + 1, last - 1))
    for first, last in code.statements:
        sign = next((at for at in range(first, last) if tokens.text(at) in ("=", "+=")), None)
        if sign is None or not code.function_places[sign]:
            continue
        value = sign + 1, last - 1
        if value[0] > value[1] or code.extents.postfix(value[0]) != value[1]:
            continue
        for text, span in list(factors.items())[:_MOST_OTHERS]:
            if text not in tokens.source(*value) and code.can_stand(*span, last):
                yield code.inserted(value[1], f" * {text}", "factor missing, of another update")
