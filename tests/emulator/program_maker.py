"""Random programs of `programs`.

They end, are free of races and read nothing that is not there, by the way they are made: loops have counters, threads write
only what is theirs, or to shared memory between two barriers, and loads are guarded by a comparison.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.emulator.programs import (
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
    Give,
    If,
    Leave,
    Load,
    LoadVector,
    Loop,
    Op,
    Program,
    Return,
    Shuffle,
    Special,
    Stmt,
    Store,
    Switch,
    Tangle,
    Var,
    Vote,
)  # fmt: skip

BLOCKS = ((32, 1, 1), (64, 1, 1), (48, 1, 1), (8, 8, 1), (5, 7, 3), (1, 1, 1), (32, 2, 1), (16, 2, 2), (33, 1, 1), (96, 1, 1))
TESTS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass
class Maker:
    """Makes one program from a seed."""

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
        return Program(self.seed, body, functions, self.block, self.chance.randint(1, 3), tuple(self.counters))

    def _function(self) -> tuple[Stmt, ...]:
        body = self.statements(self.chance.randint(1, 4), 1)
        gives = tuple(Give(self.condition(2), self.expression(32, 2)) for _ in range(self.chance.randint(0, 1)))
        after = self.statements(self.chance.randint(0, 2), 1)
        return (*body, *gives, *after, Give(TRUE, self.expression(32, 2)))

    # ------------------------------------------------------------ statements

    def statements(self, count: int, depth: int) -> tuple[Stmt, ...]:
        """Up to `count` statements."""
        return tuple(self.statement(depth) for _ in range(count))

    def statement(self, depth: int) -> Stmt:
        """Any statement that may stand here."""
        self.budget -= 1
        kinds = ["assign"] * 4 + (["advance"] * 2 if self.names is VARIABLES and (self.uniform or self.chance.random() < 0.1) else [])
        if depth < 4 and self.budget > 0:
            kinds += ["if", "if", "loop", "predicated", "switch", "tangle"]
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
        """A step of a ramp: what all threads add, or threadIdx.x again."""
        name = self.chance.choice(("r0", "r1", "q0"))
        bits = VARIABLES[name]
        before: Expr = Var(bits, name)
        if self.chance.random() < 0.3:
            before = (
                Special("tid.x") if bits == 32 else Op(f"cvt.{self.chance.choice('us')}64.{self.chance.choice('us')}32", 64, (self.ramp(),))
            )
        return Assign(name, Op(f"{self.chance.choice(('add', 'add', 'sub'))}.s{bits}", bits, (before, self._leaf(bits, True))))

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
        return LoadVector(names, self.ramp(), offset, (INPUT_WORDS * 4 - offset) // (4 * count))

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
        kinds = [self._assign, self._assign] + ([self._store, self._vector] if self.names is VARIABLES else [])
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
        limit = Op("and.b32", 32, (self.expression(32, 2, uniform), Const(32, self.chance.choice((1, 3, 3, 7)))))
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

    def _tangle(self, _: int) -> Stmt:
        before, self.uniform = self.uniform, False
        count = self.chance.randint(2, 5)
        counter = self._counter()
        blocks = []
        for _number in range(count):
            inside = tuple(self._assign(0) for _ in range(self.chance.randint(0, 2)))
            ways = [self.chance.randint(0, count) for _ in range(2)]
            blocks.append((inside, self.condition(1, self.chance.random() < 0.3), *ways))
        self.uniform = before
        return Tangle(counter, self.chance.randint(2, 9), tuple(blocks))

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
        lane = self.expression(32, 1, uniform) if self.chance.random() < 0.6 else Const(32, self.chance.randint(0, 40))
        return Shuffle(name, inside, self.chance.choice(("idx", "up", "down", "bfly")), value, lane, self.chance.choice((32, 32, 16, 8, 1)))

    def _vote(self, _: int) -> Stmt:
        what = self.chance.choice(("ballot", "any", "all", "uni"))
        return Vote(self.chance.choice(("a0", "a1", "a2") if what == "ballot" else ("p0", "p1")), what, self.condition(2))

    def _barvote(self, _: int) -> Stmt:
        what = self.chance.choice(("bar.popc", "bar.and", "bar.or"))
        return Vote(self.chance.choice(("a0", "u0", "u1") if what == "bar.popc" else ("p0", "p1")), what, self.condition(2))

    def _call(self, _: int) -> Stmt:
        name = self.chance.choice(("a0", "a1", "a2", "a3"))
        return Call(name, self.chance.randrange(self.functions), (self.expression(32, 2), self.expression(32, 2)))

    # ------------------------------------------------------------ expressions

    def condition(self, depth: int, uniform: bool = False) -> Expr:
        """A predicate."""
        roll = self.chance.random()
        if depth and roll < 0.2:
            op = self.chance.choice(("and.pred", "or.pred", "xor.pred"))
            return Op(op, 1, (self.condition(depth - 1, uniform), self.condition(depth - 1, uniform)))
        if depth and roll < 0.27:
            return Op("not.pred", 1, (self.condition(depth - 1, uniform),))
        if roll < 0.4 and not uniform and self.names is VARIABLES:
            return Var(1, self.chance.choice(("p0", "p1")))
        bits = self.chance.choice((32, 32, 32, 64, 16))
        type_ = self.chance.choice("us") + str(bits)
        a = self.expression(bits, depth, uniform)
        b = self.expression(bits, 0, uniform) if self.chance.random() < 0.4 else self.literal(bits)
        return Op(f"setp.{self.chance.choice(TESTS)}.{type_}", 1, (a, b))

    def literal(self, bits: int) -> Const:
        """A small number, an edge, or anything."""
        top = (1 << bits) - 1
        chance = self.chance
        roll = chance.random()
        if roll < 0.5:
            return Const(bits, chance.randint(0, 70))
        if roll < 0.65:
            return Const(bits, -chance.randint(1, 40) & top)
        if roll < 0.85:
            return Const(bits, chance.choice((31, 32, 33, 63, 64, 1 << (bits - 1), top, top >> 1, 255, 4, 12, 20)) & top)
        return Const(bits, chance.getrandbits(bits))

    def ramp(self, uniform: bool = False) -> Expr:
        """A 32-bit index of the kinds that kernels compute from threadIdx."""
        chance = self.chance
        if uniform:
            known = [Special("ctaid.x"), Special("nctaid.x"), Special("ntid.x")]
            return chance.choice([*known, *(Var(32, f"u{n}") for n in range(3))] if self.names is VARIABLES else known)
        base: Expr = chance.choice(
            (Special("tid.x"), Special("tid.x"), Special("tid.x"), Special("laneid"), Special("tid.y"), Special("tid.z"))
        )
        if self.names is VARIABLES and chance.random() < 0.3:
            base = chance.choice((Var(32, "r0"), Var(32, "r1"), Op("cvt.u32.u64", 32, (Var(64, "q0"),))))
        if chance.random() < 0.2:
            base = Op("mad.lo.u32", 32, (Special("ctaid.x"), Special("ntid.x"), Special("tid.x")))
        for _ in range(chance.randint(0, 3)):
            base = self._ramped(base)
        return base

    def _ramped(self, base: Expr) -> Expr:
        chance = self.chance
        small, any_ = Const(32, chance.randint(1, 40)), self.literal(32)
        other = chance.choice((small, small, any_, Var(32, "u0"), Special("ctaid.x"))) if self.names is VARIABLES else small
        sign = chance.choice("us")
        match chance.randrange(11):
            case 0:
                return Op(f"add.{sign}32", 32, (base, other))
            case 1:
                return Op(f"sub.{sign}32", 32, (base, other))
            case 2:
                return Op(f"sub.{sign}32", 32, (other, base))
            case 3:
                return Op(f"mul.lo.{sign}32", 32, (base, Const(32, chance.choice((2, 3, 4, 5, 12, 20, 65536, 65535)))))
            case 4:
                return Op("shl.b32", 32, (base, Const(32, chance.choice((0, 1, 2, 3, 16, 31)))))
            case 5:
                return Op(f"shr.{sign}32", 32, (base, Const(32, chance.choice((0, 1, 2, 5, 6)))))
            case 6:
                return Op("and.b32", 32, (base, Const(32, chance.choice((31, 32, 7, 63, 0xFFFFFFE0, 96, 64, 3)))))
            case 7:
                return Op("xor.b32", 32, (base, Const(32, chance.choice((1, 3, 31, 16, 32)))))
            case 8:
                return Op("or.b32", 32, (base, Const(32, chance.choice((1, 3, 31, 32, 64, 2)))))
            case 9:
                return Op(f"{chance.choice(('div', 'rem'))}.u32", 32, (base, Const(32, chance.choice((2, 3, 7, 32)))))
        return Op(f"mad.lo.{sign}32", 32, (base, Const(32, chance.choice((1, 2, 3, 5))), chance.choice((other, base))))

    def expression(self, bits: int, depth: int, uniform: bool = False) -> Expr:
        """A value of `bits`; the same for the whole block if `uniform`."""
        roll = self.chance.random()
        if depth <= 0 or roll < 0.15:
            return self._leaf(bits, uniform)
        if roll < 0.3 and bits == 32:
            return self.ramp(uniform)
        if roll < 0.45 and not uniform and bits == 32:
            return self.load()
        if roll < 0.6:
            return self._converted(bits, depth, uniform)
        return self._operation(bits, depth - 1, uniform)

    def _leaf(self, bits: int, uniform: bool) -> Expr:
        if self.chance.random() < 0.3:
            return self.literal(bits)
        if uniform and self.names is not VARIABLES:
            return self.literal(bits)
        names = [name for name, wide in self.names.items() if wide == bits and (not uniform or name[0] == "u")]
        return Var(bits, self.chance.choice(names)) if names else self.literal(bits)

    def load(self) -> Expr:
        """A guarded load of 32 bits or fewer, widened."""
        chance = self.chance
        array = chance.choice(("input", "input", "shared", "local") if self.names is VARIABLES else ("input",))
        words = {"input": INPUT_WORDS, "shared": self.threads * SLOTS, "local": LOCAL_WORDS}[array]
        type_ = chance.choice(("u32", "u32", "u32", "s16", "u16", "u8", "s8"))
        size = int(type_[1:]) // 8
        stride = size if chance.random() < 0.6 else chance.choice([item for item in (4, 12, 20, 8, 16, 2, 1) if item % size == 0])
        offset = chance.choice((0, 0, 4, 8, 12)) if words > 4 else 0
        limit = (words * 4 - offset - size) // stride + 1
        index = self.ramp() if chance.random() < 0.7 else Op("rem.u32", 32, (self.expression(32, 1), Const(32, limit)))
        how = chance.choice(("wide.u32", "wide.s32", "cvt.u64", "low", "generic", "wide.mad"))
        return Load(array, type_, index, stride, offset, limit, how)

    def _converted(self, bits: int, depth: int, uniform: bool) -> Expr:
        source = self.chance.choice([item for item in (16, 32, 64) if item != bits])
        inner: Expr = self.expression(source, depth - 1, uniform)
        if source == 32 and self.chance.random() < 0.4:
            inner = self.ramp(uniform)
        to, from_ = (self.chance.choice("us") + str(item) for item in (bits, source))
        if bits == 64 and source == 32 and self.chance.random() < 0.5:
            sign = self.chance.choice("us")
            other = self.literal(32) if self.chance.random() < 0.6 else self._leaf(32, uniform)
            if self.chance.random() < 0.3:
                return Op(f"mad.wide.{sign}32", 64, (inner, other, self._leaf(64, uniform)))
            return Op(f"mul.wide.{sign}32", 64, (inner, other))
        return Op(f"cvt.{to}.{from_}", bits, (inner,))

    def _operation(self, bits: int, depth: int, uniform: bool) -> Expr:
        chance = self.chance

        def some(wide: int = bits) -> Expr:
            return self.expression(wide, depth, uniform)

        def amount() -> Expr:
            return Const(32, chance.randint(0, bits + 4)) if chance.random() < 0.5 else some(32)

        u, us, b = f"u{bits}", f"{chance.choice('us')}{bits}", f"b{bits}"
        choices = ["add", "sub", "mul", "mad", "logic", "not", "shl", "shr", "min", "selp", "div", "abs", "lit"]
        if bits == 32:
            choices += ["popc", "brev", "bfe", "bfi", "shf", "lop3", "prmt", "set", "slct", "mulwide"]
        if bits == 64:
            choices += ["brev", "bfe"]
        match chance.choice(choices):
            case "add":
                return Op(f"add.{us}", bits, (some(), some()))
            case "sub":
                return Op(f"sub.{us}", bits, (some(), some()))
            case "lit":
                return Op(f"{chance.choice(('add', 'sub'))}.{us}", bits, (some(), self.literal(bits)))
            case "mul":
                return Op(f"mul.{chance.choice(('lo', 'hi'))}.{us}", bits, (some(), some()))
            case "mad":
                return Op(f"mad.lo.{us}", bits, (some(), some(), some()))
            case "logic":
                return Op(f"{chance.choice(('and', 'or', 'xor'))}.{b}", bits, (some(), some()))
            case "not":
                return Op(f"not.{b}", bits, (some(),))
            case "shl":
                return Op(f"shl.{b}", bits, (some(), amount()))
            case "shr":
                return Op(f"shr.{us}", bits, (some(), amount()))
            case "min":
                return Op(f"{chance.choice(('min', 'max'))}.{us}", bits, (some(), some()))
            case "selp":
                return Op(f"selp.{b}", bits, (some(), some(), self.condition(1, uniform)))
            case "div":
                by = Const(bits, chance.choice((1, 2, 3, 7, 10, 32, 1000)))
                under: Expr = by if chance.random() < 0.6 else Op(f"or.{b}", bits, (some(), Const(bits, 1)))
                return Op(f"{chance.choice(('div', 'rem'))}.{us if under is by else u}", bits, (some(), under))
            case "abs":
                return Op(f"{chance.choice(('abs', 'neg'))}.s{bits}", bits, (some(),))
            case "popc":
                return (
                    Op(chance.choice(("popc.b32", "clz.b32")), 32, (some(32),))
                    if chance.random() < 0.6
                    else Op(chance.choice(("popc.b64", "clz.b64")), 32, (some(64),))
                )
            case "brev":
                return Op(f"brev.{b}", bits, (some(),))
            case "bfe":
                return Op(f"bfe.{us}", bits, (some(), some(32), some(32)))
            case "bfi":
                return Op("bfi.b32", 32, (some(), some(), some(), some()))
            case "shf":
                return Op(f"shf.{chance.choice('lr')}.{chance.choice(('wrap', 'clamp'))}.b32", 32, (some(), some(), amount()))
            case "lop3":
                return Op("lop3.b32", 32, (some(), some(), some(), Const(32, chance.getrandbits(8))))
            case "prmt":
                return Op("prmt.b32", 32, (some(), some(), some()))
            case "set":
                return Op(f"set.{chance.choice(TESTS)}.u32.{us}", 32, (some(), some()))
            case "slct":
                return Op("slct.u32.s32", 32, (some(), some(), some()))
        return Op(f"mul.wide.{chance.choice('us')}16", 32, (some(16), some(16)))


def make(seed: int) -> Program:
    """The program of a seed."""
    return Maker(seed).make()
