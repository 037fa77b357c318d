"""Parses PTX text to a Module.

Accepts the output of clang's NVPTX back end and inline assembly (PTX ISA 8.3, chapters 4, 5 and
11).

Conventions of the result:

* names of inner scopes get a suffix with a dot (`p` becomes `p.3`), which no PTX identifier has; so
  do invented labels;
* `registers` holds those that are used, not all of `%r<12>`;
* `bra`: operands (Symbol(label),); `brx.idx`: (index, Vector of the labels' Symbols);
* `call`: (Vector(results), Symbol(function) or Register, Vector(arguments)[, Symbol(prototype)]);
* .global and .const variables declared in a function stand in `Module.variables`; .local, .shared
  and .param ones in the function's `variables`.
"""

from __future__ import annotations

from dataclasses import replace

from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.ptx.declare import declarator, variables
from evoengine.emulator.ptx.function_body import FunctionBodyReader
from evoengine.emulator.ptx.lexer import TokenCursor, literal
from evoengine.emulator.ptx.scope import Scope
from evoengine.emulator.ptx.source_lines import SourceLines
from evoengine.emulator.ptx.syntax import Function, Module, Parameter, Symbol, Variable

_LINKING = (".visible", ".weak", ".extern", ".common")
_SPACES = (".global", ".const", ".shared")


def parse(text: str) -> Module:
    """The module of a PTX text.

    Raises PtxError, with the line of the PTX, for text that is not valid PTX; Unsupported for PTX
    that the data model cannot represent (textures, vector registers).
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.cursor = TokenCursor(text)
        self.source_lines = SourceLines.of(self.cursor)
        self.version = self.target = ""
        self.scope = Scope(None, "", {})
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.declared: set[str] = set()
        self.calls: list[tuple[str, int]] = []

    def read(self) -> Module:
        cursor = self.cursor
        while text := cursor.texts[cursor.at]:
            cursor.at += 1
            self._statement(text)
        self._check()
        return Module(
            self.version,
            self.target,
            self.variables,
            self.functions,
            frozenset(self.declared - self.functions.keys()),
        )

    def _statement(self, text: str) -> None:
        cursor = self.cursor
        if text in _LINKING:
            self._linked(text == ".extern")
        elif text in (".entry", ".func"):
            self._function(text)
        elif text in _SPACES:
            self._variable(text[1:], extern=False)
        elif text == ".version":
            self.version = self._word()
        elif text == ".target":
            self.target = self._word()
            while cursor.take(","):
                self._word()
        elif text == ".address_size":
            if cursor.integer() != 64:
                raise Unsupported(".address_size 32")
        elif text == ".file":
            self.source_lines.file(cursor)
        elif text == ".section":
            self._word()
            cursor.skip_braces()
        elif text == ".pragma":
            cursor.at += 1
            cursor.expect(";")
        else:
            cursor.fail(f"expected a directive, got {text[:60]!r}", cursor.at - 1)

    def _word(self) -> str:
        text = self.cursor.texts[self.cursor.at]
        if not text or text in ";{}(),":
            self.cursor.fail(f"expected a word, got {self.cursor.shown()}")
        self.cursor.at += 1
        return text

    def _linked(self, extern: bool) -> None:
        text = self.cursor.texts[self.cursor.at]
        if text in (".entry", ".func"):
            self.cursor.at += 1
            self._function(text)
        elif text in _SPACES:
            self.cursor.at += 1
            self._variable(text[1:], extern)
        else:
            self.cursor.fail(f"expected a function or variable, got {self.cursor.shown()}")

    def _variable(self, space: str, extern: bool) -> None:
        start = self.cursor.at
        for variable in variables(self.cursor, space, extern):
            if (
                self.variables.get(variable.name, variable).extern is False
                and variable.name in self.variables
            ):
                self.cursor.fail(f"{variable.name} is declared twice", start)
            self.scope.declare_symbol(variable.name)
            self.variables[variable.name] = variable

    def _hoist(self, variable: Variable) -> str:
        """Adds a function's .global or .const variable to the module; returns its name there."""
        name = variable.name
        if name in self.variables:
            name = f"{variable.name}.{len(self.variables)}"
        self.variables[name] = replace(variable, name=name)
        return name

    def _function(self, kind: str) -> None:
        cursor = self.cursor
        results = self._parameters() if cursor.texts[cursor.at] == "(" else ()
        start = cursor.at
        name = cursor.name()
        parameters = self._parameters() if cursor.texts[cursor.at] == "(" else ()
        directives = self._directives()
        self.scope.declare_symbol(name)
        if cursor.take(";"):
            self.declared.add(name)
            return
        cursor.expect("{")
        if name in self.functions:
            cursor.fail(f"function {name} is defined twice", start)
        body = FunctionBodyReader(
            cursor, self._outer(results + parameters), self.source_lines, self._hoist
        )
        blocks = body.read()
        self.calls += body.calls
        self.functions[name] = Function(
            name,
            kind == ".entry",
            parameters,
            results,
            body.registers,
            body.variables,
            blocks,
            directives,
        )

    def _outer(self, parameters: tuple[Parameter, ...]) -> Scope:
        scope = Scope(self.scope, "", {})
        for parameter in parameters:
            if scope.declare_symbol(parameter.name) is None:
                self.cursor.fail(f"parameter {parameter.name} is declared twice")
        return scope

    def _parameters(self) -> tuple[Parameter, ...]:
        """(.param .u64 a, .param .align 8 .b8 b[24]), each at the next multiple of its
        alignment.
        """
        cursor = self.cursor
        cursor.expect("(")
        found: list[Parameter] = []
        end = 0
        while not cursor.take(")"):
            if found:
                cursor.expect(",")
            if cursor.texts[cursor.at] == ".reg":
                raise Unsupported(".reg parameters")
            cursor.expect(".param")
            declared = declarator(cursor)
            offset = -(-end // declared.align) * declared.align
            found.append(
                Parameter(declared.name, declared.type, declared.size, declared.align, offset)
            )
            end = offset + declared.size
        return tuple(found)

    def _directives(self) -> dict[str, tuple[int, ...]]:
        """.maxntid 128, 1, 1 and the like, between a function's parameters and its body."""
        cursor = self.cursor
        found: dict[str, tuple[int, ...]] = {}
        while (text := cursor.texts[cursor.at])[:1] == ".":
            cursor.at += 1
            if text == ".pragma":
                cursor.at += 1
                cursor.expect(";")
                continue
            numbers: list[int] = []
            while literal(cursor.texts[cursor.at]) is not None:
                numbers.append(cursor.integer())
                if not cursor.take(","):
                    break
            found[text[1:]] = tuple(numbers)
        return found

    def _check(self) -> None:
        """Checks that every called function, and every variable whose address another one holds, is
        declared.
        """
        for name, token in self.calls:
            if name not in self.functions and name not in self.declared:
                self.cursor.fail(f"function {name} is called but not declared", token)
        for variable in self.variables.values():
            for _, symbol in variable.addresses:
                self._known(symbol, variable.name)

    def _known(self, symbol: Symbol, holder: str) -> None:
        if (
            symbol.name not in self.variables
            and symbol.name not in self.functions
            and symbol.name not in self.declared
        ):
            self.cursor.fail(f"{holder} holds the address of {symbol.name}, which is not declared")
