#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README against the programs: its tables are what dsnetd prints, its Python examples stream and compute, and its
C example builds against an installed library.

    test_readme.py           checks (DSNETD names the server, DSNET_BUILD the build folder)
    test_readme.py --write   brings the tables of options and problems up to date
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from jobs import clip
from ws import Server

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")
PROBLEMS = re.compile(r"(<!-- problems -->\n)(.*?)(<!-- /problems -->)", re.S)
TABLE = re.compile(r"(<!-- options -->\n)(.*?)(<!-- /options -->)", re.S)


def read():
    with open(README) as file:
        return file.read()


def options():
    return subprocess.run([os.environ["DSNETD"], "--options-markdown"], check=True,
                          capture_output=True, text=True).stdout


def problems():
    server = Server("--threads", "1")
    try:
        rows = json.loads(server.get("/problems").body)["problems"]
    finally:
        server.stop()
    return "| status | type | what it means |\n|---|---|---|\n" + "".join(
        f"| {row['status']} | `{row['type']}` | {row['title']} |\n" for row in rows)


class ReadmeTest(unittest.TestCase):
    def test_the_option_table_is_what_the_server_prints(self):
        self.assertEqual(TABLE.search(read())[2], options(), "run test_readme.py --write")

    def test_the_table_of_problems_is_what_the_server_lists(self):
        self.assertEqual(PROBLEMS.search(read())[2], problems(), "run test_readme.py --write")

    def test_the_python_example_of_jobs_computes(self):
        try:
            import requests  # noqa: F401
        except ImportError:
            self.skipTest("the package requests is not installed")
        example = re.search(r"```python\n([^`]*?/v1/jobs.*?)```", read(), re.S)[1]
        with tempfile.TemporaryDirectory() as folder:
            server = Server("--threads", "1", "--data-dir", os.path.join(folder, "data"))
            try:
                with open(os.path.join(folder, "walk.npz"), "wb") as file:
                    file.write(clip(12))
                example = example.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
                result = subprocess.run([sys.executable, "-c", example + "\nprint(displacement.shape)"], cwd=folder,
                                        capture_output=True, text=True, timeout=60)
            finally:
                self.assertEqual(server.stop(), 0)
        self.assertEqual((result.stdout, result.stderr), ("(12, 6948, 3)\n", ""))

    def test_the_python_example_streams(self):
        try:
            import websockets  # noqa: F401
        except ImportError:
            self.skipTest("the package websockets is not installed")
        example = re.search(r"```python\n(.*?)```", read(), re.S)[1]
        server = Server("--threads", "1")
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "example.py")
                with open(path, "w") as file:
                    file.write(example.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}"))
                result = subprocess.run([sys.executable, path], capture_output=True, text=True,
                                        timeout=60)
        finally:
            self.assertEqual(server.stop(), 0)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^\(60, \d+, 3\) \d+\.\d+ mm at most$")

    def test_the_c_example_builds_against_an_installed_library(self):
        example = re.search(r"```c\n(.*?)```", read(), re.S)[1]
        build = os.environ["DSNET_BUILD"]
        if os.environ.get("DSNET_SANITIZE"):
            self.skipTest("a sanitized library needs the sanitizer's flags")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cmake", "--install", build, "--prefix", folder], check=True,
                           stdout=subprocess.DEVNULL)
            found = glob.glob(os.path.join(folder, "lib*", "**", "pkgconfig"), recursive=True)
            path = ":".join(found + [os.environ.get("PKG_CONFIG_PATH", "")])
            flags = subprocess.run(
                ["pkg-config", "--define-prefix", "--cflags", "--libs", "--static", "dsnet"], check=True,
                env={**os.environ, "PKG_CONFIG_PATH": path}, capture_output=True, text=True).stdout
            with open(os.path.join(folder, "example.c"), "w") as file:
                file.write(example)
            subprocess.run(["cc", "-Wall", "-Werror", "example.c", "-o", "example", *flags.split()],
                           check=True, cwd=folder)
            output = subprocess.run([os.path.join(folder, "example")], check=True, capture_output=True,
                                    text=True).stdout
        self.assertRegex(output, r"^\d+ vertices, the first moved by ")

    def test_files_it_links_to_exist(self):
        for target in re.findall(r"\]\(([^)#:]+)\)", read()):
            path = os.path.join(os.path.dirname(README), target)
            self.assertTrue(os.path.exists(path), target)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        text = TABLE.sub(lambda match: match[1] + options() + match[3], read())
        text = PROBLEMS.sub(lambda match: match[1] + problems() + match[3], text)
        with open(README, "w") as out:
            out.write(text)
    else:
        unittest.main(verbosity=1)
