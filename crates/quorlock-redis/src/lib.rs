//! The adapter to a Redis server.
