"""How likely mistakes of each kind are, and how much likelier changes with some evidence are.

The figures were fitted on 2026-11-26 to 233 planted mistakes with wrong results, among all changes
of their kernels (`benchmarks.bug_halves.looked_at`), so that the planted changes are as likely as
they can be. Kinds of which few were planted stay near figures that were guessed.
"""

from __future__ import annotations

from evoengine.evaluate.repair.change_evidence import Evidence

USUAL_WEIGHT = 0.3  # of a kind that is not named
# Of a kind of which a kernel has many changes each one is less likely, by this power of their
# number. With 1 every kind would be as likely in a kernel that has it in one place alone.
COUNT_POWER = 0.8
# How much likelier a change is than one without the evidence
FAMILIAR, UNREAD_LEFT, RARE, SEVERAL = 0.37, 0.26, 0.64, 1.6
READS_UNREAD = 3.5  # where the kernel has a variable that nothing reads
LEAVES_UNREAD = 0.14  # likewise, of a change that does not read it

WEIGHTS: dict[str, float] = {
    "grid rounded down": 19.0,
    "term too many": 13.0,
    "bound of whole tiles": 10.0,
    "number doubled in a loop": 8.5,
    "function of a family": 7.4,
    "factor too many": 6.0,
    "factor missing, float": 5.0,
    "statement missing, other lanes": 4.9,
    "two conversions dropped": 4.7,
    "layout of two": 4.0,
    "summand missing, float": 4.0,
    "summand that is read nowhere": 3.9,
    "number one less in a loop": 3.8,
    "number halved in a loop": 3.4,
    "stride of the other one": 3.1,
    "function that is alike": 3.0,
    "parameter for another, int": 2.9,
    "sign": 2.8,
    "args exchanged": 2.7,
    "expression for a name": 2.7,
    "index of another array": 2.7,
    "names exchanged, int": 2.7,
    "bracket moved": 2.6,
    "name for the grid": 2.6,
    "conversions with bits dropped": 2.5,
    "factor missing, int": 2.5,
    "type of the kernel": 2.5,
    "assignments": 2.3,
    "cast dropped": 2.3,
    "float by one": 2.3,
    "power of two in the plan": 2.3,
    "swizzle missing": 2.3,
    "unread in place of a number": 2.3,
    "arguments exchanged": 2.2,
    "factor of too many terms": 2.2,
    "number doubled elsewhere": 2.2,
    "call missing, of the kernel": 2.1,
    "factor that is read nowhere": 2.1,
    "float zero to infinity": 2.1,
    "number for a name at the begin of a loop": 2.1,
    "member of a vector": 2.0,
    "name of the same declaration, int": 2.0,
    "summand missing elsewhere, int": 2.0,
    "case of a flag missing": 1.9,
    "comparison by one": 1.9,
    "call missing, root": 1.8,
    "divisor missing, int": 1.8,
    "row of an index missing": 1.8,
    "square of another": 1.8,
    "index that comes back": 1.7,
    "times a constant": 1.7,
    "two operations too many": 1.7,
    "grid without a limit": 1.6,
    "mask of other positions": 1.6,
    "barrier missing, beside a loop": 1.5,
    "begin of a row missing": 1.5,
    "grid by one": 1.5,
    "statement missing, beside its like": 1.5,
    "term moved": 1.5,
    "assignment": 1.4,
    "brackets dropped": 1.4,
    "coordinates of a lane": 1.4,
    "number halved elsewhere": 1.4,
    "bound of the mask missing": 1.3,
    "call dropped": 1.3,
    "guard missing": 1.3,
    "index with another name": 1.3,
    "limit missing": 1.3,
    "name for a number": 1.3,
    "quotient rounded down": 1.3,
    "square not centred": 1.3,
    "summand missing in an index, int": 1.3,
    "call missing, rounding": 1.2,
    "name for another as a divisor, int": 1.2,
    "number for a name elsewhere": 1.2,
    "one more in an index": 1.2,
    "reset missing": 1.2,
    "square missing": 1.2,
    "times a number": 1.2,
    "one less elsewhere": 1.1,
    "range of a loop": 1.1,
    "term of another place, int": 1.1,
    "barrier missing": 1.0,
    "groups for turns": 1.0,
    "name for another in a loop, int": 1.0,
    "swizzle missing, of another name": 1.0,
    "parameter for a name as a divisor, int": 0.98,
    "name for another as a factor, float": 0.96,
    "terms exchanged": 0.95,
    "name for another, in a whole statement": 0.92,
    "negation dropped": 0.91,
    "return dropped": 0.91,
    "value negated": 0.89,
    "number for a name in a loop": 0.87,
    "index of the same array": 0.83,
    "names exchanged, float": 0.83,
    "name for another, in all places": 0.82,
    "condition too many": 0.81,
    "parameter for a name elsewhere, int": 0.8,
    "pointer for another, pointer": 0.79,
    "name that is alike, int": 0.78,
    "rescaling missing": 0.78,
    "conversion dropped": 0.74,
    "name for another compared, int": 0.74,
    "operand negated": 0.74,
    "same place twice": 0.74,
    "name for another elsewhere, int": 0.73,
    "name for another as an index, float": 0.72,
    "name for another in a loop, float": 0.72,
    "offset of another pointer": 0.72,
    "axis of the grid": 0.71,
    "name for another as a factor, int": 0.71,
    "atomic addition missing": 0.7,
    "name for another as an index, int": 0.7,
    "row of an index missing, of a number": 0.7,
    "row of the block missing": 0.7,
    "summand missing in a factor": 0.7,
    "table that is read nowhere": 0.7,
    "value of the plan": 0.7,
    "bound missing": 0.69,
    "condition of a value missing": 0.69,
    "name for another compared, float": 0.69,
    "call missing, sign": 0.67,
    "clamp missing": 0.67,
    "float of the kernel": 0.67,
    "name for another as a divisor, float": 0.67,
    "index transposed": 0.66,
    "names exchanged, array": 0.65,
    "array for another, array": 0.63,
    "name for a float": 0.62,
    "coordinates exchanged": 0.6,
    "name for an element, in a whole statement": 0.58,
    "name for another elsewhere, float": 0.58,
    "parameter for a name as a factor, int": 0.58,
    "statement missing, other number": 0.58,
    "condition dropped": 0.57,
    "parameter for a name compared, int": 0.57,
    "divisor missing, float": 0.56,
    "parameter for a name as an index, int": 0.56,
    "parameter for a name in a loop, int": 0.55,
    "condition of another place": 0.54,
    "name of the line, int": 0.54,
    "call missing, reciprocal": 0.52,
    "operator": 0.51,
    "tiles of a fragment exchanged": 0.51,
    "case of a mask missing": 0.5,
    "counter not set back": 0.5,
    "comparison without one": 0.49,
    "square of it missing": 0.49,
    "function of the kernel": 0.48,
    "name of the same declaration, float": 0.46,
    "reciprocal for a float": 0.45,
    "end of a loop": 0.44,
    "number one less in an index": 0.44,
    "bound of a condition missing": 0.43,
    "name for an element": 0.43,
    "statement missing, other name": 0.43,
    "statement dropped": 0.42,
    "term of another place, float": 0.42,
    "block for thread": 0.41,
    "exchanged with the next statement": 0.4,
    "factor of another place": 0.25,
}


def weight(kind: str, evidence: Evidence, has_unread: bool, places: int) -> float:
    """How likely a mistake is of a kind with this evidence; `has_unread` says whether the kernel
    has a variable that nothing reads, `places` how many places a change has.
    """
    found = WEIGHTS.get(kind, USUAL_WEIGHT)
    if evidence.uses_unused:
        found *= READS_UNREAD
    elif has_unread:
        found *= LEAVES_UNREAD
    if evidence.is_familiar:
        found *= FAMILIAR
    if evidence.leaves_unread:
        found *= UNREAD_LEFT
    if evidence.is_rare:
        found *= RARE
    return found * SEVERAL if places > 1 else found
