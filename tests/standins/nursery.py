"""Starts measuring children in a moment: a process that has torch already, and forks one a request.

`python nursery.py serve SOCKET` waits; `python nursery.py ask SOCKET SOURCE` stands for the child:
it hands over its pipes and environment, and ends as the forked child ends. torch was imported
without the stand-in here, so that the order of the environment is tested with a real child instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys

LARGEST = 1 << 20
STAGE_FD = "PROFILE_RUN_STAGE_FD"


def serve(path: str) -> None:
    import torch
    import torch._dynamo
    import torch.profiler

    assert not hasattr(torch, "neuron")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen()
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _attend(connection)
            connection.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _attend(connection: socket.socket) -> None:
    """One request: fork the child, wait for it, tell how it ended."""
    asked, descriptors, _, _ = socket.recv_fds(connection, LARGEST, 4)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become_child(json.loads(asked), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become_child(asked: dict, descriptors: list[int]) -> None:
    code = 1
    try:
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        os.environ.clear()
        os.environ.update(asked["environ"])
        os.environ[STAGE_FD] = str(descriptors[3])
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
        sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        sys.argv = ["-c", asked["source"]]
        try:
            exec(asked["boot"], {"__name__": "__main__"})
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def ask(path: str, source: str, boot: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        request = {"environ": dict(os.environ), "source": source, "boot": boot}
        stage = int(os.environ[STAGE_FD])
        socket.send_fds(connection, [json.dumps(request).encode()], [0, 1, 2, stage])
        os.close(0)
        os.close(stage)
        code = int(connection.recv(64) or b"1")
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    ask(*sys.argv[2:])
