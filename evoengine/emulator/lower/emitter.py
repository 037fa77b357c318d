"""LLVM IR as text: names, declarations, constants. Nothing here knows PTX."""

from __future__ import annotations

LANES = 32


def integer(bits: int, vector: bool) -> str:
    """The integer type of `bits`, for one lane or for all."""
    return f"<{LANES} x i{bits}>" if vector else f"i{bits}"


FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "tf32": "float"}
FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "tf32": 32}


def floating(type_: str, vector: bool) -> str:
    """The floating type of PTX `type_`, for one lane or for all."""
    return f"<{LANES} x {FLOATS[type_]}>" if vector else FLOATS[type_]


def suffix(type_: str) -> str:
    """How an intrinsic's name spells a type: v32f32 for <32 x float>."""
    names = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}
    if type_.startswith("<"):
        count, _, of = type_[1:-1].partition(" x ")
        return f"v{count}{names.get(of, of)}"
    return names.get(type_, type_)


class Emitter:
    """Collects the body of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: dict[str, str] = {}
        self._count = 0

    def name(self) -> str:
        """A fresh value name."""
        self._count += 1
        return f"%t{self._count}"

    def label(self) -> str:
        """A fresh label."""
        self._count += 1
        return f"b{self._count}"

    def do(self, text: str) -> None:
        """Appends an instruction without a result."""
        self.lines.append("  " + text)

    def get(self, text: str) -> str:
        """Appends an instruction; returns the name of its result."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def place(self, label: str) -> None:
        """Begins a basic block; the one before it must have a terminator."""
        self.lines.append(f"{label}:")

    def splat(self, value: str, of: str) -> str:
        """<32 x `of`> with the same value in all lanes; `value` is a literal or a scalar of type
        `of`.
        """
        if value[0] != "%":
            return f"splat ({of} {value})"
        one = self.get(f"insertelement <{LANES} x {of}> poison, {of} {value}, i32 0")
        return self.get(
            f"shufflevector <{LANES} x {of}> {one}, <{LANES} x {of}> poison, <{LANES} x i32>"
            " zeroinitializer"
        )

    def bitcast(self, value: str, before: str, after: str) -> str:
        """The same bits as another type."""
        return value if before == after else self.get(f"bitcast {before} {value} to {after}")

    def intrinsic(self, name: str, type_: str, *values: str, also: str = "") -> str:
        """A call of llvm.`name` whose operands and result all have `type_`; `also` is further
        operands, verbatim.
        """
        full = f"@llvm.{name}.{suffix(type_)}"
        extra = [item.rsplit(" ", 1)[0].strip() for item in also.split(",")] if also else []
        self.declarations[full] = (
            f"declare {type_} {full}({', '.join([type_] * len(values) + extra)})"
        )
        arguments = [f"{type_} {value}" for value in values] + ([also] if also else [])
        return self.get(f"call {type_} {full}({', '.join(arguments)})")

    def call(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        """A call of a C function; arguments are (type, value); "" for a function without a
        result.
        """
        self.declarations[f"@{name}"] = (
            f"declare {result} @{name}({', '.join(type_ for type_, _ in arguments)})"
        )
        text = (
            f"call {result} @{name}({', '.join(f'{type_} {value}' for type_, value in arguments)})"
        )
        if result != "void":
            return self.get(text)
        self.do(text)
        return ""
