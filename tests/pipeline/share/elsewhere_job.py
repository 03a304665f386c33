"""A program that reads a share group into Parquet files, on whatever Spark it's given: Connect or a cluster."""

import sys

from pyspark.sql import SparkSession


def main(bootstrap: str, topic: str, group: str, folder: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    reader = spark.readStream.format("kafkascope-share").option("bootstrap", bootstrap)
    rows = reader.option("group", group).option("topics", topic).option("minPartitions", "3").load()
    writer = rows.writeStream.format("parquet").trigger(availableNow=True)
    query = writer.option("path", f"{folder}/rows").option("checkpointLocation", f"{folder}/checkpoint").start()
    query.awaitTermination()
    print(type(spark).__module__)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
