"""What changes say of the shares of blocks, threads and lanes, and of maxima, by their kinds."""

from __future__ import annotations

# the kind, and what was wrong in front of the place
SHARE_WORDS = {
    "weight by the maximum missing": (
        "what a part has is added without its weight: it is not rescaled to the common maximum, in"
    ),
    "guard of a row without keys missing": (
        "a row that has seen no key yet has the maximum minus infinity, from which itself is"
        " subtracted: that is not a number (NaN), a guard is missing, in"
    ),
    "guard of an empty sum missing": (
        "nothing may have been added to the sum by which is divided (a part or row whose keys are"
        " all masked, an empty one): 0 / 0 is not a number (NaN), a guard is missing, in"
    ),
    "value replaced before its difference": (
        "the old value (running maximum) is replaced before the difference from the new one is"
        " taken, which is zero then: what was summed before is not rescaled, in"
    ),
    "weight of what is masked": (
        "what is masked has a weight: where all is masked, its exponential is one and not zero, in"
    ),
    "what is stored and read nowhere": (
        "what other threads have stored (their part of a sum or maximum) is read nowhere: it is"
        " left out, in"
    ),
    "element that nothing has": (
        "one element (register, row) is used twice and another one never: the wrong number is its"
        " index, in"
    ),
    "element that it was given to": (
        "the newest value is taken where the one that was kept is meant: it was not always taken"
        " over, in"
    ),
    "share of a block in the grid": (
        "the block's first element is counted with another number of elements a block than the"
        " grid is made for, so that blocks overlap or leave some out, in"
    ),
    "share of a block in the plan": (
        "the grid is made for another number of elements a block than the kernel takes: blocks are"
        " missing, whose elements are never written, or too many, in"
    ),
    "size of the plan not rounded up": (
        "a size is not rounded up to whole tiles: the last, incomplete tile has no block or no"
        " memory, in"
    ),
    **dict.fromkeys(
        ("count of the last part, of what is worked out", "count of the last part"),
        "the last part (tile, group) is shorter than the others, and its length is not limited"
        " (min) to what is left, so that it goes beyond the end, in",
    ),
    "end of the loop for a size": (
        "the end of all is checked where the end of the own part is meant, so that what belongs to"
        " the next part is counted too, in"
    ),
    "end behind the last row": (
        "the end is at the first row of the block, not behind its last one: the last tile (the"
        " diagonal one of a mask) is left out, in"
    ),
    "step by those that share a loop": (
        "the loop begins at an own number and goes on by one: those that share it (warps, lanes)"
        " all take the same ones, which are counted several times, in"
    ),
    "as many of each": (
        "the index is not multiplied by how many elements belong to each: neighbours overlap, in"
    ),
    "row of a table missing": (
        "the row is left out of the index of a table: all sequences (batches) use that of the"
        " first one, in"
    ),
    "number of a tile for its column": (
        "the number of the block along one axis is used where that of its tile is meant: all rows"
        " of tiles share one element (counter), in"
    ),
    "unit not multiplied again": (
        "the value is divided by its unit (scale) and rounded, and not multiplied by it again, in"
    ),
    "number of another lane not fetched": (
        "a lane takes its own number where that of another lane is meant: a shuffle is missing, in"
    ),
    "value of the first lane not broadcast": (
        "lane 0 alone has the whole sum behind the shuffles, and it is not broadcast: the other"
        " lanes use their own, incomplete one, in"
    ),
    "bytes that are chosen": (
        "the selector of __byte_perm takes other bytes than are meant: those (the halves) of the"
        " other operand, or in another order, in"
    ),
    "member of the other object": (
        "the member (count, mean) of the other one of two that are merged is used, where its own is"
        " meant, or the other way round, in"
    ),
    "lanes without a part that keep theirs": (
        "lanes beyond the number of parts (warps) keep their own old value, where it must be zero"
        " (neutral): it is added to the sum of all once more, in"
    ),
    "row of the step of a loop": (
        "the step of the loop is missing from the row (the address) of a fragment: each step reads"
        " the same rows (those of the first one) again, in"
    ),
    "reduction in each round as well": (
        "the sum over the lanes is taken in each round and once more at the end, so that it is"
        " counted several times, in"
    ),
    "difference the wrong way round": (
        "a difference is the wrong way round in an exponential (new and old are exchanged, the"
        " sign is wrong), in"
    ),
    "lanes without a part": (
        "lanes that have no part are counted: there are fewer parts than lanes, and what lies"
        " behind them is added, in"
    ),
    "thread of the second group": (
        "the threads of the second group (role) do not count from their first one, so that they"
        " begin behind the first elements, in"
    ),
    "term inside of a root": (
        "a term (epsilon) is on the wrong side of a root: it is added inside where it must be"
        " added behind, or the other way round, in"
    ),
    "term inside of a quotient": (
        "a term (epsilon) is added before the division and not behind it, so that it is divided,"
        " too, and much too small, in"
    ),
    "bytes of what is left": (
        "what is left is counted in elements where bytes are meant: the factor (size of an element)"
        " is missing, the last ones (the tail) are not copied and zeros are taken for them, in"
    ),
    "terms behind a function": (
        "terms (a bias) are added behind a function where they must be added before it, in"
    ),
    "quotient as other indices have it": (
        "the remainder is taken where the quotient is meant, as in other indices, or the other way"
        " round: rows and columns of a fragment are mixed up, in"
    ),
    "number of weights for their sum": (
        "the number of the parts is counted where the sum of their weights is meant, so that it is"
        " divided by the wrong total, in"
    ),
    "term behind a limit": (
        "a term or factor is on the wrong side of a limit (minimum, maximum, rectifier): it is"
        " applied before where it must be behind, or the other way round, in"
    ),
    "quotient in brackets rounded down": (
        "the number of tiles is rounded down: the last, incomplete one is left out, in"
    ),
}
