//! Distributed locks on Redis.
