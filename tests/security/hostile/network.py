# expect: ok
# within: 20
"""Every way out that comes to mind."""

import socket
import sys

HOST_PORT, ABSTRACT = int(sys.argv[1]), sys.argv[2]
TARGETS = [("127.0.0.1", HOST_PORT), ("169.254.169.254", 80), ("10.0.0.1", 80), ("8.8.8.8", 53)]
for target in TARGETS:
    try:
        socket.create_connection(target, timeout=0.5).close()
        print("ESCAPED: connected to", target)
    except OSError:
        pass
for family, address in ((socket.AF_UNIX, "\0" + ABSTRACT), (getattr(socket, "AF_VSOCK", 40), (2, 1024))):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(0.5)
            client.connect(address)
            print("ESCAPED: connected to", address)
    except OSError:
        pass
try:
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM):
        print("ESCAPED: a vsock socket")
except (OSError, AttributeError):
    pass
try:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
        print("ESCAPED: a packet socket")
except OSError:
    pass
names = [name for _, name in socket.if_nameindex()]
if names not in ([], ["lo"]):
    print("ESCAPED: interfaces", names)
try:
    socket.getaddrinfo("example.com", 80)
    print("ESCAPED: names resolve")
except OSError:
    pass
