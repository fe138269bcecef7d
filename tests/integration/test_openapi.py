#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""proto/openapi.yaml against running servers: every path and method that is served is in it, and every status that
it names is brought about here and has the media type, header fields and schema that it says.

    test_openapi.py           checks (DSNETD names the server, DSNET_BUILD the build folder)
    test_openapi.py --write   brings proto/openapi.json, which the server serves, up to date
"""
import http.client
import io
import json
import os
import re
import resource
import signal
import sys
import tempfile
import unittest

import jsonschema
import numpy as np
import yaml

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto")
TOKEN = "correct horse battery"
ORIGIN = "https://evil.example"


def read(name):
    with open(os.path.join(PROTO, name)) as file:
        return file.read()


def as_json():
    return json.dumps(yaml.safe_load(read("openapi.yaml")), indent=1) + "\n"


class Document:
    def __init__(self):
        self.root = yaml.safe_load(read("openapi.yaml"))
        self.seen = set()

    def resolve(self, node):
        while "$ref" in node:
            target = self.root
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def operations(self):
        return {(method.upper(), path): operation for path, item in self.root["paths"].items()
                for method, operation in item.items() if method != "parameters"}

    def validator(self, schema):
        return jsonschema.Draft202012Validator({**schema, "components": self.root["components"]},
                                               format_checker=jsonschema.FormatChecker())

    def check(self, method, path, reply):
        """Whether a reply is one that the document foresees."""
        status = str(reply.status)
        where = f"{method} {path} {status}"
        response = self.resolve(self.operations()[method, path]["responses"][status])
        for name, header in response.get("headers", {}).items():
            header = self.resolve(header)
            assert not header.get("required") or name in reply.headers, (where, name)
            if name in reply.headers:
                self.validator(header["schema"]).validate(reply.headers[name])
        content = response.get("content")
        if content is None:
            assert not reply.body, (where, reply.body)
        else:
            kind = reply.headers["content-type"].split(";")[0]
            assert kind in content, (where, kind)
            schema = content[kind].get("schema")
            if schema:
                body = json.loads(reply.body) if kind.endswith("json") else reply.body.decode()
                self.validator(schema).validate(body)
        self.seen.add((method, path, status))

    def named(self):
        return {(method, path, status) for (method, path), operation in self.operations().items()
                for status in operation["responses"]}


def infer_body(frames=1):
    return json.dumps({"inputs": [
        {"name": "pose", "datatype": "FP32", "shape": [frames, 66], "data": [0.0] * 66 * frames},
        {"name": "trans", "datatype": "FP32", "shape": [frames, 3], "data": [0.0] * 3 * frames}],
        "outputs": [{"name": "latent"}]})


class OpenapiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from jobs import Service, clip
        cls.folder = tempfile.TemporaryDirectory()
        token = os.path.join(cls.folder.name, "token")
        with open(token, "w") as file:
            file.write(TOKEN)
        cls.clip = clip()
        cls.service = Service("--operator-token-file", token, "--max-sequences", "1", "--job-max-bytes", "2000000",
                              "--max-infer-bytes", "65536")
        cls.plain = Service("--max-sessions", "1", "--allowed-origin", "https://studio.example")
        cls.document = Document()

    @classmethod
    def tearDownClass(cls):
        cls.service.close()
        cls.plain.close()
        cls.folder.cleanup()

    def ask(self, method, template, status, path=None, body=None, service=None, **headers):
        """Asks, and holds the answer to the status expected and to the document."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        reply = (service or self.service).request(method, path or template, body, fields)
        self.assertEqual(reply.status, status, (method, template, reply.body[:300]))
        self.document.check(method, template, reply)
        return reply

    def test_what_is_served_is_the_document(self):
        self.assertEqual(read("openapi.json"), as_json(), "run test_openapi.py --write")
        self.assertEqual(self.service.get("/openapi.json").body.decode(), read("openapi.json"))
        self.assertEqual(self.service.get("/asyncapi.yaml").body.decode(), read("asyncapi.yaml"))

    def test_every_address_and_method_is_in_it(self):
        served = self.service.get("/").json()["paths"]
        named = [re.sub(r"\{\w+\}", "*", path) for path in self.document.root["paths"]]
        self.assertEqual(sorted(served), sorted(named))
        for path, item in self.document.root["paths"].items():
            allow = self.service.request("OPTIONS", re.sub(r"\{\w+\}", "1", path)).headers["allow"]
            methods = {name.upper() for name in item if name != "parameters"} | {"OPTIONS"}
            if "GET" in methods and path != "/v1/stream":
                methods.add("HEAD")
            self.assertEqual(set(allow.split(", ")), methods, path)

    def test_it_is_well_formed(self):
        operations = self.document.operations()
        identifiers = [operation["operationId"] for operation in operations.values()]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for (method, path), operation in operations.items():
            parameters = operation.get("parameters", []) + self.document.root["paths"][path].get("parameters", [])
            parameters = [self.document.resolve(parameter) for parameter in parameters]
            inside = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
            self.assertEqual(inside, set(re.findall(r"\{(\w+)\}", path)), path)
            self.assertTrue(operation["summary"] and operation["tags"], path)
        for schema in self.document.root["components"]["schemas"].values():
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_every_kind_of_problem_is_in_it(self):
        listed = [problem["type"] for problem in self.service.get("/problems").json()["problems"]]
        self.assertEqual(listed, self.document.root["components"]["schemas"]["ProblemType"]["enum"])

    def test_every_status_is_brought_about(self):
        self.ask_operation()
        self.ask_jobs()
        self.ask_results()
        self.ask_inference()
        self.ask_stream()
        self.ask_without_folder()
        self.ask_while_ending()
        self.assertEqual(sorted(self.document.named() - self.document.seen), [])

    def ask_operation(self):
        for path in ("/", "/livez", "/readyz", "/metrics", "/problems", "/openapi.json", "/asyncapi.yaml", "/v1/models",
                     "/v2", "/v2/health/live", "/v2/health/ready"):
            self.ask("GET", path, 200)
        self.ask("GET", "/", 406, Accept="image/png")
        self.ask("GET", "/", 200, Accept="text/html")
        self.ask_geometry()
        self.ask("GET", "/v1/models/{model}", 200, "/v1/models/default")
        self.ask("GET", "/v1/models/{model}", 404, "/v1/models/none")
        self.ask("GET", "/v1/sessions", 401)
        self.ask("GET", "/v1/sessions", 403, service=self.plain)
        from ws import Client
        with Client(self.service.server) as client:
            client.open()
            reply = self.ask("GET", "/v1/sessions", 200, Authorization="Bearer " + TOKEN)
            self.assertEqual(len(reply.json()["sessions"]), 1)

    def ask_geometry(self):
        for template, path in (("/v1/body", "/v1/body"), ("/v1/models/{model}/decoder", "/v1/models/default/decoder"),
                               ("/www/{file}", "/www/page.css")):
            tag = self.ask("GET", template, 200, path).headers["etag"]
            self.ask("GET", template, 304, path, If_None_Match=tag)
            if template != "/www/{file}":
                self.ask("GET", template, 200, path + "?format=json")
                self.ask("GET", template, 400, path + "?format=xml")
        self.ask("GET", "/v1/models/{model}/decoder", 404, "/v1/models/none/decoder")
        self.ask("GET", "/www/{file}", 404, "/www/none")

    def post(self, status, path="/v1/jobs", body=None, kind="application/zip", **headers):
        return self.ask("POST", "/v1/jobs", status, path, self.clip if body is None else body, Content_Type=kind,
                        **headers)

    def ask_jobs(self):
        self.job = self.post(202, Idempotency_Key="a").json()["id"]
        self.service.wait(self.job)
        broken = self.post(202, body=b"x").json()["id"]
        self.assertEqual(self.service.wait(broken)["state"], "failed")
        self.ask("GET", "/v1/jobs/{job}", 200, "/v1/jobs/" + broken)
        self.ask("GET", "/v1/jobs/{job}/result", 409, f"/v1/jobs/{broken}/result")
        self.post(400, "/v1/jobs?betas=x")
        self.post(403, Origin=ORIGIN)
        self.post(404, "/v1/jobs?model=none")
        self.raw("/v1/jobs", "/v1/jobs", 411)
        self.post(413, body=bytes(2_000_001))
        self.post(415, kind="text/plain")
        self.post(422, body=self.clip + b" ", Idempotency_Key="a")
        pid = self.service.server.process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        self.post(507)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        operator = {"Authorization": "Bearer " + TOKEN}
        self.ask("GET", "/v1/jobs", 200, **operator)
        self.ask("GET", "/v1/jobs", 400, "/v1/jobs?limit=0", **operator)
        self.ask("GET", "/v1/jobs", 401)
        self.ask("GET", "/v1/jobs/{job}", 200, "/v1/jobs/" + self.job)
        self.ask("GET", "/v1/jobs/{job}", 404, "/v1/jobs/none")
        self.ask("GET", "/v1/jobs/{job}/events", 200, f"/v1/jobs/{self.job}/events")
        self.ask("GET", "/v1/jobs/{job}/events", 404, "/v1/jobs/none/events")
        self.ask("DELETE", "/v1/jobs/{job}", 204, "/v1/jobs/" + broken)
        self.ask("DELETE", "/v1/jobs/{job}", 404, "/v1/jobs/" + broken)
        self.ask("DELETE", "/v1/jobs/{job}", 403, "/v1/jobs/" + self.job, Origin=ORIGIN)
        poses, slow = np.zeros((250_000, 66), np.float16), io.BytesIO()
        np.savez_compressed(slow, poses=poses, trans=poses[:, :3], mocap_framerate=60.0)
        running = self.service.submit(slow.getvalue())
        self.ask("DELETE", "/v1/jobs/{job}", 200, "/v1/jobs/" + self.service.submit(self.clip))
        self.service.request("DELETE", "/v1/jobs/" + running)

    def ask_results(self):
        path, template = f"/v1/jobs/{self.job}/result", "/v1/jobs/{job}/result"
        tag = self.ask("GET", template, 200, path).headers["etag"]
        self.ask("GET", template, 200, path + "?format=mdd")
        self.ask("GET", template, 206, path, Range="bytes=0-9")
        self.ask("GET", template, 304, path, If_None_Match=tag)
        self.ask("GET", template, 400, path + "?format=obj")
        self.ask("GET", template, 404, "/v1/jobs/none/result")
        self.ask("GET", template, 406, path, Accept="image/png")
        self.ask("GET", template, 416, path, Range="bytes=999999999-")

    def raw(self, template, path, status):
        """A POST without any body, which http.client would give a length."""
        answer = self.service.server.request(f"POST {path} HTTP/1.1\r\nHost: t\r\n"
                                             "Content-Type: application/json\r\n\r\n".encode())
        self.assertEqual(answer.status, status)
        self.document.check("POST", template, answer)

    def ask_inference(self):
        for middle, path in (("", "default"), ("/versions/{version}", "default/versions/1")):
            base = "/v2/models/{model}" + middle
            self.ask("GET", base, 200, "/v2/models/" + path)
            self.ask("GET", base, 404, "/v2/models/" + path.replace("default", "none"))
            self.ask("GET", base + "/ready", 200, f"/v2/models/{path}/ready")
            self.ask("GET", base + "/ready", 404, f"/v2/models/{path.replace('default', 'none')}/ready")
            infer = base + "/infer"
            here = f"/v2/models/{path}/infer"

            def post(status, body=infer_body(), where=here, kind="application/json", **headers):
                self.ask("POST", infer, status, where, body, Content_Type=kind, **headers)
            post(200)
            post(400, "{")
            post(403, Origin=ORIGIN)
            post(404, where=here.replace("default", "none"))
            self.raw(infer, here, 411)
            post(413, bytes(65537))
            post(415, kind="text/plain")
            # There is room for one sequence.
            started = {"sequence_id": 1, "sequence_start": True}
            post(200, json.dumps({**json.loads(infer_body()), "parameters": started}))
            post(503, json.dumps({**json.loads(infer_body()), "parameters": {**started, "sequence_id": 2}}))
            ended = {"sequence_id": 1, "sequence_end": True}
            post(200, json.dumps({**json.loads(infer_body()), "parameters": ended}))

    def ask_stream(self):
        from ws import Client
        with Client(self.plain.server) as client:
            client.answer.body = b""
            self.document.check("GET", "/v1/stream", Upgraded(client.answer))
            for status, changes in ((503, {}), (400, {"Sec_WebSocket_Key": None}), (403, {"Origin": ORIGIN}),
                                    (426, {"Upgrade": None})):
                with Client(self.plain.server, **changes) as other:
                    self.assertEqual(other.answer.status, status)
                    self.document.check("GET", "/v1/stream", Upgraded(other.answer))

    def ask_without_folder(self):
        from jobs import Service
        service = Service(folder="/proc/nowhere")
        for method, path, body in (("GET", "/v1/jobs", None), ("POST", "/v1/jobs", self.clip),
                                   ("GET", "/v1/jobs/{job}", None), ("DELETE", "/v1/jobs/{job}", None),
                                   ("GET", "/v1/jobs/{job}/events", None), ("GET", "/v1/jobs/{job}/result", None)):
            self.ask(method, path, 503, path.replace("{job}", "a"), body, service, Content_Type="application/zip")
        self.assertEqual(service.close(), 0)

    def ask_while_ending(self):
        from jobs import Service
        service = Service("--drain-grace", "20", "--drain-timeout", "30")
        service.server.process.send_signal(signal.SIGTERM)
        while service.get("/readyz").status == 200:
            pass
        self.ask("GET", "/readyz", 503, service=service)
        self.ask("GET", "/v2/health/ready", 503, service=service)
        for path in ("/v2/models/{model}/ready", "/v2/models/{model}/versions/{version}/ready"):
            self.ask("GET", path, 503, path.replace("{model}", "default").replace("{version}", "1"), service=service)
        self.assertEqual(service.close(), 0)


class Upgraded:
    """An answer of ws.py with header names in any case."""

    def __init__(self, answer):
        self.status, self.body = answer.status, answer.body
        self.headers = http.client.HTTPMessage()
        for name, value in answer.headers.items():
            self.headers[name] = value


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with open(os.path.join(PROTO, "openapi.json"), "w") as out:
            out.write(as_json())
    else:
        unittest.main(verbosity=1)
