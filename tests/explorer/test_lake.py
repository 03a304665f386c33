"""The lake browser's pages: what they show is what the lake and its recordings have, and nothing that is secret."""

import json
import lzma
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

from kafkascope.capture.exchanges.exchange import Exchange
from kafkascope.capture.reader import read
from kafkascope.explorer.decode.reread import reread
from kafkascope.explorer.server.app import create
from kafkascope.explorer.server.guard import HEADERS
from kafkascope.lake.home import Lake, make_lake, open_lake
from kafkascope.lake.read.browse import exchange
from kafkascope.lake.read.visible_rows import dataset
from kafkascope.lake.upkeep.compact import compact
from kafkascope.lake.upkeep.retention import vacuum
from kafkascope.pipeline.ingestion.ingest import Options
from tests.explorer.asgi import ask
from tests.explorer.lakes import LOG, NOON_US, secret_lake
from tests.lake.build import exchanges as few_exchanges
from tests.lake.build import land
from tests.pipeline.secrets_planted import CONTENTS, CREDENTIALS, found_in
from tests.report.build import put
from tests.support.lakes import half_ingest_here, ingest_here

PAGES = ("lake/index.html", "lake/findings.html", "lake/exchanges.html", "lake/report.html")


@pytest.fixture(scope="module")
def app(incidents: Path) -> Starlette:
    return create(str(incidents / "lake"))


@pytest.fixture(scope="module")
def lake(incidents: Path) -> Lake:
    return open_lake(incidents / "lake")


@pytest.fixture(scope="module")
def recorded(incidents: Path) -> list[Exchange]:
    return [
        exchange_read
        for name in ("share", "clients")
        for exchange_read in read(str(incidents / "recordings" / f"{name}.pcap.xz"))
    ]


def test_the_lake_has_its_pages_and_json_and_the_navigation_names_it(app: Starlette) -> None:
    for page in PAGES:
        response = ask(app, f"/{page}")
        assert response.status == 200, page
        assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert 'href="lake/index.html"' in ask(app, "/index.html").text
    assert ask(create(), "/lake/index.html").status == 404


def test_the_home_page_has_the_verdict(app: Starlette) -> None:
    verdict = ask(app, "/lake/index.json").json["verdict"]
    assert ask(app, "/index.json").json["verdict"] == verdict
    # Names are in backticks, and in code font on the page.
    assert re.sub(r"`(.*?)`", r"<code>\1</code>", verdict["sentence"]) in ask(app, "/index.html").text
    assert ask(create(), "/index.json").json["verdict"] is None


def test_the_first_page_counts_what_is_in_the_lake(app: Starlette, lake: Lake) -> None:
    facts = ask(app, "/lake/index.json").json
    assert facts["exchanges"] == dataset(lake, "exchanges").count_rows()
    assert [Path(recording["capture_uri"]).name for recording in facts["recordings"]].count(LOG) == 1
    assert facts["verdict"]["state"] == "attention"
    # Three recordings, a segment and the producer snapshot beside it.
    assert {table["name"]: table["rows"] for table in facts["tables"]}["captures"] == 5


def test_the_list_leads_over_every_exchange_once(app: Starlette, lake: Lake) -> None:
    seen: list[tuple[int, str]] = []
    query = ""
    while True:
        facts = ask(app, f"/lake/exchanges.json{query}").json
        seen += [(row["at"], row["exchange_id"]) for row in facts["exchanges"]]
        if facts["next"] is None:
            break
        query = f"?{facts['next']}"
    every = dataset(lake, "exchanges").to_table(columns=["exchange_id"]).column(0).to_pylist()
    assert sorted(name for _, name in seen) == sorted(every)
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("query", "column", "value"),
    [
        ("api=ShareFetch", "api", "ShareFetch"),
        ("client=steady", "client_id", "steady"),
        ("error=MEMBER_ID_REQUIRED", "error", "MEMBER_ID_REQUIRED"),
        ("status=unanswered", "status", "unanswered"),
    ],
)
def test_a_filter_shows_that_alone_and_stays_in_the_form(
    app: Starlette, lake: Lake, query: str, column: str, value: str
) -> None:
    facts = ask(app, f"/lake/exchanges.json?{query}").json
    count = dataset(lake, "exchanges").to_table(columns=[column]).column(0).to_pylist().count(value)
    assert len(facts["exchanges"]) == min(count, 100) > 0
    assert {row[column] for row in facts["exchanges"]} == {value}
    assert value in ask(app, f"/lake/exchanges.html?{query}").text
    if facts["next"]:
        assert query in facts["next"]


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("api=sharefetch", "api", "ShareFetch"),
        ("api=78", "api", "ShareFetch"),
        ("error=79", "error", "MEMBER_ID_REQUIRED"),
        ("error=member_id_required", "error", "MEMBER_ID_REQUIRED"),
        ("error=Any", "error", "any"),
        ("api=SaslToken", "api", "SaslToken"),
    ],
)
def test_a_filter_takes_what_the_command_line_takes(app: Starlette, query: str, name: str, value: str) -> None:
    facts = ask(app, f"/lake/exchanges.json?{query}").json
    assert facts["asked"][name] == value
    assert facts["exchanges"] == ask(app, f"/lake/exchanges.json?{name}={value}").json["exchanges"] != []
    if name == "api":
        assert f"<option selected>{value}<" in ask(app, f"/lake/exchanges.html?{query}").text


