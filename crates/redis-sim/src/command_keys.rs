//! Finds the words of a command that are keys.

use crate::number;

/// Commands with channels of shards, which belong to slots as keys do.
const OF_CHANNELS: [&str; 3] = ["spublish", "ssubscribe", "sunsubscribe"];

/// Commands whose arguments are all keys.
const OF_MANY: [&str; 7] = [
    "del",
    "exists",
    "mget",
    "rename",
    "ssubscribe",
    "touch",
    "unlink",
];

/// Commands without keys.
const OF_NONE: [&str; 34] = [
    "asking",
    "auth",
    "client",
    "cluster",
    "command",
    "config",
    "dbsize",
    "discard",
    "echo",
    "exec",
    "flushall",
    "flushdb",
    "hello",
    "info",
    "keys",
    "multi",
    "ping",
    "psubscribe",
    "publish",
    "pubsub",
    "punsubscribe",
    "quit",
    "replicaof",
    "reset",
    "role",
    "scan",
    "script",
    "select",
    "sentinel",
    "slaveof",
    "subscribe",
    "sunsubscribe",
    "time",
    "unsubscribe",
];

/// Returns the keys of a command, whose name is in lower case.
pub(crate) fn of<'a>(name: &str, words: &'a [Vec<u8>]) -> Vec<&'a [u8]> {
    let behind = words.get(1..).unwrap_or_default();
    let words: Vec<&[u8]> = behind.iter().map(Vec::as_slice).collect();
    match name {
        "wait" => Vec::new(),
        name if OF_NONE.contains(&name) => Vec::new(),
        name if OF_MANY.contains(&name) => words,
        "mset" => words.into_iter().step_by(2).collect(),
        "eval" | "evalsha" => {
            let many = words.get(1).and_then(|many| number::parse_int(many));
            let many = usize::try_from(many.unwrap_or(0)).unwrap_or(0);
            words.into_iter().skip(2).take(many).collect()
        }
        _ => words.into_iter().take(1).collect(),
    }
}

/// Returns whether the command has channels of shards instead of keys.
pub(crate) fn are_channels(name: &str) -> bool {
    OF_CHANNELS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let words: Vec<Vec<u8>> = text.split(' ').map(|word| word.into()).collect();
        let name = text.split(' ').next().unwrap_or_default();
        let keys = of(name, &words).into_iter();
        keys.map(|key| String::from_utf8_lossy(key).into_owned())
            .collect()
    }

    #[test]
    fn keys_are_told_from_other_words() {
        assert_eq!(keys("get a"), ["a"]);
        assert_eq!(keys("hset a b c"), ["a"]);
        assert_eq!(keys("del a b"), ["a", "b"]);
        assert_eq!(keys("mset a 1 b 2"), ["a", "b"]);
        assert_eq!(keys("evalsha digest 2 a b c d"), ["a", "b"]);
        assert_eq!(keys("eval text 0 c"), Vec::<String>::new());
        assert_eq!(keys("ping a"), Vec::<String>::new());
        assert_eq!(keys("spublish a b"), ["a"]);
    }
}
