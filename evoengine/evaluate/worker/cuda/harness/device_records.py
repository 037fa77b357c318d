"""What calls run on the device, by the records of CUPTI, which torch's profiler (Kineto) reads.

A record has the beginning and the duration of one kernel, memset or copy. Our kernel that does
nothing stands between two calls, so that each record belongs to one of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Protocol

import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile
from torch.profiler import ProfilerActivity, supported_activities

from evoengine.evaluate.worker.backend import NoActivity
from evoengine.records import LaunchActivity

MARK = "nothing"  # of kernels.cu
NAME_CHARACTERS = 300  # of a template's name there may be thousands


class ProfilerEvent(Protocol):
    """The part of torch's _KinetoEvent that is read here."""

    def name(self) -> str: ...
    def device_type(self) -> DeviceType: ...
    def is_user_annotation(self) -> bool: ...
    def start_ns(self) -> int: ...
    def duration_ns(self) -> int: ...


def recorded_calls(
    calls: Sequence[Callable[[], object]], prepare: Callable[[], None], mark: Callable[[], None]
) -> tuple[tuple[LaunchActivity, ...], ...]:
    """What each of `calls` runs on the current device, in order; raises NoActivity where CUPTI
    cannot be used, and what the calls raise.

    `prepare` is called once before them, when CUPTI is ready; `mark` launches MARK. All are on one
    stream.
    """
    _refuse_without_profiler()
    # Kineto would end CUPTI afterwards (with CUDA 12.6 and later), and has recorded nothing then in
    # the next measurement of the same process.
    os.environ["TEARDOWN_CUPTI"] = "0"
    with ExitStack() as profiling:
        try:
            profiler = profiling.enter_context(
                profile(use_cpu=False, use_device="cuda", use_kineto=True)
            )
        except RuntimeError as error:
            raise NoActivity(f"CUPTI cannot be used here: {error}") from error
        prepare()
        mark()
        for call in calls:
            call()
            mark()
        torch.cuda.synchronize()
    assert profiler.kineto_results is not None
    return between_marks(on_device(profiler.kineto_results.events()), len(calls))


def on_device(events: Iterable[ProfilerEvent]) -> list[LaunchActivity]:
    """What ran on the device, by its beginning."""
    found = [
        event
        for event in events
        if event.device_type() == DeviceType.CUDA and not event.is_user_annotation()
    ]
    return [
        LaunchActivity(name=event.name()[:NAME_CHARACTERS], us=event.duration_ns() / 1000)
        for event in sorted(found, key=lambda event: event.start_ns())
    ]


def between_marks(
    activities: Sequence[LaunchActivity], calls: int
) -> tuple[tuple[LaunchActivity, ...], ...]:
    """What ran in each of `calls` calls; raises NoActivity where records are missing."""
    if not activities:
        raise NoActivity(
            "CUPTI recorded nothing: it may not be permitted here"
            " (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), its library may be absent, or another profiler"
            " may use it"
        )
    groups: list[list[LaunchActivity]] = []
    for activity in activities:
        if activity.name.split("(")[0] == MARK:
            groups.append([])
        elif groups:
            groups[-1].append(activity)
    if len(groups) != calls + 1 or not all(groups[:-1]):
        raise NoActivity(
            f"CUPTI recorded {sum(map(bool, groups))} calls that ran something, expected {calls}"
        )
    return tuple(tuple(group) for group in groups[:-1])


def _refuse_without_profiler() -> None:
    # asked for CUDA in vain, torch's profiler raises an AssertionError or measures something else
    if ProfilerActivity.CUDA not in supported_activities():
        raise NoActivity("this build of torch has no profiler for the device (CUPTI)")
