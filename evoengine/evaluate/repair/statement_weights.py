"""How likely mistakes of each kind are whose change adds, moves or exchanges whole statements.

They were guessed, beside the fitted ones of like kinds (change_weights).
"""

STATEMENT_WEIGHTS: dict[str, float] = {
    "begin of each round missing": 5.0,
    "begin of a sum missing": 2.0,
    "begin missing": 6.0,
    "state begun in each round": 2.0,
    "array not cleared": 1.5,
    "value not written back": 4.0,
    "value that never changes": 4.0,
    "statements in the wrong order": 2.5,
    "parts in the wrong order": 4.0,
    "statement moved over others": 1.0,
    "statement before or behind a block": 1.5,
    "statement of each round": 2.0,
    "statement in a block": 1.0,
    "flag that ends nothing": 4.0,
    "update by what nothing reads missing": 4.0,
    "rescaling by a new maximum missing": 3.0,
    "reduction missing": 2.0,
    "mean not taken": 1.5,
    "fence missing": 2.0,
    "barrier missing, between uses": 2.0,
    "barrier missing, of a warp": 1.5,
    "rescaling of a sum missing": 2.0,
    "statement of the neighbour missing": 1.5,
    "flag that ends no loop": 1.0,
    "commit missing": 2.0,
    "wait for copies missing": 2.0,
    "one of each warp": 2.5,
    "one of them alone": 2.5,
    "atomic operation missing": 2.5,
    "atomic operation of another kind": 2.0,
    "companion of a shuffle missing": 2.5,
    "last ones left out": 4.0,
}
