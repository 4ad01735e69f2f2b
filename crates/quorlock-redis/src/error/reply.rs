//! Classifies error replies by their codes and words.

use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::ServerError;

use crate::failure;

/// Classifies an error reply, and adds the rule that grants a command which the server names as missing.
pub(crate) fn server(error: &ServerError) -> TransportError {
    cured(plain(error))
}

/// Classifies an error of the `redis` crate in the same way, if it is an error reply.
#[cfg(feature = "redis-connections")]
pub(crate) fn of_client(error: &redis::RedisError) -> Option<TransportError> {
    let words = error.detail().unwrap_or_default();
    Some(cured(reply(error.code()?, words)))
}

fn cured(plain: TransportError) -> TransportError {
    let cure = match plain.cause {
        Cause::NoPermission => cure(&plain.detail),
        _ => None,
    };
    match cure {
        Some(cure) => {
            let detail = format!("{}: {cure}", plain.detail);
            failure::of(plain.execution, plain.cause, detail)
        }
        None => plain,
    }
}

/// Whether a command that the server does not have was called inside a script. The server does not name it.
pub(crate) fn is_in_script(error: &ServerError) -> bool {
    is_unknown_in_script(error.details().unwrap_or_default())
}

/// Whether these are the words of Redis, or those of Valkey, for an unknown command in a script. (Seen on Valkey 8.1.8 and
/// 9.1.2.)
fn is_unknown_in_script(detail: &str) -> bool {
    detail.contains("nknown Redis command called from")
        || detail.contains("nknown command called from")
}

/// Returns the command that a server names in a refusal: `this user has no permissions to run the 'wait' command`.
pub(crate) fn denied_command(words: &str) -> Option<&str> {
    let (_, rest) = words.split_once("has no permissions to run the '")?;
    rest.split_once('\'').map(|(verb, _)| verb)
}

/// Returns the rule that grants the command which these words name. Redis 7 names the user too.
fn cure(words: &str) -> Option<String> {
    let verb = denied_command(words)?;
    let user = words
        .split_once("User ")
        .and_then(|(_, rest)| rest.split_once(" has no"));
    let user = user.map_or("<user>", |(user, _)| user);
    Some(format!("ACL SETUSER {user} +{verb}"))
}

/// Classifies an error reply, with the words of the server only.
///
/// Redis 7 passes on an error that a command raises inside a script unchanged, with the place in the script appended
/// (`READONLY You can't write against a read only replica. script: <digest>, on @user_script:60.`). Earlier versions
/// reply `ERR Error running script (call to f_<digest>): @user_script:60: -READONLY You can't ...`.
pub(crate) fn plain(error: &ServerError) -> TransportError {
    let detail = error.details().unwrap_or_default();
    reply(error.code(), detail)
}

/// Classifies an error by its code, or by the code of the command that failed inside a script.
fn reply(code: &str, detail: &str) -> TransportError {
    let inner = match code {
        "ERR" => raised_in_script(detail),
        // A script has caught the error and returned it.
        "@user_script:" => after_place(detail),
        _ => None,
    };
    let (cause, execution) = judge(inner.unwrap_or(code), detail);
    let mut words = match without_place(detail) {
        "" if code.is_empty() => "an error without words".to_owned(),
        "" => code.to_owned(),
        words => format!("{code} {words}"),
    };
    // These are the first words of the text.
    if matches!(cause, Cause::TurnedAway | Cause::ProtectedMode) {
        words.insert_str(0, "the server says: ");
    }
    if let Some(verb) = unknown_command(detail) {
        words = format!(
            "the server has no command {verb}: it was renamed or disabled (rename-command), or the service does not offer it"
        );
    }
    failure::of(execution, cause, words)
}

/// Removes the place in the script, which does not help a reader of the error.
fn without_place(detail: &str) -> &str {
    match detail.rsplit_once(" script: ") {
        Some((words, place)) if place.contains("@user_script") => words,
        _ => detail,
    }
}

