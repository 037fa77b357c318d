"""Inlines the calls of device functions in a kernel.

Calls of functions without a body remain (vprintf, __assertfail, malloc, our math functions), as
`call` with operands (Vector(results), Symbol(name), Vector(arguments)); every result and argument
is a Register (or the operand that inline assembly has there). Their types give only the width (b16
for one byte, b32, b64). No `.param` variables remain except the kernel's own parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evoengine.emulator.emulator_errors import PtxError, Unsupported
from evoengine.emulator.ptx.arguments import as_registers
from evoengine.emulator.ptx.rename import Renamer, with_variables_renamed
from evoengine.emulator.ptx.simplify import simplify
from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Address,
    Block,
    Function,
    Guard,
    Instruction,
    Module,
    Operand,
    Parameter,
    Register,
    Symbol,
    Variable,
    Vector,
)

# instructions, registers, variables and blocks copied for one kernel; LLVM would take hours for
# more
MAX_COPIED = 1 << 19


def inline_calls(module: Module, kernel_name: str) -> Function:
    """The kernel with every call of a function that has a body expanded in place, and its control
    flow simplified.

    `module` is not changed. Raises PtxError if it has no such kernel or a call does not match its
    function; Unsupported for recursion, calls through a pointer, and kernels for which more than
    MAX_COPIED items are copied.
    """
    kernel = module.functions.get(kernel_name)
    if kernel is None or not kernel.is_kernel:
        raise PtxError(
            f"no kernel {kernel_name!r}; known kernels: {', '.join(_kernels(module)) or 'none'}"
        )
    expander = _Expander(module, _order(module, kernel_name))
    return simplify(as_registers(expander.expanded()))


def _kernels(module: Module) -> list[str]:
    return sorted(function.name for function in module.functions.values() if function.is_kernel)


def _calls(function: Function) -> Iterator[tuple[str, int]]:
    """(name of the function, line) of all its calls."""
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.op == "call":
                callee = instruction.operands[1]
                if not isinstance(callee, Symbol):
                    raise Unsupported("call through a pointer", instruction.line)
                yield callee.name, instruction.line


def _order(module: Module, start: str) -> list[str]:
    """All functions that `start` reaches, callees before callers; `start` is last."""
    done: dict[str, None] = {}
    path: dict[str, Iterator[tuple[str, int]]] = {start: _calls(module.functions[start])}
    while path:
        caller, calls = next(reversed(path.items()))
        for callee, line in calls:
            if callee in path:
                through = "" if callee == caller else f" through {caller}"
                raise Unsupported(f"recursion: {callee} calls itself{through}", line)
            if callee in module.functions and callee not in done:
                if module.functions[callee].is_kernel:
                    raise Unsupported(f"call of the kernel {callee}", line)
                path[callee] = _calls(module.functions[callee])
                break
        else:
            done[caller] = None
            del path[caller]
    return list(done)


class _Expander:
    """Expands functions bottom-up, so that each body is expanded once and then only copied."""

    def __init__(self, module: Module, order: list[str]) -> None:
        self.order = order
        self.copies = 0
        self.copied = 0
        self.functions: dict[str, Function] = {}
        taken = set(module.variables)
        for name in order:
            self.functions[name] = _with_own_shared(module.functions[name], taken)

    def expanded(self) -> Function:
        """The last function of the order with all calls expanded."""
        for name in self.order:
            self.functions[name] = self._function(self.functions[name])
        return self.functions[self.order[-1]]

    def _function(self, old: Function) -> Function:
        new = replace(old, registers=dict(old.registers), variables=dict(old.variables), blocks=[])
        for block in old.blocks:
            current = Block(block.label)
            new.blocks.append(current)
            for instruction in block.instructions:
                callee = self.functions.get(_callee(instruction))
                if callee is None:
                    current.instructions.append(instruction)
                else:
                    current = self._call(new, current, instruction, callee)
        return new

    def _call(self, caller: Function, block: Block, call: Instruction, callee: Function) -> Block:
        """Appends the callee's blocks after `block`; returns the block in which the caller
        continues.
        """
        self.copies += 1
        self.copied += (
            len(callee.registers)
            + len(callee.variables)
            + sum(len(inner.instructions) + 1 for inner in callee.blocks)
        )
        if self.copied > MAX_COPIED:
            raise Unsupported(
                f"calls of {callee.name}: the kernel becomes too long when they are inlined",
                call.line,
            )
        suffix = f".i{self.copies}"
        continuation = Block(f"{callee.name}.behind{suffix}")
        if call.guard:
            skip = Guard(call.guard.register, not call.guard.negated)
            block.instructions.append(
                Instruction("bra", (), (Symbol(continuation.label),), skip, call.line, call.text)
            )
            block = Block(f"{callee.name}.guarded{suffix}")
            caller.blocks.append(block)
        passing = _ArgumentPassing(caller, call, callee, suffix)
        block.instructions += passing.before
        symbols = {
            name: name + suffix
            for name, variable in callee.variables.items()
            if variable.space != "shared"
        }
        labels = {inner.label: inner.label + suffix for inner in callee.blocks}
        renamer = Renamer(suffix, symbols | passing.names, labels)
        _declare(caller, callee, symbols, suffix)
        for inner in callee.blocks:
            copied = [
                _returning(renamer.instruction(old), continuation.label)
                for old in inner.instructions
            ]
            caller.blocks.append(Block(labels[inner.label], copied))
        continuation.instructions += [replace(move, guard=call.guard) for move in passing.after]
        caller.blocks.append(continuation)
        return continuation


def _callee(instruction: Instruction) -> str:
    callee = instruction.operands[1] if instruction.op == "call" else None
    return callee.name if isinstance(callee, Symbol) else ""


def _with_own_shared(function: Function, taken: set[str]) -> Function:
    """The function, its .shared variables renamed if their names are taken; all copies of a
    function share them.
    """
    names: dict[str, str] = {}
    for name, variable in function.variables.items():
        if variable.space == "shared":
            names[name] = name if name not in taken else f"{name}.{function.name}"
            taken.add(names[name])
    changed = any(old != new for old, new in names.items())
    return with_variables_renamed(function, names) if changed else function


def _declare(caller: Function, callee: Function, symbols: dict[str, str], suffix: str) -> None:
    for name, kind in callee.registers.items():
        caller.registers[name + suffix] = kind
    for name, variable in callee.variables.items():
        unique = symbols.get(name, name)
        caller.variables[unique] = replace(variable, name=unique)


def _returning(instruction: Instruction, continuation: str) -> Instruction:
    """An instruction of a callee as inlined in the caller; a parameter whose address is taken
    becomes a local variable.
    """
    if instruction.op == "ret":
        return replace(instruction, op="bra", modifiers=(), operands=(Symbol(continuation),))
    if instruction.op == "cvta" and instruction.has("param"):
        return replace(
            instruction,
            modifiers=tuple("local" if part == "param" else part for part in instruction.modifiers),
        )
    if instruction.op == "ld" and instruction.has("param"):
        address = instruction.operands[1] if len(instruction.operands) == 2 else None
        if isinstance(address, Address) and isinstance(address.base, Register):
            return replace(
                instruction,
                modifiers=tuple(
                    "local" if part == "param" else part for part in instruction.modifiers
                ),
            )
    return instruction


class _ArgumentPassing:
    """Maps a callee's parameters and results to the .param variables that the call names.

    If it names registers or numbers instead, to a new variable that is written before or read after
    the call.
    """

    def __init__(self, caller: Function, call: Instruction, callee: Function, suffix: str) -> None:
        self.caller, self.call, self.suffix = caller, call, suffix
        self.names: dict[str, str] = {}
        self.before: list[Instruction] = []
        self.after: list[Instruction] = []
        results, _, arguments = call.operands[:3]
        assert isinstance(results, Vector) and isinstance(arguments, Vector), (
            "the parser makes calls so"
        )
        if len(arguments.items) != len(callee.parameters) or len(results.items) not in (
            0,
            len(callee.results),
        ):
            raise PtxError(
                f"`{call.text}` does not fit {callee.name}: {len(callee.parameters)} parameters,"
                f" {len(callee.results)} results"
            )
        for formal, actual in zip(callee.parameters, arguments.items, strict=True):
            self._pass(formal, actual, self.before)
        for index, formal in enumerate(callee.results):
            self._pass(formal, results.items[index] if results.items else None, self.after)
        if len(set(self.names.values())) != len(self.names):
            raise Unsupported(f"one .param variable twice in `{call.text}`", call.line)

    def _pass(self, formal: Parameter, actual: Operand | None, moves: list[Instruction]) -> None:
        if isinstance(actual, Symbol) and self._is_param(actual.name):
            self.names[formal.name] = actual.name
            return
        name = self.names[formal.name] = formal.name + self.suffix
        self.caller.variables[name] = Variable(name, "param", formal.size, formal.align)
        place = Address(Symbol(name))
        if actual is None:
            return
        if isinstance(actual, Symbol) or TYPE_BITS[formal.type] != 8 * formal.size:
            raise PtxError(
                f"`{self.call.text}` does not fit {formal.name} with its {formal.size} bytes"
            )
        operands = (place, actual) if moves is self.before else (actual, place)
        op = "st" if moves is self.before else "ld"
        moves.append(
            Instruction(op, ("param", formal.type), operands, None, self.call.line, self.call.text)
        )

    def _is_param(self, name: str) -> bool:
        variable = self.caller.variables.get(name)
        return variable is not None and variable.space == "param"
