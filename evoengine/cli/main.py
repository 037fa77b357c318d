"""The console script `evoengine`: reads the command line, and turns faults into one line and an
exit code.

    0    done; for `evaluate`: the kernel is correct
    1    an internal error; for `evaluate`: the kernel is not correct
    2-10 a known fault, see evoengine/errors.py
    130  interrupted; the exact command that resumes the run was printed

Nothing heavy is imported here: `evoengine --help` answers at once. Commands import what they need
when they are called.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Annotated, NoReturn

import typer

from evoengine import __version__
from evoengine.cli import streams
from evoengine.cli.cache import cache
from evoengine.cli.doctor import doctor
from evoengine.cli.evaluate import evaluate
from evoengine.cli.export import export
from evoengine.cli.init import init
from evoengine.cli.own_environment import take_environment
from evoengine.cli.prompt import prompt
from evoengine.cli.resume import resume
from evoengine.cli.rm import rm
from evoengine.cli.run import run
from evoengine.cli.runs import runs
from evoengine.cli.show import show
from evoengine.cli.tasks import tasks
from evoengine.errors import EvoError, OutputError, UsageError

INTERNAL, INTERRUPTED = 1, 130  # 130: 128 + SIGINT, as shells count
DEBUG = "--debug"

# what every complaint about a command line is; typer gives it no public name
_ParserError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="evoengine",
    help=(
        "Searches for fast CUDA kernels: proposes, compiles, checks and times them, keeps the best,"
        " and can be stopped at any moment."
    ),
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is the same everywhere and takes 50 ms less
)
for command in (run, resume, runs, show, evaluate, prompt, init, export, rm, cache, tasks, doctor):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"evoengine {__version__}")
        raise typer.Exit


@app.callback(
    epilog=(
        "Exit codes: 0 done, 1 internal error or a kernel that is not correct, 2 usage, 3 task, 4"
        " kernel file, 5 device, 6 compiler, 7 run folder, 8 model endpoint, 9 worker process, 10"
        " output that cannot be written, 130 interrupted."
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
        bool, typer.Option(DEBUG, help="Print the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """Options of all commands; --debug is taken out before they are read."""


def main() -> NoReturn:
    """Ends the process with the exit code of the command line."""
    try:
        streams.prepare()
    except OutputError as error:
        sys.exit(_fail(str(error), error.exit_code, debug=False))
    sys.exit(answer(sys.argv[1:], take_environment()))


def answer(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Does what `arguments` say; the exit code. Commands find `environ` in their context: keys are
    nowhere else.
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
        return _fail(_words_of(error), UsageError.exit_code, debug)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED, debug)
    except BrokenPipeError:
        streams.silence()  # whoever read our output has seen enough
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
    print(f"evoengine: {' '.join(message.split())}", file=sys.stderr)
    return code


def _words_of(error: Exception) -> str:
    words = getattr(error, "format_message", error.__str__)()
    context = getattr(error, "ctx", None)
    where = getattr(context, "command_path", "evoengine")
    return f"{words.rstrip('.')}{_found_in(error)}; see `{where} --help`"


def _found_in(error: Exception) -> str:
    """The value that was refused, where the words about it leave it out, as those of pydantic
    do.
    """
    complaints: list[dict[str, object]] = getattr(error.__cause__, "errors", list)()
    return f", got {str(complaints[0]['input'])!r}" if complaints else ""
