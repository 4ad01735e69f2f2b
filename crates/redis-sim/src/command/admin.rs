//! Commands about the server itself.

use crate::call::{Answer, Call, Flag};
use crate::data::Role;
use crate::definition::{Command, on_data};
use crate::glob;
use crate::info;
use crate::refusal::Refusal;
use crate::reply::Reply;

pub(crate) const COMMANDS: &[Command] = &[
    on_data("command", -1, &[Flag::WhileLoading], commands),
    on_data(
        "config",
        -2,
        &[Flag::NotInScripts, Flag::WhileLoading],
        config,
    ),
    on_data("echo", 2, &[Flag::WhileLoading], |call| {
        Ok(Reply::bulk(call.word(1)))
    }),
    on_data("info", -1, &[Flag::WhileLoading], |call| {
        Ok(Reply::Text(info::text(call.data, call.words_from(1))))
    }),
    on_data("ping", -1, &[Flag::WhileSubscribed], ping),
    on_data("replicaof", 3, &[Flag::NotInScripts], follow),
    on_data("role", 1, &[Flag::NotInScripts, Flag::WhileLoading], role),
    on_data("slaveof", 3, &[Flag::NotInScripts], follow),
    on_data("time", 1, &[Flag::WhileLoading], time),
];

fn ping(call: &mut Call<'_>) -> Answer {
    match call.words {
        [_] => Ok(Reply::Status(b"PONG".into())),
        [_, text] => Ok(Reply::bulk(text)),
        _ => Err(Refusal::arity("ping")),
    }
}

fn time(call: &mut Call<'_>) -> Answer {
    let (secs, micros) = (call.data.now.secs(), call.data.now.0 % 1_000_000);
    Ok(Reply::Array(vec![
        Reply::bulk(secs.to_string()),
        Reply::bulk(micros.to_string()),
    ]))
}

fn role(call: &mut Call<'_>) -> Answer {
    if let Some(watch) = &call.data.watch {
        let names = vec![Reply::bulk(&watch.name)];
        return Ok(Reply::Array(vec![
            Reply::bulk("sentinel"),
            Reply::Array(names),
        ]));
    }
    let offset = Reply::Int(i64::try_from(call.data.offset).unwrap_or(i64::MAX));
    Ok(Reply::Array(match call.data.role {
        Role::Primary => vec![Reply::bulk("master"), offset, Reply::Array(Vec::new())],
        Role::Replica => {
            let (host, port) = info::PRIMARY;
            vec![
                Reply::bulk("slave"),
                Reply::bulk(host),
                Reply::Int(i64::from(port)),
                Reply::bulk("connected"),
                offset,
            ]
        }
    }))
}

/// Executes `REPLICAOF NO ONE`. Any other primary is refused, because only the caller that runs the server can set it.
fn follow(call: &mut Call<'_>) -> Answer {
    if !call.word_is(1, "no") || !call.word_is(2, "one") {
        return Err(Refusal::of(
            "ERR a simulated server knows no other: only REPLICAOF NO ONE is understood",
        ));
    }
    call.data.promote();
    Ok(Reply::OK)
}

/// Executes `COMMAND` with empty results, which clients accept.
fn commands(call: &mut Call<'_>) -> Answer {
    Ok(match call.word(1).to_ascii_lowercase().as_slice() {
        b"" => Reply::Array(Vec::new()),
        b"count" => Reply::Int(0),
        b"docs" => Reply::Map(Vec::new()),
        _ => return Err(Refusal::unknown_subcommand(call.words)),
    })
}

/// Parameters that clients read before they trust the server.
const PARAMETERS: [(&str, &str); 6] = [
    ("appendonly", "no"),
    ("databases", "16"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("save", ""),
    ("timeout", "0"),
];

fn config(call: &mut Call<'_>) -> Answer {
    let patterns = call.words_from(2);
    match call.word(1).to_ascii_lowercase().as_slice() {
        b"get" if patterns.is_empty() => Err(Refusal::arity("config|get")),
        b"get" => {
            let is_wanted = |(name, _): &&(&str, &str)| {
                let matches = |pattern: &Vec<u8>| {
                    glob::matches(&pattern.to_ascii_lowercase(), name.as_bytes())
                };
                patterns.iter().any(matches)
            };
            let found = PARAMETERS.iter().filter(is_wanted);
            let found = found.map(|(name, value)| (Reply::bulk(name), Reply::bulk(value)));
            Ok(Reply::Map(found.collect()))
        }
        b"set" if patterns.len() < 2 => Err(Refusal::arity("config|set")),
        b"set" => {
            let name = String::from_utf8_lossy(call.word(2));
            let text =
                format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'");
            Err(Refusal(text.into()))
        }
        b"resetstat" if patterns.is_empty() => Ok(Reply::OK),
        _ => Err(Refusal::unknown_subcommand(call.words)),
    }
}
