"""Landlock: the kernel's own confinement of a process to folders (Linux 5.13 and later); imports the standard library.

The rules of a tool's arguments cannot hold back the code that a test run executes. Where the kernel offers Landlock,
that code can write only what `ruleset` lists, read and execute only what it lists, open no TCP connection (from
interface version 4 on) and signal no process outside its own run (from 6 on). Unprivileged; inherited by every
descendant; cannot be lifted. Not covered: modes, owners and times of files outside, which the user's own rights bound,
datagrams, and sockets that are files. Run as an ordinary user, never as root.
Elsewhere `version` is 0 and the code of a run has the rights of its user.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from functools import cache

# The same numbers on every architecture.
_CREATE, _ADD = 444, 445
_ASK_VERSION, _PATH_BENEATH = 1, 1

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_DEVICES = (1 << 6) | (1 << 11)  # making character and block devices
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_TCP = 0b11  # binding and connecting
_SCOPES = 0b11  # abstract sockets and signals


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def version() -> int:
    """The version of the kernel's interface; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, 0, _ASK_VERSION)))


def _handled(found: int) -> int:
    # Version 1 knows 13 rights of files; 2 adds moving between folders, 3 truncating, 5 device controls.
    return (1 << (13 + (found >= 2) + (found >= 3) + (found >= 5))) - 1


def ruleset(writable: Iterable[int | str], readable: Iterable[str]) -> int | None:
    """A descriptor of the rules, which `run_command` imposes on what it starts; None where the kernel has no Landlock.

    `writable`: paths or descriptors with every right but making devices; `readable`: paths to read and execute.
    Paths that do not exist are left out.
    """
    found = version()
    if not found:
        return None
    fields = (_handled(found), _TCP, _SCOPES)[: 1 + (found >= 4) + (found >= 6)]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = int(_libc().syscall(_CREATE, attributes, len(attributes), 0))
    if rules < 0:
        return None
    os.set_inheritable(rules, False)
    try:
        for place in writable:
            _allow(rules, place, _handled(found) & ~_DEVICES)
        for place in readable:
            _allow(rules, place, _EXECUTE | _READ | _LIST)
    except BaseException:
        os.close(rules)
        raise
    return rules


def _allow(rules: int, place: int | str, rights: int) -> None:
    try:
        descriptor = os.dup(place) if isinstance(place, int) else os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        entry = struct.pack("=Qi", rights, descriptor)
        if _libc().syscall(_ADD, rules, _PATH_BENEATH, entry, 0):
            raise OSError(ctypes.get_errno(), "a Landlock rule was refused", str(place))
    finally:
        os.close(descriptor)
