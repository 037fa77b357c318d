"""A worker module without a GPU: it speaks the protocol, and behaves as the job's code path says.

Given a socket for runners it is a grader, whose candidates behave so in a runner, in hidden cases
in another one.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from evoengine.evaluate.device.worker_protocol import (
    HOLDER,
    NEWCOMER,
    RACING,
    REQUEST,
    RUNNER_ENDED,
    RUNNER_NOT_STARTED,
    Done,
    Failed,
    RaceDone,
    Ready,
    Runners,
    RunRace,
    Start,
    StepBegun,
)
from evoengine.evaluate.worker.backend import shown
from evoengine.protocols import BaselineTimes, CompiledCase, Purpose, RaceReport, Report
from evoengine.records import Environment, Forensics, RaceTiming, Status

ENVIRONMENT = Environment(
    device="scripted:0 Scripted",
    kind="cuda",
    arch="sm_90",
    sm_count=1,
    max_shared_bytes=49152,
    l2_bytes=1,
    memory_bytes=1,
    versions={},
)


def serve(
    connection: socket.socket, arguments: list[str], runners: socket.socket | None = None
) -> None:
    """Serves one parent until it closes the connection."""
    task_path, pairs = "", dict[int, list[socket.socket]]()
    baselines: Sequence[str] = ()
    send = lambda message: connection.sendall(message.model_dump_json().encode() + b"\n")  # noqa: E731
    for line in connection.makefile("rb"):
        request = REQUEST.validate_json(line)
        if isinstance(request, Start):
            if "raising" in request.task_path:
                send(
                    Failed(
                        id=request.id,
                        error="task",
                        message="reference raised ValueError",
                        traceback="",
                    )
                )
                os._exit(0)
            if "flaky" in request.task_path and _count(request.task_path) == 2:
                send(
                    Failed(
                        id=request.id,
                        error="device",
                        message="the device takes one process only",
                        traceback="",
                    )
                )
                os._exit(0)
            task_path, baselines = request.task_path, tuple(request.task.baselines)
            send(Ready(id=request.id, environment=ENVIRONMENT))
            continue
        started = update(pairs, request.runners, runners, waits="late" in task_path)
        if isinstance(request, RunRace):
            result = RaceReport(status=Status.crash, reason=RUNNER_NOT_STARTED)
            if started:
                result = race(request, pairs, task_path, send)
            send(RaceDone(id=request.id, report=result))
            continue
        if not started:
            report = Report(status=Status.crash, reason=RUNNER_NOT_STARTED)
            send(Done(id=request.id, report=report, healthy=False))
            continue
        pair = pairs[request.runners.used[0]] if request.runners.used else []
        behaviour = request.job.cases[0].code_path if request.job.cases else "correct"
        if behaviour == "waits for us":
            send(StepBegun(id=request.id, what="preparing small", candidate=False))
            time.sleep(0.7)
        send(
            StepBegun(
                id=request.id, what="checking small", candidate=not behaviour.startswith("ours")
            )
        )
        is_last = behaviour == "its diagnosis breaks the device"
        if is_last:
            report, healthy = Report(status=Status.wrong_result, reason="wrong"), True
        elif not request.job.cases:
            report, healthy = timed(baselines, task_path), True
        elif request.job.purpose is Purpose.preparation:
            report, healthy = Report(status=Status.correct), True
        elif not pair or behaviour.startswith("ours"):
            report, healthy = behave(behaviour, task_path)
        else:
            report, healthy = ask(pair, request.job.cases, task_path)
        if request.job.purpose is Purpose.diagnosis and report.status is Status.wrong_result:
            found = Forensics(case="small", distribution="normal", output="out")
            report = report.model_copy(update={"forensics": found})
        send(
            Done(
                id=request.id - 1,
                report=Report(status=Status.cheat, reason="an answer to an earlier request"),
                healthy=True,
            )
        )
        send(Done(id=request.id, report=report, healthy=healthy, is_last=is_last))
        if is_last or (not healthy and not pair):
            os._exit(0)


def update(
    pairs: dict[int, list[socket.socket]],
    told: Runners,
    runners: socket.socket | None,
    waits: bool,
) -> bool:
    """Follows the parent: receives new runners, and forgets those that are gone; whether all new
    ones have started, where it waits for them.
    """
    for number in told.gone:
        for one in pairs.pop(number):
            one.close()
    for number in told.new:
        _, descriptors, _, _ = socket.recv_fds(runners, 1, 2)
        pairs[number] = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    new = [one for number in told.new for one in pairs[number]]
    return not waits or all([one.recv(1) for one in new])


def race(
    request: RunRace,
    pairs: dict[int, list[socket.socket]],
    task_path: str,
    send: Callable[[StepBegun], None],
) -> RaceReport:
    """The report on a race, in which the newcomer behaves first, then the holder."""
    sides = {NEWCOMER: request.newcomer, HOLDER: request.holder}
    for (side, job), number in zip(sides.items(), request.runners.used, strict=True):
        behaviour = job.cases[0].code_path
        is_ours = behaviour.startswith("ours")
        send(StepBegun(id=request.id, what=f"{RACING} {side} on small", candidate=not is_ours))
        if is_ours:
            behave(behaviour, task_path)
            continue
        report, _ = ask(pairs[number], job.cases, task_path)
        if report.status is not Status.correct:
            return RaceReport(status=report.status, reason=report.reason, at_fault=side)
    timing = RaceTiming(
        case="small",
        baseline="torch",
        newcomer_us=(10.0,),
        holder_us=(20.0,),
        baseline_us=(40.0,),
        calls=(1,),
        groups=(0,),
    )
    return RaceReport(status=Status.correct, timings=(timing,))


def timed(baselines: Sequence[str], task_path: str) -> Report:
    """Times of the case `small`, 1 us longer with each time that they are asked for; `broken` does
    not work, and `greedy` finds no memory.
    """
    number = _count(f"{task_path}.timed")
    problems = {"broken": "no kernel image", "greedy": "out of memory"}
    return Report(
        status=Status.correct,
        baselines={
            "small": BaselineTimes(
                median_us={
                    name: 10.0 * place + number
                    for place, name in enumerate(baselines)
                    if name not in problems
                },
                problems={name: problems[name] for name in baselines if name in problems},
                may_work_later=tuple(name for name in baselines if name == "greedy"),
            )
        },
    )


def ask(
    pair: Sequence[socket.socket], cases: Sequence[CompiledCase], task_path: str
) -> tuple[Report, bool]:
    """The report on a candidate that behaves in the runners of its cases, until one fails."""
    for case in cases:
        runner = pair[case.plan.hidden]
        try:
            runner.sendall(json.dumps([case.code_path, task_path]).encode() + b"\n")
            answer = runner.makefile("rb").readline()
        except OSError:
            answer = b""
        if not answer:
            reason = f"{RUNNER_ENDED} (checking {shown(case)})"
            return Report(status=Status.crash, reason=reason), False
        healthy, report = json.loads(answer)
        if not healthy or report["status"] != Status.correct:
            break
    return Report.model_validate(report), healthy


def serve_runner(connection: socket.socket, arguments: list[str]) -> None:
    """Runs candidates for one grader until it closes the connection.

    With the argument "late" its device starts late; with "unable", never; with "all but one unable",
    that of one starts; with "until", those that start while a file is not there, which they note.
    """
    if "until" in arguments:
        if Path(arguments[1]).exists():
            raise SystemExit("no memory on the device")
        Path(f"{arguments[1]}.{os.getpid()}").touch()
    if "unable" in arguments or ("all but one unable" in arguments and _count(arguments[1]) > 1):
        raise SystemExit("no memory on the device")
    if "late" in arguments:
        time.sleep(1)
    if arguments:
        connection.sendall(b"s")
    for line in connection.makefile("rb"):
        report, healthy = behave(*json.loads(line))
        answer = [healthy, report.model_dump(mode="json")]
        connection.sendall(json.dumps(answer).encode() + b"\n")
        if not healthy:
            os._exit(0)


def _count(name: str) -> int:
    """How often this was called with `name`, over all processes."""
    number = 1
    while True:
        try:
            os.close(os.open(f"{name}.{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            number += 1
        else:
            return number


def behave(behaviour: str, task_path: str) -> tuple[Report, bool]:
    """What the candidate, or this worker, does."""
    match behaviour.removeprefix("ours "):
        case "endless":
            time.sleep(3600)
        case "kills its worker":
            print("last words", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "is killed once":
            if _count(f"{task_path}.killed") == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        case "prints and is wrong":
            print("the first one's words", flush=True)
            time.sleep(0.2)  # for the parent to read them
            return Report(status=Status.wrong_result, reason="max abs error 1"), True
        case "illegal access":
            return Report(
                status=Status.crash, reason="an illegal memory access was encountered"
            ), False
        case "prints":
            for _ in range(200):
                sys.stdout.write("x" * 65536)
            sys.stdout.flush()
        case "notes its process":
            with Path(f"{task_path}.processes").open("a") as processes:
                processes.write(f"{os.getpid()}\n")
        case "breaks the next one":
            Path(f"{task_path}.{os.getpid()}").touch()
        case "breaks easily":
            if Path(f"{task_path}.{os.getpid()}").exists():
                os.kill(os.getpid(), signal.SIGSEGV)
        case "child":  # something that would survive a kill of the worker alone
            if os.fork() == 0:
                time.sleep(3600)
            time.sleep(3600)
        case "wrong":
            return Report(status=Status.wrong_result, reason="max abs error 1"), True
    return Report(status=Status.correct), True
