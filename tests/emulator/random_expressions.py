"""Generates random expressions of `random_programs`: arithmetic of every width, typical indices,
guarded loads.
"""

from __future__ import annotations

import random

from tests.emulator.random_programs import (
    INPUT_WORDS,
    LOCAL_WORDS,
    SLOTS,
    VARIABLES,
    Const,
    Expr,
    Load,
    Op,
    Special,
    Var,
)

TESTS = ("eq", "ne", "lt", "le", "gt", "ge")


class ExpressionGenerator:
    """Generates expressions; `names` are the variables in scope."""

    chance: random.Random
    threads: int  # of a block
    names: dict[str, int]

    def condition(self, depth: int, uniform: bool = False) -> Expr:
        """A predicate."""
        roll = self.chance.random()
        if depth and roll < 0.2:
            op = self.chance.choice(("and.pred", "or.pred", "xor.pred"))
            return Op(
                op, 1, (self.condition(depth - 1, uniform), self.condition(depth - 1, uniform))
            )
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
        """A small number, an edge case, or any number."""
        top = (1 << bits) - 1
        chance = self.chance
        roll = chance.random()
        if roll < 0.5:
            return Const(bits, chance.randint(0, 70))
        if roll < 0.65:
            return Const(bits, -chance.randint(1, 40) & top)
        if roll < 0.85:
            return Const(
                bits,
                chance.choice((31, 32, 33, 63, 64, 1 << (bits - 1), top, top >> 1, 255, 4, 12, 20))
                & top,
            )
        return Const(bits, chance.getrandbits(bits))

    def affine_index(self, uniform: bool = False) -> Expr:
        """An affine 32-bit index as kernels compute it from threadIdx."""
        chance = self.chance
        if uniform:
            known = [Special("ctaid.x"), Special("nctaid.x"), Special("ntid.x")]
            return chance.choice(
                [*known, *(Var(32, f"u{n}") for n in range(3))]
                if self.names is VARIABLES
                else known
            )
        base: Expr = chance.choice(
            (
                Special("tid.x"),
                Special("tid.x"),
                Special("tid.x"),
                Special("laneid"),
                Special("tid.y"),
                Special("tid.z"),
            )
        )
        if self.names is VARIABLES and chance.random() < 0.3:
            base = chance.choice(
                (Var(32, "r0"), Var(32, "r1"), Op("cvt.u32.u64", 32, (Var(64, "q0"),)))
            )
        if chance.random() < 0.2:
            base = Op("mad.lo.u32", 32, (Special("ctaid.x"), Special("ntid.x"), Special("tid.x")))
        for _ in range(chance.randint(0, 3)):
            base = self._affine_of(base)
        return base

    def _affine_of(self, base: Expr) -> Expr:
        chance = self.chance
        small, any_ = Const(32, chance.randint(1, 40)), self.literal(32)
        other = (
            chance.choice((small, small, any_, Var(32, "u0"), Special("ctaid.x")))
            if self.names is VARIABLES
            else small
        )
        sign = chance.choice("us")
        match chance.randrange(11):
            case 0:
                return Op(f"add.{sign}32", 32, (base, other))
            case 1:
                return Op(f"sub.{sign}32", 32, (base, other))
            case 2:
                return Op(f"sub.{sign}32", 32, (other, base))
            case 3:
                return Op(
                    f"mul.lo.{sign}32",
                    32,
                    (base, Const(32, chance.choice((2, 3, 4, 5, 12, 20, 65536, 65535)))),
                )
            case 4:
                return Op("shl.b32", 32, (base, Const(32, chance.choice((0, 1, 2, 3, 16, 31)))))
            case 5:
                return Op(f"shr.{sign}32", 32, (base, Const(32, chance.choice((0, 1, 2, 5, 6)))))
            case 6:
                return Op(
                    "and.b32",
                    32,
                    (base, Const(32, chance.choice((31, 32, 7, 63, 0xFFFFFFE0, 96, 64, 3)))),
                )
            case 7:
                return Op("xor.b32", 32, (base, Const(32, chance.choice((1, 3, 31, 16, 32)))))
            case 8:
                return Op("or.b32", 32, (base, Const(32, chance.choice((1, 3, 31, 32, 64, 2)))))
            case 9:
                return Op(
                    f"{chance.choice(('div', 'rem'))}.u32",
                    32,
                    (base, Const(32, chance.choice((2, 3, 7, 32)))),
                )
        return Op(
            f"mad.lo.{sign}32",
            32,
            (base, Const(32, chance.choice((1, 2, 3, 5))), chance.choice((other, base))),
        )

    def expression(self, bits: int, depth: int, uniform: bool = False) -> Expr:
        """A value of `bits`; the same for the whole block if `uniform`."""
        roll = self.chance.random()
        if depth <= 0 or roll < 0.15:
            return self._leaf(bits, uniform)
        if roll < 0.3 and bits == 32:
            return self.affine_index(uniform)
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
        names = [
            name
            for name, wide in self.names.items()
            if wide == bits and (not uniform or name[0] == "u")
        ]
        return Var(bits, self.chance.choice(names)) if names else self.literal(bits)

    def load(self) -> Expr:
        """A guarded load of 32 bits or fewer, widened."""
        chance = self.chance
        array = chance.choice(
            ("input", "input", "shared", "local") if self.names is VARIABLES else ("input",)
        )
        words = {"input": INPUT_WORDS, "shared": self.threads * SLOTS, "local": LOCAL_WORDS}[array]
        type_ = chance.choice(("u32", "u32", "u32", "s16", "u16", "u8", "s8"))
        size = int(type_[1:]) // 8
        stride = (
            size
            if chance.random() < 0.6
            else chance.choice([item for item in (4, 12, 20, 8, 16, 2, 1) if item % size == 0])
        )
        offset = chance.choice((0, 0, 4, 8, 12)) if words > 4 else 0
        limit = (words * 4 - offset - size) // stride + 1
        index = (
            self.affine_index()
            if chance.random() < 0.7
            else Op("rem.u32", 32, (self.expression(32, 1), Const(32, limit)))
        )
        how = chance.choice(("wide.u32", "wide.s32", "cvt.u64", "low", "generic", "wide.mad"))
        return Load(array, type_, index, stride, offset, limit, how)

    def _converted(self, bits: int, depth: int, uniform: bool) -> Expr:
        source = self.chance.choice([item for item in (16, 32, 64) if item != bits])
        inner: Expr = self.expression(source, depth - 1, uniform)
        if source == 32 and self.chance.random() < 0.4:
            inner = self.affine_index(uniform)
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
        choices = [
            "add",
            "sub",
            "mul",
            "mad",
            "logic",
            "not",
            "shl",
            "shr",
            "min",
            "selp",
            "div",
            "abs",
            "lit",
        ]
        if bits == 32:
            choices += [
                "popc",
                "brev",
                "bfe",
                "bfi",
                "shf",
                "lop3",
                "prmt",
                "set",
                "slct",
                "mulwide",
            ]
        if bits == 64:
            choices += ["brev", "bfe"]
        match chance.choice(choices):
            case "add":
                return Op(f"add.{us}", bits, (some(), some()))
            case "sub":
                return Op(f"sub.{us}", bits, (some(), some()))
            case "lit":
                return Op(
                    f"{chance.choice(('add', 'sub'))}.{us}", bits, (some(), self.literal(bits))
                )
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
                under: Expr = (
                    by if chance.random() < 0.6 else Op(f"or.{b}", bits, (some(), Const(bits, 1)))
                )
                return Op(
                    f"{chance.choice(('div', 'rem'))}.{us if under is by else u}",
                    bits,
                    (some(), under),
                )
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
                return Op(
                    f"shf.{chance.choice('lr')}.{chance.choice(('wrap', 'clamp'))}.b32",
                    32,
                    (some(), some(), amount()),
                )
            case "lop3":
                return Op(
                    "lop3.b32", 32, (some(), some(), some(), Const(32, chance.getrandbits(8)))
                )
            case "prmt":
                return Op("prmt.b32", 32, (some(), some(), some()))
            case "set":
                return Op(f"set.{chance.choice(TESTS)}.u32.{us}", 32, (some(), some()))
            case "slct":
                return Op("slct.u32.s32", 32, (some(), some(), some()))
        return Op(f"mul.wide.{chance.choice('us')}16", 32, (some(16), some(16)))
