#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real motion capture through one server, many sessions at once: each streamed result must equal what
`dsnet predict` says of the same clip, to 1e-5 of the clip's largest displacement.

usage: test_clips.py DSNETD DSNET DSNET_STREAM [CLIP_FOLDER [MOST]]

Without clips the built-in sample is streamed and the rest is said to be skipped. MOST takes only that many
of the smallest clips, for builds that are slow.
"""
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np

AT_ONCE = 12  # sessions streamed together; bounds the disk that results take
TOLERANCE = 1e-5


def start_server(dsnetd):
    # Frames may be late on a machine that runs tests.
    server = subprocess.Popen([dsnetd, "--port", "0", "--max-late", "1"], stdout=subprocess.PIPE, text=True)
    for line in server.stdout:
        match = re.search(r"listening on http://([\d.]+:\d+)", line)
        if match:
            return server, f"ws://{match[1]}/v1/stream"
    raise SystemExit(f"dsnetd ended with status {server.wait()} before it listened")


def compare(name, offline_path, streamed_path):
    """Returns the relative difference; reads frame by frame slices to keep memory small."""
    offline = np.load(offline_path)["displacement"]
    streamed = np.load(streamed_path)["displacement"]
    if offline.shape != streamed.shape:
        raise SystemExit(f"{name}: offline {offline.shape}, streamed {streamed.shape}")
    largest, difference = 0.0, 0.0
    for t in range(0, len(offline), 64):
        a, b = offline[t:t + 64], streamed[t:t + 64]
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise SystemExit(f"{name}: not finite near frame {t}")
        largest = max(largest, float(np.abs(a).max()))
        difference = max(difference, float(np.abs(a - b).max()))
    if not largest > 0:
        raise SystemExit(f"{name}: nothing moved")
    return len(offline), difference / largest


def stream_group(tools, url, clips, folder):
    """Streams the clips at once and returns [(name, frames, relative difference)]."""
    _, dsnet, stream = tools
    outputs = [os.path.join(folder, f"{i}.npz") for i in range(len(clips))]
    streams = [subprocess.Popen([stream, clip, "--server", url, "--rate", "max", "--timeout", "120", "-o",
                                 output],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
               for clip, output in zip(clips, outputs)]
    for clip, process in zip(clips, streams):
        message = process.communicate(timeout=300)[1]
        if process.returncode != 0:
            raise SystemExit(f"{clip}: dsnet-stream: {message}")
    results = []
    offline = os.path.join(folder, "offline.npz")
    for clip, output in zip(clips, outputs):
        subprocess.run([dsnet, "predict", clip, "-o", offline], check=True, stderr=subprocess.DEVNULL)
        results.append((os.path.basename(clip), *compare(clip, offline, output)))
        os.remove(output)
    return results


def main():
    tools = sys.argv[1:4]
    clips = glob.glob(os.path.join(sys.argv[4], "*.npz")) if len(sys.argv) > 4 else []
    if not clips:
        print("skipped: no motion capture here; the built-in sample only")
    clips.sort(key=lambda path: (os.path.getsize(path), path))
    if len(sys.argv) > 5 and len(clips) > int(sys.argv[5]):
        print(f"skipped: {len(clips) - int(sys.argv[5])} of the larger clips")
        del clips[int(sys.argv[5]):]
    clips.append("sample")
    server, url = start_server(tools[0])
    worst, frames = 0.0, 0
    try:
        for first in range(0, len(clips), AT_ONCE):
            with tempfile.TemporaryDirectory() as folder:
                for name, count, difference in stream_group(tools, url, clips[first:first + AT_ONCE],
                                                            folder):
                    print(f"{name:24} {count:6} frames, relative difference {difference:.1e}")
                    worst, frames = max(worst, difference), frames + count
    finally:
        server.send_signal(signal.SIGINT)
        status = server.wait(timeout=30)
    if status != 0:
        raise SystemExit(f"dsnetd ended with status {status}")
    if worst > TOLERANCE:
        raise SystemExit(f"the largest difference is {worst:.1e}, over {TOLERANCE:.0e}")
    print(f"{len(clips)} clips, {frames} frames: streamed and offline agree to {worst:.1e}")


if __name__ == "__main__":
    main()