@pytest.mark.parametrize("query", ["", "api=ShareFetch", "client=stea*", "error=any", "status=unanswered", "slow=5",
                                   "group=processors", "since=2026-11-15 08:30", "until=2026-11-15",
                                   "group=processors&api=ShareGroupHeartbeat"])  # fmt: skip
def test_the_total_is_what_the_pages_have_together(app: Starlette, query: str) -> None:
    facts = ask(app, f"/lake/exchanges.json?{quote(query, safe='=&')}").json
    total, seen, pages = facts["total"], 0, [facts]
    while True:
        assert facts["before"] == seen
        seen += len(facts["exchanges"])
        if facts["next"] is None:
            break
        facts = ask(app, f"/lake/exchanges.json?{facts['next']}").json
        pages.append(facts)
    assert total == seen
    # And back again, as far as the address remembers.
    for former in pages[-2:-20:-1]:
        facts = ask(app, f"/lake/exchanges.json?{facts['previous']}").json
        assert facts["exchanges"] == former["exchanges"]


def test_a_total_that_would_take_looking_up_each_is_not_told(app: Starlette) -> None:
    assert ask(app, "/lake/exchanges.json?group=processors&error=any").json["total"] is None


def test_error_codes_have_their_names(app: Starlette) -> None:
    row = ask(app, "/lake/exchanges.json?error=MEMBER_ID_REQUIRED").json["exchanges"][0]
    assert "MEMBER_ID_REQUIRED (79)" in ask(app, "/lake/exchanges.html?error=MEMBER_ID_REQUIRED").text
    page = ask(app, f"/lake/exchange/{row['exchange_id']}.html").text
    assert "MEMBER_ID_REQUIRED (79)" in page
    assert 'data-e="MEMBER_ID_REQUIRED"' in page


def test_a_group_is_of_the_requests_that_name_it(app: Starlette, recorded: list[Exchange]) -> None:
    facts = ask(app, "/lake/exchanges.json?group=processors&api=ShareGroupHeartbeat").json
    expected = {
        recorded_one.exchange_id
        for recorded_one in recorded
        if recorded_one.api == "ShareGroupHeartbeat" and "processors" in recorded_one.groups
    }
    assert {row["exchange_id"] for row in facts["exchanges"]} <= expected
    assert len(facts["exchanges"]) == min(len(expected), 100) > 0


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("since=yesterday", "since: 'yesterday' isn't a time"),
        ("until=2026-13-01", "until: '2026-13-01' isn't a time"),
        ("slow=fast", "slow: 'fast' isn't a number of milliseconds"),
        ("slow=-1", "isn't a number of milliseconds"),
        ("slow=nan", "isn't a number of milliseconds"),
        ("slow=1e400", "isn't a number of milliseconds"),
        ("after=x", "isn't a place in a list"),
        ("after=99999999999999999999999-a", "isn't a place in a list"),
        ("api=ShareFetc", "unknown API ShareFetc; did you mean ShareFetch"),
        ("error=MEMBER_ID_REQURED", "unknown error MEMBER_ID_REQURED; did you mean MEMBER_ID_REQUIRED"),
        ("error=NONE", "error: NONE means success"),
        ("status=lost", "status: 'lost' isn't one of answered, unanswered,"),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_in_one_line(app: Starlette, query: str, message: str) -> None:
    response = ask(app, f"/lake/exchanges.json?{query}")
    assert response.status == 404
    assert message in response.json["error"]
    assert "\n" not in response.json["error"]


@pytest.mark.parametrize("since", ["0001-01-01", "9999-12-31T23:59:59", "2026-11-15T08:30:00.25Z", "2026-11-15 08:30"])
def test_any_time_of_the_calendar_can_be_asked_for(app: Starlette, since: str) -> None:
    assert ask(app, f"/lake/exchanges.html?since={quote(since)}").status == 200


