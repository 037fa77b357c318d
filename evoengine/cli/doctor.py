"""`evoengine doctor`: what this machine has, and what to do about what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR


def doctor(
    context: typer.Context,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect", help="Also ask the model endpoint for its models; sends the key."
        ),
    ] = False,
    runs_dir: Annotated[Path, typer.Option(help="Where runs are kept.")] = RUNS_DIR,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Check driver, devices, torch, CuPy, compiler, model endpoint and disk.

    Exits with 0 when a run can be started here, else with the code of the first thing it lacks.
    """
    from evoengine.cli import output
    from evoengine.cli.doctor_checks import run_checks
    from evoengine.report import as_json
    from evoengine.report.doctor_findings import findings_table

    findings = run_checks(runs_dir, context.obj, connect)
    output.give(json, lambda: as_json.dumps(findings), lambda: findings_table(findings))
    raise typer.Exit(
        next((finding.exit_code for finding in findings if finding.state == "missing"), 0)
    )
