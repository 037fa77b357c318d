"""The console script `evoengine`: runs a command and turns errors into one line and an exit code.

    0    done; for `evaluate`: the kernel is correct; for `audit`: all is refused; for `sanitize`:
         nothing was found
    1    an internal error; for `evaluate`: the kernel is not correct; for `sanitize`: something was
         found; for `profile` and `sanitize`: the kernel was refused before it ran
    2-11 a known error, see evoengine/errors.py
    130  interrupted; the command that resumes the run was printed

Nothing heavy is imported here, so that `evoengine --help` answers at once; commands import what
they need when they are called.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer

from evoengine import __version__
from evoengine.cli import output, streams
from evoengine.cli.audit import audit
from evoengine.cli.cache import cache
from evoengine.cli.doctor import doctor
from evoengine.cli.evaluate import evaluate
from evoengine.cli.export import export
from evoengine.cli.init import init
from evoengine.cli.own_environment import take_environment
from evoengine.cli.profile import profile
from evoengine.cli.prompt import prompt
from evoengine.cli.resume import resume
from evoengine.cli.rm import rm
from evoengine.cli.run import run
from evoengine.cli.runs import runs
from evoengine.cli.sanitize import sanitize
from evoengine.cli.show import show
from evoengine.cli.tasks import tasks
from evoengine.errors import EvoError, OutputError, UsageError

INTERNAL, INTERRUPTED = 1, 130  # 130: 128 + SIGINT, as shells count
DEBUG = "--debug"

# the base class of all errors in a command line; typer does not export it
_ParserError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="evoengine",
    help=(
        "Search for fast CUDA kernels: propose, compile, check and time them, and keep the best. A"
        " run can be stopped at any moment and resumed."
    ),
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is the same everywhere and takes 50 ms less
)
for command in (
    *(run, resume, runs, show, evaluate, audit, profile, sanitize),
    *(prompt, init, export, rm, cache, tasks, doctor),
):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"evoengine {__version__}")
        raise typer.Exit


@app.callback(
    epilog=(
        "Exit codes: 0 done, 1 internal error or incorrect kernel, 2 usage, 3 task, 4 kernel file,"
        " 5 device, 6 compiler, 7 run folder, 8 model endpoint, 9 worker process, 10 output that"
        " cannot be written, 11 performance counters refused, 130 interrupted."
    )
)
def _everywhere(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Print the traceback of an error; can be given anywhere.")
    ] = False,
) -> None:
    """Options of all commands; --debug is removed before typer sees them."""


def main() -> NoReturn:
    """Runs the command line and exits with its exit code."""
    try:
        streams.prepare()
    except OutputError as error:
        sys.exit(_fail(str(error), error.exit_code, debug=False))
    sys.exit(answer(sys.argv[1:], take_environment()))


def answer(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Runs the command in `arguments`; returns the exit code.

    Commands find `environ` in their context: no other object holds keys.
    """
    debug = DEBUG in arguments
    rest = [argument for argument in arguments if argument != DEBUG]
    try:
        code = app(
            args=rest or ["--help"], prog_name="evoengine", standalone_mode=False, obj=environ
        )
        sys.stdout.flush()
    except OutputError as error:
        streams.silence()
        return _fail(str(error), error.exit_code, debug)
    except EvoError as error:
        return _fail(str(error), error.exit_code, debug)
    except _ParserError as error:
        return _fail(_message_of(error), UsageError.exit_code, debug)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED, debug)
    except BrokenPipeError:
        streams.silence()  # the reader of our output has closed the pipe
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the top of the command line
        return _fail(
            f"internal error: {type(error).__name__}: {error} (run again with {DEBUG} for the"
            " traceback)",
            INTERNAL,
            debug,
        )
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    output.say(f"evoengine: {' '.join(message.split())}")
    return code


def _message_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    where = getattr(context, "command_path", "evoengine")
    message = _value_message(error) or getattr(error, "format_message", error.__str__)()
    return f"{message.rstrip('.')}; see `{where} --help`"


def _value_message(error: Exception) -> str:
    """`--trials: expected a number >= 1, got '0'`; empty if `error` is not about a value."""
    names = getattr(getattr(error, "param", None), "opts", None)
    if not names or not (text := getattr(error, "message", "")):
        return ""
    complaints: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    if complaints:
        from evoengine.task.yaml_source import pydantic_message

        text, value = pydantic_message(complaints[0]), repr(str(complaints[0]["input"]))
        text += "" if value in text else f", got {value}"
    return f"{max(names, key=len)}: {text}"
