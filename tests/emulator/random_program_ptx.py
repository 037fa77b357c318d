"""Programs of `programs` as PTX, without any compiler between."""

from __future__ import annotations

from tests.emulator.random_expression_ptx import Expressions
from tests.emulator.random_programs import (
    FUNCTION_VARIABLES,
    LOCAL_WORDS,
    SLOTS,
    VARIABLES,
    Assign,
    Call,
    Exchange,
    Give,
    If,
    Leave,
    Load,
    LoadVector,
    Loop,
    Program,
    Return,
    Shuffle,
    Stmt,
    Store,
    Switch,
    Tangle,
    Vote,
)

KERNEL = "k"
ARRAYS = ("input", "rows", "columns", *VARIABLES)  # the kernel's parameters, all addresses


class Writer(Expressions):
    """Writes one function's body."""

    def body(self, statements: tuple[Stmt, ...]) -> None:
        """Statements one behind the other."""
        for item in statements:
            getattr(self, "_" + type(item).__name__.lower())(item)

    def _assign(self, s: Assign) -> None:
        self.value(s.value, f"%{s.name}")

    def _loadvector(self, s: LoadVector) -> None:
        load = Load("input", "u32", s.index, 4 * len(s.names), s.offset, s.limit, "wide.u32")
        index = self.register(s.index)
        address = self.address(load, index)
        inside = self.new(1)
        self.say(f"setp.lt.u32 {inside}, {index}, {s.limit}")
        names = ", ".join(f"%{name}" for name in s.names)
        before = self.guard
        after = ""
        if self.guard:
            self.say(f"not.pred {inside}, {inside}")
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
        self.say(f"ld.global.v{len(s.names)}.u32 {{{names}}}, [{address}+{s.offset}]")
        self.guard = before
        if after:
            self.label(after)

    def _if(self, s: If) -> None:
        condition = self.register(s.condition)
        if s.predicated and not self.guard:
            kept = self.new(1)
            self.say(f"mov.pred {kept}, {condition}")
            self.guard = f"@{kept} "
            self.body(s.then)
            self.guard = f"@!{kept} "
            self.body(s.otherwise)
            self.guard = ""
            return
        other, after = self.fresh(), self.fresh()
        self.say(f"@!{condition} bra {other}")
        self.body(s.then)
        if s.otherwise:
            self.say(f"bra {after}")
        self.label(other)
        self.body(s.otherwise)
        self.label(after)

    def _loop(self, s: Loop) -> None:
        head, on, after = self.fresh(), self.fresh(), self.fresh()
        counter, test = f"%{s.counter}", self.new(1)
        self.loops.append((after, on))
        if s.rotated:
            limit = self.value(s.limit, self.new(32))
            self.say(f"mov.u32 {counter}, 0")
            self.say(f"setp.eq.u32 {test}, {limit}, 0")
            self.say(f"@{test} bra {after}")
            self.label(head)
            self.body(s.body)
            self.label(on)
            self.say(f"add.u32 {counter}, {counter}, 1")
            self.say(f"setp.lt.u32 {test}, {counter}, {limit}")
            self.say(f"@{test} bra {head}")
        else:
            self.say(f"mov.u32 {counter}, 0")
            self.label(head)
            limit = self.value(s.limit)
            self.say(f"setp.ge.u32 {test}, {counter}, {limit}")
            self.say(f"@{test} bra {after}")
            self.body(s.body)
            self.label(on)
            self.say(f"add.u32 {counter}, {counter}, 1")
            self.say(f"bra {head}")
        self.label(after)
        self.loops.pop()

    def _leave(self, s: Leave) -> None:
        to = self.loops[-1][s.what == "continue"]
        self.say(f"@{self.register(s.condition)} bra {to}")

    def _return(self, s: Return) -> None:
        condition = self.register(s.condition)
        self.say(f"@{condition} {'bra DONE' if s.how == 'jump' else s.how}")

    def _switch(self, s: Switch) -> None:
        selector, after = self.register(s.selector), self.fresh()
        places = [self.fresh() for _ in s.cases]
        for number, place in enumerate(places):
            test = self.new(1)
            self.say(f"setp.eq.u32 {test}, {selector}, {number}")
            self.say(f"@{test} bra {place}")
        self.say(f"bra {after}")
        for place, inside, falls in zip(places, s.cases, s.falls, strict=True):
            self.label(place)
            self.body(inside)
            if not falls:
                self.say(f"bra {after}")
        self.label(after)

    def _tangle(self, s: Tangle) -> None:
        after = self.fresh()
        places = [*(self.fresh() for _ in s.blocks), after]
        self.say(f"mov.u32 %{s.counter}, {s.fuel}")
        for number, (inside, condition, yes, no) in enumerate(s.blocks):
            self.label(places[number])
            self.say(f"sub.u32 %{s.counter}, %{s.counter}, 1")
            test = self.new(1)
            self.say(f"setp.eq.u32 {test}, %{s.counter}, 0")
            self.say(f"@{test} bra {after}")
            self.body(inside)
            self.say(f"@{self.register(condition)} bra {places[yes]}")
            if no != number + 1:
                self.say(f"bra {places[no]}")
        self.label(after)

    def _store(self, s: Store) -> None:
        slot = self.register(s.slot)
        value = self.value(s.value)
        wide, whole = self.new(64), self.new(64)
        if s.array == "local":
            self.say(f"mul.wide.u32 {wide}, {slot}, 4")
            self.say(f"mov.u64 {whole}, local_memory")
            self.say(f"add.u64 {whole}, {whole}, {wide}")
            self.say(f"st.local.u32 [{whole}], {value}")
            return
        place = self.new(32)
        if s.array == "rows":
            self.say(f"mad.lo.u32 {place}, %all, {SLOTS}, {slot}")
        else:
            self.say(
                f"mad.lo.u32 {place}, {slot}, {self.program.threads * self.program.grid}, %all"
            )
        self.say(f"mul.wide.u32 {wide}, {place}, 4")
        self.say(f"add.u64 {whole}, %{s.array}, {wide}")
        self.say(f"st.global.u32 [{whole}], {value}")

    def _exchange(self, s: Exchange) -> None:
        value = self.value(s.value, self.new(32))
        condition = self.value(s.condition, self.new(1)) if s.condition is not None else ""
        threads = self.program.threads
        place, narrow = self.new(32), self.new(32)
        self.say("bar.sync 0")
        if s.place == "same":
            self.say(f"add.u32 {place}, %number, {s.slot * threads}")
        elif s.place == "reversed":
            self.say(f"sub.u32 {place}, {s.slot * threads + threads - 1}, %number")
        elif s.place == "rotated":
            self.say(f"add.u32 {place}, %number, {s.slot}")
            self.say(f"rem.u32 {place}, {place}, {threads}")
            self.say(f"add.u32 {place}, {place}, {s.slot * threads}")
        else:
            self.say(f"mad.lo.u32 {place}, %number, {SLOTS}, {s.slot}")
        base = self.new(32)
        self.say(f"mov.u32 {base}, shared_memory")
        self.say(f"mad.lo.u32 {narrow}, {place}, 4, {base}")
        self.say(f"{'@' + condition + ' ' if condition else ''}st.shared.u32 [{narrow}], {value}")
        self.say("bar.sync 0")

    def _shuffle(self, s: Shuffle) -> None:
        value, lane = self.register(s.value), self.value(s.lane)
        clamp = (32 - s.width) << 8 | (0 if s.mode == "up" else 31)
        self.say(
            f"shfl.sync.{s.mode}.b32 %{s.name}|%{s.inside}, {value}, {lane}, {clamp}, %members"
        )

    def _vote(self, s: Vote) -> None:
        condition = self.register(s.condition)
        if s.what.startswith("bar"):
            kind = s.what.removeprefix("bar.")
            self.say(
                f"bar.red.{kind}.{'u32' if kind == 'popc' else 'pred'} %{s.name}, 0, {condition}"
            )
        else:
            self.say(
                f"vote.sync.{s.what}.{'b32' if s.what == 'ballot' else 'pred'} %{s.name},"
                f" {condition}, %members"
            )

    def _call(self, s: Call) -> None:
        args = [self.register(item) for item in s.args]
        names = [self.fresh("param") for _ in range(4)]
        self.lines.append("    {")
        for name, value in zip(names, args, strict=False):
            self.lines.append(f"    .param .b32 {name};")
            self.say(f"st.param.b32 [{name}], {value}")
        self.lines.append(f"    .param .b64 {names[3]};")
        self.say(f"st.param.b64 [{names[3]}], %input")
        self.lines.append(f"    .param .b32 {names[2]};")
        self.say(f"call.uni ({names[2]}), f{s.function}, ({names[0]}, {names[1]}, {names[3]})")
        self.say(f"ld.param.b32 %{s.name}, [{names[2]}]")
        self.lines.append("    }")

    def _give(self, s: Give) -> None:
        condition, after = self.register(s.condition), self.fresh()
        self.say(f"@!{condition} bra {after}")
        self.say(f"st.param.b32 [result], {self.register(s.value)}")
        self.say("ret")
        self.label(after)


