"""The command line as it is, and then what the process list shows of it."""

import sys
from pathlib import Path

from kafkascope.cli.main import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    print(Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode())
    sys.exit(code)
