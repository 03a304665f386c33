"""Credentials in a metadata log are in no file of the lake, no report and no page."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafkascope.explorer.server.app import create
from kafkascope.lake.home import open_lake
from kafkascope.lake.read.metadata_at import metadata_at
from kafkascope.report.build import build
from kafkascope.report.json_form import report_json, text_of
from kafkascope.report.page.page import page
from kafkascope.report.summaries.scope import Scope
from tests.explorer.asgi import ask
from tests.pipeline.log_lakes import truths_lake
from tests.pipeline.log_secrets import CLUSTER, SECRETS, SHOWN, TOPIC
from tests.pipeline.mart_rows import mart
from tests.pipeline.secrets_planted import found_in
from tests.pipeline.test_private import files, held

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    return truths_lake(spark, tmp_path_factory)[0]


def test_they_were_there_to_be_found(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> None:
    planted = truths_lake(spark, tmp_path_factory)[1] / "planted"
    content = b"".join(path.read_bytes() for path in files(planted))
    assert found_in(content, SECRETS) == set(SECRETS)


def test_no_file_of_the_lake_has_credentials(lake: str) -> None:
    looked_at = files(Path(lake))
    assert any("user_scram_credential_record" in str(path) for path in looked_at)
    assert any("metadata_at" in str(path) for path in looked_at)
    for path in looked_at:
        assert not found_in(held(path), SECRETS), path


def test_marts_have_the_settings_without_their_values(lake: str) -> None:
    rows = {row["name"]: row["value"] for row in mart(lake, "metadata_at", cluster_id=CLUSTER, kind="config")}
    hidden = dict.fromkeys(("ssl.keystore.password", "delegation.token.secret.key", "plugin.of.ours"))
    assert rows == {**hidden, "retention.ms": SHOWN}
    assert metadata_at(open_lake(lake), cluster_id=CLUSTER).topics.keys() == {TOPIC}


def test_no_report_and_no_page_has_credentials(lake: str) -> None:
    report = build(open_lake(lake), Scope(), datetime(2026, 11, 19, tzinfo=UTC))
    texts = [page(report), text_of(report_json(report))]
    app = create(lake)
    for table in ("user_scram_credential_record", "delegation_token_record", "config_record"):
        for form in ("html", "json"):
            response = ask(app, f"/lake/records/{table}.{form}?broker=9")
            assert response.status == 200
            texts.append(response.body.decode())
    texts.append(ask(app, "/lake/index.html").body.decode())
    assert all(not found_in(text.encode(), SECRETS) for text in texts)
    assert "carol" in texts[2] and "planted-token-id" in texts[5] and SHOWN in texts[7]
