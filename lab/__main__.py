"""Starts a cluster, `python -m lab`, and prints its addresses until Ctrl-C."""

import argparse
import signal
import sys
from contextlib import ExitStack

from lab.cluster import Cluster
from lab.jars import KAFKA, RELEASES
from lab.secured import LISTENERS, SECURED_USERS
from lab.settings import USERS
from lab.tokens import TokenServer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1, help="combined brokers and controllers")
    parser.add_argument("--observer", action="store_true", help="one node more that is a broker only")
    parser.add_argument("--tls", action="store_true", help="a TLS listener")
    parser.add_argument("--sasl", action="store_true", help="a SASL listener: PLAIN and SCRAM-SHA-256")
    parser.add_argument("--secured", action="store_true", help="every kind of login, and ACLs on")
    parser.add_argument("--release", choices=RELEASES, default=KAFKA, help="of the brokers")
    options = parser.parse_args()
    # a polite kill ends as Ctrl-C does: in order
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print("starting; the first time it fetches 130 MB of jars", flush=True)
    try:
        with ExitStack() as ends:
            cluster = Cluster(
                options.nodes,
                observer=options.observer,
                tls=options.tls,
                sasl=options.sasl,
                secured=options.secured,
                release=options.release,
            )
            ends.enter_context(cluster)
            print(_addresses(cluster, tls=options.tls, sasl=options.sasl), flush=True)
            if options.secured:
                endpoint = ends.enter_context(TokenServer(cluster.tokens, SECURED_USERS))
                print(_logins(cluster, endpoint), flush=True)
            print("Ctrl-C stops it", flush=True)
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
    return "\n".join(lines)


def _logins(cluster: Cluster, endpoint: TokenServer) -> str:
    """Of a secured cluster."""
    lines = [f"{name:<11}{cluster.addresses((name, protocol))}  {protocol}" for name, protocol in LISTENERS.items()]
    users = ", ".join(f"{name} {password}" for name, password in SECURED_USERS.items())
    certificates = cluster.certificates
    return "\n".join(
        [*lines, f"users {users}", f"trust {certificates.ca}  client {certificates.client}", f"tokens {endpoint.url}"]
    )


if __name__ == "__main__":
    sys.exit(main())
