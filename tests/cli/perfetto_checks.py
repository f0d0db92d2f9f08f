"""What Perfetto makes of Chrome traces, against the figures that gexec printed of the same records.

usage: perfetto_checks.py PAGE FOLDER    FOLDER with NAME.trace and NAME.json
       perfetto_checks.py --launches N   writes a trace of PyTorch's kind: N launches, N kernels
"""
import base64
import functools
import http.server
import json
import os
import sys
import threading
import time

from browser import Browser

SECONDS = 60
failures = []


def check(condition, *words):
    if not condition:
        failures.append(words)
        print("FAILED:", *words, file=sys.stderr)


def write_launches(count):
    print('{"schemaVersion": 1, "traceEvents": [')
    for i in range(count):
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                  "ts": 10 * i, "dur": 3, "args": {"correlation": i + 1}}
        kernel = {"ph": "X", "cat": "kernel", "name": "kernel_%d" % (i % 7), "pid": 0, "tid": 7,
                  "ts": 10 * i + 4, "dur": 2.5,
                  "args": {"correlation": i + 1, "stream": 7, "device": 0, "grid": [1, 1, 1],
                           "block": [32, 1, 1]}}
        print(json.dumps(launch), json.dumps(kernel), sep=",\n", end=",\n" if i + 1 < count else "]}")


class Handler(http.server.SimpleHTTPRequestHandler):
    """The page, and below /traces/ the folder of the traces."""
    traces = None

    def translate_path(self, path):
        if path.startswith("/traces/"):
            return os.path.join(self.traces, os.path.basename(path))
        return super().translate_path(path)

    def log_message(self, *_):
        pass


def wait_for(browser, script, what):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = browser.run(script)
        if found:
            return found
        time.sleep(0.1)
    raise RuntimeError("Perfetto does not come to %s within %d s" % (what, SECONDS))


def query(browser, sql):
    """The rows of a query to Perfetto's trace processor, numbers as numbers."""
    browser.run("""
        window.gexecRows = null;
        app.trace.engine.query(arguments[0]).then((result) => {
            const rows = [];
            for (const it = result.iter({}); it.valid(); it.next())
                rows.push(result.columns().map((name) => {
                    const value = it.get(name);
                    return typeof value === "bigint" ? Number(value) : value;
                }));
            window.gexecRows = JSON.stringify(rows);
        }, (error) => { window.gexecRows = JSON.stringify(String(error)); });""", sql)
    rows = json.loads(wait_for(browser, "return window.gexecRows;", "an answer"))
    if isinstance(rows, str):
        raise RuntimeError(rows)
    return rows


def slices(browser, process, thread):
    """Count and nanoseconds of the slices of the threads of one name, a row for each."""
    return query(browser, """
        select count(*), sum(slice.dur) from slice join thread_track on track_id = thread_track.id
            join thread using (utid) join process using (upid)
        where process.name glob '%s' and thread.name glob '%s' group by utid, process.name"""
                 % (process, thread))


def see(browser, base, name, folder):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        traces = json.load(file)["traces"]
    # Only what comes after the mark is of the page's state: this trace's, not that before.
    browser.call("POST", "/url", {"url": "about:blank"})
    browser.call("POST", "/url", {"url": "%s/#!/?url=%s/traces/%s.trace" % (base, base, name)})
    wait_for(browser, "return !!(window.app && app.trace && app.trace.engine)"
                      " && location.href.includes('viewer?');", name + ".trace")

    wrong = query(browser, "select name, value from stats where value > 0"
                           " and severity in ('error', 'data_loss')")
    check(not wrong, name, "Perfetto counts errors:", wrong)
    check(query(browser, "select count(*) from slice where dur < 0") == [[0]],
          name, "slices without an end")
    n_launches = 0
    for trace in traces:
        device = trace["devices"][0]
        gpu = "GPU * " + os.path.basename(trace["path"]) + "*"
        streams = slices(browser, gpu, "stream *")
        gaps = slices(browser, gpu, "gaps")
        if name != "many":  # of which a part is written
            check(streams == [[device["kernel"]["n"], device["busy_ns"]]],
                  name, "kernels", streams, device["kernel"])
            check(gaps == [[device["n_gaps"], device["idle_ns"]]],
                  name, "gaps", gaps, device["n_gaps"], device["idle_ns"])
            n_launches += trace["calls"]["graph"]["n"] or trace["calls"]["kernel"]["n"]
        else:
            check(0 < streams[0][0] < device["kernel"]["n"], name, "kernels", streams)
            n_launches += streams[0][0]
    # An arrow from each launch call to the work that it began, the first of a graph.
    flows = query(browser, """
        select count(*), sum(thread.name glob 'stream *') from flow
            join slice on slice.id = slice_in join thread_track on track_id = thread_track.id
            join thread using (utid)""")
    check(flows == [[n_launches, n_launches]], name, "arrows", flows, n_launches)
    print(name, "kernels", streams, "gaps", gaps, "arrows", flows)
    if os.environ.get("GX_SCREENSHOTS"):
        browser.settle()
        with open(os.path.join(os.environ["GX_SCREENSHOTS"], "perfetto_%s.png" % name), "wb") as file:
            file.write(base64.b64decode(browser.call("GET", "/screenshot")))


def main():
    if sys.argv[1] == "--launches":
        write_launches(int(sys.argv[2]))
        return
    page, folder = map(os.path.abspath, sys.argv[1:])
    Handler.traces = folder
    with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=page)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser(1600, 1000) as browser:
            for name in ("eager", "graph", "both", "many"):
                see(browser, "http://127.0.0.1:%d" % server.server_port, name, folder)
        server.shutdown()
    sys.exit(1 if failures else 0)


main()
