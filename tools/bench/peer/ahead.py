"""Compiles ahead, many at once, what takes a minute each.

PyTorch keeps what it compiled in a folder (TORCHINDUCTOR_CACHE_DIR), where the process that is
measured finds it later. What PyTorch measures to choose among its kernels is not kept there:
these processes disturb each other, the measured one has the card for itself.
"""

import concurrent.futures
import os
import threading

from .child import Failed

SLOW = ("torch_compile", "torch_compile_all")


class Ahead:
    """Begins at once, in threads that each wait for a process; wait() tells what failed."""

    def __init__(self, peers, paths, names, n_jobs, limit_s):
        """paths: the case.json of each case. A process has limit_s from its start."""
        self.peers, self.limit_s = peers, limit_s
        self.children, self.ended, self.lock = [], False, threading.Lock()
        jobs = [(i, name, path) for i, path in enumerate(paths) for name in SLOW
                if path and name in names]
        n_jobs = max(1, min(n_jobs, len(jobs)))
        self.threads = str(max(1, (os.cpu_count() or 1) // n_jobs))
        self.pool = concurrent.futures.ThreadPoolExecutor(n_jobs)
        self.jobs = {(i, name): self.pool.submit(self.compile, f"ahead_{i}_{name}", name, path)
                     for i, name, path in jobs}

    def compile(self, log, name, path):
        """The reason why it is not compiled, or None."""
        with self.lock:
            if self.ended:
                return "not compiled: no time left"
            try:
                made = self.peers.start(name, log, TORCHINDUCTOR_COMPILE_THREADS=self.threads)
            except Failed as reason:
                return str(reason)
            self.children.append(made)
        try:
            made.answer(self.limit_s)
            made.ask(f"load {path}", self.limit_s)
        except Failed as reason:
            return f"not compiled: {reason}"
        finally:
            made.close()
        return None

    def wait(self, limit_s):
        """Reasons of what failed, by number of the case and peer; after limit_s what is not
        done is given up."""
        concurrent.futures.wait(self.jobs.values(), limit_s)
        unfinished = {key for key, job in self.jobs.items() if not job.done()}
        self.close()
        return {key: "not compiled: no time left" if key in unfinished else job.result()
                for key, job in self.jobs.items() if key in unfinished or job.result()}

    def close(self):
        with self.lock:
            self.ended = True
            running = list(self.children)
        for made in running:
            made.kill(patience_s=0)
        self.pool.shutdown()