/// Returns the name in `unknown command 'WAITAOF', with args beginning with: ..`. Redis 5 has other quotes.
fn unknown_command(detail: &str) -> Option<&str> {
    let rest = detail.strip_prefix("unknown command ")?;
    let rest = rest.strip_prefix(['\'', '`'])?;
    rest.split_once(['\'', '`']).map(|(verb, _)| verb)
}

/// Returns the code of the command that failed inside a script, as Redis 5 and 6 word it.
fn raised_in_script(detail: &str) -> Option<&str> {
    if !detail.starts_with("Error running script") {
        return None;
    }
    let (_, place) = detail.rsplit_once("@user_script:")?;
    after_place(place)
}

/// Returns the code of an error that begins with its place in a script: `60: -READONLY You can't ...`.
fn after_place(place: &str) -> Option<&str> {
    let text = place.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ' || c == ':');
    text.trim_start_matches('-').split(' ').next()
}

/// Returns the cause of an error with this code and these words, and whether it is definite.
pub(super) fn judge(code: &str, detail: &str) -> (Cause, Execution) {
    use Execution::{Definite, Indeterminate};
    match code {
        // A server that refuses writes refuses the first one of a script, so nothing was written. (Seen on 7.0.15:
        // OOM, READONLY, MISCONF and NOREPLICAS all name the line of the script's first write, and no key is
        // changed.) Once a script has written, it runs to its end whatever the memory limit is.
        "OOM" => (Cause::OutOfMemory, Definite),
        "READONLY" | "MASTERDOWN" => (Cause::ReadOnly, Definite),
        "MISCONF" => (Cause::Misconfigured, Definite),
        "NOREPLICAS" => (Cause::NoReplicas, Definite),
        // The scripts check the type of every key before their first write.
        "WRONGTYPE" => (Cause::WrongType, Definite),
        // Each of these refuses the whole call.
        "LOADING" => (Cause::Loading, Definite),
        "BUSY" => (Cause::Busy, Definite),
        "NOAUTH" | "WRONGPASS" => (Cause::NoAuth, Definite),
        "CLUSTERDOWN" | "MOVED" | "ASK" | "TRYAGAIN" | "CROSSSLOT" => (Cause::Cluster, Definite),
        "LONGESTLEASE" => (Cause::LongestLease, Definite),
        "NOSCRIPT" => (Cause::Server, Definite),
        // NOPERM is raised for the whole call (the command, or one of its keys), or for one command inside the
        // script, possibly after the script has written.
        "NOPERM" if detail.contains("script") => (Cause::NoPermission, Indeterminate),
        "NOPERM" => (Cause::NoPermission, Definite),
        // The same in the words of Redis 6. If the script has caught the error, its code is the place in the script.
        _ if detail.contains("The user executing the script can't")
            || detail.contains("ACL failure in script") =>
        {
            (Cause::NoPermission, Indeterminate)
        }
        // The script has made up the name of a key that is being moved, and may have written another key before.
        "ERR" if detail.contains("access a non local key in a cluster node") => {
            (Cause::Cluster, Indeterminate)
        }
        // Seen on 7.0.15: said to a client right after its connection was accepted, which is then closed.
        "ERR" if detail.starts_with("max number of clients") => (Cause::TurnedAway, Definite),
        "DENIED" => (Cause::ProtectedMode, Definite),
        // From a client that is not logged in, a server with a password reads at most ten words. (Seen on 7.0.15.)
        "ERR" if detail.starts_with("Protocol error: unauthenticated") => (Cause::NoAuth, Definite),
        _ => match lack(code, detail) {
            Some(execution) => (Cause::Unsupported, execution),
            None => (Cause::Server, Indeterminate),
        },
    }
}

