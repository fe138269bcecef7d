# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client for tests, written from RFC 6455 alone, that can also break every rule of it; and a
dsnetd that a test starts and stops. Standard library only."""
import base64
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Server:
    """A dsnetd, on a free port unless one is given. Everything it logs is kept in `log`."""

    def __init__(self, *arguments, port=0):
        # Nobody routes to it, so it need not linger when it is told to stop; and frames may be late on a
        # machine that runs tests.
        environment = {"DSNET_DRAIN_GRACE": "0", "DSNET_MAX_LATE": "1", **os.environ}
        self.process = subprocess.Popen([os.environ["DSNETD"], "--port", str(port), *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment)
        self.log = []
        line = self.process.stdout.readline()
        match = re.search(r"http://([\d.]+):(\d+)", line)
        if not match:
            raise RuntimeError(f"dsnetd did not start: {line}{self.process.stderr.read()}")
        self.host, self.port = match[1], int(match[2])
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        self.wait_ready()

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))

    def wait_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.get("/readyz").status == 200:
                return
            time.sleep(0.05)
        raise RuntimeError("dsnetd was not ready in time")

    def connect(self, timeout=20):
        return socket.create_connection((self.host, self.port), timeout)

    def request(self, data, timeout=20):
        """Sends raw bytes and reads one whole answer."""
        with self.connect(timeout) as connection:
            connection.sendall(data)
            return Answer(connection)

    def get(self, path, method="GET", headers=()):
        lines = [f"{method} {path} HTTP/1.1", "Host: test", "Connection: close", *headers]
        return self.request("\r\n".join(lines).encode() + b"\r\n\r\n")

    def stop(self, number=signal.SIGTERM, timeout=30):
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait(timeout)

    def wait(self, timeout=30):
        """The same for a server that has been told to stop already."""
        status = self.process.wait(timeout)
        self.reader.join(timeout)
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def memory_kb(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Answer:
    def __init__(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(65536)
            if not part:
                break
            data += part
        head, _, self.rest = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0] else 0
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self.body = b""
        if self.status != 101:
            parts, missing = [self.rest], int(self.headers.get("content-length", 0)) - len(self.rest)
            while missing > 0:
                part = connection.recv(65536)
                if not part:
                    break
                parts.append(part)
                missing -= len(part)
            self.body = b"".join(parts)


def handshake(**changes):
    """The request for a stream; a header is replaced by keyword ('-' for '_'), or left out with None."""
    headers = {"Host": "test", "Upgrade": "websocket", "Connection": "Upgrade",
               "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode(),
               "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "dsnet.v1"}
    line = changes.pop("line", "GET /v1/stream HTTP/1.1")
    for name, value in changes.items():
        headers[name.replace("_", "-")] = value
    lines = [line] + [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def frame(opcode, payload=b"", fin=True, mask=True, rsv=0, length=None):
    """One frame; `length` lets the header lie."""
    size = len(payload) if length is None else length
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if not mask:
        return head + payload
    key = b"\x37\xfa\x21\x3d"
    repeated = (key * (len(payload) // 4 + 1))[:len(payload)]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return head + key + masked.to_bytes(len(payload), "big")


class Closed(Exception):
    def __init__(self, code, reason=""):
        super().__init__(f"closed with {code} {reason}")
        self.code, self.reason = code, reason


class Client:
    def __init__(self, server, extra=b"", **changes):
        self.socket = server.connect()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(handshake(**changes) + extra)
        self.answer = Answer(self.socket)
        self.buffer = self.answer.rest
        if self.answer.status == 101:
            key = changes.get("Sec_WebSocket_Key", base64.b64encode(b"0123456789abcdef").decode())
            accept = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
            assert self.answer.headers["sec-websocket-accept"] == accept

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _take(self, size):
        while len(self.buffer) < size:
            part = self.socket.recv(1 << 20)
            if not part:
                raise Closed(1006, "end of stream")
            self.buffer += part
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def receive_frame(self):
        first, second = self._take(2)
        assert not first & 0x70, "reserved bits"
        assert not second & 0x80, "a server's frame is not masked"
        size = second & 0x7F
        if size == 126:
            size = struct.unpack(">H", self._take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self._take(8))[0]
        return first & 15, self._take(size)

    def receive(self):
        """The next message: str or bytes. Answers pings; raises Closed at a close frame."""
        while True:
            opcode, payload = self.receive_frame()
            if opcode == TEXT:
                return payload.decode()
            if opcode == BINARY:
                return payload
            if opcode == PING:
                self.send(PONG, payload)
            elif opcode == CLOSE:
                code = struct.unpack(">H", payload[:2])[0] if payload else 1005
                raise Closed(code, payload[2:].decode())

    def send(self, opcode, payload=b"", **options):
        self.socket.sendall(frame(opcode, payload, **options))

    def send_json(self, **members):
        self.send(TEXT, json.dumps(members).encode())

    def open(self, **members):
        self.send_json(type="open", **members)
        answer = json.loads(self.receive())
        assert answer["type"] == "opened", answer
        return answer

    def error(self):
        answer = json.loads(self.receive())
        assert answer["type"] == "error", answer
        return answer

    def close_code(self):
        """Reads until the connection is closed and returns the code."""
        try:
            while True:
                self.receive()
        except Closed as closed:
            return closed.code


def pose_frame(seq, pose=None, trans=(0.0, 0.0, 0.95), joints=22, kind=1, encoding=0, timestamp=0.0):
    values = list(pose) if pose is not None else [0.0] * (joints * 3)
    return (struct.pack("<BBHId", kind, encoding, joints, seq, timestamp) +
            struct.pack(f"<{len(values) + 3}f", *values, *trans))
