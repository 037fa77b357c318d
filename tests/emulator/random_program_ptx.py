"""Writes programs of `random_programs` as PTX, without a compiler."""

from __future__ import annotations

from tests.emulator.random_expression_ptx import ExpressionWriter
from tests.emulator.random_programs import (
    FUNCTION_VARIABLES,
    LOCAL_WORDS,
    SLOTS,
    VARIABLES,
    Assign,
    Call,
    Exchange,
    If,
    IrreducibleFlow,
    Leave,
    Load,
    LoadVector,
    Loop,
    Program,
    Return,
    ReturnValue,
    Shuffle,
    Stmt,
    Store,
    Switch,
    Vote,
)

KERNEL = "k"
ARRAYS = ("input", "rows", "columns", *VARIABLES)  # the kernel's parameters, all addresses


class PtxWriter(ExpressionWriter):
    """Writes the body of one function."""

    def body(self, statements: tuple[Stmt, ...]) -> None:
        """Writes a sequence of statements."""
        for item in statements:
            getattr(self, "_" + type(item).__name__.lower())(item)

    def _assign(self, s: Assign) -> None:
        self.value(s.value, f"%{s.name}")

    def _loadvector(self, s: LoadVector) -> None:
        load = Load("input", "u32", s.index, 4 * len(s.names), s.offset, s.limit, "wide.u32")
        index = self.register(s.index)
        address = self.address(load, index)
        inside = self.new(1)
        self.emit(f"setp.lt.u32 {inside}, {index}, {s.limit}")
        names = ", ".join(f"%{name}" for name in s.names)
        before = self.guard
        after = ""
        if self.guard:
            self.emit(f"not.pred {inside}, {inside}")
            after = self.fresh()
            opposite = (
                "@" + self.guard.strip()[2:]
                if self.guard[1] == "!"
                else "@!" + self.guard.strip()[1:]
            )
            self.guard = ""
            self.lines.append(f"    {opposite} bra {after};")
            self.lines.append(f"    @{inside} bra {after};")
        else:
            self.guard = f"@{inside} "
        self.emit(f"ld.global.v{len(s.names)}.u32 {{{names}}}, [{address}+{s.offset}]")
        self.guard = before
        if after:
            self.label(after)

    def _if(self, s: If) -> None:
        condition = self.register(s.condition)
        if s.predicated and not self.guard:
            kept = self.new(1)
            self.emit(f"mov.pred {kept}, {condition}")
            self.guard = f"@{kept} "
            self.body(s.then)
            self.guard = f"@!{kept} "
            self.body(s.otherwise)
            self.guard = ""
            return
        other, after = self.fresh(), self.fresh()
        self.emit(f"@!{condition} bra {other}")
        self.body(s.then)
        if s.otherwise:
            self.emit(f"bra {after}")
        self.label(other)
        self.body(s.otherwise)
        self.label(after)

    def _loop(self, s: Loop) -> None:
        head, on, after = self.fresh(), self.fresh(), self.fresh()
        counter, test = f"%{s.counter}", self.new(1)
        self.loops.append((after, on))
        if s.rotated:
            limit = self.value(s.limit, self.new(32))
            self.emit(f"mov.u32 {counter}, 0")
            self.emit(f"setp.eq.u32 {test}, {limit}, 0")
            self.emit(f"@{test} bra {after}")
            self.label(head)
            self.body(s.body)
            self.label(on)
            self.emit(f"add.u32 {counter}, {counter}, 1")
            self.emit(f"setp.lt.u32 {test}, {counter}, {limit}")
            self.emit(f"@{test} bra {head}")
        else:
            self.emit(f"mov.u32 {counter}, 0")
            self.label(head)
            limit = self.value(s.limit)
            self.emit(f"setp.ge.u32 {test}, {counter}, {limit}")
            self.emit(f"@{test} bra {after}")
            self.body(s.body)
            self.label(on)
            self.emit(f"add.u32 {counter}, {counter}, 1")
            self.emit(f"bra {head}")
        self.label(after)
        self.loops.pop()

    def _leave(self, s: Leave) -> None:
        to = self.loops[-1][s.what == "continue"]
        self.emit(f"@{self.register(s.condition)} bra {to}")

    def _return(self, s: Return) -> None:
        condition = self.register(s.condition)
        self.emit(f"@{condition} {'bra DONE' if s.how == 'jump' else s.how}")

    def _switch(self, s: Switch) -> None:
        selector, after = self.register(s.selector), self.fresh()
        places = [self.fresh() for _ in s.cases]
        for number, place in enumerate(places):
            test = self.new(1)
            self.emit(f"setp.eq.u32 {test}, {selector}, {number}")
            self.emit(f"@{test} bra {place}")
        self.emit(f"bra {after}")
        for place, inside, falls in zip(places, s.cases, s.falls, strict=True):
            self.label(place)
            self.body(inside)
            if not falls:
                self.emit(f"bra {after}")
        self.label(after)

    def _irreducibleflow(self, s: IrreducibleFlow) -> None:
        after = self.fresh()
        places = [*(self.fresh() for _ in s.blocks), after]
        self.emit(f"mov.u32 %{s.counter}, {s.fuel}")
        for number, (inside, condition, yes, no) in enumerate(s.blocks):
            self.label(places[number])
            self.emit(f"sub.u32 %{s.counter}, %{s.counter}, 1")
            test = self.new(1)
            self.emit(f"setp.eq.u32 {test}, %{s.counter}, 0")
            self.emit(f"@{test} bra {after}")
            self.body(inside)
            self.emit(f"@{self.register(condition)} bra {places[yes]}")
            if no != number + 1:
                self.emit(f"bra {places[no]}")
        self.label(after)

    def _store(self, s: Store) -> None:
        slot = self.register(s.slot)
        value = self.value(s.value)
        wide, whole = self.new(64), self.new(64)
        if s.array == "local":
            self.emit(f"mul.wide.u32 {wide}, {slot}, 4")
            self.emit(f"mov.u64 {whole}, local_memory")
            self.emit(f"add.u64 {whole}, {whole}, {wide}")
            self.emit(f"st.local.u32 [{whole}], {value}")
            return
        place = self.new(32)
        if s.array == "rows":
            self.emit(f"mad.lo.u32 {place}, %all, {SLOTS}, {slot}")
        else:
            self.emit(
                f"mad.lo.u32 {place}, {slot}, {self.program.threads * self.program.grid}, %all"
            )
        self.emit(f"mul.wide.u32 {wide}, {place}, 4")
        self.emit(f"add.u64 {whole}, %{s.array}, {wide}")
        self.emit(f"st.global.u32 [{whole}], {value}")

    def _exchange(self, s: Exchange) -> None:
        value = self.value(s.value, self.new(32))
        condition = self.value(s.condition, self.new(1)) if s.condition is not None else ""
        threads = self.program.threads
        place, narrow = self.new(32), self.new(32)
        self.emit("bar.sync 0")
        if s.place == "same":
            self.emit(f"add.u32 {place}, %number, {s.slot * threads}")
        elif s.place == "reversed":
            self.emit(f"sub.u32 {place}, {s.slot * threads + threads - 1}, %number")
        elif s.place == "rotated":
            self.emit(f"add.u32 {place}, %number, {s.slot}")
            self.emit(f"rem.u32 {place}, {place}, {threads}")
            self.emit(f"add.u32 {place}, {place}, {s.slot * threads}")
        else:
            self.emit(f"mad.lo.u32 {place}, %number, {SLOTS}, {s.slot}")
        base = self.new(32)
        self.emit(f"mov.u32 {base}, shared_memory")
        self.emit(f"mad.lo.u32 {narrow}, {place}, 4, {base}")
        self.emit(f"{'@' + condition + ' ' if condition else ''}st.shared.u32 [{narrow}], {value}")
        self.emit("bar.sync 0")

    def _shuffle(self, s: Shuffle) -> None:
        value, lane = self.register(s.value), self.value(s.lane)
        clamp = (32 - s.width) << 8 | (0 if s.mode == "up" else 31)
        self.emit(
            f"shfl.sync.{s.mode}.b32 %{s.name}|%{s.inside}, {value}, {lane}, {clamp}, %members"
        )

    def _vote(self, s: Vote) -> None:
        condition = self.register(s.condition)
        if s.what.startswith("bar"):
            kind = s.what.removeprefix("bar.")
            self.emit(
                f"bar.red.{kind}.{'u32' if kind == 'popc' else 'pred'} %{s.name}, 0, {condition}"
            )
        else:
            self.emit(
                f"vote.sync.{s.what}.{'b32' if s.what == 'ballot' else 'pred'} %{s.name},"
                f" {condition}, %members"
            )

    def _call(self, s: Call) -> None:
        args = [self.register(item) for item in s.args]
        names = [self.fresh("param") for _ in range(4)]
        self.lines.append("    {")
        for name, value in zip(names, args, strict=False):
            self.lines.append(f"    .param .b32 {name};")
            self.emit(f"st.param.b32 [{name}], {value}")
        self.lines.append(f"    .param .b64 {names[3]};")
        self.emit(f"st.param.b64 [{names[3]}], %input")
        self.lines.append(f"    .param .b32 {names[2]};")
        self.emit(f"call.uni ({names[2]}), f{s.function}, ({names[0]}, {names[1]}, {names[3]})")
        self.emit(f"ld.param.b32 %{s.name}, [{names[2]}]")
        self.lines.append("    }")

    def _returnvalue(self, s: ReturnValue) -> None:
        condition, after = self.register(s.condition), self.fresh()
        self.emit(f"@!{condition} bra {after}")
        self.emit(f"st.param.b32 [result], {self.register(s.value)}")
        self.emit("ret")
        self.label(after)


