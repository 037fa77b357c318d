"""Generates random programs of `random_programs`.

By construction they terminate, have no races and no accesses out of bounds: loops have counters,
threads write only their own words, or shared memory between two barriers, and loads are guarded by
a comparison.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.emulator.random_expressions import ExpressionGenerator
from tests.emulator.random_programs import (
    FUNCTION_VARIABLES,
    INPUT_WORDS,
    LOCAL_WORDS,
    SLOTS,
    TRUE,
    VARIABLES,
    Assign,
    Call,
    Const,
    Exchange,
    Expr,
    If,
    IrreducibleFlow,
    Leave,
    LoadVector,
    Loop,
    Op,
    Program,
    Return,
    ReturnValue,
    Shuffle,
    Special,
    Stmt,
    Store,
    Switch,
    Var,
    Vote,
)

BLOCKS = (
    (32, 1, 1),
    (64, 1, 1),
    (48, 1, 1),
    (8, 8, 1),
    (5, 7, 3),
    (1, 1, 1),
    (32, 2, 1),
    (16, 2, 2),
    (33, 1, 1),
    (96, 1, 1),
)


@dataclass
class ProgramGenerator(ExpressionGenerator):
    """Generates one program from a seed."""

    seed: int
    size: int = 14  # statements at the top, at most
    counters: list[str] = field(default_factory=list)

    def make(self) -> Program:
        """The program of this seed."""
        self.chance = random.Random(self.seed)  # noqa: S311 - the same programs every time are wanted
        self.block = self.chance.choice(BLOCKS)
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.names, self.functions = FUNCTION_VARIABLES, 0
        self.uniform = self.whole = False
        self.breakable = 0
        self.budget = 12
        functions = tuple(self._function() for _ in range(self.chance.choice((0, 0, 1, 2))))
        self.names, self.functions = VARIABLES, len(functions)
        self.uniform = self.whole = True
        self.budget = 40
        body = self.statements(self.chance.randint(4, self.size), 0)
        return Program(
            self.seed, body, functions, self.block, self.chance.randint(1, 3), tuple(self.counters)
        )

    def _function(self) -> tuple[Stmt, ...]:
        body = self.statements(self.chance.randint(1, 4), 1)
        gives = tuple(
            ReturnValue(self.condition(2), self.expression(32, 2))
            for _ in range(self.chance.randint(0, 1))
        )
        after = self.statements(self.chance.randint(0, 2), 1)
        return (*body, *gives, *after, ReturnValue(TRUE, self.expression(32, 2)))

    # ------------------------------------------------------------ statements

    def statements(self, count: int, depth: int) -> tuple[Stmt, ...]:
        """Up to `count` statements."""
        return tuple(self.statement(depth) for _ in range(count))

    def statement(self, depth: int) -> Stmt:
        """Any statement that is allowed here."""
        self.budget -= 1
        kinds = ["assign"] * 4 + (
            ["advance"] * 2
            if self.names is VARIABLES and (self.uniform or self.chance.random() < 0.1)
            else []
        )
        if depth < 4 and self.budget > 0:
            kinds += ["if", "if", "loop", "predicated", "switch", "irreducible_flow"]
        if self.breakable:
            kinds += ["leave", "leave"]
        if self.names is VARIABLES:
            kinds += ["store", "store", "vector"]
            kinds += ["return"] if not (self.uniform and depth) else []
            kinds += ["call", "call"] if self.functions else []
            kinds += ["exchange", "exchange"] if self.uniform else []
            kinds += ["shuffle", "vote", "barvote"] if self.uniform and self.whole else []
        kind = self.chance.choice(kinds)
        return getattr(self, "_" + kind)(depth)  # type: ignore[no-any-return]

    def _advance(self, _: int) -> Stmt:
        """An increment of an affine index: a uniform value, or threadIdx.x again."""
        name = self.chance.choice(("r0", "r1", "q0"))
        bits = VARIABLES[name]
        before: Expr = Var(bits, name)
        if self.chance.random() < 0.3:
            before = (
                Special("tid.x")
                if bits == 32
                else Op(
                    f"cvt.{self.chance.choice('us')}64.{self.chance.choice('us')}32",
                    64,
                    (self.affine_index(),),
                )
            )
        return Assign(
            name,
            Op(
                f"{self.chance.choice(('add', 'add', 'sub'))}.s{bits}",
                bits,
                (before, self._leaf(bits, True)),
            ),
        )

    def _target(self) -> str:
        names = [name for name in self.names if name[0] not in "urq"]
        names += [name for name in self.names if name[0] == "u" and self.uniform]
        return self.chance.choice(names)

    def _assign(self, _: int) -> Stmt:
        name = self._target()
        bits = self.names[name]
        uniform = name[0] == "u"
        value = self.condition(2, uniform) if bits == 1 else self.expression(bits, 3, uniform)
        return Assign(name, value)

    def _vector(self, _: int) -> Stmt:
        count = self.chance.choice((2, 4))
        names = tuple(self.chance.sample(["a0", "a1", "a2", "a3"], count))
        offset = 4 * count * self.chance.randint(0, 3)
        return LoadVector(
            names, self.affine_index(), offset, (INPUT_WORDS * 4 - offset) // (4 * count)
        )

    def _branch(self, depth: int, condition_is_uniform: bool, count: int) -> tuple[Stmt, ...]:
        before = self.uniform, self.breakable
        if self.uniform and not condition_is_uniform:
            self.uniform, self.breakable = False, 0
        found = self.statements(count, depth + 1)
        self.uniform, self.breakable = before
        return found

    def _if(self, depth: int) -> Stmt:
        uniform = self.chance.random() < 0.4
        condition = self.condition(2, uniform)
        then = self._branch(depth, uniform, self.chance.randint(1, 3))
        return If(condition, then, self._branch(depth, uniform, self.chance.randint(0, 2)))

    def _predicated(self, depth: int) -> Stmt:
        before = self.uniform
        uniform = self.chance.random() < 0.3
        condition = self.condition(1, uniform)
        self.uniform = before and uniform
        kinds = [self._assign, self._assign] + (
            [self._store, self._vector] if self.names is VARIABLES else []
        )
        then = tuple(self.chance.choice(kinds)(depth) for _ in range(self.chance.randint(1, 3)))
        other = tuple(self.chance.choice(kinds)(depth) for _ in range(self.chance.randint(0, 2)))
        self.uniform = before
        return If(condition, then, other, predicated=True)

    def _counter(self) -> str:
        name = f"c{len(self.counters)}"
        self.counters.append(name)
        return name

    def _loop(self, depth: int) -> Stmt:
        before = self.uniform, self.breakable
        uniform = self.uniform and self.chance.random() < 0.5
        self.uniform = uniform
        limit = Op(
            "and.b32",
            32,
            (self.expression(32, 2, uniform), Const(32, self.chance.choice((1, 3, 3, 7)))),
        )
        self.whole = self.whole and (uniform or self.chance.random() < 0.5)
        self.breakable = 1
        counter = self._counter()
        body = self.statements(self.chance.randint(1, 4), depth + 1)
        self.uniform, self.breakable = before
        return Loop(counter, limit, body, self.chance.random() < 0.5)

    def _leave(self, _: int) -> Stmt:
        return Leave(self.chance.choice(("break", "continue")), self.condition(2, self.uniform))

    def _return(self, _: int) -> Stmt:
        if self.breakable and self.whole:
            return self._assign(0)
        self.whole = False
        return Return(self.condition(2), self.chance.choice(("jump", "ret", "exit")))

    def _switch(self, depth: int) -> Stmt:
        uniform = self.chance.random() < 0.3
        count = self.chance.randint(2, 4)
        selector = Op("and.b32", 32, (self.expression(32, 2, uniform), Const(32, 3)))
        breakable, self.breakable = self.breakable, 0
        cases = tuple(self._branch(depth, uniform, self.chance.randint(0, 2)) for _ in range(count))
        self.breakable = breakable
        return Switch(selector, cases, tuple(self.chance.random() < 0.4 for _ in range(count)))

    def _irreducible_flow(self, _: int) -> Stmt:
        before, self.uniform = self.uniform, False
        count = self.chance.randint(2, 5)
        counter = self._counter()
        blocks = []
        for _number in range(count):
            inside = tuple(self._assign(0) for _ in range(self.chance.randint(0, 2)))
            ways = [self.chance.randint(0, count) for _ in range(2)]
            blocks.append((inside, self.condition(1, self.chance.random() < 0.3), *ways))
        self.uniform = before
        return IrreducibleFlow(counter, self.chance.randint(2, 9), tuple(blocks))

    def _store(self, _: int) -> Stmt:
        array = self.chance.choice(("rows", "columns", "local"))
        top = LOCAL_WORDS if array == "local" else SLOTS
        slot: Expr = Const(32, self.chance.randrange(top))
        if self.chance.random() < 0.6:
            slot = Op("and.b32", 32, (self.expression(32, 1), Const(32, top - 1)))
        return Store(array, slot, self.expression(32, 2))

    def _exchange(self, _: int) -> Stmt:
        place = self.chance.choice(("same", "reversed", "rotated", "strided"))
        condition = self.condition(1) if self.chance.random() < 0.3 else None
        return Exchange(place, self.chance.randrange(SLOTS), self.expression(32, 2), condition)

    def _shuffle(self, _: int) -> Stmt:
        inside = self.chance.choice(("p0", "p1"))
        name = self.chance.choice(("a0", "a1", "a2", "a3"))
        value = self.expression(32, 1)
        least = min(32, self.threads % 32 or 32)
        if least < 32:
            lane = Op("rem.u32", 32, (self.expression(32, 1), Const(32, least)))
            return Shuffle(name, inside, "idx", value, lane, 32)
        uniform = self.chance.random() < 0.5
        lane = (
            self.expression(32, 1, uniform)
            if self.chance.random() < 0.6
            else Const(32, self.chance.randint(0, 40))
        )
        return Shuffle(
            name,
            inside,
            self.chance.choice(("idx", "up", "down", "bfly")),
            value,
            lane,
            self.chance.choice((32, 32, 16, 8, 1)),
        )

    def _vote(self, _: int) -> Stmt:
        what = self.chance.choice(("ballot", "any", "all", "uni"))
        return Vote(
            self.chance.choice(("a0", "a1", "a2") if what == "ballot" else ("p0", "p1")),
            what,
            self.condition(2),
        )

    def _barvote(self, _: int) -> Stmt:
        what = self.chance.choice(("bar.popc", "bar.and", "bar.or"))
        return Vote(
            self.chance.choice(("a0", "u0", "u1") if what == "bar.popc" else ("p0", "p1")),
            what,
            self.condition(2),
        )

    def _call(self, _: int) -> Stmt:
        name = self.chance.choice(("a0", "a1", "a2", "a3"))
        return Call(
            name,
            self.chance.randrange(self.functions),
            (self.expression(32, 2), self.expression(32, 2)),
        )


def generate(seed: int) -> Program:
    """The program of a seed."""
    return ProgramGenerator(seed).make()
