"""Makes a certificate authority and certificates as PEM: brokers' (valid, expired, of another host) and a client's.
Made without a JVM, so that a secured cluster starts as fast as a plain one."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.settings import HOST

# what a broker takes for the name of the client with this certificate
CLIENT = "lab-client"
CLIENT_PRINCIPAL = f"User:CN={CLIENT}"
_OTHER_HOST = "broker.example.org"

_BEGUN = datetime(2020, 1, 1, tzinfo=UTC)
_EXPIRED = datetime(2021, 1, 1, tzinfo=UTC)
_YEARS = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Certificates:
    """`ca` is what clients trust. The others hold key and chain in one file; `stranger` is of another authority."""

    ca: Path
    broker: Path
    expired: Path
    other_host: Path
    client: Path
    stranger: Path


class Authority:
    """Signs with a key of its own."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        builder = self._builder(self._name, self._key.public_key(), None)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = builder.sign(self._key, hashes.SHA256())

    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, common_name: str, hosts: tuple[str, ...] = (), until: datetime | None = None) -> bytes:
        """Key and certificate as one PEM; `hosts` are names or addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_named(common_name), key.public_key(), until)
        if hosts:
            names = x509.SubjectAlternativeName([_general(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = builder.add_extension(usage, critical=False).sign(self._key, hashes.SHA256())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return secret + certificate.public_bytes(Encoding.PEM)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime | None
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(_BEGUN)
            .not_valid_after(until or datetime.now(UTC) + _YEARS)
        )


def make_certificates(folder: Path) -> Certificates:
    authority, other = Authority("lab authority"), Authority("another authority")
    here = (HOST, "localhost")
    certificates = Certificates(*(folder / f"{name}.pem" for name in Certificates.__slots__))
    certificates.ca.write_bytes(authority.pem())
    certificates.broker.write_bytes(authority.issue(HOST, here))
    certificates.expired.write_bytes(authority.issue(HOST, here, _EXPIRED))
    certificates.other_host.write_bytes(authority.issue(_OTHER_HOST, (_OTHER_HOST, "*.example.org")))
    certificates.client.write_bytes(authority.issue(CLIENT))
    certificates.stranger.write_bytes(other.issue("stranger", here))
    return certificates


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