def ptx(program: Program) -> str:
    """The module: kernel `k` with the arrays' addresses as parameters."""
    functions = [_function(program, number, body) for number, body in enumerate(program.functions)]
    return "\n".join(
        [".version 8.3", ".target sm_89", ".address_size 64", *functions, _kernel(program)]
    )


def _function(program: Program, number: int, body: tuple[Stmt, ...]) -> str:
    writer = PtxWriter(
        program, {**FUNCTION_VARIABLES, **dict.fromkeys(program.counters, 32), "input": 64}
    )
    writer.emit("ld.param.b32 %x0, [first]")
    writer.emit("ld.param.b32 %x1, [second]")
    writer.emit("mov.u64 %y0, 1")
    writer.emit("ld.param.b64 %input, [third]")
    writer.body(body)
    writer.emit("ret")
    head = (
        f".func (.param .b32 result) f{number} (.param .b32 first, .param .b32 second, .param .b64"
        " third)"
    )
    return "\n".join([head, "{", *writer.declared(), *writer.lines, "}"])


def _kernel(program: Program) -> str:
    names = {
        **VARIABLES,
        **dict.fromkeys(program.counters, 32),
        "all": 32,
        "number": 32,
        "members": 32,
    }
    writer = PtxWriter(program, {**names, **{name: 64 for name in ("input", "rows", "columns")}})
    for name in ("input", "rows", "columns"):
        writer.emit(f"ld.param.u64 %{name}, [p_{name}]")
    _begin(writer, program)
    writer.body(program.body)
    writer.label("DONE")
    _end(writer)
    parameters = ", ".join(f".param .u64 p_{name}" for name in ARRAYS)
    memory = [
        f"    .shared .align 16 .b8 shared_memory[{program.threads * SLOTS * 4}];",
        f"    .local .align 16 .b8 local_memory[{LOCAL_WORDS * 4}];",
    ]
    return "\n".join(
        [
            f".visible .entry {KERNEL}({parameters})",
            "{",
            *memory,
            *writer.declared(),
            *writer.lines,
            "    ret;",
            "}",
        ]
    )


