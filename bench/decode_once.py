"""`pipeline.decode` on ten million small frames: one line with what it took."""

import os
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope import encode
from kafkascope.pipeline.decoding import decode
from kafkascope.pipeline.session import local_session

FRAMES = 10_000_000
_FILES = 8


def main() -> None:
    values = [
        {"groupId": f"group-{n % 50}", "memberId": f"member-{n % 997}", "memberEpoch": n % 7, "rackId": None}
        for n in range(10_000)
    ]
    bodies = [encode("ShareGroupHeartbeatRequest", 1, value) for value in values]
    some = pa.table({"version": pa.array([1] * len(bodies), pa.int16()), "bytes": pa.array(bodies, pa.binary())})
    with tempfile.TemporaryDirectory(prefix="kafkascope-bench-") as folder:
        frames = os.path.join(folder, "frames")
        os.mkdir(frames)
        for number in range(_FILES):
            with pq.ParquetWriter(os.path.join(frames, f"{number}.parquet"), some.schema) as writer:
                for _ in range(FRAMES // _FILES // len(bodies)):
                    writer.write_table(some)
        spark = local_session(2, log=os.path.join(folder, "spark.log"))
        rows = spark.read.parquet(frames)
        decode(rows.limit(1000), "ShareGroupHeartbeatRequest", "version").count()
        began = time.perf_counter()
        counted = (
            decode(rows, "ShareGroupHeartbeatRequest", "version").where("_error IS NULL AND group_id > ''").count()
        )
        took = time.perf_counter() - began
        spark.stop()
    print(f"pipeline.decode: {counted:,} frames in {took:.1f} s, {counted / took / 1e6:.2f} million a second")


if __name__ == "__main__":
    main()
