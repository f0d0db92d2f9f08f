#!/usr/bin/env python3
"""tools/bench/ncu.py without a GPU: a log written by hand, and a program that stands in for ncu.

    tests/bench/test_ncu.py GEXEC
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
ROOT = os.path.dirname(os.path.dirname(HERE))
BENCH = os.path.join(ROOT, "tools", "bench")
SAMPLE = os.path.join(HERE, "ncu_sample.csv")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True

import ncu  # noqa: E402

GEXEC = ""
NCU = """#!/bin/sh
# Knows two names of metrics; writes the sample where the log shall be.
case $1 in --query-metrics)
    echo "gpu__time_duration   Counter  nanosecond"
    echo "sm__pipe_tensor_op_hmma_cycles_active  Counter  cycle"
    exit ;;
esac
echo "$@" >"$FAKE_NCU/words"
[ ! -e "$FAKE_NCU/refuses" ] || { echo "==ERROR== ERR_NVGPUCTRPERM" >&2; exit 1; }
while [ $# -gt 0 ]; do
    [ "$1" != --log-file ] || cp "$FAKE_NCU/log" "$2"
    shift
done
"""
# gexec on its CPU where a GPU is asked for.
FAKE_GEXEC = """#!/bin/bash
for word in "$@"; do
    case $word in --eager) words+=(--device cpu) ;; *) words+=("$word") ;; esac
