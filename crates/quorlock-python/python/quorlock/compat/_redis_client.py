"""The client for the server of a client of redis-py."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from .._locks import Locks
from ..errors import ConfigError

if TYPE_CHECKING:
    from redis import Redis

    from .._settings import Settings

_LONGEST_LEASE = 12 * 60 * 60
"""The longest ``timeout``: redis-py has no limit, and the tokens of an unused name are kept for a day."""


class _Clients:
    def __init__(self) -> None:
        self.of_pool: WeakKeyDictionary[Any, Locks] = WeakKeyDictionary()
        self.connecting = threading.Lock()


_clients = _Clients()


def _forget() -> None:
    global _clients
    _clients = _Clients()


os.register_at_fork(after_in_child=_forget)


def client_of(client: Redis) -> Locks:
    """The client for the server of this client, which all its locks share. The first call in a process connects."""
    pool = client.connection_pool
    with _clients.connecting:
        locks = _clients.of_pool.get(pool)
        if locks is None:
            address, settings = address_of(pool)
            locks = _clients.of_pool[pool] = Locks.connect(address, **settings)
    return locks


def address_of(pool: Any) -> tuple[str, Settings]:
    """The address and the login of a connection pool of redis-py."""
    import redis
    import redis.asyncio

    known: dict[str, Any] = pool.connection_kwargs
    settings: Settings = {"longest_lease": _LONGEST_LEASE}
    user, password = known.get("username"), known.get("password")
    provider = known.get("credential_provider")
    if provider is not None:
        user, password = ([None, *provider.get_credentials()])[-2:]
    if password:
        settings["password"] = str(password)
        if user:
            settings["user"] = str(user)
    database = int(known.get("db") or 0)
    if issubclass(pool.connection_class, (redis.UnixDomainSocketConnection, redis.asyncio.UnixDomainSocketConnection)):
        return f"unix://{quote(str(known['path']))}?db={database}", settings
    if not issubclass(pool.connection_class, (redis.Connection, redis.asyncio.Connection)) or "host" not in known:
        raise ConfigError("only clients of one server are supported here: connect by an address (quorlock.Locks)")
    is_encrypted = issubclass(pool.connection_class, (redis.SSLConnection, redis.asyncio.SSLConnection))
    if is_encrypted:
        _encrypt(known, settings)
    host = str(known["host"])
    host = f"[{host}]" if ":" in host else host
    return f"{'rediss' if is_encrypted else 'redis'}://{host}:{known.get('port') or 6379}/{database}", settings


def _encrypt(known: dict[str, Any], settings: Settings) -> None:
    if known.get("ssl_cert_reqs") in ("none", 0):
        raise ConfigError("a client that trusts every certificate is not supported here: give it the authority (ssl_ca_certs)")
    if known.get("ssl_ca_certs"):
        settings["tls_ca"] = known["ssl_ca_certs"]
    if known.get("ssl_certfile") and known.get("ssl_keyfile"):
        settings["tls_certificate"] = known["ssl_certfile"]
        settings["tls_key"] = known["ssl_keyfile"]
