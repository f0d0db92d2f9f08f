"""Results as files that are whole at any time."""

import os
import stat


def is_file(path):
    """Whether the results stand in it; else it is a pipe or a device, which takes them once."""
    return not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)


def write_whole(path, text, last=True):
    """Puts the text in the place of what stood there. What is not the last goes to files alone."""
    if not is_file(path):
        if last:
            with open(path, "w") as file:
                file.write(text)
        return
    path = os.path.realpath(path)
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w") as file:
            file.write(text)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
