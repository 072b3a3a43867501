"""narrow.py COLUMNS LEAST COMMAND...: runs it with stderr on a terminal of so many columns (0: one that does not say, of 80). What is wiped and
written again has to be one line, at least one of them of LEAST columns, and one that was longer is cut."""
import fcntl
import os
import pty
import re
import struct
import sys
import termios

columns, least = int(sys.argv[1]), int(sys.argv[2])
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[3], sys.argv[3:])
told = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:  # the other end is closed
        break
    if not part:
        break
    told += part
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
lines = [re.split(r"[\r\n]", line)[0] for line in told.decode().split("\r\x1b[K")[1:]]
most = max(map(len, lines), default=0)
assert status == 0, (status, told)
assert least <= most <= (columns or 80) - 1, (most, lines)
