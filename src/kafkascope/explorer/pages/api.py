"""The page of an API: purpose, senders, permissions, versions by release, errors and related exchanges."""

from typing import Any

from kafkascope.errors import NotFoundError
from kafkascope.explorer.facts.matrix import release_matrix, version_matrix
from kafkascope.explorer.facts.missing import not_called
from kafkascope.explorer.page import Kind, Page
from kafkascope.schema.api_facts import api_facts, family_of, kips_of, kips_of_version
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.errors.message_errors import errors_of
from kafkascope.schema.export import span_text
from kafkascope.schema.flows import Flow, flows_of
from kafkascope.schema.model import Message
from kafkascope.schema.names import API_KINDS
from kafkascope.schema.prose import paragraphs
from kafkascope.schema.releases import newest_release

# An API like Metadata is part of many conversations; the first ones are enough.
_MOST_FLOWS = 2


def make(name: str) -> Page:
    keys = {api: key for key, api in apis().items()}
    if name not in keys:
        raise NotFoundError(not_called("API", name, API_KINDS))
    request, response = message(f"{name}Request"), message(f"{name}Response")
    facts = api_facts(name)
    prose = paragraphs(request)
    about: dict[str, Any] = {
        "api": name,
        "key": keys[name],
        "family": family_of(name),
        "prose": list(prose),
        "aliases": [
            {"name": was.removesuffix("Request"), "lastRelease": last} for was, last in request.was
        ],
        "inNewestRelease": request.versions_in(newest_release()) is not None,
        "newestRelease": newest_release(),
        "sentBy": list(facts.sends),
        "listeners": [{"releases": str(span), "listeners": list(names)} for span, names in request.listeners],
        "acls": [{"operation": o, "resource": r or None, "remark": n or None} for o, r, n in facts.acls],
        "tools": list(facts.tools),
        "adminMethods": list(facts.admin),
        "kips": kips_of(request),
        "versions": [_version(request, response, version) for version in reversed(request.all_versions())],
        "errors": [
            {"code": e.error.code, "name": e.error.name, "retriable": e.error.retriable, "origin": e.origin,
             "fields": list(e.fields)}
            for e in errors_of(request)
        ],
        "matrices": [
            {"message": half.name, "byVersion": version_matrix(half), "byRelease": release_matrix(half)}
            for half in (request, response)
        ],
        "flows": [_flow_facts(flow) for flow in flows_of(name)[:_MOST_FLOWS]],
    }  # fmt: skip
    description = prose[0].partition(". ")[0].rstrip(".") + "." if prose else ""
    return Page(name, about, description)


def _version(request: Message, response: Message, version: int) -> dict[str, Any]:
    return {
        "version": version,
        "releases": span_text(request.releases_of(version)),
        "response": version in response.all_versions(),
        "flexible": any(version in block.flexible for block in request.blocks if block.releases is None),
        "kips": kips_of_version(request, version),
        "unstableIn": [str(span) for span, unstable in request.unstable if unstable == version],
        "deprecatedIn": [str(span) for span, versions in request.deprecated if version in versions],
    }


def _flow_facts(flow: Flow) -> dict[str, Any]:
    steps = [{"sender": s.sender, "receiver": s.receiver, "api": s.api, "remark": s.remark} for s in flow.steps]
    return {"title": flow.title, "actors": list(flow.actors), "steps": steps}


KIND = Kind("api", "api/{name}.html", "api.html", make, lambda: ({"name": name} for name in apis().values()))
