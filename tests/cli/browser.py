"""A browser without a head, driven through chromedriver's WebDriver protocol."""
import base64
import json
import re
import subprocess
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Home": "\ue011", "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "Escape": "\ue00c",
        "Enter": "\ue007", "Tab": "\ue004"}


class Browser:
    def __init__(self, width=1280, height=900):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        port = None
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                port = found.group(1)
                break
        if not port:
            raise RuntimeError("chromedriver did not start")
        self.base = "http://127.0.0.1:%s/session" % port
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                            "--disable-dev-shm-usage", "--force-device-scale-factor=1",
                            "--window-size=%d,%d" % (width, height)]}
        answer = self.call("POST", "", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += "/" + answer["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()

    def call(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, path):
        self.call("POST", "/url", {"url": "file://" + path})

    def run(self, script, *arguments):
        """The value of a script that returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def settle(self):
        """Waits until what was asked to be drawn is drawn."""
        self.call("POST", "/execute/async", {
            "script": "const done = arguments[0];"
                      "requestAnimationFrame(() => requestAnimationFrame(() => done()));",
            "args": []})

    def chrome(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height, scale=1):
        self.chrome("Emulation.setDeviceMetricsOverride", width=width, height=height,
                    deviceScaleFactor=scale, mobile=False)
        self.settle()

    def prefer(self, scheme):
        self.chrome("Emulation.setEmulatedMedia",
                    features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def errors(self):
        """What the console has said since the last call, of warnings and worse."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", "/element/%s/click" % self.find(selector))
        self.settle()

    def keys(self, *names):
        actions = []
        for name in names:
            key = KEYS.get(name, name)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})
        self.settle()

    def mouse(self, *steps):
        """("move", x, y), ("down",), ("up",) in pixels of the window."""
        actions = []
        for step in steps:
            if step[0] == "move":
                actions.append({"type": "pointerMove", "duration": 0, "origin": "viewport",
                                "x": round(step[1]), "y": round(step[2])})
            else:
                actions.append({"type": "pointerDown" if step[0] == "down" else "pointerUp", "button": 0})
        self.call("POST", "/actions", {"actions": [{
            "type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
            "actions": actions}]})
        self.settle()

    def wheel(self, x, y, by, sideways=0):
        self.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "origin": "viewport", "x": round(x), "y": round(y),
             "deltaX": sideways, "deltaY": by, "duration": 0}]}]})
        self.settle()

    def shoot(self, path):
        """A picture of the whole page."""
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return innerWidth")
        picture = self.chrome("Page.captureScreenshot", captureBeyondViewport=True,
                              clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
