"""The whole path in a process of its own, with all that Spark can write down of it: recordings in, lakes, marts and
reports out.

    python -m tests.pipeline.private_run FOLDER RECORDING…

`FOLDER/conf` is Spark's. Lakes: `plain`, `contents` with record contents, `shared` with pseudonyms."""

import sys
from pathlib import Path


def main(folder: Path, recordings: list[str]) -> None:
    from kafkascope.cli.main import main as kafkascope
    from kafkascope.lake.home import open_lake
    from kafkascope.pipeline.ingestion.ingest import Options, ingest
    from kafkascope.pipeline.mart.build import build_marts
    from kafkascope.pipeline.session import local_session

    spark = local_session(2, log=str(folder / "spark.log"))
    spark.sparkContext.setLogLevel("INFO")
    for name, options in (
        ("plain", Options()),
        ("contents", Options(contents=True)),
        ("shared", Options(pseudonymise=True)),
    ):
        lake = str(folder / name)
        print(ingest(spark, recordings, lake, options))
        if name != "contents":
            print(build_marts(spark, open_lake(lake)))
            kafkascope(["report", lake, "--html", f"{lake}.html", "--json", f"{lake}.json"])
            kafkascope(["lake", "info", lake])
    # A task that fails says why.
    try:
        ingest(spark, [recordings[0]], str(folder / "failing"), Options(kafka_ports=("no port",)))  # type: ignore[arg-type]
    except Exception as error:  # noqa: BLE001
        print(error)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
