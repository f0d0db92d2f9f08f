#!/usr/bin/env python3
"""tools/bench/build_cost.py and chain.py over a program that stands in for gexec, and their models
by gexec.

    tests/bench/test_build_cost.py GEXEC
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "bench")
PROGRAM = os.path.join(BENCH, "build_cost.py")
CHAIN = os.path.join(BENCH, "chain.py")
GEXEC = ""
# A node costs 3 us to capture and 4 to instantiate; a model with biases may end with
# a status, hang, or have no result.
FAKE = f"""#!{sys.executable}
import json, os, sys, time
if sys.argv[1:] == ["--version"]:
    print("gexec 9.9")
    sys.exit()
trouble = os.environ.get("TROUBLE", "")
model = open(sys.argv[2]).read()
n = model.count("op: gemm")
if "bias" in model and trouble:
    if trouble == "hang":
        time.sleep(600)
    print('{{"graph_nodes": 1}}' if trouble == "{{}}" else "no JSON")
    sys.exit(int(trouble) if trouble.isdigit() else 0)
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
        for trouble, words, status, reason in (
                ("1", [], 1, "gexec compare found that bits differ"),
                ("2", [], 2, "gexec compare ended with status 2"),
                ("4", [], 3, "gexec compare ended with status 4"),
                ("words", [], 3, "gexec compare told no costs"),
                ("{}", [], 3, "gexec compare told no costs"),
                ("hang", ["--budget", "10"], 3, "no time left")):
            done, report = self.run_it(*words, TROUBLE=trouble)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(f"a parameter, bias and relu each: {reason}", done.stderr)
            self.assertEqual([result["form"] for result in report["results"]], ["shared"])
            self.assertEqual(report["missing"], {"own": reason})

    def test_its_models_run(self):
        for form in ("shared", "own"):
            with open(self.model, "w") as file:
                subprocess.run([sys.executable, CHAIN, "--write", "1000", form], stdout=file,
                               check=True, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
            done = subprocess.run([GEXEC, "run", self.model, "--device", "cpu", "-q", "--json",
                                   "-"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{form}: {done.stderr}")
            told = json.loads(done.stdout)
            self.assertEqual(told["steps"], 1)
            self.assertEqual([output["not_finite"] for output in told["outputs"]], [0], form)

    def test_bad_usage_is_2(self):
        for words, says in (
                (["--repeats", "0"], "--repeats: expected a number from 1"),
                (["--budget", "0"], "--budget: expected a number from 1 to 1000000, not '0'"),
                (["--budget", "nan"], "--budget: expected a number from 1 to 1000000, not 'nan'"),
                (["--budget", "1e300"], "not '1e300'"),
                (["--limit", "nan"], "--limit: expected a number from 0 to 1000000, not 'nan'"),
                (["--limit", "inf"], "not 'inf'"),
                (["--limit", "x"], "not 'x'"),
                (["--json", ""], "--json: expected a file"),
                (["--json", "/no/such/file"],
                 "--json: /no/such/file cannot be written: No such file")):
            done, _ = self.run_it(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stdout, "")

    def chain(self, *words):
        return subprocess.run([sys.executable, CHAIN, *words], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))

    def test_what_is_no_gexec_is_3(self):
        with open(self.model, "w") as file:  # no program in it, but may be run
            file.write("no program")
        os.chmod(self.model, 0o755)
        for path, says in ((HERE, "Permission denied"), ("/no/such", "No such file"),
                           (self.model, "Exec format error"), ("", ""),
                           (shutil.which("true"), "not gexec"),
                           (shutil.which("false"), "not gexec")):
            for done in (self.run_it("--gexec", path)[0], self.chain("--gexec", path)):
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertRegex(done.stderr, rf"\A(build_cost|chain)\.py: {path}: .*{says}.*; "
                                 r"build it or name it with --gexec\n\Z")
                self.assertEqual(done.stdout, "")

    def test_a_plan_that_fails_ends_the_chain_with_3(self):
        with open(self.fake, "w") as file:
            file.write('#!/bin/sh\n[ "$1" = --version ] && echo gexec 9.9\n')
        done = self.chain("--gexec", self.fake)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr, "chain.py: gexec ended with status 1\n")

    def test_what_the_chain_measured_is_kept_when_it_stops(self):
        with open(self.fake, "w") as file:
            file.write('#!/bin/sh\n[ "$1" = --version ] && echo gexec 9.9 && exit\n'
                       '[ "$(grep -c "op: gemm" "$2")" -lt 10000 ]\n')
        done = self.chain("--gexec", self.fake, "--json", self.json)
        self.assertEqual(done.returncode, 3, done.stderr)
        with open(self.json) as file:
            report = json.load(file)
        self.assertEqual([result["products"] for result in report["results"]], [1000, 3000])
        self.assertEqual(report["points_planned"], 10)
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.json))),
                         ["gexec", "out.json"])

    def test_bad_usage_of_the_chain_is_2(self):
        for words, says in ((["--write", "\u00b2", "own"], "--write: expected a length from 1"),
                            (["--write", "9" * 5000, "own"], "--write: expected a length"),
                            (["--write", "0", "own"], "--write: expected a length"),
                            (["--write", "1", "other"], "one of shared, own"),
                            (["--json", ""], "--json: expected a file")):
            done = self.chain("--gexec", self.fake, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: test_build_cost.py GEXEC [unittest's arguments]")
    GEXEC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
