"""Replaces client ids, addresses and principals by pseudonyms: equal values stay equal, and nobody without the key can
recover them. Originals that a later ingest needs are sealed with the same key, which is a file of this user and never
in a lake."""

import os
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import blake2b, shake_256
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafkascope.errors import InputError

KEY_FILE = "KAFKASCOPE_PSEUDONYM_KEY"
_KEY_BYTES = 32
# Columns by name, in any table: who somebody is, and where.
# A member id of the classic protocol begins with its client id.
CLIENTS = frozenset(
    "client_id instance_id group_instance_id rack_id rack member_id leader transactional_id transactional_ids"
    " transactional_id_pattern v3_and_below_transactional_id".split()
)
PLACES = frozenset("client_address broker_address client_host host host_name host_filter v0_host".split())
PRINCIPALS = frozenset(
    "principal principal_name principal_filter owner_principal_name token_requester_principal_name user entity_name"
    " match".split()
)
# Text for people may contain any name.
TEXTS = frozenset(
    "error_message acknowledge_error_message batch_index_error_message reason metadata committed_metadata".split()
)
# Columns whose meaning depends on the table. A coordinator's key may be a transactional id.
_KIND_BY_TABLE = {
    ("alter_user_scram_credentials_request", "name"): "principal",
    ("describe_user_scram_credentials_request", "name"): "principal",
    ("find_coordinator_request", "key"): "client",
    ("find_coordinator_request", "coordinator_keys"): "client",
    ("find_coordinator_response", "key"): "client",
}
# An ACL may be about a user.
RESOURCES = frozenset(("resource_name", "resource_name_filter"))
# The type of a quota's entity decides what its name is.
_ENTITY_TYPE, _ENTITY_KINDS = "entity_type", {"client-id": "client", "ip": "place"}
_ENTITY_NAMES = frozenset(("entity_name", "match"))
# Bytes that contain addresses: of a client, and in the subscriptions and assignments of Kafka Streams.
_BYTES_COLUMNS = frozenset(
    "client_host_address metadata assignment member_metadata member_assignment metadata_bytes".split()
)
_HIDDEN = "(hidden)"
SEALED = "sealed:"
_NONCE_BYTES, _PROOF_BYTES = 16, 16


def load_key() -> bytes:
    """The key is created at first use."""
    named = os.environ.get(KEY_FILE)
    path = Path(named) if named else Path.home() / ".config" / "kafkascope" / "pseudonym.key"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: {(error.strerror or str(error)).lower()}; set {KEY_FILE} to use another file"
        ) from None
    if len(content) < _KEY_BYTES:
        raise InputError(f"{path}: {len(content)} bytes are too few for a key; delete the file to get a new one")
    return content


