"""PLAIN (RFC 4616): sends name and password as they are."""

from kafkascope.client.auth.mechanisms import Login
from kafkascope.client.settings import Secret


async def log_in(login: Login) -> None:
    """No other identity, name, password."""
    password = login.sasl.password or Secret("")
    await login.send(f"\0{login.sasl.username}\0{password.reveal()}".encode())
