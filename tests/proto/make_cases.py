#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the test vectors of the dsnet.v1 stream into cases/NAME/, with struct and json alone, so
that they do not depend on the C codec they test.

A case is one client or server message: input.bin (a binary frame) or input.json (a text message,
which may not be JSON at all), and expect.json: {"error": CODE}, and for "ok" the decoded fields.
Floats in expect.json are the exact values of the floats on the wire. Run it from anywhere:

    python3 tests/proto/make_cases.py
"""
import json
import math
import pathlib
import shutil
import struct

CASES = pathlib.Path(__file__).parent / "cases"
HEADER = "<BBHId"


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def write(name, extension, data, expect):
    folder = CASES / name
    folder.mkdir(parents=True)
    (folder / f"input.{extension}").write_bytes(data)
    (folder / "expect.json").write_text(json.dumps(expect, indent=1) + "\n")


def pose(joints=22, seq=7, timestamp=1.25, kind=1, encoding=0, count=None, change=None):
    values = [f32(math.sin(0.37 * i)) for i in range(3 * joints)] + [f32(0.1), f32(-2.5), f32(0.93)]
    for index, value in (change or {}).items():
        values[index] = value
    header = struct.pack(HEADER, kind, encoding, joints if count is None else count, seq, timestamp)
    return header + struct.pack(f"<{len(values)}f", *values), values


def good_pose(name, **options):
    data, values = pose(**options)
    kind, encoding, count, seq, timestamp = struct.unpack(HEADER, data[:16])
    write(name, "bin", data, {
        "error": "ok", "kind": kind, "encoding": encoding, "count": count, "seq": seq,
        "timestamp": timestamp, "pose": [f32(v) for v in values[:66]],
        "trans": [f32(v) for v in values[-3:]]})


def bad_pose(name, error, cut=0, extra=b"", **options):
    data, _ = pose(**options)
    write(name, "bin", data[:len(data) - cut] + extra, {"error": error})


def frames():
    good_pose("pose_22_joints")
    good_pose("pose_24_joints", joints=24, seq=0, timestamp=0.0)
    good_pose("pose_52_joints", joints=52, seq=4294967295, timestamp=-1e300)
    good_pose("pose_55_joints", joints=55)
    good_pose("pose_rotation_at_limit", change={0: f32(62.83185), 1: 0.0, 2: 0.0})
    good_pose("pose_translation_at_limit", change={66: 1e5, 67: -1e5})
    good_pose("pose_denormal", change={3: 1e-45, 4: -0.0})
    bad_pose("pose_21_joints", "bad_count", joints=21)
    bad_pose("pose_56_joints", "bad_count", joints=56)
    bad_pose("pose_count_above_payload", "bad_size", count=23)
    bad_pose("pose_count_65535", "bad_count", count=65535)
    bad_pose("pose_one_byte_short", "bad_size", cut=1)
    bad_pose("pose_one_byte_long", "bad_size", extra=b"\0")
    bad_pose("pose_header_only", "bad_size", cut=276)
    bad_pose("pose_header_cut", "bad_size", cut=277)
    bad_pose("pose_empty", "bad_size", cut=292)
    bad_pose("pose_kind_0", "bad_kind", kind=0)
    bad_pose("pose_kind_result", "bad_kind", kind=2)
    bad_pose("pose_kind_255", "bad_kind", kind=255)
    bad_pose("pose_encoding_f16", "bad_encoding", encoding=1)
    bad_pose("pose_nan", "not_finite", change={65: math.nan})
    bad_pose("pose_infinite", "not_finite", change={0: math.inf})
    bad_pose("pose_trans_infinite", "not_finite", change={68: -math.inf})
    bad_pose("pose_nan_in_unused_joint", "not_finite", joints=55, change={164: math.nan})
    bad_pose("pose_timestamp_nan", "not_finite", timestamp=math.nan)
    bad_pose("pose_rotation_absurd", "out_of_range", change={0: 62.84, 1: 0.0, 2: 0.0})
    bad_pose("pose_rotation_absurd_by_norm", "out_of_range", change={3: 40.0, 4: -40.0, 5: 40.0})
    bad_pose("pose_rotation_huge", "out_of_range", change={0: 3e38, 1: 3e38, 2: 3e38})
    bad_pose("pose_translation_absurd", "out_of_range", change={67: -100001.0})


OPEN = {"model": "default", "betas": [0.0] * 10, "fps": 60.0, "up": "z", "output": "displacement",
        "encoding": "f32", "delivery": "all", "format": "binary", "glitch": "pass",
        "keepalive": 0.0, "checkpoint_every": 0, "resume": ""}


def text(name, source, expect):
    data = source if isinstance(source, bytes) else json.dumps(source, ensure_ascii=False).encode()
    write(name, "json", data, expect)


def good_open(name, source, **members):
    expect = {"error": "ok", "type": "open", **OPEN, **members}
    expect["betas"] = [f32(b) for b in (expect["betas"] + [0.0] * 10)[:10]]
    text(name, source, expect)


def opens():
    good_open("open_defaults", {"type": "open"})
    good_open("open_whitespace", b' \r\n\t{ "type" :\n"open" } \n')
    betas = [0.1, -2.5, 3, 1e-3, 0, 0, 0, 0, 0, 100]
    full = {"model": "bob.v2", "betas": betas, "fps": 120, "up": "y", "output": "latent",
            "encoding": "i16", "delivery": "latest", "format": "json", "glitch": "hold",
            "keepalive": 12.5, "checkpoint_every": 600,
            "resume": "AAEC_-9+/="}
    good_open("open_every_member", {"type": "open", **full}, **full)
    good_open("open_vertices_f16", {"type": "open", "output": "vertices", "encoding": "f16"},
              output="vertices", encoding="f16")
    good_open("open_unknown_members", {"type": "open", "colour": {"deep": [[[None]]]}, "": 1})
    good_open("open_short_betas", {"type": "open", "betas": [1.5]}, betas=[1.5])
    good_open("open_no_betas", {"type": "open", "betas": []})
    good_open("open_300_betas", {"type": "open", "betas": [0.25] * 300}, betas=[0.25] * 10)
    good_open("open_unicode_name", {"type": "open", "model": "tänzer-舞"}, model="tänzer-舞")
    good_open("open_escaped_name", b'{"type":"open","model":"a\\"\\u00e9\\\\/"}', model='a"é\\/')
    good_open("open_name_of_63_bytes", {"type": "open", "model": "m" * 63}, model="m" * 63)


def bad_member(name, member):
    text(name, {"type": "open", **member}, {"error": "bad_member"})


def bad_texts():
    bad_member("open_name_of_64_bytes", {"model": "m" * 64})
    bad_member("open_name_empty", {"model": ""})
    bad_member("open_name_number", {"model": 3})
    bad_member("open_name_control", {"model": "a\nb"})
    bad_member("open_betas_object", {"betas": {"0": 1}})
    bad_member("open_betas_text", {"betas": [0, "1"]})
    bad_member("open_betas_null", {"betas": [None]})
    bad_member("open_betas_nested", {"betas": [[0.0] * 10]})
    bad_member("open_betas_301", {"betas": [0] * 301})
    bad_member("open_betas_huge", {"betas": [1e300]})
    bad_member("open_betas_huge_unused", {"betas": [0] * 299 + [101]})
    bad_member("open_fps_zero", {"fps": 0})
    bad_member("open_fps_negative", {"fps": -60})
    bad_member("open_fps_huge", {"fps": 1001})
    bad_member("open_fps_text", {"fps": "60"})
    bad_member("open_fps_boolean", {"fps": True})
    bad_member("open_up_x", {"up": "x"})
    bad_member("open_output_unknown", {"output": "mesh"})
    bad_member("open_encoding_number", {"encoding": 0})
    bad_member("open_delivery_unknown", {"delivery": "some"})
    bad_member("open_format_unknown", {"format": "xml"})
    bad_member("open_glitch_boolean", {"glitch": True})
    bad_member("open_keepalive_negative", {"keepalive": -1})
    bad_member("open_keepalive_long", {"keepalive": 3601})
    bad_member("open_checkpoint_negative", {"checkpoint_every": -1})
    bad_member("open_checkpoint_fraction", {"checkpoint_every": 1.5})
    bad_member("open_checkpoint_above_u32", {"checkpoint_every": 4294967296})
    bad_member("open_resume_empty", {"resume": ""})
    bad_member("open_resume_space", {"resume": "a b"})
    bad_member("open_resume_long", {"resume": "A" * 57344})
    bad_member("open_resume_null", {"resume": None})
    bad = {"error": "bad_member"}
    text("open_duplicate_member", b'{"type":"open","fps":60,"fps":60}', bad)
    text("open_duplicate_type", b'{"type":"open","type":"open"}', bad)
    text("open_number_overflows", b'{"type":"open","fps":1e999}', bad)
    text("open_integer_overflows", b'{"type":"open","checkpoint_every":99999999999999999999}', bad)
    text("no_type", {"fps": 60}, bad)
    text("type_number", {"type": 1}, bad)
    text("type_unknown", {"type": "Open"}, {"error": "bad_type"})
    text("type_empty", {"type": ""}, {"error": "bad_type"})
    bad = {"error": "bad_json"}
    text("json_empty", b"", bad)
    text("json_array", b'[{"type":"open"}]', bad)
    text("json_string", b'"open"', bad)
    text("json_two_values", b'{"type":"open"}{}', bad)
    text("json_cut", b'{"type":"open"', bad)
    text("json_single_quotes", b"{'type':'open'}", bad)
    text("json_trailing_comma", b'{"type":"open",}', bad)
    text("json_comment", b'{"type":"open"/**/}', bad)
    text("json_nan", b'{"type":"open","fps":NaN}', bad)
    text("json_hexadecimal", b'{"type":"open","fps":0x3c}', bad)
    text("json_leading_zero", b'{"type":"open","fps":060}', bad)
    text("json_byte_order_mark", b'\xef\xbb\xbf{"type":"open"}', bad)
    text("json_nul_byte", b'{"type":"open"}\0', bad)
    text("json_nul_inside", b'{"type":"open","model":"a\0b"}', bad)
    text("json_nul_escape", b'{"type":"open","model":"a\\u0000b"}', bad)
    text("json_raw_control", b'{"type":"open","model":"a\tb"}', bad)
    text("json_invalid_utf8", b'{"type":"open","model":"\xff"}', bad)
    text("json_overlong_utf8", b'{"type":"open","model":"\xc0\xaf"}', bad)
    text("json_surrogate_utf8", b'{"type":"open","model":"\xed\xa0\x80"}', bad)
    text("json_lone_surrogate_escape", b'{"type":"open","model":"\\ud800"}', bad)
    text("json_deep", b'{"type":"open","x":' + b"[" * 8000 + b"]" * 8000 + b"}", bad)
    text("json_at_size_limit", b'{"type":"open"}'.ljust(65536), {
        "error": "ok", "type": "open", **OPEN})
    text("json_above_size_limit", b'{"type":"open"}'.ljust(65537), {"error": "bad_size"})


def client_messages():
    betas = [f32(0.1), -2.0] + [0.0] * 8
    text("shape", {"type": "shape", "betas": betas[:2]},
         {"error": "ok", "type": "shape", "betas": betas})
    bad = {"error": "bad_member"}
    text("shape_without_betas", {"type": "shape"}, bad)
    text("shape_huge", {"type": "shape", "betas": [101]}, bad)
    text("reset", {"type": "reset", "betas": 1}, {"error": "ok", "type": "reset"})
    for name, id_ in (("none", None), ("number", -9007199254740993), ("text", "a-ü"),
                      ("longest", "i" * 64)):
        message = {"type": "ping"} if id_ is None else {"type": "ping", "id": id_}
        text(f"ping_{name}", message, {"error": "ok", **message})
    text("pong", {"type": "pong", "id": 7}, {"error": "ok", "type": "pong", "id": 7})
    for name, id_ in (("empty", ""), ("long", "i" * 65), ("fraction", 1.5), ("null", None),
                      ("control", "a\tb")):
        text(f"ping_id_{name}", {"type": "ping", "id": id_}, bad)
    text("stats_request", {"type": "stats"}, {"error": "ok", "type": "stats"})


def json_poses():
    values = [f32(math.sin(0.37 * i)) for i in range(66)]
    pose_ = {"type": "pose", "seq": 4294967295, "timestamp": -0.5, "pose": values,
             "trans": [f32(0.1), -2.5, 1e5]}
    text("json_pose", pose_, {"error": "ok", **pose_})
    less = {k: v for k, v in pose_.items() if k != "timestamp"}
    more = values + [1.0] * 99
    text("json_pose_55_joints", {**less, "pose": more}, {"error": "ok", **pose_, "timestamp": 0.0})
    bad = {"error": "bad_member"}
    for name in ("seq", "pose", "trans"):
        text(f"json_pose_without_{name}", {k: v for k, v in pose_.items() if k != name}, bad)
    text("json_pose_21_joints", {**pose_, "pose": values[:63]}, bad)
    text("json_pose_part_of_a_joint", {**pose_, "pose": values + [0.0]}, bad)
    text("json_pose_56_joints", {**pose_, "pose": more + [0.0] * 3}, bad)
    text("json_pose_nested", {**pose_, "pose": [[0.0] * 3] * 22}, bad)
    text("json_pose_text", {**pose_, "pose": ["0"] * 66}, bad)
    text("json_pose_beyond_f32", {**pose_, "trans": [0, 0, 1e39]}, bad)
    text("json_pose_trans_short", {**pose_, "trans": [0, 0]}, bad)
    text("json_pose_rotation_absurd", {**pose_, "pose": [100.0] * 66}, {"error": "out_of_range"})
    text("json_pose_trans_absurd", {**pose_, "trans": [0, -100001, 0]}, {"error": "out_of_range"})


def server_messages():
    stats = {"type": "stats", "frames_in": 2 ** 53, "frames_out": 7, "skipped": 1, "held": 2,
             "gaps": 3, "latency_p50_ms": 0.25, "latency_p99_ms": 1.5}
    text("stats", stats, {"error": "ok", **stats})
    text("stats_without_gaps", {k: v for k, v in stats.items() if k != "gaps"},
         {"error": "bad_member"})
    text("stats_negative", {**stats, "skipped": -1}, {"error": "bad_member"})
    text("keepalive", {"type": "keepalive"}, {"error": "ok", "type": "keepalive"})
    opened = {"type": "opened", "session": "s-1", "model": "default", "vertices": 6890,
              "latents": 64, "fps": 60.0, "next_seq": 0, "trained": False, "delay": 0.0}
    text("opened", opened, {"error": "ok", **opened})
    trained = {**opened, "trained": True, "next_seq": 4294967295, "fps": 59.94, "delay": 1 / 60}
    text("opened_trained", {**trained, "extra": 1}, {"error": "ok", **trained})
    for name in ("session", "vertices", "trained"):
        text(f"opened_without_{name}", {k: v for k, v in opened.items() if k != name},
             {"error": "bad_member"})
    text("opened_no_vertices", {**opened, "vertices": 0}, {"error": "bad_member"})
    text("opened_absurd_vertices", {**opened, "vertices": 10000001}, {"error": "bad_member"})
    text("opened_trained_number", {**opened, "trained": 1}, {"error": "bad_member"})
    checkpoint = {"type": "checkpoint", "seq": 4294967295, "token": "AQ_-" * 14335}
    text("checkpoint", {**checkpoint, "extra": 1}, {"error": "ok", **checkpoint})
    text("checkpoint_request", {"type": "checkpoint"},
         {"error": "ok", "type": "checkpoint", "seq": 0, "token": ""})
    for name, members in (("without_seq", {"token": "A"}), ("without_token", {"seq": 1}),
                          ("token_empty", {"seq": 1, "token": ""}),
                          ("token_space", {"seq": 1, "token": "a b"}),
                          ("token_long", {"seq": 1, "token": "A" * 57344}),
                          ("seq_text", {"seq": "1", "token": "A"}),
                          ("token_null", {"seq": 1, "token": None})):
        text(f"checkpoint_{name}", {"type": "checkpoint", **members}, {"error": "bad_member"})
    error = {"type": "error", "code": "not_finite", "message": "a value is NaN or infinite"}
    text("error_of_message", error, {"error": "ok", **error})
    text("error_of_frame", {**error, "seq": 9}, {"error": "ok", **error, "seq": 9})
    text("error_control_characters", {**error, "message": "a\u001b[2J\nb\u0085c\u007f"},
         {"error": "ok", **error, "message": "a?[2J?b?c?"})
    text("error_long_message", {**error, "message": "é" * 200},
         {"error": "ok", **error, "message": "é" * 127})
    text("error_without_code", {"type": "error", "message": ""}, {"error": "bad_member"})
    text("error_seq_negative", {**error, "seq": -1}, {"error": "bad_member"})


def main():
    shutil.rmtree(CASES, ignore_errors=True)
    frames()
    opens()
    bad_texts()
    client_messages()
    json_poses()
    server_messages()
    print(f"{len(list(CASES.iterdir()))} cases")


main()
