"""`python -m lab`: flags in, a running cluster and its addresses out, until Ctrl-C."""

import argparse
import signal
import sys

from lab.cluster import Cluster
from lab.settings import USERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1, help="combined brokers and controllers")
    parser.add_argument("--observer", action="store_true", help="one node more that is a broker only")
    parser.add_argument("--tls", action="store_true", help="a TLS listener")
    parser.add_argument("--sasl", action="store_true", help="a SASL listener: PLAIN and SCRAM-SHA-256")
    given = parser.parse_args()
    # a polite kill ends as Ctrl-C does: in order
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print("starting; the first time it fetches 130 MB of jars", flush=True)
    try:
        with Cluster(given.nodes, observer=given.observer, tls=given.tls, sasl=given.sasl) as cluster:
            print(_addresses(cluster, tls=given.tls, sasl=given.sasl), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("stopped", flush=True)
        return 0
    except (RuntimeError, TimeoutError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


def _addresses(cluster: Cluster, *, tls: bool, sasl: bool) -> str:
    lines = [f"plain  {cluster.bootstrap}"]
    if tls and cluster.keys is not None:
        lines.append(f"tls    {cluster.tls_bootstrap}  certificate {cluster.keys.certificate}")
    if sasl:
        users = ", ".join(f"{name} {password}" for name, password in USERS.items())
        lines.append(f"sasl   {cluster.sasl_bootstrap}  users {users}")
    lines += [f"node {number} pid {node.process.pid if node.process else '-'}  request log {node.request_log}"
              for number, node in cluster.nodes.items()]  # fmt: skip
    return "\n".join([*lines, "Ctrl-C stops it"])


if __name__ == "__main__":
    sys.exit(main())
