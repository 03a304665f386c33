"""PLAIN (RFC 4616): sends the user name and password unencrypted."""

from kafkascope.client.auth.mechanisms import Login
from kafkascope.client.settings import Secret


async def log_in(login: Login) -> None:
    """Sends no other identity, the name, the password."""
    password = login.sasl.password or Secret("")
    await login.send(f"\0{login.sasl.username}\0{password.reveal()}".encode())
