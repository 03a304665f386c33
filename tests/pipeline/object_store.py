"""An S3 server with one bucket, and the settings that lead there.

`python -m tests.pipeline.object_store ADDRESS` prints both and serves there until it is killed."""

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

SETTINGS = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "something",
    "AWS_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def object_store(listen: str = "127.0.0.1") -> Iterator[tuple[str, dict[str, str]]]:
    """The bucket's URI, and the settings, which this process has too as long as it is open."""
    import boto3  # type: ignore[import-untyped]
    from moto.server import ThreadedMotoServer
    from werkzeug.serving import WSGIRequestHandler

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(listen, 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    # The server forgets nothing as long as the process lives.
    bucket = f"traffic-{uuid4().hex}"
    settings = {**SETTINGS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Headers and body are two writes: the second would wait 40 ms for the client's acknowledgement.
            patch.setattr(WSGIRequestHandler, "disable_nagle_algorithm", True)
            for name, value in settings.items():
                patch.setenv(name, value)
            place = {"LocationConstraint": SETTINGS["AWS_REGION"]}
            boto3.client("s3", region_name=SETTINGS["AWS_REGION"]).create_bucket(
                Bucket=bucket, CreateBucketConfiguration=place
            )
            yield f"s3://{bucket}", settings
    finally:
        server.stop()


if __name__ == "__main__":
    with object_store(sys.argv[1]) as (served, led):
        print(json.dumps([served, led]), flush=True)
        while True:
            time.sleep(60)
