#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README against the programs: its option table is what dsnetd prints, its Python example streams, and its
C example builds against an installed library.

    test_readme.py           checks (DSNETD names the server, DSNET_BUILD the build folder)
    test_readme.py --write   brings the option table up to date
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

from ws import Server

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")
TABLE = re.compile(r"(<!-- options -->\n)(.*?)(<!-- /options -->)", re.S)


def read():
    with open(README) as file:
        return file.read()


def options():
    return subprocess.run([os.environ["DSNETD"], "--options-markdown"], check=True,
                          capture_output=True, text=True).stdout


class ReadmeTest(unittest.TestCase):
    def test_the_option_table_is_what_the_server_prints(self):
        self.assertEqual(TABLE.search(read())[2], options(), "run test_readme.py --write")

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
        with open(README, "w") as out:
            out.write(text)
    else:
        unittest.main(verbosity=1)
