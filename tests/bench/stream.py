#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams at 60 Hz: starts a dsnetd, loads it with dsnet-stream, and prints for each number of sessions the
frames/s achieved, latencies and missed 16.7 ms deadlines. The load generator runs on the same machine.

    tests/bench/stream.py BUILD [--sessions 1,50,200] [--json FILE] [-- dsnetd options]

BUILD is a build folder, for example build/release.
"""
import argparse
import json
import os
import re
import subprocess
import sys

COLUMNS = ("sessions", "frames/s", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "missed %", "server cores",
           "client cores")


def processor():
    with open("/proc/cpuinfo") as file:
        return re.search(r"model name\s*:\s*(.*)", file.read())[1]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(build, options):
    server = subprocess.Popen([f"{build}/server/dsnetd", "--port", "0", "--log-level", "error", *options],
                              stdout=subprocess.PIPE, text=True)
    match = re.search(r"http://(\S+)", server.stdout.readline())
    if not match:
        sys.exit("dsnetd did not start")
    return server, f"ws://{match[1]}/v1/stream"


def measure(build, server, url, sessions):
    before = cpu_seconds(server.pid)
    # All sessions stream the built-in sample, staggered: 12 s.
    result = subprocess.run([f"{build}/proto/stream/dsnet-stream", "sample", "--url", url, "--rate", "real",
                             "--sessions", str(sessions), "--json"], capture_output=True, text=True)
    if not result.stdout.startswith("{"):
        sys.exit(result.stderr)
    summary = json.loads(result.stdout)
    seconds, latency = summary["seconds"], summary["latency_ms"]
    return {
        "sessions": sessions,
        "frames/s": round(summary["frames_per_second"]),
        "p50 ms": round(latency["p50"], 2),
        "p99 ms": round(latency["p99"], 2),
        "p99.9 ms": round(latency["p99.9"], 2),
        "max ms": round(latency["max"], 1),
        "missed %": round(100 * summary["deadline_misses"] / max(summary["frames_received"], 1), 2),
        "server cores": round((cpu_seconds(server.pid) - before) / seconds, 2),
        "client cores": round(summary["client_cpu_seconds"] / seconds, 2),
        "ok": summary["ok"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build")
    parser.add_argument("--sessions", default="1,10,50,100,150,200")
    parser.add_argument("--json", metavar="FILE", help="write a machine-readable record")
    parser.add_argument("options", nargs="*", help="options of dsnetd, after --")
    arguments = parser.parse_args()

    print(f"{processor()}, {os.cpu_count()} cores; load average {os.getloadavg()[0]:.1f}")
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    rows = []
    server, url = start(arguments.build, arguments.options)
    try:
        for sessions in map(int, arguments.sessions.split(",")):
            row = measure(arguments.build, server, url, sessions)
            rows.append(row)
            print("| " + " | ".join(str(row[name]) for name in COLUMNS) + " |" +
                  ("" if row["ok"] else " NOT EVERY FRAME CAME BACK"), flush=True)
    finally:
        server.terminate()
        server.wait(timeout=30)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"processor": processor(), "cores": os.cpu_count(), "rows": rows}, file, indent=2)
    sys.exit(0 if all(row["ok"] for row in rows) else 1)


if __name__ == "__main__":
    main()
