"""Parses the body of a function: scopes, labels, source lines, instructions, split into basic
blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.ptx.declare import variables
from evoengine.emulator.ptx.lexer import TokenCursor
from evoengine.emulator.ptx.operands import call_operands, operands, simple
from evoengine.emulator.ptx.scope import Scope
from evoengine.emulator.ptx.source_lines import SourceLines
from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Block,
    Guard,
    Instruction,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)

MAX_DEPTH = 64  # of nested braces; clang and inline assembly need three
# of all brx of a function together, because the targets of each are checked for each
MAX_TARGETS = 1 << 16
BRANCHES = ("bra", "brx")
ENDS = frozenset(("bra", "brx", "ret", "exit"))  # a block ends after these, guarded or not
NO_UNROLLING = "nounroll"  # of .pragma
_SPACES = (".local", ".shared", ".param", ".global", ".const")


class FunctionBodyReader:
    """Parses from after the opening brace of a function to after its closing brace.

    `hoist` adds a .global or .const variable of the function to the module and returns its name
    there.
    """

    def __init__(
        self,
        cursor: TokenCursor,
        outer: Scope,
        source_lines: SourceLines,
        hoist: Callable[[Variable], str],
    ) -> None:
        self.cursor = cursor
        self.source_lines = source_lines
        self.hoist = hoist
        self.registers: dict[str, str] = {}
        self.variables: dict[str, Variable] = {}
        # (name, token); the parser checks them when all functions are known
        self.calls: list[tuple[str, int]] = []
        self.scope = Scope(outer, "", self.registers)
        self.depth = 1
        self.scopes = 0
        self.targets = 0  # of all brx so far
        self.block = Block(".0")
        self.blocks = [self.block]
        self.line = 0
        self.near = 0  # the last line that was known
        self.split = False  # the next instruction opens a new block
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}

    def read(self) -> list[Block]:
        """Parses the blocks; the last ends with a ret, which is added if it is missing."""
        cursor, texts = self.cursor, self.cursor.texts
        self.source_lines.enter()
        while self.depth:
            text = texts[cursor.at]
            if text[:1] == ".":
                self._directive(text)
            elif text == "{":
                self._open()
            elif text == "}":
                self._close()
            elif text == ";":
                cursor.at += 1
            elif texts[cursor.at + 1] == ":":
                self._label()
            else:
                self._instruction()
        last = self.block.instructions[-1] if self.block.instructions else None
        if last is None or last.op not in ENDS or last.guard is not None:
            self._append(Instruction("ret", (), (), None, self.line, "ret"))
        return self.blocks

    def _begin(self, label: str) -> None:
        self.block = Block(label)
        self.blocks.append(self.block)
        self.split = False

    def _open(self) -> None:
        self.depth += 1
        self.scopes += 1
        if self.depth > MAX_DEPTH:
            self.cursor.fail(f"braces nested deeper than {MAX_DEPTH}")
        self.scope = Scope(self.scope, f".{self.scopes}", self.registers)
        self.cursor.at += 1

    def _close(self) -> None:
        scope, parent = self.scope, self.scope.parent
        assert parent is not None, "the module's scope is never closed"
        self.depth -= 1
        for block, index in scope.jumps:
            jump = block.instructions[index]
            names = _targets(jump)
            if scope.suffix and any(name in scope.labels for name in names):
                jump = block.instructions[index] = _retarget(jump, scope.labels)
            if self.depth:
                parent.jumps.append((block, index))
            else:
                self._check(jump, scope)
        self.scope = parent
        self.cursor.at += 1

    def _check(self, jump: Instruction, scope: Scope) -> None:
        for name in _targets(jump):
            # names with a dot were renamed by an inner scope
            if name not in scope.labels and "." not in name:
                self.cursor.fail(f"label {name} is not in this function")

    def _label(self) -> None:
        cursor = self.cursor
        name = cursor.name()
        cursor.expect(":")
        kind = cursor.texts[cursor.at]
        if kind == ".branchtargets":
            cursor.at += 1
            self.scope.lists[name] = self._names()
        elif kind in (".callprototype", ".calltargets"):
            self._skip()
        elif name in self.scope.labels:
            cursor.fail(f"label {name} is defined twice", cursor.at - 2)
        else:
            self.scope.labels[name] = name + self.scope.suffix
            self._begin(name + self.scope.suffix)

    def _names(self) -> Vector:
        found = [Symbol(self.cursor.name())]
        while self.cursor.take(","):
            found.append(Symbol(self.cursor.name()))
        self.cursor.expect(";")
        return Vector(tuple(found))

    def _skip(self) -> None:
        cursor = self.cursor
        while not cursor.take(";"):
            if not cursor.texts[cursor.at]:
                cursor.fail("expected ';', got the end")
            cursor.at += 1

    def _directive(self, text: str) -> None:
        cursor = self.cursor
        cursor.at += 1
        if text == ".loc":
            self.line = self.source_lines.location(cursor)
            self.near = self.line or self.near
        elif text == ".reg":
            self._registers()
        elif text in _SPACES:
            self._variables(text[1:])
        elif text == ".pragma":
            self._pragma()
        elif text == ".file":
            self.source_lines.file(cursor)
        else:
            cursor.fail(f"unknown directive {text[:60]!r}", cursor.at - 1)

    def _pragma(self) -> None:
        """Keeps what says that a loop must not be unrolled (PTX ISA 8.3, 12.1), which stands in its
        first block: an instruction without effect.
        """
        if self.cursor.texts[self.cursor.at].strip('"') == NO_UNROLLING:
            self._append(Instruction("pragma", (NO_UNROLLING,), (), None, self.line, "pragma"))
        self._skip()

    def _registers(self) -> None:
        cursor, scope = self.cursor, self.scope
        kind = cursor.texts[cursor.at][1:]
        if kind in ("v2", "v4", "v8"):
            raise Unsupported(".reg .v2", self.line)
        if cursor.texts[cursor.at][:1] != "." or kind not in TYPE_BITS:
            cursor.fail(f"expected a type, got {cursor.shown()}")
        cursor.at += 1
        while True:
            name = cursor.name()
            if cursor.take("<"):
                fresh = scope.declare_range(name, cursor.integer(), kind)
                cursor.expect(">")
            else:
                fresh = scope.declare_register(name, kind)
            if not fresh:
                cursor.fail(f"register {name} is declared twice", cursor.at - 1)
            if not cursor.take(","):
                break
        cursor.expect(";")

    def _variables(self, space: str) -> None:
        start = self.cursor.at
        for variable in variables(self.cursor, space, extern=False):
            if space in ("global", "const"):
                self.scope.names[variable.name] = Symbol(self.hoist(variable))
                self.scope.cache.clear()
                continue
            name = self.scope.declare_symbol(variable.name)
            if name is None:
                self.cursor.fail(f"{variable.name} is declared twice", start)
            self.variables[name] = replace(variable, name=name)

    def _instruction(self) -> None:
        cursor = self.cursor
        start = cursor.at
        guard = self._guard() if cursor.texts[start] == "@" else None
        word = cursor.texts[cursor.at]
        op, modifiers = self.opcodes.get(word) or self._opcode(word)
        cursor.at += 1
        values: tuple[Operand, ...]
        if op in BRANCHES:
            values = self._branch(op)
        elif op == "call":
            if isinstance((values := call_operands(cursor, self.scope, word))[1], Symbol):
                self.calls.append((values[1].name, start))
        else:
            values = operands(cursor, self.scope, word)
        text = cursor.source[cursor.starts[start] : cursor.starts[cursor.at - 1]]
        written = " ".join(text.split())
        self._append(Instruction(op, modifiers, values, guard, self.line, written, self.near))

    def _append(self, instruction: Instruction) -> None:
        if self.split:
            self._begin(f".{len(self.blocks)}")
        if instruction.op in BRANCHES:
            self.scope.jumps.append((self.block, len(self.block.instructions)))
        self.block.instructions.append(instruction)
        self.split = instruction.op in ENDS

    def _opcode(self, word: str) -> tuple[str, tuple[str, ...]]:
        op, *modifiers = word.split(".")
        if not op.isidentifier() or not all(modifiers):
            self.cursor.fail(f"expected an instruction, got {self.cursor.shown()}")
        found = self.opcodes[word] = (op, tuple(modifiers))
        return found

    def _guard(self) -> Guard:
        cursor = self.cursor
        cursor.expect("@")
        negated = cursor.take("!")
        register = self.scope.find(cursor.texts[cursor.at])
        if not isinstance(register, Register):
            cursor.fail(f"expected a predicate after '@', got {cursor.shown()}")
        cursor.at += 1
        return Guard(register, negated)

    def _branch(self, op: str) -> tuple[Operand, ...]:
        """bra: (Symbol(label),); brx: (index, Vector of the Symbols of all labels)."""
        cursor = self.cursor
        if op == "bra":
            label = cursor.name()
            cursor.expect(";")
            return (Symbol(label),)
        index = simple(cursor, self.scope)
        cursor.expect(",")
        name = cursor.name()
        targets = self.scope.targets(name)
        if targets is None:
            cursor.fail(f"list of branch targets {name} is not declared", cursor.at - 1)
        cursor.expect(";")
        self.targets += len(targets.items)
        if self.targets > MAX_TARGETS:
            cursor.fail(f"more than {MAX_TARGETS} branch targets in one function")
        return (index, targets)


def _targets(jump: Instruction) -> list[str]:
    last = jump.operands[-1]
    symbols = last.items if isinstance(last, Vector) else (last,)
    return [symbol.name for symbol in symbols if isinstance(symbol, Symbol)]


def _retarget(jump: Instruction, labels: dict[str, str]) -> Instruction:
    new = [Symbol(labels.get(name, name)) for name in _targets(jump)]
    last: Operand = Vector(tuple(new)) if isinstance(jump.operands[-1], Vector) else new[0]
    return replace(jump, operands=(*jump.operands[:-1], last))
