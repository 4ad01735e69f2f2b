"""A connection to a Redis server, which speaks RESP2 over a socket."""

import socket


class ServerError(Exception):
    """The server returned an error."""


class Connection:
    """One connection, for one caller at a time."""

    def __init__(self, port, host="127.0.0.1", timeout=10.0):
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def ask(self, *words):
        """Sends a command and returns its reply: int, str, None or a list of these. Raises ServerError for an error."""
        self.send(*words)
        return self.next()

    def send(self, *words):
        data = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(data)]
        parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in data]
        self.socket.sendall(b"".join(parts))

    def next(self, timeout=None):
        """Returns the next reply or message of a subscription. After a time-out, the connection is unusable."""
        if timeout is not None:
            self.socket.settimeout(timeout)
        reply = self._read()
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def _read(self):
        line = self.replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"+":
            return rest
        if kind == b"-":
            return ServerError(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else self.replies.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == "-1" else [self._read() for _ in range(int(rest))]
        raise ConnectionError(f"no reply begins with {line!r}")

    def close(self):
        self.replies.close()
        self.socket.close()
