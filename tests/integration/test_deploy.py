#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is deployed beside the server: every file is read by the tool it is for, where that is there, and held to
what the server really has: its settings, its metrics, its time-outs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

from ws import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
NAME = {"app.kubernetes.io/name": "dsnetd"}


def tool(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def need(name):
    return unittest.skipUnless(tool(name), f"{name} is not here")


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def settings():
    """Every environment variable that dsnetd reads."""
    return set(re.findall(r"`(DSNET_\w+)`", run(os.environ["DSNETD"], "--options-markdown")))


class Deploy(unittest.TestCase):
    @need("haproxy")
    def test_haproxy_takes_its_configuration_with_tls_and_without(self):
        config = DEPLOY / "haproxy/haproxy.cfg"
        run(tool("haproxy"), "-c", "-f", config)
        with tempfile.TemporaryDirectory() as folder:
            pem = pathlib.Path(folder) / "cert.pem"
            run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=dsnet",
                "-keyout", f"{folder}/key", "-out", f"{folder}/cert")
            pem.write_text((pem.parent / "cert").read_text() + (pem.parent / "key").read_text())
            run(tool("haproxy"), "-c", "-f", config, env={**os.environ, "DSNET_TLS_CERT": str(pem)})

    @need("promtool")
    def test_prometheus_takes_its_rules(self):
        run(tool("promtool"), "check", "config", DEPLOY / "prometheus/prometheus.yml")

    @need("systemd-analyze")
    def test_systemd_takes_the_unit(self):
        text = (DEPLOY / "systemd/dsnetd.service").read_text()
        self.assertLessEqual(set(re.findall(r"DSNET_\w+", text)), settings())
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "dsnetd.service"
            unit.write_text(text.replace("/usr/bin/dsnetd", os.environ["DSNETD"]).replace("Documentation=man:dsnetd(1)\n", ""))
            run(tool("systemd-analyze"), "verify", "--recursive-errors=no", unit)

    @need("dpkg-shlibdeps")
    @unittest.skipIf(os.environ.get("DSNET_SANITIZE"), "a package is made of a plain build")
    def test_the_debian_package_has_programs_manuals_and_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            run("cpack", "-G", "DEB", "-B", folder, cwd=os.environ["DSNET_BUILD"])
            package, = pathlib.Path(folder).glob("dsnet_*.deb")
            listed = {line.split()[-1] for line in run("dpkg-deb", "-c", package).splitlines()}
            run("dpkg-deb", "-x", package, f"{folder}/root")
            manual = (pathlib.Path(folder) / "root/usr/share/man/man1/dsnetd.1").read_text()
            version = run(f"{folder}/root/usr/bin/dsnetd", "--version")
        for path in ("bin/dsnetd", "bin/dsnet", "bin/dsnet-stream", "lib/systemd/system/dsnetd.service",
                     "share/man/man1/dsnetd.1", "share/man/man1/dsnet.1", "share/man/man1/dsnet-stream.1",
                     "share/doc/dsnet/copyright"):
            self.assertIn("./usr/" + path, listed)
        self.assertIn(version.split()[1], manual)
        for setting in settings():
            self.assertIn(setting, manual)

    def test_alerts_and_dashboard_ask_for_metrics_that_exist(self):
        server = Server("--threads", "1")
        try:
            text = server.get("/metrics").body.decode()
        finally:
            server.stop()
        there = set(re.findall(r"^# TYPE (\w+)", text, re.M)) | {"up"}
        rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
        board = json.loads((DEPLOY / "grafana/dashboards/dsnetd.json").read_text())
        asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
        asked += [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        self.assertGreater(len(asked), 15)
        for expression in asked:
            names = set(re.findall(r"\b((?:dsnet|process)_\w+|up)\b", expression))
            self.assertTrue(names, expression)
            for name in names:
                self.assertIn(re.sub("_(bucket|sum|count)$", "", name), there, expression)

    def test_every_alert_is_explained(self):
        rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
        readme = (ROOT / "README.md").read_text()
        for rule in rules["groups"][0]["rules"]:
            self.assertIn(f"`{rule['alert']}`", readme)

    def test_compose_names_files_and_settings_that_exist(self):
        compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
        self.assertEqual(sum(name.startswith("replica") for name in compose["services"]), 3)
        for name, service in compose["services"].items():
            if name.startswith("replica"):
                self.assertLessEqual(set(service["environment"]), settings())
                self.assertEqual((service["read_only"], service["cap_drop"]), (True, ["ALL"]))
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue((ROOT / "docker" / source).exists(), volume)
                else:
                    self.assertIn(source, compose["volumes"])


@need("kubectl")
class Kubernetes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "kubernetes"
            shutil.copytree(DEPLOY / "kubernetes", copy)
            (copy / "state.key").write_bytes(os.urandom(32))
            cls.objects = {item["kind"]: item for item in yaml.safe_load_all(run(tool("kubectl"), "kustomize", copy))}

    def test_every_object_is_there_and_well_formed(self):
        kinds = {"Deployment": "apps/v1", "Service": "v1", "Secret": "v1", "Ingress": "networking.k8s.io/v1",
                 "NetworkPolicy": "networking.k8s.io/v1", "PodDisruptionBudget": "policy/v1",
                 "HorizontalPodAutoscaler": "autoscaling/v2"}
        self.assertEqual({kind: item["apiVersion"] for kind, item in self.objects.items()}, kinds)
        for item in self.objects.values():
            self.assertRegex(item["metadata"]["name"], r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")
            self.assertEqual(item["metadata"]["labels"], NAME)

    def test_everything_points_at_the_pods(self):
        pod = self.objects["Deployment"]["spec"]["template"]
        self.assertEqual(pod["metadata"]["labels"], NAME)
        for selector in (self.objects["Deployment"]["spec"]["selector"]["matchLabels"],
                         self.objects["Service"]["spec"]["selector"],
                         self.objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
                         self.objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
            self.assertEqual(selector, NAME)
        target = self.objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
        self.assertEqual((target["kind"], target["name"]), ("Deployment", self.objects["Deployment"]["metadata"]["name"]))
        backend = self.objects["Ingress"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
        self.assertEqual(backend["name"], self.objects["Service"]["metadata"]["name"])
        container = pod["spec"]["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertIn(self.objects["Service"]["spec"]["ports"][0]["targetPort"], ports)
        self.assertEqual(self.objects["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"], ports["http"])

    def test_the_pod_is_confined_and_its_settings_fit(self):
        spec = self.objects["Deployment"]["spec"]["template"]["spec"]
        container = spec["containers"][0]
        self.assertTrue(spec["securityContext"]["runAsNonRoot"])
        self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                        "capabilities": {"drop": ["ALL"]}})
        environment = {item["name"]: item["value"] for item in container["env"]}
        self.assertLessEqual(set(environment), settings())
        self.assertTrue(all(isinstance(value, str) for value in environment.values()))
        self.assertLess(float(environment["DSNET_DRAIN_TIMEOUT"]), spec["terminationGracePeriodSeconds"])
        self.assertLess(float(environment["DSNET_DRAIN_GRACE"]), float(environment["DSNET_DRAIN_TIMEOUT"]))
        ready = container["readinessProbe"]
        self.assertGreater(float(environment["DSNET_DRAIN_GRACE"]), ready["periodSeconds"] * ready["failureThreshold"])
        paths = {probe: container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
        self.assertEqual(paths, {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"})
        mounts = {mount["name"] for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        self.assertEqual(mounts, set(volumes))
        self.assertEqual(volumes["state-key"]["secret"]["secretName"], self.objects["Secret"]["metadata"]["name"])
        self.assertEqual(volumes["state-key"]["secret"]["defaultMode"], 0o440)


if __name__ == "__main__":
    unittest.main()
