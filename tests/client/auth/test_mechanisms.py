"""The list of SASL mechanisms: the broker's, the docs' and Java's names for them are those of the list."""

import pytest

from kafkascope.client.auth.mechanisms import MECHANISMS, MISSING, mechanism_names
from kafkascope.client.config.java import from_java
from kafkascope.client.config.librdkafka import from_librdkafka
from lab import secured
from tests.support.wheels import ROOT


def test_every_exchange_is_there() -> None:
    assert all(callable(mechanism.load()) for mechanism in MECHANISMS)


def test_the_lab_speaks_all_of_them() -> None:
    assert sorted(mechanism_names()) == sorted(secured.MECHANISMS)
    assert not set(mechanism_names()) & set(MISSING)


def test_the_docs_name_all_of_them() -> None:
    *most, last = mechanism_names()
    assert f"{', '.join(most)} and {last}." in (ROOT / "docs" / "connecting.md").read_text()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_files_of_settings_name_them(mechanism) -> None:  # type: ignore[no-untyped-def]
    keys = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism.name}
    jaas = {"sasl.jaas.config": f"org.{mechanism.java_module} required;"}
    assert from_java(keys | jaas, "file").sasl_mechanism == mechanism.name
    assert from_librdkafka(keys, "file").sasl_mechanism == mechanism.name
