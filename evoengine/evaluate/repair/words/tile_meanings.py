"""What changes of places in tiles and of steps of a pipeline say, by their kinds."""

from __future__ import annotations

# the kind, and what was wrong in front of the place
TILE_WORDS = {
    "pitch of another array": (
        "the pitch is that of another array (tile, operand): rows are taken as far apart as those"
        " of the other one lie, so that elements of other rows are read, in"
    ),
    "row and column of a tile exchanged": (
        "the row and the column are exchanged in the index of a tile: it is transposed, in"
    ),
    "tile read as it was written": (
        "the tile is read with the indices that it was written with, so that it is not transposed"
        " (the two indices must change places), in"
    ),
    "flat index of padded rows": (
        "a flat index is taken for an array whose rows are padded: it is not split into row and"
        " column, so that each row is shifted by the padding of those before, in"
    ),
    "second part of a thread's own": (
        "the second part of a thread's rows or columns lies further on (half a tile), and is taken"
        " from behind its first part, in"
    ),
    "neighbours along the other axis": (
        "the neighbours of a row are taken where those of a column are meant, or the other way"
        " round (the pitch is missing or too many in each of the indices), in"
    ),
    "columns in turns or together": (
        "a lane's columns are taken as every 32nd one where it has neighbouring ones, or the other"
        " way round, so that columns are mixed up (interleaved), in"
    ),
    "row of a tile missing": (
        "the row is left out of the index of a tile: every step of the loop reads its first row"
        " again, in"
    ),
    "pair of a lane's columns": (
        "a lane has two neighbouring columns of a fragment: its number must be doubled, so that"
        " lanes overlap, in"
    ),
    "swizzle not asked for": (
        "the place is computed without the swizzle with which the tile was written, so that chunks"
        " of other columns are read, in"
    ),
    "begin of the part behind": (
        "two parts of shared memory overlap: the second one begins where the first does, not"
        " behind it, and overwrites it, in"
    ),
    "constant of another size": (
        "a constant (pitch, tile or number of parts) is made of the wrong size, such as that of"
        " the other tile, in"
    ),
    "numbers of two constants exchanged": (
        "the numbers of two constants are exchanged (swapped): the parts are sized for another"
        " arrangement of warps or threads, in"
    ),
    "stage of another step": (
        "the stage of another step is used (the step before, or ahead): it is not filled yet, or"
        " still in use, in"
    ),
    "steps ahead": (
        "another step is loaded ahead than there are stages for: a step is skipped or loaded twice,"
        " or a stage is overwritten that is still in use, in"
    ),
    "step that its condition asks for": (
        "the step that is loaded is not the one whose bound is checked: this step is taken again"
        " where the next one is meant, in"
    ),
    "other buffer of two": (
        "the wrong one of two buffers is used: the one that is still read, or not yet filled, in"
    ),
    "stages of shared memory": (
        "the launch gives shared memory for another number of stages than the kernel uses, so that"
        " it writes beyond its end, in"
    ),
    "value of its namesake": (
        "a term is missing or too many, which the variable of the same name has elsewhere, in"
    ),
    "summand of its namesake": (
        "an offset is missing (left out), which the variable of the same name has elsewhere, in"
    ),
    "offset of the pointer beside": (
        "the offset is not that of the pointer beside it: another head, batch or row is read, in"
    ),
    "term of a like function": (
        "a term is missing in what a function returns, which the function with the same parameters"
        " has, in"
    ),
    "factor of a like product": (
        "a factor of a stride is missing (such as the number of heads), which the same stride has"
        " elsewhere, so that parts overlap, in"
    ),
    "arguments in another order than elsewhere": (
        "two arguments are exchanged (swapped): another call of the function has them in the other"
        " order, in"
    ),
    "argument as elsewhere, of another name": (
        "an argument lacks a factor or term that it has in another call of the function, in"
    ),
    "values of two registers exchanged": (
        "two registers of a fragment are exchanged (each has the other's value), in"
    ),
    "row and column of a condition exchanged": (
        "the row and the column are exchanged in a bound: each is checked against the other's end,"
        " in"
    ),
    "step along another argument": (
        "the step is added to the wrong argument: it goes along another axis (a row where a column"
        " or the depth is meant), in"
    ),
}