class Pseudonyms:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._cache: dict[tuple[str, str], str] = {}

    def table(self, table: pa.Table, name: str) -> pa.Table:
        """`name` is the lake table's name."""
        columns = [
            pa.chunked_array([self._array(name, field.name, chunk) for chunk in column.chunks], field.type)
            if _touches(name, field.name, field.type)
            else column
            for field, column in zip(table.schema, table.columns, strict=True)
        ]
        return pa.table(columns, schema=table.schema)

    def seal(self, text: str) -> str:
        """Seals text so that only the holder of the key can read it: a keyed stream cipher, and a keyed digest of
        both."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        content = nonce + self._stream(nonce, text.encode())
        return SEALED + b64encode(self._proof(content) + content).decode()

    def _unseal(self, text: str) -> str | None:
        whole = b64decode(text.removeprefix(SEALED))
        proof, content = whole[:_PROOF_BYTES], whole[_PROOF_BYTES:]
        if not secrets.compare_digest(proof, self._proof(content)):
            return None
        return self._stream(content[:_NONCE_BYTES], content[_NONCE_BYTES:]).decode()

    def _stream(self, nonce: bytes, content: bytes) -> bytes:
        # Fixed length, so that no other key and nonce make the same bytes.
        start = blake2b(nonce, key=self._secret[:64], person=b"sealed stream").digest()
        over = np.frombuffer(shake_256(start).digest(len(content)), np.uint8)
        return (np.frombuffer(content, np.uint8) ^ over).tobytes()

    def _proof(self, content: bytes) -> bytes:
        return blake2b(content, key=self._secret[:64], person=b"sealed proof", digest_size=_PROOF_BYTES).digest()

    def _array(self, table: str, name: str, array: pa.Array) -> pa.Array:
        if array.offset:
            array = array.take(pa.array(np.arange(len(array))))
        if pa.types.is_list(array.type):
            inside = self._array(table, name, array.values)
            return pa.Array.from_buffers(
                array.type, len(array), array.buffers()[:2], array.null_count, children=[inside]
            )
        if pa.types.is_struct(array.type):
            types = array.field(_ENTITY_TYPE) if array.type.get_field_index(_ENTITY_TYPE) >= 0 else None
            children = [
                self._entities(types, array.field(index))
                if types is not None and field.name in _ENTITY_NAMES
                else self._array(table, field.name, array.field(index))
                if _touches(table, field.name, field.type)
                else array.field(index)
                for index, field in enumerate(array.type)
            ]
            return pa.Array.from_buffers(
                array.type, len(array), array.buffers()[:1], array.null_count, children=children
            )
        if pa.types.is_binary(array.type):
            return pa.nulls(len(array), array.type)
        replace = _kind(table, name)
        if replace is None or not pa.types.is_string(array.type):
            return array
        encoded = array.dictionary_encode()
        words = pa.array([self._word(replace, word) for word in encoded.dictionary.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(encoded.indices, words).dictionary_decode()

    def _entities(self, types: pa.Array, names: pa.Array) -> pa.Array:
        if not pa.types.is_string(names.type):
            return names
        words = [
            None if name is None else self._word(_ENTITY_KINDS.get(kind, "principal"), name)
            for kind, name in zip(types.to_pylist(), names.to_pylist(), strict=True)
        ]
        return pa.array(words, pa.string())

    def _word(self, kind: str, word: str) -> str:
        pseudonym = self._cache.get((kind, word))
        if pseudonym is None:
            pseudonym = self._cache[kind, word] = _KINDS[kind](self, word)
        return pseudonym

    def _token(self, kind: str, word: str) -> str:
        return blake2b(word.encode(), key=self._secret[:64], person=kind.encode()[:16], digest_size=6).hexdigest()

    def _client(self, word: str) -> str:
        return f"client-{self._token('client', word)}" if word else word

    def _place(self, word: str) -> str:
        """Keeps the port, which identifies the listener."""
        host, colon, port = word.rpartition(":") if ":" in word else (word, "", "")
        if colon and not port.isdigit():
            host, colon, port = word, "", ""
        return f"host-{self._token('host', host.strip('/'))}{colon}{port}" if word else word

    def _principal(self, word: str) -> str:
        """Keeps `User:*`, which is everybody."""
        kind, colon, name = word.partition(":")
        if not colon:
            kind, name = "", word
        return word if name in ("", "*") else f"{kind}{colon}principal-{self._token('principal', name)}"

    def _resource(self, word: str) -> str:
        return self._principal(word) if word.startswith("User:") else word


def unseal(text: str) -> str:
    """Returns the original text, sealed or not."""
    if not text.startswith(SEALED):
        return text
    plain = Pseudonyms(load_key())._unseal(text)
    if plain is None:
        raise InputError(
            f"this lake's pseudonyms were made with another key than this user's; set {KEY_FILE} to its file"
        )
    return plain


_KINDS: dict[str, Callable[[Pseudonyms, str], str]] = {
    "client": Pseudonyms._client,
    "place": Pseudonyms._place,
    "principal": Pseudonyms._principal,
    "resource": Pseudonyms._resource,
    "text": lambda _, word: _HIDDEN if word else word,
}


def _kind(table: str, name: str) -> str | None:
    if (table, name) in _KIND_BY_TABLE:
        return _KIND_BY_TABLE[table, name]
    if name in RESOURCES:
        return "resource"
    if name in CLIENTS:
        return "client"
    if name in PLACES:
        return "place"
    if name in PRINCIPALS:
        return "principal"
    return "text" if name in TEXTS else None


def _touches(table: str, name: str, type_: pa.DataType) -> bool:
    if pa.types.is_list(type_):
        return _touches(table, name, type_.value_type)
    if pa.types.is_struct(type_):
        return any(_touches(table, field.name, field.type) for field in type_)
    if pa.types.is_binary(type_):
        return name in _BYTES_COLUMNS
    return pa.types.is_string(type_) and _kind(table, name) is not None
