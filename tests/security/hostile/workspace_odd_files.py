# ruff: noqa: SIM115
# expect: ok
# within: 20
"""Pipes, sockets, unreadable folders and files, odd names: a snapshot must not hang on any."""

import os
import socket

os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.makedirs("closed/inner")
open("closed/inner/file", "w").write("x")
os.chmod("closed/inner/file", 0)
os.chmod("closed/inner", 0)
os.chmod("closed", 0)
open(b"\xff\n name", "w").close()
open("-rf", "w").close()
os.chmod(".", 0)
