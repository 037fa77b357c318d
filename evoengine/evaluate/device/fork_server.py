"""The process that device workers are forked from: `python -m evoengine.evaluate.device.fork_server
--fd N MODULE ARGUMENT...`.

Importing torch and CuPy takes seconds, a fork milliseconds. The fork server imports MODULE once and
never initializes CUDA. For every FORK request it starts a child in its own process group that runs
`MODULE.serve(connection, arguments)`, for every FORK_RUNNER request one that runs
`MODULE.serve_runner(connection, arguments)`. The request carries the child's connection and its
standard output, and perhaps one more socket for `serve`. A WAIT request waits for a child to end.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import traceback
from types import ModuleType

from evoengine.evaluate import parent_death
from evoengine.evaluate.compile.landlock import own_domain
from evoengine.evaluate.process_isolation import isolate

FORK, FORK_RUNNER, WAIT = b"f", b"b", b"w"
NUMBER = struct.Struct("<q")
DESCRIPTORS = 3


def main() -> None:
    _, _, descriptor, module, *arguments = sys.argv
    parent_death.die_with_parent()
    isolate()  # before the import, which may start threads
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    gc.disable()  # the import makes no garbage, and looking for it takes a sixth of its time
    found = importlib.import_module(module)
    # so that the workers' garbage collectors skip all of torch, which took a tenth of their time
    gc.freeze()
    gc.enable()
    _Server(socket.socket(fileno=int(descriptor)), found, arguments).serve()


class _Server:
    """Serves its parent until it closes the connection."""

    def __init__(self, connection: socket.socket, module: ModuleType, arguments: list[str]) -> None:
        self.connection = connection
        self.module = module
        self.arguments = arguments

    def serve(self) -> None:
        self.connection.sendall(json.dumps({"ready": self.module.__name__}).encode() + b"\n")
        while True:
            message, descriptors, _, _ = socket.recv_fds(
                self.connection, 1 + NUMBER.size, DESCRIPTORS
            )
            if not message:
                return
            if message[:1] in (FORK, FORK_RUNNER):
                self._answer(self._fork(message[:1] == FORK_RUNNER, *descriptors))
            else:
                self._answer(_wait(NUMBER.unpack(message[1:])[0]))

    def _answer(self, number: int) -> None:
        self.connection.sendall(NUMBER.pack(number))

    def _fork(self, runner: bool, connection: int, log: int, *more: int) -> int:
        fork_server = os.getpid()
        child = os.fork()
        if child == 0:
            self._become_worker(fork_server, runner, connection, log, *more)
        # here as well as in the child: a request to kill the group may come before the child runs
        os.setpgid(child, child)
        for descriptor in (connection, log, *more):
            os.close(descriptor)
        return child

    def _become_worker(
        self, fork_server: int, runner: bool, connection: int, log: int, *more: int
    ) -> None:
        """Runs the worker in the child; never returns."""
        try:
            os.setpgid(0, 0)
            parent_death.die_with_parent(fork_server)
            own_domain()  # the fork server and other workers are outside of it
            self.connection.close()
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.close(log)
            serve = self.module.serve_runner if runner else self.module.serve
            serve(
                socket.socket(fileno=connection),
                self.arguments,
                *(socket.socket(fileno=descriptor) for descriptor in more),
            )
        except BaseException:  # noqa: BLE001 - the top of the worker's process: the log says what ended it
            traceback.print_exc()
            os._exit(1)
        os._exit(0)


def _wait(pid: int) -> int:
    """The exit code of the child, or the negative number of its signal; waits for its end."""
    with contextlib.suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 0


if __name__ == "__main__":
    main()
