"""Paths that results shall go to, looked at before anything is measured."""

import argparse
import os
import stat
import tempfile


def result_file(path):
    """The path, as a type of argparse: that a file can be written there is tried out, for
    what was measured would be lost else."""
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
