"""The messages between grader and runner: one JSON document a line; descriptors go beside them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from evoengine.candidate.binding import BoundLaunch, Fill
from evoengine.records import Frozen, LaunchActivity

MAX_DESCRIPTORS = 64  # in one message


class MapSlots(Frozen):
    """Grader to runner: map these slots; a file descriptor of each is sent with the message."""

    kind: Literal["map_slots"] = "map_slots"
    numbers: tuple[int, ...]
    sizes: tuple[int, ...]  # in bytes


class DropSlots(Frozen):
    """Grader to runner: unmap these slots."""

    kind: Literal["drop_slots"] = "drop_slots"
    numbers: tuple[int, ...]


class Load(Frozen):
    """Grader to runner: the plan and code of one case. `silent`: what it prints is dropped."""

    kind: Literal["load"] = "load"
    code_path: str
    functions: dict[str, str]  # the plan's kernel -> its name in the code
    launches: tuple[BoundLaunch, ...]
    # the bytes of every buffer, in the order in which a replay places them
    buffers: dict[str, int]
    # those that hold nothing before a call: outputs and scratch, but for inputs changed in place
    written: frozenset[str]
    fills: tuple[Fill, ...] = ()  # before the launches of each call
    silent: bool


# One call: for each buffer the number of its slot, and where in it the buffer begins, in bytes.
PlacedCall = tuple[tuple[int, int], ...]


class Replay(Frozen):
    """Grader to runner: replay the plan, once for each of `warm_up`, then, timed, for `calls`.

    `reads` are the inputs of `calls` (slot, offset, bytes, key), which stay masked until the
    warm-up has ended. With `cold`, L2 is flushed before each timed call and each is timed alone;
    else all are timed together, after `reads` were brought into L2.

    Answered twice: Replayed as soon as the outputs lie there, and Served when the code is loaded
    anew for the next replay.
    """

    kind: Literal["replay"] = "replay"
    warm_up: tuple[PlacedCall, ...]
    calls: tuple[PlacedCall, ...]
    reads: tuple[tuple[int, int, int, int], ...]
    cold: bool


class Profile(Frozen):
    """Grader to runner: launch the plan for each of `warm_up`, then, under CUPTI, for `calls`.

    `reads` are the inputs of `calls` (slot, offset, bytes), which are brought into L2 before them.
    Answered twice as a Replay is, first by Profiled.
    """

    kind: Literal["profile"] = "profile"
    warm_up: tuple[PlacedCall, ...]
    calls: tuple[PlacedCall, ...]
    reads: tuple[tuple[int, int, int], ...]


class Unload(Frozen):
    """Grader to runner: forget the loaded case."""

    kind: Literal["unload"] = "unload"


class Served(Frozen):
    """Runner to grader: the request was served; free device memory afterwards, in bytes."""

    kind: Literal["served"] = "served"
    free_bytes: int = 0


class Replayed(Frozen):
    """Runner to grader: the times of the timed calls, in microseconds.

    `event_us` by CUDA events, `stamp_us` by the device's own clock written to a secret address:
    one figure for a hot replay, one for each call of a cold one. `host_us` is the whole replay on
    the host's clock.
    """

    kind: Literal["replayed"] = "replayed"
    event_us: tuple[float, ...]
    stamp_us: tuple[float, ...]
    host_us: float


class Profiled(Frozen):
    """Runner to grader: what each call ran on the device, in order; or why nothing was recorded."""

    kind: Literal["profiled"] = "profiled"
    calls: tuple[tuple[LaunchActivity, ...], ...] = ()
    problem: str = ""


class Fault(Frozen):
    """Runner to grader: the candidate failed. With `broken` the process must be replaced."""

    kind: Literal["fault"] = "fault"
    reason: str
    broken: bool


AnyRequest = MapSlots | DropSlots | Load | Replay | Profile | Unload
Result = Served | Replayed | Profiled  # of a request that did not fail

RUNNER_REQUEST: TypeAdapter[AnyRequest] = TypeAdapter(
    Annotated[AnyRequest, Field(discriminator="kind")]
)
RUNNER_ANSWER: TypeAdapter[Result | Fault] = TypeAdapter(
    Annotated[Result | Fault, Field(discriminator="kind")]
)
