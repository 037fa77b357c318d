"""What changes of parts of expressions say, by their kinds, and those of the other lists."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.evaluate.repair.words.changed_text import ChangedText
from evoengine.evaluate.repair.words.count_meanings import COUNT_WORDS
from evoengine.evaluate.repair.words.place_meanings import fixed, shown
from evoengine.evaluate.repair.words.plan_meanings import PLAN_WORDS
from evoengine.evaluate.repair.words.share_meanings import SHARE_WORDS
from evoengine.evaluate.repair.words.tile_meanings import TILE_WORDS

# the kind, and what was wrong in front of the place
_FIXED = {
    "planes for turns": (
        "the index is that of another layout: all of one kind one behind the other (planes), where"
        " both kinds take turns in a stage, in"
    ),
    "number of two axes of the grid": (
        "the block's number counts two things (such as batch times channels) and is used whole: the"
        " remainder or the quotient is missing, so that reads go beyond the end, in"
    ),
    "plane of the block missing": (
        "the block's plane is left out of the index: all slices (splits) write to the same place"
        " and overwrite one another's results, in"
    ),
    "element that two variables read": (
        "two variables read the same element (of one plane or component): the step to the second"
        " plane is missing in the index, in"
    ),
    "lanes of a matrix": (
        "the wrong lanes give the addresses of a fragment (ldmatrix): the row or column of each"
        " lane follows the pattern of another operand, in"
    ),
    "one lane for all missing": (
        "a condition is missing that one lane alone does it: all lanes add the same result, which"
        " counts several times (such as 32 times), in"
    ),
    "segment of another lane": (
        "a condition is missing that the other lane belongs to the same segment (row, key): values"
        " of neighbouring segments are added too, in"
    ),
    "lane without a neighbour": (
        "the last lane (or the first) has no neighbour to shuffle from and gets its own value back:"
        " its case is missing in the condition, so that its result is never written, in"
    ),
    "lane for a thread": (
        "only the first thread of the block does what the first lane of every warp must do: the"
        " results of the other warps are lost, in"
    ),
    "barrier of another group": (
        "all groups use the same barrier (its number is not that of the group), so that warps of"
        " different groups release one another, in"
    ),
    "first values exchanged": (
        "the values of two variables are exchanged (swapped, low for high, first for second), in"
    ),
    "begin of the next part": (
        "a part (slice) does not end where the next one begins: its length is rounded down, so"
        " that elements between parts belong to none and are left out, in"
    ),
    "edge of both coordinates missing": (
        "the edge (halo, padding) is not subtracted from both coordinates: all is shifted by one"
        " row and one column, off by one, in"
    ),
    "first value that is read": (
        "the first value is taken as zero, although it must be read from memory (the neighbour"
        " before the first one of a block, its halo), in"
    ),
    "sum that begins with the lowest": (
        "a sum begins with the lowest number (minus infinity) in place of zero (wrong initial"
        " value), in"
    ),
    "largest that begins with zero": (
        "a maximum begins with zero in place of the lowest number (wrong initial value): negative"
        " ones are lost, in"
    ),
    "own number of a scan": (
        "the own value is not subtracted: the scan is inclusive where an exclusive one is meant, so"
        " that places are too far by the own count, in"
    ),
    "sign of bits that are moved": (
        "a signed integer is used where an unsigned one is meant: shifts to the right copy the"
        " sign bit (arithmetic shift), in"
    ),
    "whole numbers without a sign": (
        "an unsigned integer is used where a signed one is meant: negative numbers wrap around and"
        " become very large, in"
    ),
    "numbers taken as unsigned": (
        "numbers are cast to unsigned: negative bytes (signed codes) are taken as 128 to 255, in"
    ),
    "stride of the loop's length": (
        "the stride is wrong: it is not the number of elements that the inner index runs over, so"
        " that rows overlap (some are taken twice) and others are left out, in"
    ),
    "matrices of a load exchanged": (
        "the lanes name the second and the third 8x8 matrix of ldmatrix in exchanged order, so that"
        " the registers of a fragment are in another layout, in"
    ),
    "half of a fragment": (
        "the wrong bit of a register's number is taken: that of the column for that of the row half"
        " of a fragment, or the other way round, in"
    ),
    "sum of an index as elsewhere": (
        "the index is that of another layout: its terms (strides, pitch) are not those with which"
        " the array is written or read elsewhere, in"
    ),
    "index transposed, of an extent": (
        "the index is that of another layout: rows and columns (blocks and threads) are transposed,"
        " unlike where the array is written or read elsewhere, in"
    ),
    "numbers counted as vectors": (
        "an offset is counted in vectors where elements are meant: the factor of elements in each"
        " vector is missing, so that wrong places are read or written, in"
    ),
    "elements of each part missing": (
        "a factor is missing: the place of a thread is not multiplied by how many elements each one"
        " takes, so that threads overlap and the rest is left out, in"
    ),
    "row of vectors": (
        "the index counts vectors, but it is divided by the number of elements of a row, not of"
        " vectors (the division by 4 is missing): all fall to the first rows or channels, in"
    ),
    "remainder before a quotient missing": (
        "the remainder (modulo) is not taken before the division: the number counts all, not those"
        " within a group, so that later groups run beyond the end, in"
    ),
    "batch of a pointer missing": (
        "the batch offset of a pointer is missing: all batches (blocks) take the data of the first"
        " one, in"
    ),
    "step along the other axis": (
        "the neighbour along the wrong axis is taken: the next column where the next row is meant,"
        " or the reverse (the two indices are mixed up), in"
    ),
    "index mirrored": (
        "the index is mirrored (flipped, reversed) in both directions, such as a convolution for a"
        " correlation, in"
    ),
    "value that is given, worked out": (
        "a value that the launch gives, worked out in double precision, is computed in single"
        " precision in the kernel: too few digits are left where two numbers nearly cancel, in"
    ),
    "index behind the last": (
        "counted from the other end, the index is off by one: its 1 is not subtracted, so that it"
        " begins behind the last one and never comes to the first, in"
    ),
    "begin of the second part": (
        "the begin of the part is not subtracted: its own numbers count from zero, so that it is"
        " shifted by where it begins, in"
    ),
    "choices exchanged": (
        "the two choices of a condition are exchanged (swapped, the wrong way round, inverted), in"
    ),
    "flag of a condition missing": (
        "a condition is missing (a flag is not checked): what lies outside (or does not hold)"
        " counts too, in"
    ),
    "bytes of what lies outside": (
        "the condition is missing in the size of an asynchronous copy (bytes to read, or to fill"
        " with zeros): what lies outside is copied, not zero, in"
    ),
    "comparisons of both ends": (
        "both comparisons are off by one: the number at the edge (the boundary) falls to the wrong"
        " side, in"
    ),
    "weight of a part missing": (
        "the weight of a part (its count or sum) is missing: a term is not multiplied by it when"
        " parts are merged, in"
    ),
    "count of the last block": (
        "the count is off by one: atomicAdd returns the value before the addition, so that no block"
        " (or the wrong one) finds itself to be the last, in"
    ),
    "registers in another order": (
        "registers of a fragment are paired in the wrong order: the second and the third of four"
        " are exchanged (rows for columns), in"
    ),
    "operands of an instruction exchanged": (
        "two operands (registers) of an instruction are exchanged (in the wrong order), in"
    ),
    "end of a block's own part": (
        "each block goes on to the end of all in place of the end of its own part, so that what"
        " belongs to later ones counts several times, in"
    ),
    "leading dimension of its array": (
        "the pitch is wrong: the fragment is read or written with the leading dimension of another"
        " array, not of its own (stride of its rows in shared memory), in"
    ),
    "rows without their padding": (
        "the padding of the rows is left out (pitch, stride), so that stages or tiles overlap, in"
    ),
    "part of an array cleared": (
        "only a part of the array is cleared (set to its first value), the rest keeps what was"
        " there before (uninitialised), in"
    ),
    "groups of copies by one": (
        "the wait for asynchronous copies lets one group too many be pending (off by one): data is"
        " read before it has arrived, in"
    ),
    "name not changed in a copy": (
        "the wrong variable is used: a line was copied from the one beside it and one name was not"
        " changed (it still has that of the other), in"
    ),
    "end without its limit": (
        "a bound is missing (min): the end is not limited to the size, so that the last, incomplete"
        " part runs over the end, in"
    ),
    "offset that others add": (
        "the offset of the part is not subtracted: what is left is counted from the begin of all,"
        " not of the own part, so that too many are taken, in"
    ),
    "begin of another stage": (
        "the wrong stage of a buffer is used at first: it is the one that is read, not the last"
        " (free) one, in"
    ),
    "bits that no mask keeps": (
        "the bits above are not masked out (& is missing after a shift): they belong to the next"
        " code of the word, in"
    ),
    "pointer without its row": (
        "the pointer to the whole array is used in place of that to the own row: all take their"
        " elements from the first row, in"
    ),
    "sigmoid of another number": (
        "the sigmoid is taken of another number than the one that it is multiplied by (the wrong"
        " variable), in"
    ),
    "bits of the lanes before": (
        "the mask of the lanes before is off by one: it counts the own lane too, or leaves it out,"
        " in"
    ),
    "quotient of a size": (
        "the remainder is taken for the quotient, or the reverse (% for /): another row, head or"
        " column is meant, in"
    ),
    "one for a size in a limit": (
        "the limit is that of the last one in place of the first: where the mask begins or ends is"
        " wrong by a tile, so that hidden ones are seen, in"
    ),
}


def _shared(text: ChangedText) -> str:
    return (
        f"the launch reserves the wrong number of bytes of shared memory, such as too few (elements"
        f" for bytes, one array for two): {shown(text.old)} where {shown(text.new)} is meant, so"
        f" that writes go beyond its end, in {text.where}"
    )


def _group(text: ChangedText) -> str:
    return (
        f"the lowest bits of the lane are not cleared: {shown(text.old)} is read where"
        f" {shown(text.new)}, the first lane of its group, is meant, so that the other lanes of"
        f" the group take those of the next row, in {text.where}"
    )


def _divided(text: ChangedText) -> str:
    return (
        f"a division is missing: {shown(text.old)} is used where {shown(text.new)} is meant"
        " (several elements share one, or the index counts smaller units), so that the index runs"
        f" ahead into other rows, in {text.where}"
    )


def _byte(text: ChangedText) -> str:
    return (
        "a code is not masked to eight bits (& 255 is missing): the sign bits of a negative one"
        f" overwrite its neighbours in the word, in {text.where}"
    )


def _name(text: ChangedText) -> str:
    return (
        f"{text.old} is taken in place of {text.new} in two statements alike (the wrong variable,"
        f" stage or register), in {text.where}"
    )


def _begin(text: ChangedText) -> str:
    return (
        f"{text.old} is taken in place of {text.new}: one of them is the other and something more"
        f" (an offset), which is missing here or too many, in {text.where}"
    )


def _inverted(text: ChangedText) -> str:
    return (
        f"the condition is inverted, {text.old} is used in place of {text.new}: it holds for those"
        f" for which it must not, in {text.where}"
    )


def _length(text: ChangedText) -> str:
    return (
        f"{shown(text.old)}, the size of all, is taken where {shown(text.new)}, the length of each"
        f" one's own, is meant: what lies behind its end (padding, unused ones) counts too, in"
        f" {text.where}"
    )


EXPRESSION_MEANINGS: tuple[tuple[str, Callable[[ChangedText], str]], ...] = (
    ("shared memory of another size", _shared),
    ("length of its own for a size", _length),
    ("first lane of a group", _group),
    ("divisor of a term missing", _divided),
    ("byte of a code not cut", _byte),
    ("name for another, in statements alike", _name),
    ("name of another begin, int", _begin),
    ("comparison inverted", _inverted),
    *(
        (kind, fixed(words))
        for known in (_FIXED, PLAN_WORDS, COUNT_WORDS, TILE_WORDS, SHARE_WORDS)
        for kind, words in known.items()
    ),
)
