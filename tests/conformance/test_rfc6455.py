#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RFC 6455 rule by rule against ws-echo, dsnetd's own WebSocket layer with an echo behind it. The groups are those
that public suites use: framing, pings, reserved bits, opcodes, fragments, UTF-8, closing, limits, handshake. What is
sent is written here byte by byte; what comes back is compared to the last frame and the end of the stream."""
import base64
import hashlib
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from ws import BINARY, CLOSE, GUID, PING, PONG, TEXT, Client, Closed, Server, frame, handshake  # noqa: E402

TIMEOUT = 120  # s; nothing here waits that long unless an answer never comes
MAX_MESSAGE = 16 << 20  # of ws-echo
LENGTHS = (0, 1, 124, 125, 126, 127, 128, 129, 65534, 65535, 65536, 65537)


class Echo:
    """A ws-echo on a free port."""

    def __init__(self):
        self.process = subprocess.Popen([os.environ["WS_ECHO"]], stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)$", self.process.stdout.readline().strip())[1])

    def connect(self, timeout=TIMEOUT):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def request(self, data):
        """The whole answer up to the end of the stream."""
        with self.connect() as connection:
            connection.sendall(data)
            answer = b""
            while part := connection.recv(65536):
                answer += part
        return answer

    def stop(self):
        alive = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        return alive


# Frames -----------------------------------------------------------------------------------------------------------

def text(payload, fin=True):
    return frame(TEXT, payload, fin=fin)


def more(payload, fin=True):
    """A continuation."""
    return frame(0, payload, fin=fin)


def pieces(opcode, payload, size):
    """One message in frames of `size` bytes."""
    starts = range(0, max(1, len(payload)), size)
    return b"".join(frame(0 if at else opcode, payload[at:at + size], fin=at + size >= len(payload)) for at in starts)


def close(code, reason=b""):
    return frame(CLOSE, struct.pack(">H", code) + reason)


BYE = close(1000)


def closed(code):
    """What is read at the end: a close frame with that code, and then nothing."""
    return [(CLOSE, code), "end"]


# Tests ------------------------------------------------------------------------------------------------------------

class EchoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Echo()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop(), "ws-echo had died"

    def exchange(self, data, chop, pause):
        """Sends all, reads all: frames with their payload, a close with its code, the end."""
        seen = []
        with Client(self.server) as client:
            try:
                for at in range(0, len(data), chop or len(data)):
                    client.socket.sendall(data[at:at + (chop or len(data))])
                    time.sleep(pause)
                while True:
                    opcode, payload = client.receive_frame()
                    if opcode == CLOSE:
                        payload = struct.unpack(">H", payload[:2])[0] if payload else 1005
                    seen.append((opcode, payload))
            except Closed:
                seen.append("end")
            except OSError as error:
                seen.append(error)
        return seen

    def check(self, data, expected, chop=0, pause=0.0, any_order=False):
        with self.subTest(sent=data[:40], size=len(data), chop=chop):
            seen = self.exchange(data, chop, pause)
            if any_order:  # of messages and pongs
                seen[:-2], expected = sorted(seen[:-2]), sorted(expected[:-2]) + expected[-2:]
            if seen != expected:  # some are too long to be shown by assertEqual
                def short(frames):
                    return [(f[0], f[1] if isinstance(f[1], int) else (len(f[1]), f[1][:20])) if isinstance(f, tuple)
                            else f for f in frames][:12]
                self.fail(f"read {short(seen)} instead of {short(expected)}")

    def check_chopped(self, data, expected, chop=1, **options):
        self.check(data, expected, **options)
        self.check(data, expected, chop=chop, **options)

    def check_last(self, data, expected):
        """Only how it ends is looked at: what was before the violation may or may not be answered."""
        with self.subTest(sent=data[:40]):
            self.assertEqual(self.exchange(data, 0, 0)[-len(expected):], expected)


class Framing(EchoTest):
    def test_every_length_in_both_kinds(self):
        for opcode, fill in ((TEXT, b"*"), (BINARY, b"\xfe")):
            for length in LENGTHS:
                payload = fill * length
                self.check_chopped(frame(opcode, payload) + BYE, [(opcode, payload)] + closed(1000), chop=997)

    def test_octet_by_octet(self):
        for opcode in (TEXT, BINARY):
            for length in (0, 1, 125, 126, 129):
                self.check(frame(opcode, b"x" * length) + BYE, [(opcode, b"x" * length)] + closed(1000), chop=1)

    def test_a_mask_of_zeros_is_a_mask(self):
        self.check(b"\x81\x85\0\0\0\0Hello" + BYE, [(TEXT, b"Hello")] + closed(1000))

    def test_unmasked_frames_are_violations(self):
        for opcode in (TEXT, BINARY, PING, PONG, CLOSE):
            self.check(frame(opcode, b"\x03\xe8", mask=False), closed(1002))
            self.check(frame(opcode, mask=False), closed(1002))

    def test_lengths_must_be_in_their_shortest_form(self):
        for head in (b"\x82\xfe" + struct.pack(">H", 5), b"\x82\xff" + struct.pack(">Q", 5),
                     b"\x82\xff" + struct.pack(">Q", 1 << 63)):
            self.check(head + b"mask" + b"x" * 5, closed(1002))


class Pings(EchoTest):
    def test_a_ping_is_answered_with_its_payload(self):
        for payload in (b"", b"Hello", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff", b"\xfe" * 124, b"\xfe" * 125):
            self.check_chopped(frame(PING, payload) + BYE, [(PONG, payload)] + closed(1000))

    def test_a_ping_beyond_125_bytes_is_a_violation(self):
        for length in (126, 127, 65536):
            self.check(frame(PING, b"\xfe" * length), closed(1002))

    def test_pongs_nobody_asked_for_are_ignored(self):
        self.check_chopped(frame(PONG) + frame(PONG, b"unasked") + BYE, closed(1000))
        self.check_chopped(frame(PONG, b"unasked") + frame(PING, b"asked") + BYE, [(PONG, b"asked")] + closed(1000))

    def test_ten_pings_have_ten_answers(self):
        payloads = [b"payload-%d" % i for i in range(10)]
        self.check_chopped(b"".join(frame(PING, p) for p in payloads) + BYE, [(PONG, p) for p in payloads] + closed(1000))


class ReservedBits(EchoTest):
    def test_a_bit_that_no_extension_defines_is_a_violation(self):
        for rsv in range(1, 8):
            for opcode in (TEXT, BINARY, PING, PONG, CLOSE):
                self.check(frame(opcode, rsv=rsv), closed(1002))
            before = text(b"Hello") + frame(TEXT, b"Hello", rsv=rsv) + frame(PING)
            self.check_chopped(before, [(TEXT, b"Hello")] + closed(1002))


class Opcodes(EchoTest):
    def test_unknown_opcodes_are_violations(self):
        for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
            self.check(frame(opcode), closed(1002))
            self.check(frame(opcode, b"payload"), closed(1002))
            self.check(frame(opcode, fin=False), closed(1002))
            self.check_chopped(text(b"Hello") + frame(opcode, b"x") + frame(PING), [(TEXT, b"Hello")] + closed(1002))


class Fragments(EchoTest):
    def test_control_frames_are_never_fragmented(self):
        for opcode in (PING, PONG, CLOSE):
            self.check_chopped(frame(opcode, b"ab", fin=False) + more(b"cd"), closed(1002))

    def test_fragments_make_one_message(self):
        for size in (1, 2, 3, 6):
            self.check_chopped(pieces(TEXT, b"fragment", size) + BYE, [(TEXT, b"fragment")] + closed(1000))
            self.check_chopped(pieces(BINARY, b"fragment", size) + BYE, [(BINARY, b"fragment")] + closed(1000))

    def test_control_frames_come_between_fragments(self):
        data = text(b"a", fin=False) + frame(PING, b"p") + more(b"b") + BYE
        self.check_chopped(data, [(TEXT, b"ab"), (PONG, b"p")] + closed(1000), any_order=True)
        data = (text(b"1", fin=False) + more(b"2", fin=False) + frame(PING, b"first") + more(b"3", fin=False) +
                more(b"4", fin=False) + frame(PING, b"second") + frame(PONG, b"unasked") + more(b"5") + BYE)
        self.check_chopped(data, [(TEXT, b"12345"), (PONG, b"first"), (PONG, b"second")] + closed(1000),
                           any_order=True)

    def test_a_ping_between_fragments_is_answered_before_the_message_ends(self):
        with Client(self.server) as client:
            client.send(TEXT, b"a", fin=False)
            client.send(PING, b"p")
            self.assertEqual(client.receive_frame(), (PONG, b"p"))
            client.send(0, b"b")
            self.assertEqual(client.receive_frame(), (TEXT, b"ab"))

    def test_a_continuation_needs_a_message(self):
        for fin in (True, False):
            self.check_chopped(more(b"x", fin) + text(b"y"), closed(1002))
            self.check_chopped(text(b"a", fin=False) + more(b"b") + more(b"c", fin) + text(b"d"),
                               [(TEXT, b"ab")] + closed(1002))

    def test_a_new_message_waits_for_the_end_of_the_one_before(self):
        for opcode in (TEXT, BINARY):
            self.check_chopped(text(b"a", fin=False) + frame(opcode, b"b"), closed(1002))
            self.check_chopped(text(b"a", fin=False) + frame(opcode, b"b", fin=False) + more(b"c"), closed(1002))


class Utf8(EchoTest):
    GREEK = "κόσμε".encode()
    # First and last of each length, around the surrogates, and every plane's two that are no characters.
    VALID = ([0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0xFFFFF,
              0x100000, 0x10FFFF] + [plane << 16 | end for plane in range(17) for end in (0xFFFE, 0xFFFF)])
    # Single bytes that start nothing, sequences that lack bytes, overlong forms, surrogates alone and in pairs,
    # beyond the last plane, forms of five and six bytes, sequences cut short by another.
    INVALID = ([bytes([byte]) for byte in range(0x80, 0x100)] +
               [bytes.fromhex(digits) for digits in
                "80bf 80bf80 80bf80bf c3 e282 f09f98 c0af e080af f08080af f8808080af fc80808080af c1bf e09fbf f08fbfbf "
                "f887bfbfbf fc83bfbfbfbf c080 e08080 f0808080 f880808080 fc8080808080 eda080 edadbf edaebf edafbf "
                "edb080 edbe80 edbfbf eda080edb080 eda080edbfbf edadbfedb080 edafbfedbfbf f4908080 f7bfbfbf f888808080 "
                "fbbfbfbfbf fc8480808080 fdbfbfbfbfbf c328 e228a1 e28228 f0288cbc f09028bc f0288c28".split()])

    def test_valid_texts_come_back(self):
        for point in self.VALID:
            payload = b"<" + chr(point).encode() + b">"
            self.check(text(payload) + BYE, [(TEXT, payload)] + closed(1000))
            self.check(pieces(TEXT, payload, 1) + BYE, [(TEXT, payload)] + closed(1000), chop=1)
        for size in range(1, len(self.GREEK)):
            self.check_chopped(pieces(TEXT, self.GREEK, size) + BYE, [(TEXT, self.GREEK)] + closed(1000))

    def test_empty_fragments_are_texts_too(self):
        self.check_chopped(text(b"", fin=False) + more(b"", fin=False) + more(b"") + BYE, [(TEXT, b"")] + closed(1000))
        self.check_chopped(text(b"", fin=False) + more(b"middle", fin=False) + more(b"") + BYE,
                           [(TEXT, b"middle")] + closed(1000))

    def test_invalid_texts_are_violations(self):
        for bad in self.INVALID:
            for after in (b"", b"z"):
                self.check(text(b"k" + bad + after), closed(1007))
            self.check(pieces(TEXT, b"k" + bad, 1), closed(1007), chop=1)
        for size in range(1, len(self.GREEK)):
            if size not in (2, 4, 6, 8):  # between two letters
                self.check_chopped(text(self.GREEK[:size]), closed(1007))

    def test_binary_messages_are_not_looked_at(self):
        for bad in self.INVALID[::8]:
            self.check(frame(BINARY, bad) + BYE, [(BINARY, bad)] + closed(1000))

    def test_the_first_wrong_byte_is_enough(self):
        # Nothing of these is ever completed: neither the message, nor the frame.
        bad = self.GREEK + b"\xf4\x90\x80\x80" + b"edited"
        self.check(text(self.GREEK, fin=False) + more(b"\xf4\x90\x80\x80", fin=False), closed(1007))
        self.check(text(self.GREEK + b"\xf4", fin=False) + more(b"\x90", fin=False), closed(1007))
        self.check(text(bad)[:-7], closed(1007))
        self.check(text(bad)[:-7], closed(1007), chop=1, pause=0.001)
        self.check(text(bad)[:-8], closed(1007), chop=1, pause=0.001)


class Closing(EchoTest):
    def test_what_comes_after_a_close_is_not_read(self):
        self.check(text(b"Hello") + BYE, [(TEXT, b"Hello")] + closed(1000))
        for after in (BYE, frame(PING), text(b"no"), more(b"no"), frame(3, rsv=7)):
            self.check(BYE + after, closed(1000))
        self.check(text(b"a", fin=False) + BYE + more(b"b"), closed(1000))
        self.check(frame(BINARY, b"x" * 262144) + BYE + frame(PING), [(BINARY, b"x" * 262144)] + closed(1000))

    def test_payloads(self):
        self.check_chopped(frame(CLOSE), closed(1005))
        self.check_chopped(frame(CLOSE, b"a"), closed(1002))
        for reason in (b"", b"Hello", b"*" * 123, Utf8.GREEK):
            self.check_chopped(close(1000, reason), closed(1000))
        self.check(close(1000, b"*" * 124), closed(1002))

    def test_the_reason_is_utf8(self):
        for bad in Utf8.INVALID[::4] + [Utf8.GREEK[:-1]]:
            self.check(close(1000, b"k" + bad), closed(1007))

    def test_codes(self):
        for code in (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999):
            self.check(close(code), closed(code))
        for code in (0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
            self.check(close(code), closed(1002))
            self.check(close(code, b"reason"), closed(1002))

    def test_an_end_without_a_close_is_an_end(self):
        for data in (b"", text(b"Hello")[:5], text(b"Hello", fin=False)):
            with Client(self.server) as client:
                client.socket.sendall(data)
                client.socket.shutdown(socket.SHUT_WR)
                with self.assertRaises(Closed):
                    client.receive_frame()


class Limits(EchoTest):
    def test_large_frames(self):
        for opcode in (TEXT, BINARY):
            for size in (65536, 262144, 1 << 20, 4 << 20, MAX_MESSAGE):
                self.check(frame(opcode, b"*" * size) + BYE, [(opcode, b"*" * size)] + closed(1000))

    def test_large_messages_in_fragments(self):
        for opcode in (TEXT, BINARY):
            for size, total in ((64, 262144), (256, 1 << 20), (1024, 1 << 20), (4096, 4 << 20), (65536, 4 << 20),
                                (1 << 20, 4 << 20), (65536, MAX_MESSAGE)):
                self.check(pieces(opcode, b"*" * total, size) + BYE, [(opcode, b"*" * total)] + closed(1000))

    def test_large_messages_in_chops(self):
        for opcode in (TEXT, BINARY):
            for chop in (64, 256, 1024, 2048):
                self.check(frame(opcode, b"*" * (1 << 18)) + BYE, [(opcode, b"*" * (1 << 18))] + closed(1000), chop=chop)

    def test_many_messages(self):
        for opcode in (TEXT, BINARY):
            for size in (0, 16, 64):
                one = (opcode, b"*" * size)
                self.check(frame(*one) * 1000 + BYE, [one] * 1000 + closed(1000))

    def test_one_byte_more_is_too_much(self):
        self.check(frame(BINARY, b"", length=MAX_MESSAGE + 1), closed(1009))
        self.check(frame(TEXT, b"", length=(1 << 63) - 1), closed(1009))
        self.check(frame(BINARY, b"*" * MAX_MESSAGE, fin=False) + more(b"*"), closed(1009))
        self.check(pieces(TEXT, b"*" * MAX_MESSAGE, 65536)[:-65536 - 14] + more(b"*" * 65537, fin=False), closed(1009))

    def test_what_may_not_be_is_refused_at_its_header(self):
        # The payload that these announce never comes.
        for data in (frame(TEXT, rsv=1, length=5), frame(3, length=5), frame(11, length=5),
                     frame(TEXT, mask=False, length=5), frame(0, length=5), text(b"a", fin=False) + frame(TEXT, length=5),
                     frame(PING, length=126), frame(PING, fin=False, length=5)):
            self.check(data, closed(1002))
            self.check(data[:-4] if data[1] & 0x80 else data, closed(1002))  # nor the mask

    def test_a_message_in_uneven_fragments(self):
        payload = bytes(range(256)) * 256
        self.check(pieces(BINARY, payload, 1300) + BYE, [(BINARY, payload)] + closed(1000))


class Handshake(unittest.TestCase):
    """The same rows for ws-echo, whose HTTP is a few lines, and for dsnetd."""
    ACCEPTED = [
        {}, {"Upgrade": "WebSocket"}, {"Upgrade": "foo, websocket"}, {"Connection": "upgrade"},
        {"Connection": "keep-alive, Upgrade"}, {"Connection": "keep-alive\r\nConnection: Upgrade"},
        {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}, {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA=="},
        {"Origin": "https://studio.example"}, {"Origin": "null"}, {"X_Unknown": "x" * 2000},
        {"Sec_WebSocket_Protocol": "chat, dsnet.v1"}, {"line": "GET /v1/stream?x=1 HTTP/1.1"},
        {"Sec_WebSocket_Extensions": "permessage-deflate"},
        {"Sec_WebSocket_Extensions": "permessage-deflate; client_max_window_bits=10; server_no_context_takeover"},
        {"Sec_WebSocket_Extensions": "x-webkit-deflate-frame, permessage-deflate; client_max_window_bits"},
    ]
    REFUSED = [
        (400, {"Host": None}), (400, {"Host": "a\r\nHost: b"}),
        (400, {"Sec_WebSocket_Key": None}), (400, {"Sec_WebSocket_Key": ""}), (400, {"Sec_WebSocket_Key": "short"}),
        (400, {"Sec_WebSocket_Key": "!" * 22 + "=="}), (400, {"Sec_WebSocket_Key": "A" * 24}),
        (400, {"Sec_WebSocket_Key": "A" * 26 + "=="}), (400, {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAB=="}),
        (400, {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="}),
        (400, {"Upgrade": "h2c"}), (400, {"Upgrade": "websocket2"}), (426, {"Upgrade": None}),
        (400, {"Connection": None}), (400, {"Connection": "keep-alive"}), (400, {"Connection": "upgraded"}),
        (426, {"Sec_WebSocket_Version": None}), (426, {"Sec_WebSocket_Version": "8"}),
        (426, {"Sec_WebSocket_Version": "130"}), (426, {"Sec_WebSocket_Version": "13, 8"}),
        (400, {"line": "GET /v1/stream HTTP/1.0"}), (405, {"line": "POST /v1/stream HTTP/1.1"}),
    ]

    def check(self, server):
        for changes in self.ACCEPTED:
            with self.subTest(**changes), Client(server, **changes) as client:  # checks Sec-WebSocket-Accept
                self.assertEqual(client.answer.status, 101)
                self.assertEqual(client.answer.headers["upgrade"].lower(), "websocket")
                self.assertEqual(client.answer.headers["connection"].lower(), "upgrade")
                self.assertNotIn("sec-websocket-extensions", client.answer.headers)  # every extension is declined
                client.send(TEXT, b"compressed, says its first bit", rsv=4)
                self.assertEqual(client.close_code(), 1002)
        for status, changes in self.REFUSED:
            with self.subTest(status=status, **changes), Client(server, **changes) as client:
                self.assertEqual(client.answer.status, status)
                self.assertNotIn("sec-websocket-accept", client.answer.headers)
                if status == 426:
                    self.assertEqual(client.answer.headers["sec-websocket-version"], "13")

    def test_the_example_of_the_rfc(self):
        accept = base64.b64encode(hashlib.sha1(b"dGhlIHNhbXBsZSBub25jZQ==" + GUID).digest())
        self.assertEqual(accept, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")

    def test_ws_echo(self):
        server = Echo()
        try:
            self.check(server)
            with server.connect() as connection:  # octet by octet, and a frame behind it
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for byte in handshake() + text(b"early") + BYE:
                    connection.sendall(bytes([byte]))
                answer = b""
                while part := connection.recv(65536):
                    answer += part
            self.assertTrue(answer.startswith(b"HTTP/1.1 101 "))
            self.assertTrue(answer.endswith(b"\r\n\r\n\x81\x05early\x88\x02\x03\xe8"))
        finally:
            self.assertTrue(server.stop())

    def test_dsnetd(self):
        server = Server("--threads", "1")
        try:
            self.check(server)
        finally:
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
