"""`evoengine doctor`: reports what this machine has and how to get what is missing."""

from __future__ import annotations

from typing import Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR, RunsDir


def doctor(
    context: typer.Context,
    connect: Annotated[
        bool,
        typer.Option(
            "--connect", help="Also request the model endpoint's list of models; sends the key."
        ),
    ] = False,
    runs_dir: RunsDir = RUNS_DIR,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Check driver, devices, NVML, torch, CuPy, compiler, model endpoint and disk.

    Exits with 0 if a run can start here, else with the exit code of the first missing thing.
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
