"""In place of the locks of other packages."""

from ._redis_lock import RedisLock, redis_lock

__all__ = ["RedisLock", "redis_lock"]
