# SPDX-License-Identifier: Apache-2.0
#
# link.py LOCAL REMOTE PROCESS COMMAND...: makes one end of a link for run.sh: a datagram socket at the path LOCAL,
# connected to the one at REMOTE, for which it waits. Then this process becomes the command, which has the socket as
# descriptor 3; the file PROCESS gets the process id. Once both ends are connected, only the sender's buffer limits how
# many packets are outstanding.
import os
import socket
import sys
import time

DESCRIPTOR = 3
BUFFER_BYTES = 1 << 20


def main():
    local, remote, process, command = *sys.argv[1:4], sys.argv[4:]
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    end.bind(local)
    while end.connect_ex(remote) != 0:
        time.sleep(0.05)
    end.setblocking(False)
    if end.fileno() == DESCRIPTOR:
        os.set_inheritable(DESCRIPTOR, True)
    else:
        os.dup2(end.fileno(), DESCRIPTOR)
    with open(process, "w", encoding="utf-8") as out:
        print(os.getpid(), file=out)
    os.execvp(command[0], command)


main()
