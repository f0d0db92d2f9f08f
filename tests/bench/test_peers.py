#!/usr/bin/env python3
"""tools/bench/peers.py without a GPU, PyTorch or JAX.

    tests/bench/test_peers.py GEXEC
"""

import json
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tools", "bench")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True

from peer import cases, child, floors, rounds, table, with_jax, with_torch  # noqa: E402

GEXEC = ""
PEERS = os.path.join(BENCH, "peers.py")


class Folder(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = kept.name

    def path(self, name):
        return os.path.join(self.folder, name)


def plan(path):
    return json.loads(subprocess.run(
        [GEXEC, "plan", path, "--device", "cpu", "--stage", "graph", "--json", "-", "-q"],
        capture_output=True, text=True, check=True).stdout)


class Models(Folder):
    def planned(self, case):
        path = self.path(case.name + ".yaml")
        with open(path, "w") as file:
            file.write(cases.model_text(case))
        found = plan(path)
        self.assertEqual(found["precision"], case.precision)
        return {tensor["name"]: (tensor["kind"], tensor["shape"])
                for tensor in found["graph"]["tensors"]}

    def holds(self, case):
        tensors = self.planned(case)
        self.assertEqual(tensors["x"], ("input", [case.batch, case.widths[0]]))
        self.assertIn(case.target, tensors)
        wanted = set()
        for i, (fan_in, fan_out) in enumerate(case.layers):
            weight, bias = case.parameters(i)
            self.assertEqual(tensors[weight], ("parameter", [fan_in, fan_out]))
            self.assertEqual(tensors[bias], ("parameter", [fan_out]))
            wanted |= {weight, bias}
        self.assertEqual(wanted, {name for name, (kind, _) in tensors.items()
                                  if kind == "parameter"})

    def test_workloads_are_the_models_that_gexec_runs(self):
        for name in cases.WORKLOADS:
            for precision in cases.TYPES:
                self.holds(cases.workload(name, precision))

    def test_random_shapes_are_models_that_gexec_plans(self):
        for case in cases.random_cases(8, 3, ["tf32", "bf16"]):
            self.holds(case)

    def test_a_written_model_checks(self):
        case = cases.Case("small_one", 8, (24, 16, 8), "silu", "mse", "f32")
        self.holds(case)
        subprocess.run([GEXEC, "check", self.path("small_one.yaml"), "--device", "cpu", "-q"],
                       stdout=subprocess.DEVNULL, check=True)

    def test_random_shapes_keep_to_their_range(self):
        found = cases.random_cases(60, 1, ["tf32", "bf16"])
        self.assertEqual(found, cases.random_cases(60, 1, ["tf32", "bf16"]))
        self.assertEqual(found[:7], cases.random_cases(7, 1, ["tf32", "bf16"]))
        self.assertEqual(found[7:9], cases.random_cases(2, 1, ["tf32", "bf16"], 7))
        self.assertNotEqual(found[0].widths, cases.random_cases(1, 2, ["tf32"])[0].widths)
        for case in found:
            self.assertTrue(2 <= len(case.layers) <= 24)
            self.assertTrue(all(64 <= width <= 1024 and width % 8 == 0
                                for width in case.widths))
            self.assertTrue(8 <= case.batch <= 256 and case.batch % 8 == 0)
        self.assertEqual({case.activation for case in found}, set(cases.ACTIVATIONS))
        self.assertEqual({case.loss for case in found}, set(cases.LOSSES))
        self.assertEqual([case.precision for case in found[:3]], ["tf32", "bf16", "tf32"])

    def test_peers_have_every_form(self):
        forms = {f"torch_{form}" for form in with_torch.FORMS}
        forms |= {f"jax_{form}" for form in with_jax.FORMS}
        self.assertEqual(forms, set(table.PEERS))


class Children(Folder):
    def child(self, code):
        return child.Child([sys.executable, "-u", "-c", code], self.path("log"))

    def fails(self, made, limit_s=20):
        with self.assertRaises(child.Failed) as caught:
            made.ask("time 1", limit_s)
        return str(caught.exception)

    def test_what_takes_too_long_is_killed_with_what_it_started(self):
        made = self.child("import subprocess, sys, time\n"
                          "p = subprocess.Popen([sys.executable, '-c', 'import time;"
                          " time.sleep(600)'])\n"
                          "print('{\"pid\": %d}' % p.pid)\ntime.sleep(600)")
        other = made.answer(20)["pid"]
        self.assertIn("no answer within", self.fails(made, 0.1))
        self.assertIn("had ended before", self.fails(made))
        for _ in range(200):
            try:
                with open(f"/proc/{other}/stat") as file:
                    if file.read().rsplit(")")[-1].split()[0] == "Z":
                        break
            except OSError:
                break
            time.sleep(0.05)
        else:
            self.fail("a process of the group lives on")

    def test_an_end_is_told_with_status_and_message(self):
        reason = self.fails(self.child("import sys; print('no luck', file=sys.stderr);"
                                       "sys.exit(5)"))
        self.assertIn("status 5", reason)
        self.assertIn("no luck", reason)

    def test_an_answer_that_is_no_json_fails(self):
        self.assertIn("no JSON", self.fails(self.child("print('hello'); input()")))

    def test_an_error_leaves_the_child(self):
        made = self.child("while input():\n  print('{\"error\": \"not that\"}')")
        for _ in range(2):
            self.assertEqual(self.fails(made), "not that")
        made.close()

    def test_a_missing_program_is_named(self):
        with self.assertRaisesRegex(child.Failed, "/no/such"):
            child.Child(["/no/such"], self.path("log"))


SERVED = """
import os
from peer import serve
class Step:
    steps_per_launch = 4
    def reset(self):
        print("a library prints")
        os.system("echo so does a program")
    def block(self, n): return n * 0.5, None
    def losses(self, n): return [1.0] * n
def load(case):
    if case["fail"]: raise RuntimeError("two\\nlines")
    return Step()
serve.serve({"version": "1"}, load, lambda: None)
"""


class Serving(Folder):
    def test_the_peers_side_answers_each_line(self):
        for name, fail in (("good", False), ("bad", True)):
            with open(self.path(name), "w") as file:
                json.dump({"fail": fail}, file)
        lines = ["time 3", f"load {self.path('bad')}", f"load {self.path('good')}", "reset",
                 "time 8", "losses 2", "frob", "unload", "time 3", "quit", "time 1"]
        done = subprocess.run([sys.executable, "-c", SERVED], cwd=BENCH, text=True, check=True,
                              input="\n".join(lines), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(found[0], {"hello": True, "version": "1"})
        self.assertIn("nothing is loaded", found[1]["error"])
        self.assertEqual(found[2]["error"], "RuntimeError: two lines")
        self.assertEqual(found[3]["steps_per_launch"], 4)
        self.assertEqual(found[4], {"reset": True})
        self.assertEqual(found[5], {"steps": 8, "wall_s": 4.0, "device_s": None})
        self.assertEqual(found[6], {"losses": [1.0, 1.0]})
        self.assertIn("frob", found[7]["error"])
        self.assertEqual(found[8], {"unloaded": True})
        self.assertIn("nothing is loaded", found[9]["error"])
        self.assertEqual(len(found), 10)


class FakeWay:
    def __init__(self, name, seconds, multiple=1, events=True, fails_at=None):
        self.name, self.seconds, self.multiple = name, seconds, multiple
        self.events, self.fails_at, self.blocks = events, fails_at, 0

    def reset(self, limit_s):
        pass

    def block(self, n, limit_s):
        assert n % self.multiple == 0
        self.blocks += 1
        if self.blocks == self.fails_at:
            raise child.Failed("broke")
        wall = n * self.seconds * (1 + self.blocks)
        return {"wall_s": wall, "device_s": wall / 2 if self.events else None}


class Rounds(unittest.TestCase):
    def test_differences_are_of_the_fall(self):
        def apart(ours, theirs, precision="f32"):
            return rounds.difference(ours, theirs, precision)

        self.assertEqual(apart([2, 1.5, 1], [2, 1.5, 1]), 0)
        self.assertAlmostEqual(apart([2, 1.6, 1], [2, 1.5, 1]), 0.1, 5)
        self.assertAlmostEqual(apart([12, 11.6, 11], [12, 11.5, 11]), 0.1, 5)
        # A curve that hardly falls is held to what its type resolves.
        self.assertAlmostEqual(apart([2.001, 2], [2, 1.999], "bf16"), 1 / (1 + 2 / 0.512), 3)
        for ours, theirs in (([1, 1], [1, 1]), ([2, math.nan], [2, 1]), ([2], [2, 1]),
                             ([2, 1], [2, math.inf])):
            self.assertEqual(apart(ours, theirs), math.inf)

    def test_pairs_are_of_one_round_and_one_clock(self):
        ours = [{"wall_s": 2, "device_s": 1}, {"wall_s": 4, "device_s": 1}]
        theirs = [{"wall_s": 4, "device_s": 4}, {"wall_s": 12, "device_s": 6}]
        self.assertEqual(rounds.times_faster(ours, theirs)["raw"], [4, 6])
        theirs[1]["device_s"] = None
        ratio = rounds.times_faster(ours, theirs)
        self.assertEqual((ratio["by"], ratio["raw"], ratio["median"]), ("wall_s", [2, 3], 2.5))
        self.assertEqual(rounds.steady(theirs)["by"], "wall_s")

    def test_every_way_runs_in_every_round(self):
        ways = {way.name: way for way in (FakeWay("a", 1e-5), FakeWay("b", 2e-5, 50),
                                          FakeWay("c", 1e-4, events=False))}
        failed = {}
        steps, blocks, orders = rounds.alternate(ways, failed, 6, 1, rounds.Clock(60, 9))
        self.assertEqual({name: len(found) for name, found in blocks.items()},
                         {"a": 6, "b": 6, "c": 6})
        self.assertTrue(all(sorted(order) == ["a", "b", "c"] for order in orders))
        self.assertGreater(len(set(map(tuple, orders))), 1)
        self.assertEqual(steps["b"] % 50, 0)
        self.assertIsNone(blocks["c"][0]["device_s"])
        self.assertEqual(failed, {})

    def test_what_fails_in_a_round_is_no_result(self):
        ways = {way.name: way for way in (FakeWay("a", 1e-5), FakeWay("b", 2e-5, fails_at=7))}
        failed = {}
        _, blocks, orders = rounds.alternate(ways, failed, 6, 1, rounds.Clock(60, 9))
        self.assertEqual(list(blocks), ["a"])
        self.assertEqual(len(blocks["a"]), len(orders))
        self.assertEqual(failed, {"b": "broke"})

    def test_rounds_end_with_the_time(self):
        class Slow(FakeWay):
            def reset(self, limit_s):
                time.sleep(0.02)

        with self.assertRaisesRegex(child.Failed, "no time left"):
            rounds.alternate({"a": Slow("a", 1e-5)}, {}, 5, 1, rounds.Clock(0, 9))
        _, blocks, _ = rounds.alternate({"a": Slow("a", 1e-5)}, {}, 10000, 1,
                                        rounds.Clock(1, 9))
        self.assertTrue(3 <= len(blocks["a"]) < 10000)

    def test_the_limit_shrinks_with_what_is_left(self):
        self.assertEqual(rounds.Clock(1000, 9).limit(), 9)
        self.assertLessEqual(rounds.Clock(-5, 90).limit(), rounds.RESERVE_SECONDS)


CEILINGS = {"flops_per_s": {"f32": 5e13, "tf32": 4e14, "bf16": None},
            "copy": [{"bytes": 1 << 30, "bytes_per_s": 3e12},
                     {"bytes": 1 << 20, "bytes_per_s": 6e12}],
            "node_s": 8e-7, "programmatic_node_s": 5e-7}


class Floors(Folder):
    def test_the_floor_is_the_larger_of_arithmetic_and_bytes(self):
        case = cases.Case("a", 10, (20, 30, 40), "relu", "mse", "tf32")
        found = floors.floor(case, CEILINGS)
        self.assertEqual(found["flops"], 2 * 10 * (20 * 30 * 2 + 30 * 40 * 3))
        self.assertEqual(found["bytes"], 24 * (21 * 30 + 31 * 40) + 4 * 10 * 20)
        self.assertAlmostEqual(found["floor_s"], found["bytes"] / 6e12)
        self.assertAlmostEqual(found["chain_s"], 6 * 5e-7)
        wide = floors.floor(cases.workload("wide", "f32"), CEILINGS)
        self.assertAlmostEqual(wide["floor_s"], wide["flops"] / 5e13)
        self.assertAlmostEqual(wide["flops"] / 1.51e12, 1, 2)

    def test_what_was_not_measured_is_not_made_up(self):
        case = cases.workload("tiny", "bf16")
        self.assertIsNone(floors.floor(case, CEILINGS)["floor_s"])
        self.assertIsNone(floors.floor(case, None)["chain_s"])

    def test_ceilings_are_found_where_doctor_puts_them(self):
        for name, data in (("doctor", [{"subject": "x"}, {"ceilings": CEILINGS}]),
                           ("none", {"ceilings": None})):
            with open(self.path(name), "w") as file:
                json.dump(data, file)
        self.assertEqual(floors.read_ceilings(self.path("doctor")), CEILINGS)
        with self.assertRaisesRegex(ValueError, "doctor --measure"):
            floors.read_ceilings(self.path("none"))


class Program(Folder):
    """The whole program, over ways that make their times up."""

    def setUp(self):
        super().setUp()
        self.fake = self.path("fake")
        with open(os.path.join(HERE, "fake_ways.py")) as file:
            text = file.read()
        with open(self.fake, "w") as file:
            file.write(f"#!{sys.executable}\n{text}")
        os.chmod(self.fake, os.stat(self.fake).st_mode | stat.S_IXUSR)

    def run_it(self, *words, ways=None):
        with open(self.path("ways"), "w") as file:
            json.dump(ways or {}, file)
        return subprocess.run(
            [sys.executable, PEERS, "--gexec", self.fake, "--python", self.fake, *words],
            capture_output=True, text=True, env=dict(os.environ, FAKE_WAYS=self.path("ways"),
                                                     PYTHONDONTWRITEBYTECODE="1"))

    def row(self, done, start):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"| {start}")]
        self.assertTrue(lines, done.stdout + done.stderr)
        return lines

    WAYS = {"gexec": {"step_s": 2e-5}, "gexec_many": {"step_s": 1e-5},
            "torch_eager": {"step_s": 1e-3}, "torch_compile_all": {"step_s": 7e-5},
            "jax_scan": {"step_s": 1.5e-5}}

    def test_the_table_stands_beside_the_targets(self):
        done = self.run_it("--workloads", "mnist_mlp", "--types", "tf32", "--pairs", "4",
                           "--json", self.path("out.json"), "--markdown", self.path("out.md"),
                           "--commit", "abc", ways=self.WAYS)
        self.assertEqual(done.returncode, 0, done.stderr)
        targets, forms = self.row(done, "mnist_mlp")
        self.assertIn("torch all compiled, CUDAGraph: 70.0 | 20.0 | 3.50 (3.50 to 3.50) | "
                      "3 over torch all compiled, CUDAGraph: 3.50, met | JAX scan: 15.0 | 10.0 | "
                      "1.50 (1.50 to 1.50) | 2 over JAX scan: 1.50, missed | 4 | n/a; n/a |",
                      targets)
        self.assertIn("| 1000 | 100.0 | 100.0 | 70.0 | 100.0 | 15.0 | 20.0 | 10.0 |", forms)
        with open(self.path("out.md")) as file:
            self.assertIn(targets, file.read())
        with open(self.path("out.json")) as file:
            report = json.load(file)
        env, result = report["environment"], report["results"][0]
        self.assertEqual((env["card"], env["toolkit"], env["commit"]), ("A card", "13.0", "abc"))
        self.assertEqual(env["versions"], {"torch": "1.2", "JAX": "1.2", "gexec": "9.9"})
        self.assertEqual(result["times_faster"]["gexec"]["jax_scan"]["by"], "wall_s")
        self.assertEqual(result["times_faster"]["gexec"]["torch_graph"]["by"], "device_s")
        self.assertEqual(len(result["blocks"]["jax_jit"]), 4)
        self.assertEqual(len(result["orders"]), 4)
        self.assertEqual(len(result["losses"]["gexec"]), 50)

    def test_what_fails_is_named_and_the_rest_is_measured(self):
        ways = dict(self.WAYS, torch_compile={"load": "die"},
                    torch_graph={"load": "error"}, jax_jit={"time": "die"})
        done = self.run_it("--workloads", "tiny", "--types", "tf32,bf16", "--pairs", "3",
                           ways=ways)
        self.assertEqual(done.returncode, 0, done.stderr)
        for reason in ("torch CUDAGraph: n/a in tiny tf32, tiny bf16: RuntimeError: it cannot",
                       "torch model compiled, CUDAGraph: n/a in tiny tf32, tiny bf16: not "
                       "compiled: ended with status 7: a library said so",
                       "JAX jit: n/a in tiny tf32, tiny bf16: ended with status 7"):
            self.assertIn(f"- {reason}", done.stdout)
        self.assertIn("| 1000 | n/a | n/a | 70.0 | n/a | 15.0 | 20.0 | 10.0 |",
                      self.row(done, "tiny")[2])

    def test_a_peer_that_hangs_is_ended_and_started_again(self):
        done = self.run_it("--workloads", "tiny", "--types", "tf32,bf16", "--pairs", "3",
                           "--peers", "torch_eager", "--limit", "15",
                           ways={"torch_eager": {"load": "hang once", "step_s": 1e-3}})
        self.assertEqual(done.returncode, 3)  # in the first case there was no other peer
        self.assertIn("torch eager: n/a in tiny tf32: no answer within 15 s", done.stdout)
        forms = self.row(done, "tiny | ")
        self.assertIn("| n/a | 100.0 | 100.0 |", forms[0])
        self.assertIn("| 1000 | 100.0 | 100.0 |", forms[1])

    def test_curves_that_part_end_with_1(self):
        done = self.run_it("--workloads", "tiny", "--types", "f32", "--pairs", "3",
                           ways={"gexec": {"shift": 0.01}})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"tiny f32: losses differ by 2\.0e-02, more than 0\.001")

    def test_curves_may_part_as_those_of_peers_do(self):
        done = self.run_it("--workloads", "tiny", "--types", "f32", "--pairs", "3",
                           ways={"torch_graph": {"shift": 0.01}})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| 2.0e-02 (0.001; 2.0e-02) |", self.row(done, "tiny | ")[0])

    def test_without_gexec_the_status_is_3(self):
        done = self.run_it("--workloads", "tiny", "--types", "f32", "--pairs", "3",
                           "--peers", "jax_jit", ways={"gexec": {"ready": "error"}})
        self.assertEqual(done.returncode, 3)
        self.assertIn("- gexec: n/a in tiny f32: RuntimeError: it cannot", done.stdout)
        for path in ("/no/such", self.folder, shutil.which("true"), shutil.which("false")):
            done = self.run_it("--gexec", path, "--workloads", "tiny")
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, rf"\Apeers.py: {path}: .*; build it .*\n\Z")
            self.assertEqual(done.stdout, "")

    def test_cases_beyond_the_time_are_told(self):
        done = self.run_it("--workloads", "tiny", "--types", "f32,bf16", "--budget", "1",
                           "--json", self.path("out.json"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("Not run: tiny f32, tiny bf16.", done.stdout)
        with open(self.path("out.json")) as file:
            self.assertEqual(json.load(file)["not_run"], ["tiny f32", "tiny bf16"])

    def test_a_signal_leaves_what_is_done(self):
        with open(self.path("ways"), "w") as file:
            json.dump(dict(self.WAYS, jax_jit={"load": "hang in tiny_bf16"}), file)
        with subprocess.Popen(
                [sys.executable, PEERS, "--gexec", self.fake, "--python", self.fake,
                 "--workloads", "tiny", "--types", "f32,bf16", "--pairs", "3", "--peers",
                 "torch_eager,jax_jit", "--json", self.path("out.json")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=dict(os.environ, FAKE_WAYS=self.path("ways"),
                         PYTHONDONTWRITEBYTECODE="1")) as process:
            said = ""
            while "  gexec_many" not in said:  # the last line of the first case
                said += process.stdout.readline()
            mark = self.path("ways.hung")
            while not os.path.exists(mark) and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            rest, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143, errors)
        self.assertIn("stopped by SIGTERM", errors)
        self.assertIn("Not run: tiny bf16.", rest)
        with open(self.path("out.json")) as file:
            report = json.load(file)
        self.assertEqual([found["precision"] for found in report["results"]], ["f32"])

    def test_compiling_that_takes_too_long_is_given_up(self):
        done = self.run_it("--workloads", "tiny", "--types", "tf32,bf16", "--pairs", "3",
                           "--compile-limit", "12", "--jobs", "4",
                           ways=dict(self.WAYS, torch_compile={"load": "hang in tiny_tf32"}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "- torch model compiled, CUDAGraph: n/a in tiny tf32: not "
                         "compiled: no (time left|answer within 12 s)")
        first, second = self.row(done, "tiny | ")
        self.assertIn("| 1000 | 100.0 | n/a | 70.0 |", first)
        self.assertIn("| 1000 | 100.0 | 100.0 | 70.0 |", second)

    def test_a_loop_on_the_device_is_a_way_of_its_own(self):
        done = self.run_it("--workloads", "tiny", "--types", "f32", "--pairs", "3", "--peers",
                           "jax_scan", "--ours", "gexec,gexec_loop",
                           ways=dict(self.WAYS, gexec_loop={"step_s": 1.2e-5}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gexec, a loop of 50", done.stdout)
        self.assertIn("| 15.0 | 20.0 | 12.0 |", self.row(done, "tiny | ")[0])
        self.assertIn("gexec_loop: 1.25 (1.25 to 1.25) times faster", done.stdout)

    def test_random_shapes_have_the_short_list_of_peers(self):
        done = self.run_it("--random", "2", "--seed", "4", "--pairs", "3", "--keep",
                           self.path("kept"), ways=self.WAYS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.row(done, "random_4_")), 4)
        self.assertNotIn("eager", done.stdout)
        self.assertIn("Random shapes of seed 4", done.stdout)
        kept = sorted(os.listdir(self.path("kept")))
        self.assertEqual(kept, ["messages", "random_4_0_tf32.yaml", "random_4_1_bf16.yaml"])
        kept.remove("messages")
        plan(os.path.join(self.path("kept"), kept[0]))

    def test_bad_arguments_end_with_2(self):
        for words, says in ((["--types", "f8"], "'f8' is none of"),
                            (["--workloads", "deep"], "'deep' is none of"),
                            (["--peers", ","], "expected some of"),
                            (["--pairs", "0"], "expected 1 or more"),
                            (["--compile-limit", "0"], "--compile-limit: expected"),
                            (["--compile-limit", "nan"], "--compile-limit: expected"),
                            (["--limit", "nan"], "--limit: expected"),
                            (["--budget", "nan"], "--budget: expected"),
                            (["--types", "f32,bf16,f32"], "--types: 'f32' is there more than"),
                            (["--workloads", "tiny,tiny"], "--workloads: 'tiny' is there more"),
                            (["--peers", "jax_jit,jax_jit"], "--peers: 'jax_jit' is there more"),
                            (["--ours", "gexec,gexec"], "--ours: 'gexec' is there more"),
                            (["--ceilings", ""], "--ceilings"),
                            (["--keep", ""], "--keep: '' cannot be a folder"),
                            (["--keep", self.fake], "cannot be a folder: File exists"),
                            (["--json", ""], "--json: expected a file"),
                            (["--ours", "gexec_many"], "gexec has to be among them"),
                            (["--many", "5000"], "at most 4096"),
                            (["--ceilings", "/no/such"], "--ceilings"),
                            (["--json", "/no/such/file"], "--json: /no/such/file cannot be"),
                            (["--markdown", "/"], "--markdown: /: this is a folder"),
                            (["--workloads", ""], "or --random")):
            done = self.run_it(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(says, done.stderr)

    def test_a_cpu_compares_curves_alone(self):
        done = self.run_it("--workloads", "tiny", "--types", "f32", "--device", "cpu",
                           "--peers", "torch_eager")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gexec_many: n/a in tiny f32: needs a GPU", done.stdout)
        self.assertTrue(re.search(r"torch_eager +n/a us +losses within 0", done.stdout))


if __name__ == "__main__":
    GEXEC = os.path.abspath(sys.argv.pop(1))
    unittest.main()