/// Returns whether the error is definite, if the server lacks what locks or the settings need.
fn lack(code: &str, detail: &str) -> Option<Execution> {
    // A command that was renamed or that the service does not offer, one that it keeps from scripts, and a key that the
    // call does not name (the last two by the source of Dragonfly). The script may have written before.
    let is_in_script = is_unknown_in_script(detail)
        || detail.contains("command is not allowed from script")
        || detail.contains("script tried accessing undeclared key");
    if is_in_script {
        return Some(Execution::Indeterminate);
    }
    let refused = [
        // Commands that the adapter sends itself, outside of scripts.
        "unknown command",
        "WAITAOF cannot be used",
        // By the source of Garnet.
        "This instance has Lua scripting support disabled",
        // Our own words, before the first write: a restart would go unnoticed.
        "the server does not say which process it is",
    ];
    let is_refused = code == "ERR" && refused.iter().any(|words| detail.starts_with(words));
    is_refused.then_some(Execution::Definite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(line: &str) -> (Cause, Execution) {
        let (code, detail) = line.split_once(' ').unwrap();
        let error = reply(code, detail);
        match unknown_command(detail) {
            Some(verb) => assert!(error.detail.contains(&format!(" no command {verb}:"))),
            None => assert!(error.detail.ends_with(without_place(line)), "{error}"),
        }
        (error.cause, error.execution)
    }

    /// What servers answer to a request that they do not execute.
    const NOT_EXECUTED: &[(&str, Cause)] = &[
        (
            "OOM command not allowed when used memory > 'maxmemory'. script: 6a1, on @user_script:1.",
            Cause::OutOfMemory,
        ),
        (
            "READONLY You can't write against a read only replica. script: 6a1, on @user_script:1.",
            Cause::ReadOnly,
        ),
        (
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            Cause::ReadOnly,
        ),
        (
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            Cause::Misconfigured,
        ),
        (
            "NOREPLICAS Not enough good replicas to write.",
            Cause::NoReplicas,
        ),
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            Cause::WrongType,
        ),
        (
            "LOADING Redis is loading the dataset in memory",
            Cause::Loading,
        ),
        ("BUSY Redis is busy running a script.", Cause::Busy),
        ("NOAUTH Authentication required.", Cause::NoAuth),
        (
            "WRONGPASS invalid username-password pair or user is disabled.",
            Cause::NoAuth,
        ),
        (
            "NOPERM this user has no permissions to run the 'evalsha' command",
            Cause::NoPermission,
        ),
        (
            "ERR Protocol error: unauthenticated multibulk length",
            Cause::NoAuth,
        ),
        (
            "ERR unknown command 'WAITAOF', with args beginning with: '1' '0' '50'",
            Cause::Unsupported,
        ),
        ("ERR max number of clients reached", Cause::TurnedAway),
        (
            "ERR max number of clients + cluster connections reached",
            Cause::TurnedAway,
        ),
        (
            "DENIED Redis is running in protected mode because protected mode is enabled.",
            Cause::ProtectedMode,
        ),
        (
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
            Cause::Unsupported,
        ),
        (
            "ERR This instance has Lua scripting support disabled",
            Cause::Unsupported,
        ),
        (
            "ERR the server does not say which process it is: INFO replication has no master_replid",
            Cause::Unsupported,
        ),
        ("MOVED 3999 127.0.0.1:6381", Cause::Cluster),
        ("ASK 3999 127.0.0.1:6381", Cause::Cluster),
        (
            "TRYAGAIN Multiple keys request during rehashing of slot",
            Cause::Cluster,
        ),
        ("CLUSTERDOWN Hash slot not served", Cause::Cluster),
        (
            "CROSSSLOT Keys in request don't hash to the same slot",
            Cause::Cluster,
        ),
    ];

    #[test]
    fn errors_before_the_first_write_are_definite() {
        for (line, cause) in NOT_EXECUTED {
            assert_eq!(judged(line), (*cause, Execution::Definite), "{line}");
        }
    }

    #[test]
    fn errors_that_may_follow_a_write_are_indeterminate() {
        for (line, cause) in [
            ("ERR something new", Cause::Server),
            ("ODD something newer", Cause::Server),
            (
                "ERR ACL failure in script: User bob has no permissions to run the 'publish' command",
                Cause::NoPermission,
            ),
            (
                "NOPERM ACL failure in script: User bob has no permissions to run the 'publish' command",
                Cause::NoPermission,
            ),
            (
                "ERR Error running script (call to f_6a1): @user_script:9: Script killed by user with SCRIPT KILL...",
                Cause::Server,
            ),
            (
                "ERR Script attempted to access a non local key in a cluster node script: 6a1, on @user_script:9.",
                Cause::Cluster,
            ),
            (
                "ERR The user executing the script can't run this command or subcommand script: 6a1, on @user_script:22.",
                Cause::NoPermission,
            ),
            (
                "ERR Unknown Redis command called from script script: 6a1, on @user_script:22.",
                Cause::Unsupported,
            ),
            (
                "ERR Error running script (call to f_6a1): @user_script:22: @user_script: 22: Unknown Redis command called from Lua script",
                Cause::Unsupported,
            ),
            (
                "ERR Unknown command called from script script: 6a1, on @user_script:22.",
                Cause::Unsupported,
            ),
            (
                "ERR This Redis command is not allowed from script script: 6a1, on @user_script:22.",
                Cause::Unsupported,
            ),
            (
                "ERR Error running script (call to 6a1): @user_script:22: script tried accessing undeclared key, key: x",
                Cause::Unsupported,
            ),
            (
                "NOPERM User bob may not publish script: 6a1, on @user_script:22.",
                Cause::NoPermission,
            ),
        ] {
            assert_eq!(judged(line), (cause, Execution::Indeterminate), "{line}");
        }
    }

    #[test]
    fn the_wording_of_redis_5_and_6_is_understood() {
        for (line, cause) in [
            (
                "ERR Error running script (call to f_6a1): @user_script:9: WRONGTYPE Operation against a key",
                Cause::WrongType,
            ),
            (
                "ERR Error running script (call to f_6a1): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.",
                Cause::OutOfMemory,
            ),
            (
                "ERR Error running script (call to f_6a1): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica.",
                Cause::ReadOnly,
            ),
            (
                "@user_script: 9: -OOM command not allowed when used memory > 'maxmemory'.",
                Cause::OutOfMemory,
            ),
        ] {
            assert_eq!(judged(line), (cause, Execution::Definite), "{line}");
        }
        // The wording of 6.2.14: of a command whose error the script does not catch, and of one whose error it returns.
        for denied in [
            "ERR Error running script (call to f_6a1): @user_script:22: @user_script: 22: The user executing the script can't publish to the channel mentioned in the command",
            "@user_script: 118: The user executing the script can't run this command or subcommand",
        ] {
            assert_eq!(
                judged(denied),
                (Cause::NoPermission, Execution::Indeterminate),
                "{denied}"
            );
        }
    }

    #[test]
    fn a_command_that_a_server_names_is_told_with_the_rule_that_grants_it() {
        for (line, cure) in [
            (
                "NOPERM this user has no permissions to run the 'wait' command",
                Some("ACL SETUSER <user> +wait"),
            ),
            (
                "NOPERM this user has no permissions to run the 'cluster|slots' command or its subcommand",
                Some("ACL SETUSER <user> +cluster|slots"),
            ),
            (
                "NOPERM User jobs has no permissions to run the 'info' command",
                Some("ACL SETUSER jobs +info"),
            ),
            ("NOPERM No permissions to access a key", None),
        ] {
            assert_eq!(super::cure(line).as_deref(), cure, "{line}");
        }
    }

    #[test]
    fn a_refusal_without_words_is_told_as_one() {
        assert_eq!(reply("", "").detail, "an error without words");
    }
}
