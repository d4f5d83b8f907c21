"""Says what a program sees of the world: its arguments, its environment, its files."""

import json
import os
import signal
import sys
import warnings

if __name__ == "__main__":
    seen = {
        "argv": sys.argv,
        "path": sys.path,
        "environment": {key: it for key, it in os.environ.items() if not key.startswith(("LC_", "COV"))},
        "folder": os.getcwd(),  # noqa: PTH109 (as it is, and not resolved)
        "warnings": [sys.warnoptions, [str(rule[0]) for rule in warnings.filters]],
        "main": sorted(key for key in globals() if key not in ("key", "it", "__annotations__")),
        "module": str(sys.modules["__main__"].__file__),
        "parent": os.getppid(),
        "leads": os.getsid(0) == os.getpid(),
        "group": os.getpgid(0) == os.getpgid(os.getppid()),
        "interrupt": str(signal.getsignal(signal.SIGINT)).partition(" at ")[0],
        "heard": sys.stdin.read(),
    }
    sys.stdout.write(json.dumps(seen, sort_keys=True, indent=1))
    sys.stdout.flush()
    sys.stderr.write("said aside")
    if "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3)