def test_one_exchange_shows_all_that_the_lake_knows_of_it(app: Starlette, recorded: list[Exchange]) -> None:
    known = next(
        candidate
        for candidate in recorded
        if candidate.api == "ShareFetch" and candidate.error_code == 0 and candidate.response_frame
    )
    for query in ("", "?at=0", "?at=1"):
        facts = ask(app, f"/lake/exchange/{known.exchange_id}.json{query}").json
        assert facts["exchange"]["client_id"] == known.client_id
        assert facts["exchange"]["latency_us"] == known.latency_us
        assert [body["message"] for body in facts["bodies"]] == ["ShareFetchRequest", "ShareFetchResponse"]
        assert facts["bodies"][0]["value"]["group_id"] in known.groups
    page = ask(app, f"/lake/exchange/{known.exchange_id}.html").text
    assert f'href="../../message/ShareFetchRequest/{known.api_version}.html"' in page


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("exchange/nobody", "this lake has no exchange nobody"),
        ("bytes/nobody", "this lake has no exchange nobody"),
        ("exchange/..%2f..%2fetc", ""),
        ("exchange/a?at=x", "isn't a time in microseconds"),
        (f"exchange/a?at={'9' * 5000}", "isn't a time in microseconds"),
        ("bytes/a?at=99999999999999999999", "isn't a time in microseconds"),
    ],
)
def test_an_exchange_that_is_not_there_is_404(app: Starlette, path: str, message: str) -> None:
    name, _, query = path.partition("?")
    for ending in ("html", "json"):
        response = ask(app, f"/lake/{name}.{ending}{'?' if query else ''}{query}")
        assert response.status == 404
        assert message in response.text.replace("&#39;", "'")


def test_bytes_read_again_are_the_frames_of_the_recording(
    app: Starlette, lake: Lake, recorded: list[Exchange], record_property: Callable[[str, object], None]
) -> None:
    some = [candidate for candidate in recorded if candidate.request_frame is not None][::150]
    for known in some:
        row = exchange(lake, known.exchange_id)
        assert row is not None
        sides_read = reread(lake, row)
        assert (sides_read.why, sides_read.request, sides_read.response) == (
            None,
            known.request_frame,
            known.response_frame,
        )
    record_property("measured", f"explorer: bytes of {len(some)} exchanges of a lake read again from the recordings")
    known = next(candidate for candidate in recorded if candidate.api == "FindCoordinator" and candidate.response_frame)
    facts = ask(app, f"/lake/bytes/{known.exchange_id}.json").json
    for side, frame in zip(facts["sides"], (known.request_frame, known.response_frame), strict=True):
        assert frame is not None
        assert side["exact"] and not side["left"]
        shown = "".join(piece["hex"].replace(" ", "") for piece in side["bytes"])
        assert shown == (len(frame).to_bytes(4, "big") + frame).hex()


def test_a_sasl_token_is_said_to_be_one_and_leads_nowhere(app: Starlette) -> None:
    token = ask(app, "/lake/exchanges.json?api=SaslToken").json["exchanges"][0]["exchange_id"]
    sides = ask(app, f"/lake/bytes/{token}.json").json["sides"]
    assert [(side["side"], side["problem"]) for side in sides] == [
        ("request", "it is a SASL token, which is hidden"),
        ("response", "it is a SASL token, which is hidden"),
    ]
    assert "api/SaslToken" not in ask(app, f"/lake/exchange/{token}.html").text