def ptx(program: Program) -> str:
    """The module: kernel `k` with the arrays' addresses as parameters."""
    functions = [_function(program, number, body) for number, body in enumerate(program.functions)]
    return "\n".join(
        [".version 8.3", ".target sm_89", ".address_size 64", *functions, _kernel(program)]
    )


def _function(program: Program, number: int, body: tuple[Stmt, ...]) -> str:
    writer = Writer(
        program, {**FUNCTION_VARIABLES, **dict.fromkeys(program.counters, 32), "input": 64}
    )
    writer.say("ld.param.b32 %x0, [first]")
    writer.say("ld.param.b32 %x1, [second]")
    writer.say("mov.u64 %y0, 1")
    writer.say("ld.param.b64 %input, [third]")
    writer.body(body)
    writer.say("ret")
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
    writer = Writer(program, {**names, **{name: 64 for name in ("input", "rows", "columns")}})
    for name in ("input", "rows", "columns"):
        writer.say(f"ld.param.u64 %{name}, [p_{name}]")
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


def _begin(w: Writer, program: Program) -> None:
    """The thread's numbers, the variables' first values, local and shared memory."""
    say = w.say
    x, y, _ = program.block
    a, b, base = w.new(32), w.new(32), w.new(32)
    say(f"mov.u32 {a}, %tid.z"), say(f"mov.u32 {b}, %tid.y")
    say(f"mad.lo.u32 {a}, {a}, {y}, {b}"), say(f"mov.u32 {b}, %tid.x")
    say(f"mad.lo.u32 %number, {a}, {x}, {b}"), say(f"mov.u32 {b}, %ctaid.x")
    say(f"mad.lo.u32 %all, {b}, {program.threads}, %number")
    say("activemask.b32 %members")
    for name, bits in VARIABLES.items():
        if name[0] == "u":
            say(f"mov.u32 %{name}, {7 * int(name[1:]) + 3}")
            continue
        if name[0] in "rq":
            (
                say(f"mov.u32 {b}, %tid.x"),
                say(f"mov.u32 %{name}, {b}" if bits == 32 else f"cvt.u64.u32 %{name}, {b}"),
            )
            continue
        value = w.new(32)
        say(f"mad.lo.u32 {value}, %all, {2 * ord(name[1]) + 1}, {ord(name[0])}")
        if bits == 1:
            say(f"and.b32 {value}, {value}, 1"), say(f"setp.ne.u32 %{name}, {value}, 0")
        else:
            say(f"cvt.u{bits}.u32 %{name}, {value}" if bits != 32 else f"mov.u32 %{name}, {value}")
    for place in range(LOCAL_WORDS):
        (
            say(f"add.u32 {a}, %number, {3 * place}"),
            say(f"st.local.u32 [local_memory+{4 * place}], {a}"),
        )
    for slot in range(SLOTS):
        (
            say(f"add.u32 {a}, %number, {slot * program.threads}"),
            say(f"mul.lo.u32 {b}, {a}, {0x9E3779B1}"),
        )
        (
            say(f"mov.u32 {base}, shared_memory"),
            say(f"mad.lo.u32 {a}, {a}, 4, {base}"),
            say(f"st.shared.u32 [{a}], {b}"),
        )
    say("bar.sync 0")


def _end(w: Writer) -> None:
    """Every variable, into an array of its own."""
    for name, bits in VARIABLES.items():
        address, place = w.new(64), w.new(64)
        size = max(bits, 32) // 8 if bits != 16 else 2
        value = f"%{name}"
        if bits == 1:
            value = w.new(32)
            w.say(f"selp.b32 {value}, 1, 0, %{name}")
        w.say(f"ld.param.u64 {address}, [p_{name}]")
        w.say(f"mul.wide.u32 {place}, %all, {size}")
        w.say(f"add.u64 {address}, {address}, {place}")
        w.say(f"st.global.b{8 * size} [{address}], {value}")
