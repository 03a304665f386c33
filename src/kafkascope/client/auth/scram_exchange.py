"""Logs in with SCRAM: sends the messages of `scram` to the broker and returns its responses."""

from kafkascope.client.auth import scram
from kafkascope.client.auth.mechanisms import Login
from kafkascope.client.settings import Secret


async def log_in(login: Login) -> None:
    sasl = login.sasl
    try:
        started = scram.start(sasl.username or "", delegation_token=sasl.delegation_token)
        first = await login.send(started.message)
        proven = scram.prove(started, first, sasl.password or Secret(""), scram.HASHES[sasl.mechanism])
        scram.finish(proven, await login.send(proven.message))
    except scram.ScramError as error:
        raise login.failed(str(error)) from None
