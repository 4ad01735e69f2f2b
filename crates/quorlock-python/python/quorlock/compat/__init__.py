"""In place of the locks of other packages."""

from ._async_redis_lock import AsyncRedisLock, async_redis_lock
from ._redis_lock import RedisLock, redis_lock

__all__ = ["AsyncRedisLock", "RedisLock", "async_redis_lock", "redis_lock"]
