"""What changes of counts, steps, lanes and updates say, by their kinds."""

from __future__ import annotations

# the kind, and what was wrong in front of the place
COUNT_WORDS = {
    "value before its update": (
        "the old value, from before its update, is used where the new, updated one is meant, in"
    ),
    "elements for bytes": (
        "a number of elements is taken for a number of bytes: the factor for the bytes of an"
        " element (sizeof) is missing, so that only a part is copied, in"
    ),
    "summand of elements among bytes": (
        "a summand counts elements where the others are in bytes: the factor for the bytes of an"
        " element (sizeof, 2 for halves) is missing, so that warps or lanes read or write"
        " overlapping places, in"
    ),
    "size without its padding": (
        "the size (pitch, stride) is that without the padding: the array has whole tiles, rounded"
        " up, so that its rows or heads lie further apart, in"
    ),
    "begin of another round": (
        "what goes round must begin at 0 again (wrap around): it goes on at another place, so that"
        " some parts (slices, stages) are left out and others taken twice, in"
    ),
    "quotient by another number for a remainder": (
        "the quotient and the remainder are confused (/ for %), and by the wrong number: the lane"
        " or register of another layout is taken, in"
    ),
    "mask of other lanes in asm": (
        "the mask has the wrong lanes (those below without the own one, or with it; strictly below"
        " for up to): the own lane is missing or too many, in"
    ),
    "reset missing, of a sibling": (
        "a variable beside it is not set back (reset, cleared): it keeps what was added before, in"
    ),
    "begin of a halving loop": (
        "the reduction begins one step too wide (or too narrow): the first step (stride, distance)"
        " is twice or half of what is meant, so that lanes of another group or row are added, or"
        " some are left out, in"
    ),
    "layout and leading dimension of another": (
        "the matrix is loaded or stored in the other layout (row-major for column-major,"
        " transposed), with the leading dimension that belongs to it, so that rows get the values"
        " of other rows, in"
    ),
    "factor of a digit missing": (
        "the factor is missing by which one of the two counts (the number of warps, parts or"
        " links): steps (rounds, blocks) overlap, so that some parts are taken several times and"
        " others never, in"
    ),
    "next in a product": (
        "one more or one less is meant in the product (an exponent, a bound by one): the result is"
        " too large or too small by a constant factor or step, in"
    ),
    "one thread where several are meant": (
        "only one thread (the first) does what as many must do as there are rows or parts: the"
        " others are left as they were, not cleared (never initialised, never written), in"
    ),
    "sum in a type too narrow": (
        "the sum is kept in a type that is too narrow (32 bits): it overflows, its upper bits are"
        " lost, in"
    ),
    "atomic operation of the other sign": (
        "the atomic operation compares signed numbers where unsigned ones are meant: those with the"
        " upper bit set count as negative, in"
    ),
    "division that rounds towards zero": (
        "the division rounds towards zero where a shift rounds down (floor): negative values come"
        " out wrong, in"
    ),
    "size of the plan without a part": (
        "the size of the launch plan lacks a summand: it counts one part only, so that the last"
        " steps (blocks, tiles) are missing, in"
    ),
    "shared memory without a part": (
        "the launch reserves too few bytes of shared memory: a part that lies behind the others has"
        " no room, so that it is beyond the end (out of bounds), in"
    ),
    "size of the plan unpadded": (
        "the launch plan reserves memory for rows without their padding: too few bytes, so that"
        " what lies behind ends beyond the allocation, in"
    ),
    "constant of the same type": (
        "another constant of the same type is meant: a bound or size takes the wrong one, so that"
        " some parts (the last block) are left out or too many taken, in"
    ),
    "statement of a like block missing": (
        "an assignment is missing that a like block of the kernel has: the new value is not kept"
        " (not written back), so that the old one is used afterwards, in"
    ),
    "place within its tile in a condition": (
        "the condition (mask, bound) compares the position within its tile, without the tile's"
        " begin (start, offset): later tiles are not masked, or too much is, in"
    ),
    "limit by a function of the kernel missing": (
        "a limit is missing (a maximum or minimum, a clamp): the range begins before or ends behind"
        " its bound, so that some are taken twice or belong to others, in"
    ),
    "number split otherwise": (
        "the index is split into quotient and remainder by the wrong number, or the two have"
        " changed places (/ for %): registers, lanes or columns of another layout are taken, in"
    ),
    "step of all blocks": (
        "the step (stride) of the loop is not the number of blocks: each block begins at its own"
        " index, and they are to take turns; so blocks do the same parts twice, or leave some out,"
        " in"
    ),
    "names of two statements exchanged": (
        "two neighbouring values have each other's variable: rows and columns, or first and"
        " second, are exchanged (swapped), in"
    ),
    "first values of two variables exchanged": (
        "two variables have each other's value: they are exchanged (swapped), in"
    ),
    "sum of the first lane alone": (
        "the sum (or maximum) of the warp is used by all lanes, but only lane 0 has it: it is not"
        " broadcast to the other lanes, in"
    ),
    "first lane for the last": (
        "the other end of a vote is taken: the first set bit and not the last one (the nearest"
        " lane and not the farthest), or the other way round, in"
    ),
    "summed and not stored": (
        "a value is added to a sum and not stored, so that what is read later is the value before,"
        " in"
    ),
    "rest that may be zero": (
        "the rest of the last part is 0 where the size is a multiple of it, so that the last"
        " whole part is left out, in"
    ),
    "step of a loop beyond its end": (
        "the loop takes a whole step beyond the end: where the length is no multiple of it, what"
        " lies behind the end (the next one's) is taken too; the bound of the unrolled loop is"
        " wrong, in"
    ),
    "round of all stages": (
        "the parity (phase) of a stage's barrier must change once a round of all stages, not with"
        " every step, in"
    ),
    "rounds counted backwards": (
        "the order is reversed: elements are taken from the last to the first (or the other way"
        " round), in"
    ),
    "factor missing, of the number of parts": (
        "a factor is missing in an offset (stride): parts lie further apart than they are read, in"
    ),
    "scale of another length": (
        "the scale is that of another head size: 1 / sqrt(D) of another D, a wrong constant, in"
    ),
    "counter not set back, beside another": (
        "a counter in global memory is not set back to zero (reset), so that later launches find"
        " what this one left, in"
    ),
    "factor missing, of another update": (
        "a value is not rescaled as another one is: the factor is missing (the sum is not rescaled"
        " when the maximum rises), in"
    ),
    "lanes of another group joined": (
        "the reduction goes over the wrong lanes: the shuffles reach other lanes, which hold other"
        " rows or columns (such as the four of a quad for the eight 4, 8 and 16 apart), in"
    ),
    "swizzle wider than a row": (
        "the XOR swizzle takes more bits (a larger phase) than a row has pieces: pieces leave"
        " their row and overwrite those of the next, in"
    ),
    "name of a part for the grid": (
        "the index of the block is taken where the number of the tile (part) that it works on is"
        " meant, as elsewhere: another tile's place or end is used, in"
    ),
    "begin of a range missing": (
        "the begin (start, offset) of the range is missing, it is not added: the place is counted"
        " from zero, so that every part reads or writes the first one's, in"
    ),
    "begin of a part missing in a loop, in an index": (
        "the begin (offset) of the part of each group (warp, team, block) is missing, it is not"
        " added to the index: every one of them takes what is in the first part, and what is in the"
        " others is left out, in"
    ),
    "begin of a part missing in a loop": (
        "the begin (offset) of the part of each group (warp, team, block) is missing, it is not"
        " added: every one of them goes through the first part, which counts several times, and"
        " the others are left out, in"
    ),
    "choice by a condition that nothing reads": (
        "the condition is not used, nothing reads it: where it does not hold (beyond the edge or"
        " the end) nothing must be taken, zeros must stand there, in"
    ),
    "condition that nothing reads": (
        "the condition is not used, nothing reads it: what must be done only where it holds is"
        " done always (a guard is missing), in"
    ),
    "difference from another": (
        "the exponential is of the difference from another value than the others: a weight (share,"
        " factor) does not refer to the same maximum, such as the larger one of both, in"
    ),
    "next of a series missing": (
        "the last one of a series (component, member, element) is missing: what is done with those"
        " before it is not done with it, in"
    ),
    "argument too many, which has a default": (
        "an argument is given that must not be: something (a factor, a scale) is applied once too"
        " often, in"
    ),
    "argument missing, which has a default": (
        "an argument is missing, in place of which the function takes its default: something (a"
        " factor, a scale) is not applied, in"
    ),
    "end of a halving loop": (
        "the reduction ends one step too early (or too late): its last step (distance, stride) is"
        " left out or too many, so that only a part of the lanes or values is added, in"
    ),
    "distance of the means missing": (
        "the term for the distance between the two means (delta squared, times the one count and"
        " the share of the other) is missing, it is not added where the sums of squares of two"
        " parts are merged, so that the variance is too small, in"
    ),
    "registers of a fragment exchanged": (
        "two registers of a fragment are exchanged, they are in the wrong order: rows 8 apart or"
        " columns 8 apart of its tile swap their values, in"
    ),
    "last number of a loop for each": (
        "the last element is asked for in place of each one (the number of the loop): where the"
        " last one lies beyond the end, the others are left out as well, zeros are taken for them,"
        " in"
    ),
    "share of the plan in whole tiles rounded down": (
        "the share of each part is rounded down: together the parts do not reach the end, and the"
        " last elements (the remainder) are left out, it must be rounded up, in"
    ),
    "index of the array beside it": (
        "the index is another than that of the array beside it: the elements of another place"
        " (column, row) are taken, an offset is missing or too many, in"
    ),
    "sign in a value of the plan": (
        "the sign is wrong (it is added where it must be subtracted, or the other way round): it"
        " grows where it must shrink, in"
    ),
    "step of all lanes": (
        "the step of the loop is not the number of lanes that share it (32): each lane takes its"
        " first element, and those between are left out, in"
    ),
    "lane of the loop in a shuffle": (
        "all take the value of one fixed lane: the shuffle must read the lane whose turn it is (the"
        " number of the loop), otherwise the same value counts again and again, in"
    ),
    "rest of a vector not copied": (
        "the elements behind the last whole vector are not copied, zeros are taken for them: of"
        " these the bytes that are left must be copied, in"
    ),
    "one less, counted backwards": (
        "off by one: what is counted backwards from an end begins with the one before it, 1 is"
        " missing, it is not subtracted, so that it begins one beyond the last one, in"
    ),
    "step of the loop, for what is ahead": (
        "what is fetched ahead (next) is not as far on as the loop goes on: the step (stride) of"
        " the loop is meant, so that another row, tile or element is taken, in"
    ),
    "reset missing, of a vector": (
        "the running sum is not set back to zero (reset, cleared) when it has been handed on, so"
        " that what follows also gets what was added before, in"
    ),
    "thread for the element of a loop": (
        "the index is that of the thread where the number (column, chunk) of the loop is meant: in"
        " each round the same elements are taken again, those of the first one, in"
    ),
    "guard too many": (
        "a condition is too many: what it guards must be done each time (in every round, for every"
        " tile), and is left out where it does not hold, in"
    ),
    "nominal size of a part": (
        "the nominal (full) size of a part is taken where its actual size is meant: the last part"
        " (the ragged tail, a last warp or tile) has fewer, so that the count or divisor is too"
        " large there, in"
    ),
    "part of a like condition missing": (
        "a part of the condition is missing, which a like condition of the kernel has: all of them"
        " (every lane, warp, team or block) do what those alone must do for which it holds, so that"
        " something is added or written several times or beyond the end, in"
    ),
    "summand of a like call": (
        "a summand is missing (such as what is subtracted from all others), which another call of"
        " the function has, in"
    ),
    "work of one block alone": (
        "every block does what one block alone must do (the last or the first one): it is done"
        " several times, and blocks write over one another (a race); the condition is missing, in"
    ),
    "limit of one case alone": (
        "the limit (bound) holds in one case of the condition alone and is missing in the other"
        " one, which runs beyond its end, in"
    ),
    "offset outside the swizzle": (
        "the offset is added behind the XOR swizzle (outside of it, afterwards) and not before it:"
        " the swizzle does not apply to it, so that wrong pieces are read or written, in"
    ),
    "vectors counted for elements": (
        "a count grows by 1 for each vector (chunk) and not by its number of elements, so that"
        " the count is too small and the mean too large, in"
    ),
    "neighbour for the next of a step": (
        "the adjacent one (+ 1) is taken in place of the next one of the loop, which is a whole"
        " step (stride) further on, in"
    ),
    "sign of bits that are joined": (
        "numbers of 16 or 8 bits are read as signed: a negative one is sign-extended over what it"
        " is joined (packed) with in a word, in"
    ),
    "end of a range unchecked": (
        "only the begin of a range is checked and not its end: one that begins here and ends in"
        " another part (chunk, slice) is taken as whole, in"
    ),
    "reset missing, behind its store": (
        "a sum is not set back to zero (reset) behind the statement that stores it, so that it is"
        " carried into the next one, in"
    ),
    "arrival before the work": (
        "a warp arrives at the barrier (announces, signals) before it has done what the others wait"
        " for: the arrival comes too early, so that they read or overwrite memory in use, in"
    ),
    "step by the threads of a role": (
        "the loop steps by another number of threads than those that run it (the whole block for"
        " the warps of one role, or the reverse), so that elements are skipped or done twice, in"
    ),
    "square of a factor missing": (
        "a factor is taken once, not squared: the value itself is used where its square is"
        " meant (the second factor is missing), in"
    ),
    "sum of two for a name": (
        "one variable is used where the sum of two others is meant (a row or column that is counted"
        " otherwise, the wrong coordinate of a fragment), in"
    ),
    "operation in half precision": (
        "it is computed in half precision and rounded there, where single precision (fp32) is"
        " meant, in"
    ),
    "count without its limit": (
        "a count is not limited (min is missing): it runs beyond what there is at once, so that"
        " lanes or places wrap around, in"
    ),
}
