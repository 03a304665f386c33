"""Makes a key store for brokers and a certificate for clients: one self-signed key for 127.0.0.1."""

from dataclasses import dataclass
from pathlib import Path

from lab.jars import run
from lab.settings import HOST, STORE_PASSWORD


@dataclass(frozen=True, slots=True)
class Keys:
    """`store` is PKCS12, `certificate` PEM; Java takes the certificate as a trust store of type PEM."""

    store: Path
    certificate: Path


def make_keys(folder: Path) -> Keys:
    keys = Keys(folder / "broker.p12", folder / "certificate.pem")
    store = ["-keystore", str(keys.store), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-alias", "lab"]
    name = ["-dname", f"CN={HOST}", "-ext", f"san=ip:{HOST},dns:localhost", "-ext", "bc=ca:true"]
    run(["keytool", "-genkeypair", *store, "-keyalg", "EC", "-validity", "36500", *name])
    run(["keytool", "-exportcert", "-rfc", *store, "-file", str(keys.certificate)])
    return keys