def _begin(w: PtxWriter, program: Program) -> None:
    """Thread indices, the variables' initial values, local and shared memory."""
    emit = w.emit
    x, y, _ = program.block
    a, b, base = w.new(32), w.new(32), w.new(32)
    emit(f"mov.u32 {a}, %tid.z"), emit(f"mov.u32 {b}, %tid.y")
    emit(f"mad.lo.u32 {a}, {a}, {y}, {b}"), emit(f"mov.u32 {b}, %tid.x")
    emit(f"mad.lo.u32 %number, {a}, {x}, {b}"), emit(f"mov.u32 {b}, %ctaid.x")
    emit(f"mad.lo.u32 %all, {b}, {program.threads}, %number")
    emit("activemask.b32 %members")
    for name, bits in VARIABLES.items():
        if name[0] == "u":
            emit(f"mov.u32 %{name}, {7 * int(name[1:]) + 3}")
            continue
        if name[0] in "rq":
            (
                emit(f"mov.u32 {b}, %tid.x"),
                emit(f"mov.u32 %{name}, {b}" if bits == 32 else f"cvt.u64.u32 %{name}, {b}"),
            )
            continue
        value = w.new(32)
        emit(f"mad.lo.u32 {value}, %all, {2 * ord(name[1]) + 1}, {ord(name[0])}")
        if bits == 1:
            emit(f"and.b32 {value}, {value}, 1"), emit(f"setp.ne.u32 %{name}, {value}, 0")
        else:
            emit(f"cvt.u{bits}.u32 %{name}, {value}" if bits != 32 else f"mov.u32 %{name}, {value}")
    for place in range(LOCAL_WORDS):
        (
            emit(f"add.u32 {a}, %number, {3 * place}"),
            emit(f"st.local.u32 [local_memory+{4 * place}], {a}"),
        )
    for slot in range(SLOTS):
        (
            emit(f"add.u32 {a}, %number, {slot * program.threads}"),
            emit(f"mul.lo.u32 {b}, {a}, {0x9E3779B1}"),
        )
        (
            emit(f"mov.u32 {base}, shared_memory"),
            emit(f"mad.lo.u32 {a}, {a}, 4, {base}"),
            emit(f"st.shared.u32 [{a}], {b}"),
        )
    emit("bar.sync 0")


def _end(w: PtxWriter) -> None:
    """Stores every variable to an array of its own."""
    for name, bits in VARIABLES.items():
        address, place = w.new(64), w.new(64)
        size = max(bits, 32) // 8 if bits != 16 else 2
        value = f"%{name}"
        if bits == 1:
            value = w.new(32)
            w.emit(f"selp.b32 {value}, 1, 0, %{name}")
        w.emit(f"ld.param.u64 {address}, [p_{name}]")
        w.emit(f"mul.wide.u32 {place}, %all, {size}")
        w.emit(f"add.u64 {address}, {address}, {place}")
        w.emit(f"st.global.b{8 * size} [{address}], {value}")
