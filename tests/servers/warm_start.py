"""Run a server in a process forked off one that has the SDK imported: `warm_start.py SOCKET SCRIPT OPTIONS`.

It stands where the server would: it has its place among the children, forwards signals, and ends as the server does.
Standard streams, folder and environment are the server's own. Killed, it takes the server with it.
"""

import json
import os
import signal
import socket
import sys

parent = socket.socket(socket.AF_UNIX)
parent.connect(sys.argv[1])
here = os.getcwd()  # noqa: PTH109 - pathlib takes longer to import than all else here
start = json.dumps({"argv": sys.argv[2:], "cwd": here, "env": dict(os.environ)}).encode()
socket.send_fds(parent, [len(start).to_bytes(4, "big")], [0, 1, 2])
parent.sendall(start)
for forwarded in (signal.SIGTERM, signal.SIGINT):
    signal.signal(forwarded, lambda number, _: parent.sendall(bytes([number])))
# The server alone holds the streams now: their ends are its end.
nothing = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(nothing, stream)
status = parent.recv(4)
code = int.from_bytes(status, "big", signed=True) if status else 1
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
