"""`spark.readStream` on a folder: each complete file is in one batch, also after a restart from the checkpoint."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.pipeline.ingestion.without_spark import cut
from tests.pipeline.rows import read_rows
from tests.pipeline.test_ingest import capture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_new_files_become_batches_exactly_once(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    parts = cut(capture("share", tmp_path / "whole"), [500, 900])
    folder = tmp_path / "folder"
    folder.mkdir()
    batches: list[list[str]] = []

    def run() -> None:
        frame = spark.readStream.format("kafkascope").option("quietSeconds", "0").load(str(folder))
        writer = frame.writeStream.foreachBatch(
            lambda batch, _: batches.append(sorted(row.exchange_id for row in batch.select("exchange_id").collect()))
        )
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(300)

    shutil.copy(parts[0], folder)
    run()
    run()
    shutil.copy(parts[1], folder)
    shutil.copy(parts[2], folder)
    run()
    expected = [[row["exchange_id"] for row in read_rows(*some)["exchanges"]] for some in (parts[:1], parts[1:])]
    assert [batch for batch in batches if batch] == [sorted(ids) for ids in expected]
