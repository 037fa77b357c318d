"""Which of the profiler's events are the device's, and to which call each belongs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile
from torch.profiler import ProfilerActivity

from evoengine.evaluate.worker.backend import NoActivity
from evoengine.evaluate.worker.cuda.harness import device_records
from evoengine.evaluate.worker.cuda.harness.device_records import (
    LEADING_MARKS,
    MARK,
    NAME_CHARACTERS,
    between_marks,
    on_device,
    recorded_calls,
)
from evoengine.evaluate.worker.cuda.harness.harness_kernels import HarnessKernels
from evoengine.records import LaunchActivity


@dataclass(frozen=True)
class Event:
    """An event of the profiler, with the methods of torch's."""

    label: str
    start: int = 0
    duration: int = 1000
    device: DeviceType = DeviceType.CUDA
    annotation: bool = False

    def name(self) -> str:
        return self.label

    def device_type(self) -> DeviceType:
        return self.device

    def is_user_annotation(self) -> bool:
        return self.annotation

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return self.duration


def ran(*names: str) -> list[LaunchActivity]:
    return [LaunchActivity(name=name, us=1.0) for name in names]


def test_a_profile_of_the_host_alone_has_no_device_events() -> None:
    with profile(use_kineto=True) as profiler:
        torch.ones(3).add_(1)
    events = profiler.kineto_results.events()
    assert {"aten::add_"} <= {event.name() for event in events}
    assert on_device(events) == []


def test_a_real_event_has_every_method_that_is_read() -> None:
    with profile(use_kineto=True) as profiler:
        torch.ones(3)
    event = profiler.kineto_results.events()[0]
    assert event.device_type() == DeviceType.CPU and event.is_user_annotation() is False
    assert event.start_ns() > 0 and event.duration_ns() >= 0


def test_device_events_come_by_their_beginning_in_microseconds_without_annotations() -> None:
    events = [
        Event("second", start=20, duration=2500),
        Event("cudaLaunchKernel", device=DeviceType.CPU),
        Event("a range around both", annotation=True),
        Event("first<" + "x" * 1000, start=10, duration=500),
    ]
    found = on_device(events)
    assert [(len(item.name), item.us) for item in found] == [(NAME_CHARACTERS, 0.5), (6, 2.5)]


def test_what_runs_between_two_marks_is_one_call() -> None:
    found = between_marks(
        ran(MARK, MARK, "flush", "touch", MARK, MARK)
        + ran("Memset (Device)", "a", MARK, "b", "c", f"{MARK}()"),
        2,
    )
    assert [[item.name for item in call] for call in found] == [
        ["Memset (Device)", "a"],
        ["b", "c"],
    ]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ((), "CUPTI recorded nothing: it may not be permitted here"),
        (("a", "b"), "CUPTI lost records: 0 calls of 2 ran something"),
        ((MARK, "a", MARK, "b"), "CUPTI lost records: 1 calls of 2 ran something"),
        ((MARK, "a", MARK, MARK), "CUPTI lost records: 1 calls of 2 ran something"),
        # a mark between two calls, and the last one
        (("flush", MARK, MARK, "a", "b", MARK), "CUPTI lost records: 1 calls of 2"),
        (("flush", MARK, MARK, "a", MARK, "b"), "CUPTI lost records: 1 calls of 2"),
    ],
)
def test_lost_records_are_no_time(names: tuple[str, ...], says: str) -> None:
    with pytest.raises(NoActivity, match=says):
        between_marks(ran(*names), 2)


class Stream:
    """Where launches go; the profiler has lost the records of the first ones."""

    def __init__(self, lost: int) -> None:
        self.launched: list[str] = []
        self.lost = lost

    def launch(self, *names: str) -> Callable[[], None]:
        return lambda: self.launched.extend(names)

    @contextmanager
    def profile(self, **asked: object) -> Iterator[Any]:
        assert asked == {"use_cpu": False, "use_device": "cuda", "use_kineto": True}
        found = SimpleNamespace(kineto_results=self)
        yield found

    def events(self) -> list[Event]:
        every = [Event(name, start=number) for number, name in enumerate(self.launched)]
        return every[self.lost :]


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_records, "supported_activities", lambda: {ProfilerActivity.CUDA})
    monkeypatch.setattr(device_records.torch.cuda, "synchronize", lambda: None)
    monkeypatch.setenv("TEARDOWN_CUPTI", "1")  # what the call sets is gone after the test


@pytest.mark.parametrize("lost", [0, 1, 30, LEADING_MARKS])
@pytest.mark.usefixtures("on_host")
def test_the_first_records_of_a_measurement_may_be_lost(
    lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(lost)
    monkeypatch.setattr(device_records, "profile", stream.profile)
    calls = [stream.launch("a", "b"), stream.launch("c")]
    found = recorded_calls(calls, stream.launch("flush", "touch"), stream.launch(MARK))
    assert [[item.name for item in call] for call in found] == [["a", "b"], ["c"]]
    assert os.environ["TEARDOWN_CUPTI"] == "0"


@pytest.mark.usefixtures("on_host")
def test_records_of_a_call_that_are_lost_are_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(LEADING_MARKS + 4)  # and what prepares, and both marks
    monkeypatch.setattr(device_records, "profile", stream.profile)
    with pytest.raises(NoActivity, match="CUPTI lost records: 1 calls of 2 ran something"):
        recorded_calls(
            [stream.launch("a"), stream.launch("b")],
            stream.launch("flush", "touch"),
            stream.launch(MARK),
        )


def test_without_cupti_nothing_is_launched_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launched: list[str] = []
    monkeypatch.setattr(device_records, "supported_activities", lambda: {ProfilerActivity.CPU})
    with pytest.raises(NoActivity, match=r"no profiler for the device \(CUPTI\)"):
        recorded_calls(
            [lambda: launched.append("call")],
            lambda: launched.append("prepare"),
            lambda: launched.append("mark"),
        )
    assert launched == []


@pytest.mark.usefixtures("on_host")
def test_a_profiler_that_cannot_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(profile):
        def __enter__(self) -> None:
            raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")

    monkeypatch.setattr(device_records, "profile", lambda **_: Refusing(use_kineto=True))
    with pytest.raises(NoActivity, match=r"cannot be used here: CUPTI_ERROR_INSUFFICIENT_PRIV"):
        recorded_calls([], lambda: None, lambda: None)


def test_the_mark_is_a_kernel_of_ours() -> None:
    assert callable(getattr(HarnessKernels, MARK))
