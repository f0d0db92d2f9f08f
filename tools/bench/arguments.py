"""What scripts are told, looked at before anything is measured."""

import argparse
import os
import stat
import subprocess
import sys
import tempfile


def result_file(path):
    """The path, as a type of argparse: that a file can be written there is tried out, for
    what was measured would be lost else."""
    if not path:
        raise argparse.ArgumentTypeError("expected a file")
    try:
        if os.path.isdir(path):
            raise argparse.ArgumentTypeError(f"{path}: this is a folder; expected a file")
        if os.path.exists(path):
            with open(path, "r+b"):
                pass
        if not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode):
            with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".",
                                             prefix=os.path.basename(path)):
                pass
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{path} cannot be written: {error.strerror}") from None
    return path


def result_folder(path):
    """The path, as a type of argparse, of a folder that is made where it is not there."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"'{path}' cannot be a folder: {error.strerror}") from None
    return path


def number(least, most):
    """A type of argparse: a number within these, which nan is not."""
    def read(text):
        try:
            value = float(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"expected a number from {least} to {most}, not '{text}'")
        return value
    return read


# No wait of Python's may be much longer.
seconds = number(1, 1000000)


def words_of(parser, name, text, known):
    """Of a list with commas between its words, each known and there once; else bad usage."""
    found = [word for word in text.split(",") if word]
    for word in found:
        if word not in known:
            parser.error(f"{name}: '{word}' is none of {', '.join(known)}")
        if found.count(word) > 1:
            parser.error(f"{name}: '{word}' is there more than once")
    if not found:
        parser.error(f"{name}: expected some of {', '.join(known)}")
    return found


def need_gexec(path):
    """Ends the script with 3 where this is no gexec that runs."""
    try:
        run = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, errors="replace", timeout=60)
        if run.returncode == 0 and run.stdout.startswith("gexec "):
            return
        lines = run.stderr.strip().splitlines()
        reason = lines[-1] if run.returncode != 0 and lines else "this is not gexec"
    except OSError as error:
        reason = error.strerror
    except subprocess.TimeoutExpired:
        reason = "no answer within 60 s"
    print(f"{os.path.basename(sys.argv[0])}: {path}: {reason}; build it or name it with --gexec",
          file=sys.stderr)
    sys.exit(3)
