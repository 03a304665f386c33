"""`read --stats` of a capture, repeatedly in one process: the best, without its start, as JSON.

python -m bench.capture_stats clients.pcap --rounds 30
"""

import argparse
import gc
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from time import process_time

from kafkascope.capture.query.select import ExchangeFilter
from kafkascope.cli.read.run import Command


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.capture_stats")
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    gc.freeze()
    least = float("inf")
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        for _ in range(options.rounds):
            start = process_time()
            assert Command((options.file,), ExchangeFilter(), (), follow=False).stats(as_json=False) == 0
            least = min(least, process_time() - start)
    print(json.dumps({"seconds": least}))


if __name__ == "__main__":
    main()
