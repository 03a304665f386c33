"""Builds the `ssl.SSLContext` (TLS 1.2 or newer) and explains failed handshakes in one line: the problem, the
certificate, and the fix."""

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
# X509_V_FLAG_NO_CHECK_TIME, which the ssl module doesn't name
_ANY_TIME = 0x200000
# OpenSSL's reasons for bytes that aren't TLS, by its releases.
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
    """Made once for equal settings: the system's authorities alone take 10 ms to load."""
    ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ssl_context.minimum_version = ssl.TLSVersion.TLSv1_2
    # as in Java: everything in the trust store is trusted, an authority or a server's own certificate
    ssl_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    ssl_context.check_hostname = tls.verify and tls.check_host_name
    ssl_context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
    if tls.ca is not None:
        try:
            ssl_context.load_verify_locations(cadata=tls.ca.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError):
            raise InputError("the certificates to trust cannot be read: they aren't PEM") from None
    elif tls.verify:
        ssl_context.load_default_certs()
    if tls.certificate is not None and tls.key is not None:
        _load_certificate(ssl_context, tls)
    return ssl_context


def _load_certificate(ssl_context: ssl.SSLContext, tls: Tls) -> None:
    """Loads our certificate and key. Python's ssl only takes them from a file."""
    assert tls.certificate is not None and tls.key is not None
    key, password = tls.key.reveal(), tls.key_password.reveal() if tls.key_password else ""
    locked = "ENCRYPTED" in key
    if locked and not password:
        raise InputError(
            "our key is encrypted; it needs a password: --key-password-file FILE or KAFKASCOPE_KEY_PASSWORD"
        )
    with _as_file(key.encode() + b"\n" + tls.certificate) as path:
        try:
            # always pass a password, or OpenSSL asks for one at the terminal
            ssl_context.load_cert_chain(path, password=lambda: password)
        except ssl.SSLError as error:
            if "KEY_VALUES_MISMATCH" in (error.reason or ""):
                raise InputError("our key doesn't belong to our certificate") from None
            wrong = "the password of our key is wrong, or it is" if locked else "our certificate or key is"
            raise InputError(f"{wrong} not readable PEM") from None


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path to read it from, once: in memory on Linux, otherwise a private file that is deleted at once."""
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
    """`name` is the requested host name. Explains what is known without fetching the certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error, name)
    reason = (getattr(error, "reason", None) or "") if isinstance(error, ssl.SSLError) else ""
    if reason in _NO_TLS:
        return "the server there doesn't speak TLS; connect without it (--no-tls), or give the port of a TLS listener"
    if reason in _NOTHING_SHOWN:
        return "the broker requires a client certificate; give --certificate FILE and --key FILE"
    if reason in _NOT_ACCEPTED:
        alert = reason.partition("_ALERT_")[2].replace("_", " ").lower()
        return f"the broker requires a client certificate, or refuses ours ({alert}); give --certificate FILE"
    if reason == "SSLV3_ALERT_HANDSHAKE_FAILURE":
        return "the broker ended the TLS handshake; it requires a client certificate (--certificate), or other ciphers"
    if reason in _NO_COMMON:
        return "the broker doesn't support TLS 1.2 or newer"
    if isinstance(error, ssl.SSLEOFError | ConnectionError | asyncio.IncompleteReadError):
        return (
            "closed the connection during the TLS handshake; a listener without TLS does that (--no-tls),"
            " or one that requires a client certificate (--certificate)"
        )
    text = reason.replace("_", " ").lower() or getattr(error, "strerror", None) or type(error).__name__
    return f"the TLS handshake failed: {text}"


def explain_endpoint(error: ssl.SSLError, name: str) -> str:
    """The same for a token endpoint, which has its own flags."""
    reason = error.reason or ""
    if reason in _NO_TLS or isinstance(error, ssl.SSLEOFError):
        return "the server there doesn't speak TLS; write the URL with http://, or with its TLS port"
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None
    if code in _UNKNOWN_CA:
        return "its certificate is from an authority that isn't trusted; give the authority with --token-ca FILE"
    if code in (_OTHER_NAME, _OTHER_IP):
        return f"its certificate isn't for {name}; write the URL with the name in the certificate"
    if code is not None:
        return explain(error, name).replace("the broker's certificate", "its certificate")
    return f"the TLS handshake failed: {reason.replace('_', ' ').lower() or type(error).__name__}"


async def explain_closer(error: BaseException, tls: Tls, dialled: Address, name: str) -> str:
    """The same, with the certificate's own names or dates if those are wrong: connects once more without that check to
    get the certificate. Nothing else is sent."""
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
            f"{value} (only in its subject, which no longer counts)" for key, value in subject if key == "commonName"
        ]
    return first_names(names, _SHOWN_NAMES) or "no name"


def _unverified(error: ssl.SSLCertVerificationError, name: str) -> str:
    code = error.verify_code
    if code == _EXPIRED:
        return "the broker's certificate, or its authority's, has expired; renew it"
    if code == _NOT_YET:
        return "the broker's certificate isn't valid yet; check both clocks"
    if code in (_OTHER_NAME, _OTHER_IP):
        return f"the broker's certificate isn't for {name}; give the expected name with --server-name NAME"
    if code in _UNKNOWN_CA:
        return "the broker's certificate is from an authority that isn't trusted; give the authority with --ca FILE"
    return f"the broker's certificate isn't valid: {error.verify_message}"
