"""What a candidate may call things, defined once for header, bound plan and compiler.

A name that the header takes is taken by every later model as well: the first reader
refuses it with its place, or nobody does.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_NAME_EXPRESSION = 1000  # characters; instantiations of the shipped seeds have 40

# part of file names and of messages: neither hidden nor an option of a command
_FILE = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"

CandidateName = Annotated[str, Field(pattern=_FILE, max_length=80)]
FileName = Annotated[str, Field(pattern=_FILE, max_length=100)]  # the former with .cu behind it
# of numbers and buffers; those of tunables and constants are macros, too
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

# A name expression is put into the program text by NVRTC: a line break in it could carry a
# directive.
NameExpression = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_:]*(<[^\r\n#%?\\\"'/;{}]*>)?$",
        max_length=MAX_NAME_EXPRESSION,
    ),
]
