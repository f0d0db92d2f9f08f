#!/usr/bin/env python3
"""What parity.py and curves.py share, without PyTorch: tasks that fail, and a budget.

    tests/parity/test_model.py
"""

import argparse
import io
import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
import model  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# Ends as the model's name says.
FAKE = f"""#!{sys.executable}
import json, sys, time
name = open(sys.argv[2]).read().split("name: ")[1].split()[0]
if name == "hangs": time.sleep(600)
if name in ("breaks", "absent"):
    print("a reason", file=sys.stderr)
    sys.exit(4 if name == "breaks" else 3)
with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
    json.dump({{"environment": {{"card": "A card"}}, "curves": {{"loss": [2, 1]}}}}, file)
"""


def work(args, name, folder):
    m = model.Model(os.path.join(folder, name), name, "f32")
    m.run(args, 1)
    return {"name": name, "curve": m.curve("loss"), "environment": m.environment()}


class Tasks(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name
        self.gexec = os.path.join(self.folder, "gexec")
        with open(self.gexec, "w") as file:
            file.write(FAKE)
        os.chmod(self.gexec, os.stat(self.gexec).st_mode | stat.S_IXUSR)

    def arguments(self, *words):
        parser = argparse.ArgumentParser()
        model.add_arguments(parser)
        args = parser.parse_args(["--gexec", self.gexec, "--json",
                                  os.path.join(self.folder, "out.json"), *words])
        model.start_clock(args)
        return args

    def test_a_result_without_a_place_is_found_before_the_run(self):
        for path, why in (("/no/such/file", "cannot be written: No such file"),
                          (self.folder, "this is a folder"), ("", "expected a file")):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
                self.arguments("--json", path)
            self.assertEqual(end.exception.code, 2)
            self.assertIn(f"argument --json: {path}", said.getvalue())
            self.assertIn(why, said.getvalue())
        self.assertEqual(os.listdir(self.folder), ["gexec"])

    def run_all(self, args, *names):
        """The report of these tasks, each in a folder of its own, what was said, and the exit
        status."""
        said = io.StringIO()
        report = model.Report(args, rows=[])
        with contextlib.redirect_stdout(said):
            for (name, _), row, reason in model.each(
                    args, work, [(name, tempfile.mkdtemp(dir=self.folder)) for name in names]):
                if reason:
                    report.add_reason(name, reason)
                else:
                    report.add("rows", row)
            status = report.status(0, len(report.data["rows"]))
        with open(args.json) as file:
            return json.load(file), said.getvalue(), status

    def test_one_that_fails_leaves_the_others(self):
        for jobs in ("1", "2"):
            report, said, status = self.run_all(self.arguments("--jobs", jobs, "--commit", "abc"),
                                                "first", "breaks", "last")
            self.assertEqual([row["name"] for row in report["rows"]], ["first", "last"])
            self.assertEqual(report["failed"], [
                {"task": "breaks", "reason": "gexec ended with status 4: a reason"}])
            self.assertIn("breaks: FAILED", said)
            self.assertEqual((status, report["commit"]), (1, "abc"))
            self.assertEqual(report["environment"], {"card": "A card"})
            self.assertNotIn("environment", report["rows"][0])

    def test_what_is_beyond_the_budget_is_named(self):
        for jobs in ("1", "2"):
            report, said, status = self.run_all(
                self.arguments("--jobs", jobs, "--budget", "8"), "first", "hangs", "hangs",
                "last", "hangs", "beyond")
            self.assertEqual(report["rows"][0]["name"], "first")
            self.assertEqual(report["not_run"][-1], "beyond")
            self.assertIn("Not run: hangs, hangs", said)
            self.assertEqual(status, 3)

    def test_without_a_gpu_all_ends(self):
        with self.assertRaises(SystemExit) as caught, contextlib.redirect_stderr(io.StringIO()):
            self.run_all(self.arguments(), "absent", "never")
        self.assertEqual(caught.exception.code, 3)

    def test_nothing_done_is_no_success(self):
        self.assertEqual(self.run_all(self.arguments(), "one")[2], 0)
        args = self.arguments()
        report = model.Report(args, rows=[])
        self.assertEqual(report.status(0, 0), 1)
        self.assertEqual(report.status(1, 5), 1)

    def test_no_budget_is_no_end(self):
        args = self.arguments()
        self.assertIsNone(model.left(args))
        args.end = time.monotonic() - 1
        with self.assertRaises(model.OutOfTime):
            model.left(args)


class Programs(unittest.TestCase):
    """Both scripts, as far as they come before PyTorch."""

    def ends(self, script, *words):
        return subprocess.run([sys.executable, os.path.join(HERE, script), *words],
                              capture_output=True, text=True,
                              env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))

    def test_bad_usage_is_2(self):
        for script, word in (("parity.py", "add"), ("curves.py", "deep")):
            for words, says in ((["--types", "f32,f32"], "--types: 'f32' is there more than once"),
                                (["--types", "f8"], "--types: 'f8' is none of"),
                                (["--types", ""], "--types: expected some of"),
                                (["--types", "f64", "--device", "gpu"], "f64"),
                                (["--only", f"{word},{word}"], f"--only: '{word}' is there more"),
                                (["--only", "other"], "--only: 'other' is none of"),
                                (["--only", ""], "--only: expected some of"),
                                (["--budget", "nan"], "--budget: expected a number"),
                                (["--budget", "1e300"], "--budget: expected a number"),
                                (["--keep", __file__], "--keep: "),
                                (["--json", ""], "--json: expected a file")):
                done = self.ends(script, *words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{script}: error: ", done.stderr)
                self.assertIn(says, done.stderr)
        self.assertEqual(self.ends("parity.py", "--draws", "0").returncode, 2)

    def test_what_is_no_gexec_is_3(self):
        for script in ("parity.py", "curves.py"):
            for path in ("/no/such", HERE, shutil.which("true")):
                done = self.ends(script, "--gexec", path)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertRegex(done.stderr, rf"\A{script}: {path}: .*; build it .*\n\Z")


if __name__ == "__main__":
    unittest.main()
