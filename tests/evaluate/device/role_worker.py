"""A worker module that says in which role it runs."""

from __future__ import annotations

import os
import socket


def serve(connection: socket.socket, arguments: list[str], *more: socket.socket) -> None:
    """Says so on every socket that it has."""
    for one in (connection, *more):
        one.sendall(_words("serve", arguments))


def serve_runner(connection: socket.socket, arguments: list[str]) -> None:
    """Says so."""
    connection.sendall(_words("serve_runner", arguments))


def _words(role: str, arguments: list[str]) -> bytes:
    leads = os.getpgrp() == os.getpid()
    return f"{role} {' '.join(arguments)} {os.getpid()} {leads}".encode()
