"""Programs that answer each line with a line of JSON: gexec run --blocks, and the peers."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Failed(Exception):
    """A way that cannot be measured, and why."""


class Child:
    """A process with a group of its own, so that what it started ends with it."""

    hurry = False  # of all: nothing is waited for any more

    def __init__(self, command, log, **options):
        self.log, self.ended = log, None  # where its messages go; its status
        try:
            with open(log, "a") as messages:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages,
                    text=True, start_new_session=True, **options)
        except OSError as error:
            raise Failed(f"{command[0]}: {error.strerror}") from error
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with self.process.stdout as answers:
            for line in answers:
                self.lines.put(line)
        self.lines.put(None)

    def answer(self, limit_s):
        """The next line; what takes longer than the limit is killed."""
        try:
            line = self.lines.get(timeout=max(limit_s, 1e-3))
        except queue.Empty:
            self.kill()
            raise Failed(f"no answer within {max(limit_s, 0):.0f} s") from None
        if line is None:
            status = self.kill()
            raise Failed(f"ended with status {status}: {self.last_message()}")
        try:
            answer = json.loads(line)
        except ValueError:
            self.kill()
            raise Failed(f"answered {line[:80]!r}, no JSON") from None
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def ask(self, line, limit_s):
        if self.ended is not None:
            raise Failed(f"had ended before, with status {self.ended}")
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended: answer() says so
        return self.answer(limit_s)

    def last_message(self):
        with open(self.log, errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return lines[-1][:300] if lines else "no message"

    def kill(self, patience_s=0.5):
        """Ends the whole group; the status of the process itself."""
        if self.ended is None:
            try:
                self.ended = self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.ended = self.process.wait()
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        return self.ended

    def close(self):
        if self.hurry:
            self.kill(patience_s=0)
        if self.ended is None:
            with contextlib.suppress(OSError):
                self.process.stdin.write("quit\n")
                self.process.stdin.close()
            self.kill(patience_s=10)


def round_up(n, k):
    return -(-n // k) * k


class Way:
    """One way of running the step; `multiple`: steps of a block come in multiples of it."""

    def __init__(self, name, child, multiple, ready):
        self.name, self.child, self.multiple, self.ready = name, child, multiple, ready

    def reset(self, limit_s):
        self.child.ask("reset", limit_s)

    def block(self, n, limit_s):
        """Seconds of n steps back to back from an idle device: wall_s and device_s."""
        return self.child.ask(f"time {n}", limit_s)

    def losses(self, n, limit_s):
        """The losses of the first n steps."""
        self.reset(limit_s)
        whole = round_up(n, self.multiple)
        self.run_whole(whole, limit_s)
        return self.child.ask(f"losses {whole}", limit_s)["losses"][:n]

    def run_whole(self, n, limit_s):
        """gexec logs the losses of every block; `losses` of a peer runs the steps itself."""


class Gexec(Way):
    def run_whole(self, n, limit_s):
        self.block(n, limit_s)


def gexec(args, name, model, files, log, limit_s):
    """gexec as a way; each case has a process of its own."""
    k = 1 if name == "gexec" else args.many
    command = [args.gexec, "run", model, "--blocks", "-q"]
    command += ["--graph"] if args.device == "gpu" else ["--device", "cpu"]
    if k > 1:
        command += ["--steps-per-launch", str(k)]
    if name == "gexec_loop":
        command += ["--step-loop", "on"]
    for tensor, path in files.items():
        command += ["--in", f"{tensor}={path}"]
    child = Child(command + args.flags.split(), log)
    try:
        return Gexec(name, child, k, child.answer(limit_s))
    except Failed:
        child.close()
        raise


class Peers:
    """The peers' processes, which stay from case to case, for importing takes seconds."""

    MODULES = {"torch": "with_torch", "jax": "with_jax"}

    def __init__(self, args, folder, limit_s):
        self.args, self.folder, self.limit_s = args, folder, limit_s
        self.children, self.hello = {}, {}

    def start(self, name, log=None, **environment):
        """The process of a peer; `log` names the file of its messages, else the peer does."""
        kind, form = name.split("_", 1)
        return Child([self.args.python, "-m", "peer." + self.MODULES[kind], form,
                      self.args.device, str(self.args.many)],
                     os.path.join(self.folder, (log or name) + ".log"), cwd=BENCH,
                     env=dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false",
                              **environment))

    def start_all(self, names):
        """All at once, for they import beside each other; reasons of those that failed."""
        failed = {}
        for name in names:
            try:
                self.children[name] = self.start(name)
            except Failed as reason:
                failed[name] = str(reason)
        for name in list(self.children):
            try:
                self.hello[name] = self.children[name].answer(self.limit_s)
            except Failed as reason:
                failed[name] = str(reason)
                self.children.pop(name).close()
        return failed

    def load(self, name, case, limit_s):
        """The peer, compiled and warm, as a way. One that was ended is started again."""
        if name not in self.children or self.children[name].ended is not None:
            self.children[name] = self.start(name)
            self.children[name].answer(limit_s)
        try:
            ready = self.children[name].ask(f"load {case}", limit_s)
        except Failed:
            # What a broken capture leaves behind would fail the next case too.
            self.children[name].kill()
            raise
        return Way(name, self.children[name], ready["steps_per_launch"], ready)

    def unload(self, name):
        """Frees what the last case holds on the device."""
        child = self.children.get(name)
        if child and child.hurry:
            child.close()
        elif child and child.ended is None:
            try:
                child.ask("unload", 60)
            except Failed:
                child.close()

    def close(self):
        for child in self.children.values():
            child.close()
