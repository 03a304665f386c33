"""Builds the `ssl.SSLContext` (TLS 1.2 or newer) and explains failed handshakes in one line: what is wrong with which
certificate, and what to do."""

import asyncio
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

from kafkascope.client.settings import Address, Tls
from kafkascope.errors import InputError
from kafkascope.formatting import first_names

# OpenSSL's verification results (x509_vfy.h)
_NOT_YET, _EXPIRED, _OTHER_NAME, _OTHER_IP = 9, 10, 62, 64
_UNKNOWN_CA = (2, 18, 19, 20, 21)
# X509_V_FLAG_NO_CHECK_TIME, which the ssl module has no name for
_ANY_TIME = 0x200000
# What a record that is no TLS looks like to OpenSSL, by its releases.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
_NOTHING_SHOWN = ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "PEER_DID_NOT_RETURN_A_CERTIFICATE")
_NOT_ACCEPTED = (
    *("SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "TLSV1_ALERT_UNKNOWN_CA"),
    *("SSLV3_ALERT_CERTIFICATE_EXPIRED", "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", "TLSV1_ALERT_ACCESS_DENIED"),
    *("TLSV1_ALERT_DECRYPT_ERROR", "SSLV3_ALERT_CERTIFICATE_REVOKED"),
)
_NO_COMMON = ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE")
_SHOWN_NAMES = 5


@lru_cache(maxsize=8)
def context(tls: Tls) -> ssl.SSLContext:
    """Made once for the same settings: the system's authorities alone take 10 ms to load."""
    ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ssl_context.minimum_version = ssl.TLSVersion.TLSv1_2
    # as Java: what is in the trust store is trusted, be it an authority or a server's own certificate
    ssl_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    ssl_context.check_hostname = tls.verify and tls.check_host_name
    ssl_context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
    if tls.ca is not None:
        try:
            ssl_context.load_verify_locations(cadata=tls.ca.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError):
            raise InputError("the certificates to trust cannot be read: this is no PEM of certificates") from None
    elif tls.verify:
        ssl_context.load_default_certs()
    if tls.certificate is not None and tls.key is not None:
        _load_certificate(ssl_context, tls)
    return ssl_context


def _load_certificate(ssl_context: ssl.SSLContext, tls: Tls) -> None:
    """Our certificate and key. OpenSSL under Python takes them from a file alone."""
    assert tls.certificate is not None and tls.key is not None
    key, password = tls.key.reveal(), tls.key_password.reveal() if tls.key_password else ""
    locked = "ENCRYPTED" in key
    if locked and not password:
        raise InputError(
            "our key is encrypted; it needs a password: --key-password-file FILE or KAFKASCOPE_KEY_PASSWORD"
        )
    with _as_file(key.encode() + b"\n" + tls.certificate) as path:
        try:
            # a password is always given, or OpenSSL asks for one at the terminal
            ssl_context.load_cert_chain(path, password=lambda: password)
        except ssl.SSLError as error:
            if "KEY_VALUES_MISMATCH" in (error.reason or ""):
                raise InputError("our key is not the key of our certificate") from None
            wrong = "the password of our key is wrong, or it is" if locked else "our certificate or key is"
            raise InputError(f"{wrong} no PEM that can be read") from None


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path to read it from, once. In memory where Linux offers that; else a file for our eyes only, gone at once."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        handle = os.memfd_create("kafkascope", os.MFD_CLOEXEC)
        try:
            os.write(handle, content)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    # mkstemp makes it 0600
    handle, path = tempfile.mkstemp(prefix="kafkascope-")
    try:
        os.write(handle, content)
        yield path
    finally:
        os.close(handle)
        os.unlink(path)


def explain(error: BaseException, name: str) -> str:
    """`name` is the host name that was asked for. What is known without another look at the certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error, name)
    reason = (getattr(error, "reason", None) or "") if isinstance(error, ssl.SSLError) else ""
    if reason in _NO_TLS:
        return "what answers there is no TLS; connect without it (--no-tls), or give the port of a TLS listener"
    if reason in _NOTHING_SHOWN:
        return "the broker wants a client certificate; say --certificate FILE and --key FILE"
    if reason in _NOT_ACCEPTED:
        alert = reason.partition("_ALERT_")[2].replace("_", " ").lower()
        return f"the broker wants a client certificate, or does not accept ours ({alert}); say --certificate FILE"
    if reason == "SSLV3_ALERT_HANDSHAKE_FAILURE":
        return "the broker broke the TLS handshake off; it wants a client certificate (--certificate), or other ciphers"
    if reason in _NO_COMMON:
        return "the broker speaks no TLS 1.2 or newer"
    if isinstance(error, ssl.SSLEOFError | ConnectionError | asyncio.IncompleteReadError):
        return (
            "closed the connection during the TLS handshake; a listener without TLS does that (--no-tls),"
            " and one that wants a client certificate (--certificate)"
        )
    text = reason.replace("_", " ").lower() or getattr(error, "strerror", None) or type(error).__name__
    return f"the TLS handshake failed: {text}"


def explain_endpoint(error: ssl.SSLError, name: str) -> str:
    """The same for a token endpoint, which has flags of its own."""
    reason = error.reason or ""
    if reason in _NO_TLS or isinstance(error, ssl.SSLEOFError):
        return "what answers there is no TLS; give its URL with http://, or with the port where it has TLS"
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None
    if code in _UNKNOWN_CA:
        return "its certificate is of an authority that we do not trust; --token-ca FILE names one to trust"
    if code in (_OTHER_NAME, _OTHER_IP):
        return f"its certificate is not for {name}; give its URL with the name that it is for"
    if code is not None:
        return explain(error, name).replace("the broker's certificate", "its certificate")
    return f"the TLS handshake failed: {reason.replace('_', ' ').lower() or type(error).__name__}"


async def explain_closer(error: BaseException, tls: Tls, dialled: Address, name: str) -> str:
    """The same, and for a wrong name or time what the certificate says itself: the peer is asked for it once more, with
    just that check left out. Nothing is sent to it."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        return explain(error, name)
    code = error.verify_code
    if code not in (_NOT_YET, _EXPIRED, _OTHER_NAME, _OTHER_IP):
        return explain(error, name)
    certificate = await _certificate(tls, dialled, name)
    if not certificate:
        return explain(error, name)
    if code in (_OTHER_NAME, _OTHER_IP):
        return f"{_unverified(error, name)}; it is for {_names(certificate)}"
    when = certificate.get("notAfter" if code == _EXPIRED else "notBefore", "an unknown time")
    return _unverified(error, name).replace("expired", f"expired on {when}").replace("yet", f"before {when}")


async def _certificate(tls: Tls, dialled: Address, name: str) -> dict[str, Any]:
    looser = context.__wrapped__(replace(tls, check_host_name=False))
    looser.verify_flags |= _ANY_TIME
    try:
        _, writer = await asyncio.open_connection(dialled.host, dialled.port, ssl=looser, server_hostname=name)
    except (OSError, ssl.SSLError):
        return {}
    certificate: dict[str, Any] = writer.get_extra_info("peercert") or {}
    writer.transport.abort()
    return certificate


def _names(certificate: dict[str, Any]) -> str:
    names = [str(value) for _, value in certificate.get("subjectAltName", ())]
    if not names:
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        names = [
            f"{value} (in its subject alone, which counts no longer)" for key, value in subject if key == "commonName"
        ]
    return first_names(names, _SHOWN_NAMES) or "no name at all"


def _unverified(error: ssl.SSLCertVerificationError, name: str) -> str:
    code = error.verify_code
    if code == _EXPIRED:
        return "the broker's certificate, or its authority's, is expired; have it renewed"
    if code == _NOT_YET:
        return "the broker's certificate is not valid yet; have a look at both clocks"
    if code in (_OTHER_NAME, _OTHER_IP):
        return f"the broker's certificate is not for {name}; --server-name NAME says which to expect"
    if code in _UNKNOWN_CA:
        return "the broker's certificate is of an authority that we do not trust; --ca FILE names one to trust"
    return f"the broker's certificate is refused: {error.verify_message}"
