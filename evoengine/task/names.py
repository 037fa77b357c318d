"""The names that tasks and candidates may use, defined once for header, bound plan and compiler.

A name that the header accepts is accepted by every later model as well, so that a bad name is
always refused with its place in the file.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_NAME_EXPRESSION = 1000  # characters; instantiations of the shipped seeds have 40

# part of file names and of messages: neither a hidden file nor an option of a command
_FILE = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
_IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"
_TASK = r"^[A-Za-z0-9_.-]+$"

# pattern -> the rule in words, for messages
PATTERN_RULES = {
    _FILE: "letters, digits, _, . and -, beginning with a letter, a digit or _",
    _IDENTIFIER: "letters, digits and _, not beginning with a digit",
    _TASK: "letters, digits, _, . and -",
}

CandidateName = Annotated[str, Field(pattern=_FILE, max_length=80)]
FileName = Annotated[str, Field(pattern=_FILE, max_length=100)]  # a candidate's name with .cu
TaskName = Annotated[str, Field(pattern=_TASK)]
# of numbers and buffers; those of tunables and constants are also macros
Name = Annotated[str, Field(pattern=_IDENTIFIER)]

# NVRTC puts a name expression into the program text: a line break in it could add a directive.
NameExpression = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_:]*(<[^\r\n#%?\\\"'/;{}]*>)?$",
        max_length=MAX_NAME_EXPRESSION,
    ),
]
