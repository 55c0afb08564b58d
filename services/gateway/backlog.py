"""What a listening socket still has when a gateway stops: the connections that nobody has accepted yet.

Closing it resets them, and a client that had sent a request can't know whether it was carried out. So new
ones are kept out first, and those that wait are accepted. On Linux, packets that open a connection are
dropped: the client sends another after a second, and finds that nobody listens. Elsewhere one is reset
if it comes in the moment between the last look and the end.
"""

import ctypes
import select
import socket
import struct
import sys
from contextlib import suppress

_SO_ATTACH_FILTER = 26
_FLAGS_AT, _SYN = 13, 0x02
_INSTRUCTIONS = (  # of classic BPF, which sees the header of TCP: code, jump if true, jump if false, operand
    (0x30, 0, 0, _FLAGS_AT),  # load a byte
    (0x45, 0, 1, _SYN),  # if it has the flag, go on, else skip one
    (0x06, 0, 0, 0),  # drop the packet
    (0x06, 0, 0, 0xFFFFFFFF),  # pass it
)


def keep_out_new(listener: socket.socket) -> None:
    """Let no more connections in, in any process that shares the socket. Those that wait can be accepted."""
    if sys.platform != "linux":
        return
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in _INSTRUCTIONS)
    buffer = ctypes.create_string_buffer(program)
    filter_program = struct.pack("@HP", len(_INSTRUCTIONS), ctypes.addressof(buffer))
    with suppress(OSError):  # where the kernel is not Linux's own
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_program)


def has_waiting(listener: socket.socket) -> bool:
    """Return whether a connection waits to be accepted."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    return bool(poll.poll(0))