done
exec "$REAL_GEXEC" "${words[@]}"
"""


class Log(unittest.TestCase):
    def setUp(self):
        with open(SAMPLE) as file:
            self.text = file.read()

    def test_launches_are_those_of_the_step(self):
        rows = ncu.read_rows(self.text)
        self.assertEqual([row["ID"] for row in rows], ["0", "1", "2", "3", "4"])
        self.assertEqual([row["ID"] for row in ncu.in_the_step(rows)], ["1", "2", "3", "4"])
        self.assertEqual(len(ncu.in_the_step(ncu.read_rows(self.text.replace(
            ":measured", ":other")))), 5)

    def test_means_are_weighed_by_time(self):
        kernels = ncu.kernels_of(ncu.in_the_step(ncu.read_rows(self.text)))
        self.assertEqual([kernel["own"] for kernel in kernels], [False, True, True])
        direct = kernels[1]
        self.assertEqual((direct["name"], direct["launches"], direct["ns"]),
                         ("direct_kernel<__nv_bfloat16, 4>", 2, 4000))
        self.assertAlmostEqual(direct["tensor"], (30 * 1 + 50 * 3) / 4)
        self.assertAlmostEqual(direct["dram"], 17.5)
        self.assertEqual((direct["l2"], direct["warps"], direct["registers"]), (20, 50, 40))
        self.assertEqual(kernels[2]["name"], "step_end_kernel")
        self.assertIsNone(kernels[2]["warps"])

    def test_a_log_without_kernels_says_why(self):
        with self.assertRaisesRegex(ncu.Failed, "no kernel"):
            ncu.read_rows("==PROF== Connected\n")
        with self.assertRaisesRegex(ncu.Failed, "ERR_NVGPUCTRPERM"):
            ncu.read_rows("==ERROR== ERR_NVGPUCTRPERM - no permission\n")
        with self.assertRaisesRegex(ncu.Failed, "no durations"):
            ncu.kernels_of(ncu.read_rows(self.text.replace("gpu__time", "gpu__no_time")))


class Program(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name
        for name, text in (("ncu", NCU), ("gexec", FAKE_GEXEC)):
            self.write(name, text)
            os.chmod(self.path(name), os.stat(self.path(name)).st_mode | stat.S_IXUSR)
        with open(SAMPLE) as file:
            self.write("log", file.read())

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def run_it(self, *words):
        return subprocess.run(
            [sys.executable, os.path.join(BENCH, "ncu.py"), *words], capture_output=True,
            text=True, env=dict(os.environ, FAKE_NCU=self.folder, REAL_GEXEC=GEXEC,
                                PYTHONDONTWRITEBYTECODE="1"))

    def model(self, name, *words):
        return self.run_it(os.path.join(ROOT, "graphs", "examples", name + ".yaml"), "--gexec",
                           self.path("gexec"), "--ncu", self.path("ncu"), *words)

    def test_a_step_runs_under_ncu_with_its_plan(self):
        for name in ("mnist_mlp", "digits_mlp"):
            done = self.model(name, "--type", "bf16", "--json", self.path("out.json"),
                              "--commit", "abc")
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = done.stdout.splitlines()
            self.assertIn("4 launches, 3 kernels, 10.0 us one by one", lines[0])
            self.assertIn("direct_kernel", lines[2])
            self.assertIn(" 40.0%        2     45.0   55.0   17.5   20.0    50.0    40  (64, 1, "
                          "1), (256, 1, 1); direct_kernel<__nv_bfloat16, 4>", lines[2])
            self.assertIn("n/a", lines[3])
            self.assertNotIn("cutlass", done.stdout)
            with open(self.path("words")) as file:
                words = file.read()
            self.assertIn("--metrics gpu__time_duration.sum,sm__pipe_tensor_op_hmma_cycles_"
                          "active.avg.pct_of_peak_sustained_elapsed,launch__registers", words)
            self.assertIn("--clock-control none", words)
            self.assertRegex(words, r"run \S*\.yaml --eager --steps 1 .*--plan \S+ --nsys-window")
            with open(self.path("out.json")) as file:
                report = json.load(file)
            self.assertEqual((report["launches"], report["commit"], report["type"]),
                             (4, "abc", "bf16"))
            self.assertIn("toolkit_cuda", report["environment"])

    def test_a_log_is_read_again(self):
        done = self.run_it("--read", SAMPLE, "--all", "--kernels", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("cutlass", done.stdout)
        self.assertNotIn("direct", done.stdout)

    def test_without_own_kernels_all_are_told(self):
        with open(SAMPLE) as file:
            self.write("other", file.read().replace("<unnamed>::", ""))
        done = self.run_it("--read", self.path("other"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("none of them is known as gexec's own", done.stdout)
        self.assertIn("direct_kernel", done.stdout)

    def test_what_fails_is_told(self):
        self.write("refuses", "")
        done = self.model("mnist_mlp")
        self.assertEqual(done.returncode, 3)
        self.assertIn("ncu ended with status 1: ==ERROR== ERR_NVGPUCTRPERM", done.stderr)
        done = self.model("mnist_mlp", "--ncu", "/no/such/ncu")
        self.assertEqual(done.returncode, 3)
        self.assertIn("/no/such/ncu", done.stderr)
        for words, says in (([], "expected a model"), (["/no/such.yaml"], "no such file"),
                            ([""], "'': no such file"), (["--read", ""], "'': no such file"),
                            (["--read", SAMPLE, "--kernels", "0"], "--kernels: expected"),
                            (["--read", SAMPLE, "--limit", "nan"], "--limit: expected"),
                            (["--read", SAMPLE, "--json", ""], "--json: expected a file")):
            done = self.run_it(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)

    def test_other_programs_are_3(self):
        true = shutil.which("true")
        for words, says in ((["--gexec", true], "this is not gexec; build it"),
                            (["--gexec", self.folder], "Permission denied; build it"),
                            (["--flags=-h"], "gexec run wrote no result"),
                            (["--ncu", true], "true wrote no log")):
            done = self.model("mnist_mlp", *words)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertFalse(os.path.exists(self.path("words")), "ncu ran")

    def test_an_old_log_is_neither_read_nor_lost(self):
        self.write("kept", "of another run")
        done = self.model("mnist_mlp", "--ncu", shutil.which("true"), "--log", self.path("kept"))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("true wrote no log", done.stderr)
        with open(self.path("kept")) as file:
            self.assertEqual(file.read(), "of another run")

    def test_a_result_without_a_place_is_found_before_the_run(self):
        self.write("kept", "kept")
        for flag in ("--json", "--log"):
            for path, why in (("/no/such/file", "No such file or directory"),
                              (self.folder, "this is a folder"),
                              (self.path("kept") + "/x", "Not a directory"),
                              (self.path("x" * 300), "File name too long")):
                done = self.model("mnist_mlp", flag, path)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr.splitlines()[-1],
                                 f"^ncu.py: error: argument {flag}: {path}.*{why}")
                self.assertFalse(os.path.exists(self.path("words")), "ncu ran")
        done = self.run_it("--read", SAMPLE, "--json", self.path("kept"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_it("--read", SAMPLE, "--json", "/dev/null").returncode, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["gexec", "kept", "log", "ncu"])


if __name__ == "__main__":
    GEXEC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
