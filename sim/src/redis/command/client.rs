//! A connection: who is at its other end, and what is spoken on it.

use super::{Command, Flag, Refusal, Said, on_connection};
use crate::redis::channels::Named;
use crate::redis::data::Role;
use crate::redis::info;
use crate::redis::number;
use crate::redis::reply::{Protocol, Reply};
use crate::redis::request::Trust;
use crate::redis::server::Server;
use crate::redis::session::SessionId;

pub(super) const COMMANDS: &[Command] = &[
    on_connection(
        "auth",
        -2,
        &[
            Flag::NotInScripts,
            Flag::WhileLoading,
            Flag::BeforeLogin,
            Flag::WhileBusy,
        ],
        auth,
    ),
    on_connection(
        "client",
        -2,
        &[Flag::NotInScripts, Flag::WhileLoading],
        client,
    ),
    on_connection(
        "hello",
        -1,
        &[
            Flag::NotInScripts,
            Flag::WhileLoading,
            Flag::BeforeLogin,
            Flag::WhileBusy,
        ],
        hello,
    ),
    on_connection("quit", -1, ALWAYS, |server, session, _| {
        server.session(session).is_closing = true;
        Ok(Some(Reply::OK))
    }),
    on_connection("reset", 1, ALWAYS, |server, session, _| {
        Ok(Some(reset(server, session)))
    }),
];

const ALWAYS: &[Flag] = &[
    Flag::NotInScripts,
    Flag::WhileLoading,
    Flag::WhileBusy,
    Flag::BeforeLogin,
    Flag::WhileSubscribed,
];

fn wrong_password() -> Refusal {
    Refusal::of("WRONGPASS invalid username-password pair or user is disabled.")
}

fn auth(server: &mut Server, session: SessionId, words: &[Vec<u8>]) -> Said {
    let (user, password) = match words {
        [_, password] => {
            if !server.has_password() {
                return Err(Refusal::of(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
                ));
            }
            (b"default".as_slice(), password)
        }
        [_, user, password] => (user.as_slice(), password),
        _ => return Err(Refusal::SYNTAX),
    };
    log_in(server, session, user, password)?;
    Ok(Some(Reply::OK))
}

fn log_in(
    server: &mut Server,
    session: SessionId,
    user: &[u8],
    password: &[u8],
) -> Result<(), Refusal> {
    if user != b"default" || !server.takes_password(password) {
        return Err(wrong_password());
    }
    server.session(session).trust = Trust::Known;
    Ok(())
}

fn hello(server: &mut Server, session: SessionId, words: &[Vec<u8>]) -> Said {
    let protocol = match words.get(1) {
        None => None,
        Some(word) => {
            let number = number::parse_int(word).ok_or(Refusal::of(
                "ERR Protocol version is not an integer or out of range",
            ))?;
            Some(match number {
                2 => Protocol::Resp2,
                3 => Protocol::Resp3,
                _ => return Err(Refusal::of("NOPROTO unsupported protocol version")),
            })
        }
    };
    let mut name = None;
    let mut rest = words.get(2..).unwrap_or_default();
    let mut login = None;
    loop {
        rest = match rest {
            [] => break,
            [word, user, password, rest @ ..] if word.eq_ignore_ascii_case(b"auth") => {
                login = Some((user, password));
                rest
            }
            [word, new, rest @ ..] if word.eq_ignore_ascii_case(b"setname") => {
                check_name(new)?;
                name = Some(new.clone());
                rest
            }
            [word, ..] => {
                let word = String::from_utf8_lossy(word);
                let text = format!("ERR Syntax error in HELLO option '{word}'");
                return Err(Refusal(text.into()));
            }
        };
    }
    if let Some((user, password)) = login {
        log_in(server, session, user, password)?;
    }
    let state = server.session(session);
    if state.trust == Trust::Stranger {
        return Err(Refusal::of(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    state.name = name.unwrap_or_else(|| std::mem::take(&mut state.name));
    state.protocol = protocol.unwrap_or(state.protocol);
    let protocol = state.protocol;
    Ok(Some(greeting(server, session, protocol)))
}

fn greeting(server: &Server, session: SessionId, protocol: Protocol) -> Reply {
    let role = match server.data().role {
        Role::Primary => "master",
        Role::Replica => "replica",
    };
    let protocol = match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    };
    let pairs = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(info::VERSION)),
        ("proto", Reply::Int(protocol)),
        ("id", id(session)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk(role)),
        ("modules", Reply::Array(Vec::new())),
    ];
    Reply::Map(pairs.map(|(name, value)| (Reply::bulk(name), value)).into())
}

fn id(session: SessionId) -> Reply {
    Reply::Int(i64::try_from(session.0).unwrap_or(i64::MAX))
}

fn check_name(name: &[u8]) -> Result<(), Refusal> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(());
    }
    Err(Refusal::of(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

fn client(server: &mut Server, session: SessionId, words: &[Vec<u8>]) -> Said {
    let word = words
        .get(1)
        .map(|word| word.to_ascii_lowercase())
        .unwrap_or_default();
    let reply = match (word.as_slice(), words.get(2..).unwrap_or_default()) {
        (b"id", []) => id(session),
        (b"getname", []) => match server.session(session).name.as_slice() {
            [] => Reply::Nil,
            name => Reply::bulk(name),
        },
        (b"setname", [name]) => {
            check_name(name)?;
            server.session(session).name.clone_from(name);
            Reply::OK
        }
        (b"info", []) => Reply::Text(describe(server, session)),
        (b"list", []) => {
            let all = server.sessions();
            Reply::Text(
                all.into_iter()
                    .map(|session| describe(server, session))
                    .collect(),
            )
        }
        (b"id" | b"getname" | b"setname" | b"info" | b"list", _) => {
            let name = String::from_utf8_lossy(&word);
            return Err(Refusal::arity(&format!("client|{name}")));
        }
        _ => return Err(Refusal::unknown_subcommand(words)),
    };
    Ok(Some(reply))
}

fn describe(server: &mut Server, session: SessionId) -> String {
    let count = |named| server.data().channels.of(session, named).len();
    let (sub, psub) = (count(Named::Exactly), count(Named::ByPattern));
    let state = server.session(session);
    let name = String::from_utf8_lossy(&state.name);
    format!(
        "id={} name={name} db={} sub={sub} psub={psub}\n",
        session.0, state.db
    )
}

/// As if the connection was new.
fn reset(server: &mut Server, session: SessionId) -> Reply {
    server.data().channels.forget(session);
    let trust = server.first_trust();
    let state = server.session(session);
    state.protocol = Protocol::Resp2;
    state.trust = trust;
    state.db = 0;
    state.name.clear();
    state.queued = None;
    Reply::Status(b"RESET".into())
}
