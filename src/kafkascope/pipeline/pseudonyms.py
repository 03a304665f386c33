"""Tables in, the same with client ids, addresses and principals replaced out: alike values stay alike, and nobody
without the key can tell what they were. The key is this user's own file and never in a lake."""

import os
import secrets
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafkascope.errors import InputError

KEY_FILE = "KAFKASCOPE_PSEUDONYM_KEY"
_KEY_BYTES = 32
# Columns by name, wherever they stand: who somebody is, and where.
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
# Text for people may name anybody.
TEXTS = frozenset(
    "error_message acknowledge_error_message batch_index_error_message reason metadata committed_metadata".split()
)
HIDDEN = "(hidden)"


def key() -> bytes:
    """Made at the first use."""
    named = os.environ.get(KEY_FILE)
    path = Path(named) if named else Path.home() / ".config" / "kafkascope" / "pseudonym.key"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        found = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}; {KEY_FILE} names another file") from None
    if len(found) < _KEY_BYTES:
        raise InputError(f"{path}: {len(found)} bytes are too few for a key; delete it, and a new one is made")
    return found


class Pseudonyms:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: dict[tuple[str, str], str] = {}

    def table(self, table: pa.Table) -> pa.Table:
        columns = [
            pa.chunked_array([self._array(field.name, chunk) for chunk in column.chunks], field.type)
            if _touches(field.name, field.type)
            else column
            for field, column in zip(table.schema, table.columns, strict=True)
        ]
        return pa.table(columns, schema=table.schema)

    def _array(self, name: str, array: pa.Array) -> pa.Array:
        if array.offset:
            array = array.take(pa.array(np.arange(len(array))))
        if pa.types.is_list(array.type):
            inside = self._array(name, array.values)
            return pa.Array.from_buffers(
                array.type, len(array), array.buffers()[:2], array.null_count, children=[inside]
            )
        if pa.types.is_struct(array.type):
            children = [
                self._array(field.name, array.field(index)) if _touches(field.name, field.type) else array.field(index)
                for index, field in enumerate(array.type)
            ]
            return pa.Array.from_buffers(
                array.type, len(array), array.buffers()[:1], array.null_count, children=children
            )
        replace = _kind(name)
        if replace is None or not pa.types.is_string(array.type):
            return array
        found = array.dictionary_encode()
        words = pa.array([self._word(replace, word) for word in found.dictionary.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(found.indices, words).dictionary_decode()

    def _word(self, kind: str, word: str) -> str:
        known = self._known.get((kind, word))
        if known is None:
            known = self._known[kind, word] = _KINDS[kind](self, word)
        return known

    def _token(self, kind: str, word: str) -> str:
        return blake2b(word.encode(), key=self._secret, person=kind.encode()[:16], digest_size=6).hexdigest()

    def _client(self, word: str) -> str:
        return f"client-{self._token('client', word)}" if word else word

    def _place(self, word: str) -> str:
        """The port stays: it says which listener it was."""
        host, colon, port = word.rpartition(":") if ":" in word else (word, "", "")
        if colon and not port.isdigit():
            host, colon, port = word, "", ""
        return f"host-{self._token('host', host.strip('/'))}{colon}{port}" if word else word

    def _principal(self, word: str) -> str:
        """`User:*` is everybody, which says nothing of anybody."""
        kind, colon, name = word.partition(":")
        if not colon:
            kind, name = "", word
        return word if name in ("", "*") else f"{kind}{colon}principal-{self._token('principal', name)}"


_KINDS: dict[str, Callable[[Pseudonyms, str], str]] = {
    "client": Pseudonyms._client,
    "place": Pseudonyms._place,
    "principal": Pseudonyms._principal,
    "text": lambda _, word: HIDDEN if word else word,
}


def _kind(name: str) -> str | None:
    if name in CLIENTS:
        return "client"
    if name in PLACES:
        return "place"
    if name in PRINCIPALS:
        return "principal"
    return "text" if name in TEXTS else None


def _touches(name: str, type_: pa.DataType) -> bool:
    if pa.types.is_list(type_):
        return _touches(name, type_.value_type)
    if pa.types.is_struct(type_):
        return any(_touches(field.name, field.type) for field in type_)
    return pa.types.is_string(type_) and _kind(name) is not None
