//! Settings of a server that are legal but doubtful.

use std::fmt;

use redis::Value;

use crate::info::Info;

/// A setting of a usable server that an operator should know about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Doubt {
    /// The server has a memory limit, and evicts keys, including locks, when it is reached.
    Evicts {
        /// The server's `maxmemory-policy`.
        policy: String,
    },
    /// The server has no append-only file: a restart loses its locks, except those in a snapshot.
    KeepsNothing,
    /// A member of a majority has replicas: a failover to one gives a lock to two holders, unless the nodes are watched.
    HasReplicas {
        /// Number of connected replicas.
        count: u32,
    },
    /// The node's cluster serves no slot while one slot has no owner: all shards of a majority fail together.
    NeedsFullCoverage,
    /// The user may not subscribe to the channels of locks: waiters are not woken, and poll instead.
    MayNotSubscribe,
    /// The user may not publish to the channel of a lock: its releases wake no waiter.
    MayNotPublish {
        /// What is missing, and the rule that grants it.
        why: String,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Evicts { policy } => write!(
                f,
                "maxmemory-policy is {policy}, which drops locks when memory is short: set it to noeviction"
            ),
            Doubt::KeepsNothing => f.write_str(
                "nothing is kept on disk as it is written, so a restart forgets locks that are held: set appendonly yes and appendfsync always, or use a majority of nodes",
            ),
            Doubt::HasReplicas { count } => write!(
                f,
                "a node of a majority has replicas ({count}): one that takes its place has forgotten the latest locks, so let no failover do that unless the nodes are watched"
            ),
            Doubt::NeedsFullCoverage => f.write_str(
                "cluster-require-full-coverage is yes, so that all shards stop serving while one has no primary, and a majority of them is no use: set it to no on every node",
            ),
            Doubt::MayNotPublish { why } => write!(
                f,
                "releases wake no waiter, so that waiters ask from time to time: {why}"
            ),
            Doubt::MayNotSubscribe => f.write_str(
                "the user may not subscribe, so that waiters are not woken and ask from time to time: grant SUBSCRIBE, UNSUBSCRIBE and &redisson_lock__channel:*",
            ),
        }
    }
}

/// Returns the doubts about a server's settings. A setting that it does not report raises none.
pub(crate) fn of_info(info: &Info) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let has_limit = info.field("maxmemory").is_some_and(|limit| limit != "0");
    if let Some(policy) = info.field("maxmemory_policy")
        && has_limit
        && policy != "noeviction"
    {
        let policy = policy.to_owned();
        doubts.push(Doubt::Evicts { policy });
    }
    if info.field("aof_enabled") == Some("0") {
        doubts.push(Doubt::KeepsNothing);
    }
    let count = info.field("connected_slaves");
    if let Some(count) = count.and_then(|count| count.parse().ok())
        && 0 < count
    {
        doubts.push(Doubt::HasReplicas { count });
    }
    doubts
}

/// Returns the doubt about the answer to `CONFIG GET cluster-require-full-coverage`.
pub(crate) fn of_coverage(answer: &Value) -> Option<Doubt> {
    let Value::Array(words) = answer else {
        return None;
    };
    match words.last() {
        Some(Value::BulkString(word)) => of_need(std::str::from_utf8(word).ok()),
        _ => None,
    }
}

/// Returns the doubt about the value of `cluster-require-full-coverage`, if it is known.
pub(crate) fn of_need(coverage: Option<&str>) -> Option<Doubt> {
    (coverage? == "yes").then_some(Doubt::NeedsFullCoverage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_needs_the_servers_own_words() {
        for (text, doubts) in [
            ("", vec![]),
            ("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", vec![]),
            ("maxmemory:9\r\nmaxmemory_policy:noeviction\r\n", vec![]),
            ("maxmemory_policy:allkeys-lru\r\n", vec![]),
            (
                "maxmemory:9\r\nmaxmemory_policy:volatile-ttl\r\n",
                vec![Doubt::Evicts {
                    policy: "volatile-ttl".into(),
                }],
            ),
            ("aof_enabled:1\r\nconnected_slaves:0\r\n", vec![]),
            (
                "aof_enabled:0\r\nconnected_slaves:2\r\n",
                vec![Doubt::KeepsNothing, Doubt::HasReplicas { count: 2 }],
            ),
        ] {
            assert_eq!(of_info(&Info::of(text)), doubts, "{text}");
        }
    }
}
