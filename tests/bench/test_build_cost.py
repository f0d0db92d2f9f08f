#!/usr/bin/env python3
"""tools/bench/build_cost.py over a program that stands in for gexec, and its models by gexec.

    tests/bench/test_build_cost.py GEXEC
"""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "bench")
PROGRAM = os.path.join(BENCH, "build_cost.py")
GEXEC = ""
# A node costs 3 us to capture and 4 to instantiate; a model with biases may fail or hang.
FAKE = f"""#!{sys.executable}
import json, os, sys, time
model = open(sys.argv[2]).read()
n = model.count("op: gemm")
if "bias" in model and "TROUBLE" in os.environ:
    if os.environ["TROUBLE"] == "hang":
        time.sleep(600)
    sys.exit(4)
print(json.dumps({{"graph_nodes": n, "costs_s": {{"capture": 3e-6 * n, "instantiate": 4e-6 * n}},
                  "environment": {{"card": "A card", "words": sys.argv[1:]}}}}))
"""


class BuildCost(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.fake = os.path.join(kept.name, "gexec")
        self.json = os.path.join(kept.name, "out.json")
        self.model = os.path.join(kept.name, "chain.yaml")
        with open(self.fake, "w") as file:
            file.write(FAKE)
        os.chmod(self.fake, os.stat(self.fake).st_mode | stat.S_IXUSR)

    def run_it(self, *words, **environment):
        done = subprocess.run(
            [sys.executable, PROGRAM, "--gexec", self.fake, "--products", "20", "--repeats",
             "3", "--json", self.json, *words], capture_output=True, text=True,
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **environment))
        try:
            with open(self.json) as file:
                return done, json.load(file)
        except FileNotFoundError:
            return done, None

    def test_the_cost_of_a_node_is_told_and_kept(self):
        done, report = self.run_it("--commit", "abc", "--flags", "--lanes 1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("7.00 us a node (7.00 to 7.00 in 3 runs)"), 2)
        self.assertEqual([result["nodes"] for result in report["results"]], [20, 20])
        self.assertEqual((report["commit"], report["missing"]), ("abc", {}))
        self.assertEqual(report["environment"]["words"][-2:], ["--lanes", "1"])

    def test_over_the_limit_is_1(self):
        self.assertEqual(self.run_it("--limit", "6.9")[0].returncode, 1)

    def test_what_was_done_is_kept_when_the_rest_fails(self):
        for trouble, words, reason in (
                ("fail", [], "gexec compare ended with status 4"),
                ("hang", ["--budget", "10"], "no time left")):
            done, report = self.run_it(*words, TROUBLE=trouble)
            self.assertEqual(done.returncode, 3)
            self.assertIn(f"a parameter, bias and relu each: {reason}", done.stderr)
            self.assertEqual([result["form"] for result in report["results"]], ["shared"])
            self.assertEqual(report["missing"], {"own": reason})

    def test_its_models_run(self):
        for form in ("shared", "own"):
            with open(self.model, "w") as file:
                subprocess.run([sys.executable, os.path.join(BENCH, "chain.py"), "--write", "1000",
                                form], stdout=file, check=True,
                               env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
            done = subprocess.run([GEXEC, "run", self.model, "--device", "cpu", "-q", "--json",
                                   "-"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{form}: {done.stderr}")
            told = json.loads(done.stdout)
            self.assertEqual(told["steps"], 1)
            self.assertEqual([output["not_finite"] for output in told["outputs"]], [0], form)

    def test_bad_usage_is_2(self):
        for words in (["--repeats", "0"], ["--budget", "0"]):
            self.assertEqual(self.run_it(*words)[0].returncode, 2)
        done, _ = self.run_it("--json", "/no/such/file")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--json: /no/such/file cannot be written: No such file", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: test_build_cost.py GEXEC [unittest's arguments]")
    GEXEC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
