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
# Before anything that is recorded. Since Kineto registers its clock with CUPTI for every
# measurement, the first records of a process's n-th one, about n of them, have another clock's
# times and are dropped (https://github.com/pytorch/pytorch/issues/192021).
LEADING_MARKS = 200
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

    `prepare` is called once before them, when CUPTI is ready; `mark` launches MARK. All launch on
    one stream.
    """
    _refuse_without_profiler()
    # A Kineto that ends CUPTI after a measurement may record nothing in the next one.
    os.environ["TEARDOWN_CUPTI"] = "0"
    with ExitStack() as profiling:
        try:
            profiler = profiling.enter_context(
                profile(use_cpu=False, use_device="cuda", use_kineto=True)
            )
        except RuntimeError as error:
            raise NoActivity(f"CUPTI cannot be used here: {error}") from error
        for _ in range(LEADING_MARKS):
            mark()
        prepare()
        mark()  # two, so that a mark that is lost leaves a call without records
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
    """What ran in each of `calls` calls, the last ones between marks; raises NoActivity where
    records are missing.
    """
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
    found = groups[-calls - 1 : -1]
    if len(found) != calls or not all(found) or groups[-1]:
        raise NoActivity(
            f"CUPTI lost records: {sum(map(bool, found))} calls of {calls} ran something"
        )
    return tuple(tuple(group) for group in found)


def _refuse_without_profiler() -> None:
    # asked for CUDA in vain, torch's profiler raises an AssertionError or measures something else
    if ProfilerActivity.CUDA not in supported_activities():
        raise NoActivity("this build of torch has no profiler for the device (CUPTI)")