def test_a_request_of_an_api_that_the_catalog_does_not_know_is_no_answer_alone(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake")
    row = {"exchange_id": "abc", "connection_id": "c", "request_at": NOON_US, "status": "answered"}
    put(lake, "exchanges", [row | {"api_key": 999, "api_version": 3}, row | {"exchange_id": "def"}])
    put(lake, "captures", [{"ingest_id": "5d1f", "capture_uri": "/a.pcap", "kind": "capture", "exchanges": 2}])
    app = create(str(tmp_path / "lake"))
    for page in ("exchanges", "exchange/abc"):
        assert "API key 999 v3" in " ".join(re.sub("<[^>]*>", "", ask(app, f"/lake/{page}.html").text).split()), page
    assert ask(app, "/lake/exchange/abc.json").json["title"] == "API key 999 abc"
    assert ask(app, "/lake/exchange/def.json").json["title"] == "Response only def"


def test_bytes_of_which_some_are_hidden_are_not_offered_as_the_hex_of_the_message(
    app: Starlette, recorded: list[Exchange]
) -> None:
    known = next(candidate for candidate in recorded if candidate.api == "Produce" and candidate.request_frame)
    page = ask(app, f"/lake/bytes/{known.exchange_id}.html").text
    assert 'data-copy="request-hex"' not in page
    assert f"{len(known.request_frame or b'') + 4} bytes, not all shown" in page
    assert '">hidden</span>' in page
    assert 'data-copy="response-hex"' in page


def test_an_envelope_shows_what_is_inside(app: Starlette, recorded: list[Exchange]) -> None:
    known = next(candidate for candidate in recorded if candidate.api == "Envelope" and len(candidate.inner()) == 2)
    inside = [frame.name for frame in known.inner()]
    bodies = ask(app, f"/lake/exchange/{known.exchange_id}.json").json["bodies"]
    assert [body["message"] for body in bodies] == ["EnvelopeRequest", "EnvelopeResponse", *inside]
    assert all(body["value"] is not None for body in bodies)
    sides = ask(app, f"/lake/bytes/{known.exchange_id}.json").json["sides"]
    assert [side["side"] for side in sides] == ["request", "response", "request inside", "response inside"]
    assert [side["message"] for side in sides[2:]] == inside
    assert all(side["exact"] and side["bytes"] for side in sides)


def test_a_request_log_has_no_bytes_and_says_so(app: Starlette, lake: Lake) -> None:
    rows = dataset(lake, "exchanges").to_table(columns=["exchange_id", "capture_uri"]).to_pylist()
    known = next(row for row in rows if row["capture_uri"].endswith(LOG))
    facts = ask(app, f"/lake/bytes/{known['exchange_id']}.json").json
    assert "its recording is of the kind request_log, which has no packets" in facts["why"]
    assert "The bytes aren't available" in ask(app, f"/lake/bytes/{known['exchange_id']}.html").text


@pytest.fixture
def own(tmp_path: Path) -> tuple[Starlette, Path, str]:
    """A lake with one recording that a test may spoil: application, recording, exchange."""
    from tests.captures import HERE

    recording = Path(shutil.copy(HERE / "share" / "capture.pcap.xz", tmp_path))
    lake = ingest_here([recording], tmp_path / "lake")
    name = dataset(lake, "exchanges").head(1, columns=["exchange_id"]).column(0)[0].as_py()
    return create(lake.uri), recording, name


def test_a_recording_that_is_gone_or_another_one_is_said_to_be(own: tuple[Starlette, Path, str]) -> None:
    app, recording, name = own
    assert ask(app, f"/lake/bytes/{name}.json").json["why"] is None
    whole = recording.read_bytes()
    recording.write_bytes(lzma.compress(lzma.decompress(whole), preset=0))
    assert "has changed since the ingest" in ask(app, f"/lake/bytes/{name}.json").json["why"]
    recording.write_bytes(b"")
    assert "has changed since the ingest" in ask(app, f"/lake/bytes/{name}.json").json["why"]
    recording.unlink()
    facts = ask(app, f"/lake/bytes/{name}.json").json
    assert "no longer exists" in facts["why"]
    assert facts["sides"] == []
    assert ask(app, f"/lake/exchange/{name}.json").status == 200


def test_a_lake_that_vanishes_while_it_is_served_is_said_to(own: tuple[Starlette, Path, str], tmp_path: Path) -> None:
    app, _, name = own
    pages = [*PAGES, f"lake/exchange/{name}.html", f"lake/bytes/{name}.html", "lake/exchanges.html?group=a"]
    for file in sorted((tmp_path / "lake" / "exchanges").rglob("*.parquet")):
        file.write_bytes(b"PAR1 is not all that a file needs")
    assert ask(app, "/lake/exchanges.html").status == 422
    for file in sorted((tmp_path / "lake" / "exchanges").rglob("*.parquet")):
        file.unlink()
    for page in ("lake/exchanges.html", f"lake/exchange/{name}.html"):
        assert ask(app, f"/{page}").status == 422
    shutil.rmtree(tmp_path / "lake")
    for page in pages:
        response = ask(app, f"/{page}")
        assert response.status == 422, page
        assert "there is no lake here" in response.text
        assert "Traceback" not in response.text
    assert ask(app, "/index.html").status == 200


def test_a_lake_with_nothing_in_it_has_pages(tmp_path: Path) -> None:
    app = create(make_lake(tmp_path / "lake").uri)
    assert ask(app, "/lake/index.html").status == 200
    assert "No exchanges match" in ask(app, "/lake/exchanges.html").text
    for page in ("lake/findings.html", "lake/report.html"):
        response = ask(app, f"/{page}")
        assert response.status == 422
        assert "kafkascope marts" in response.text


def test_an_ingest_under_way_shows_nothing_but_that_it_is(tmp_path: Path) -> None:
    from tests.captures import HERE

    lake = make_lake(tmp_path / "lake")
    land(lake, "i1", few_exchanges(["a1", "b2"]))
    app = create(lake.uri)
    half_ingest_here([HERE / "share" / "capture.pcap.xz"], lake)
    assert [row["exchange_id"] for row in ask(app, "/lake/exchanges.json").json["exchanges"]] == ["a1", "b2"]
    assert ask(app, "/lake/exchanges.json?group=processors").json["exchanges"] == []
    facts = ask(app, "/lake/index.json").json
    assert (facts["exchanges"], facts["running"], facts["half_done"]) == (2, 1, 0)
    assert "1 ingest is running" in ask(app, "/lake/index.html").text


def test_what_lands_while_it_is_served_shows_on_the_next_page(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake")
    app = create(lake.uri)
    for number, ingest in enumerate("abc", 1):
        land(lake, ingest, few_exchanges([f"{ingest}1", f"{ingest}2"]))
        assert len(ask(app, "/lake/exchanges.json").json["exchanges"]) == 2 * number
        assert ask(app, "/lake/index.json").json["exchanges"] == 2 * number
    compact(lake, most_small=1)
    vacuum(lake, age=timedelta(0))
    assert len(ask(app, "/lake/exchanges.json").json["exchanges"]) == 6
    assert ask(app, "/lake/exchange/b2.json").status == 200
    shutil.rmtree(tmp_path / "lake")
    land(make_lake(tmp_path / "lake"), "d", few_exchanges(["d1"]))
    assert [row["exchange_id"] for row in ask(app, "/lake/exchanges.json").json["exchanges"]] == ["d1"]


def test_pseudonyms_lead_to_no_bytes_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.captures import HERE

    monkeypatch.setenv("KAFKASCOPE_PSEUDONYM_KEY", str(tmp_path / "key"))
    lake = ingest_here([HERE / "share" / "capture.pcap.xz"], tmp_path / "lake", Options(pseudonymise=True))
    name = dataset(lake, "exchanges").head(1, columns=["exchange_id"]).column(0)[0].as_py()
    facts = ask(create(lake.uri), f"/lake/bytes/{name}.json").json
    assert "addresses in this lake are pseudonyms" in facts["why"]
    assert "127.0.0.1" not in json.dumps(facts)


def test_no_page_of_a_lake_shows_a_secret(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    lake = secret_lake(tmp_path)
    app = create(lake.uri)
    names = dataset(lake, "exchanges").to_table(columns=["exchange_id", "api"]).to_pylist()
    assert {"SaslAuthenticate", "SaslToken", "AlterUserScramCredentials", "Envelope"} <= {
        exchange_named["api"] for exchange_named in names
    }
    shown = 0
    for exchange_named in names:
        for kind in ("exchange", "bytes"):
            for ending in ("html", "json"):
                response = ask(app, f"/lake/{kind}/{exchange_named['exchange_id']}.{ending}")
                assert response.status == 200, exchange_named
                # Bytes stand there with blanks between them, so also as one.
                for content in (response.body, re.sub(rb"</span> ?(</p><p[^>]*>)?<span[^>]*>|\s", b"", response.body)):
                    assert not found_in(content, (*CREDENTIALS, *CONTENTS)), (exchange_named["api"], kind)
                shown += 1
    record_property("measured", f"explorer: {shown} pages of exchanges with secrets, none of them shown")


def test_the_report_is_a_page_with_its_own_policy(app: Starlette) -> None:
    response = ask(app, "/lake/report.html")
    policy = response.headers["content-security-policy"]
    assert policy != HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "'sha256-" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    for name in ("x-content-type-options", "x-frame-options", "referrer-policy"):
        assert response.headers[name]


def test_findings_lead_to_the_exchanges_that_prove_them(app: Starlette) -> None:
    facts = ask(app, "/lake/findings.json").json
    proofs = [proof for finding in facts["findings"] for proof in finding["evidence"]]
    assert len(proofs) > 3
    page = ask(app, "/lake/findings.html").text
    for proof in proofs:
        assert f"exchange/{proof['exchange_id']}.html?at={proof['at']}" in page
        assert ask(app, f"/lake/exchange/{proof['exchange_id']}.html?at={proof['at']}").status == 200
