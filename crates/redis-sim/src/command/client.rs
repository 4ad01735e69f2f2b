//! Commands about the connection: its login, its name and its protocol.

use crate::call::Flag;
use crate::channels::Named;
use crate::data::Role;
use crate::definition::{Command, Next, on_connection};
use crate::info;
use crate::node::Node;
use crate::number;
use crate::refusal::Refusal;
use crate::reply::{Protocol, Reply};
use crate::request::Trust;
use crate::session::SessionId;

pub(crate) const COMMANDS: &[Command] = &[
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
    on_connection("quit", -1, ALWAYS, |node, session, _| {
        node.session(session).is_closing = true;
        Ok(Next::Reply(Reply::OK))
    }),
    on_connection("reset", 1, ALWAYS, |node, session, _| {
        Ok(Next::Reply(reset(node, session)))
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

fn auth(node: &mut Node, session: SessionId, words: &[Vec<u8>]) -> Result<Next, Refusal> {
    let (user, password) = match words {
        [_, password] => {
            if !node.has_password() {
                return Err(Refusal::of(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
                ));
            }
            (b"default".as_slice(), password)
        }
        [_, user, password] => (user.as_slice(), password),
        _ => return Err(Refusal::SYNTAX),
    };
    log_in(node, session, user, password)?;
    Ok(Next::Reply(Reply::OK))
}

fn log_in(
    node: &mut Node,
    session: SessionId,
    user: &[u8],
    password: &[u8],
) -> Result<(), Refusal> {
    if user != b"default" || !node.takes_password(password) {
        return Err(wrong_password());
    }
    node.session(session).trust = Trust::Known;
    Ok(())
}

fn hello(node: &mut Node, session: SessionId, words: &[Vec<u8>]) -> Result<Next, Refusal> {
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
        log_in(node, session, user, password)?;
    }
    let state = node.session(session);
    if state.trust == Trust::Stranger {
        return Err(Refusal::of(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    state.name = name.unwrap_or_else(|| std::mem::take(&mut state.name));
    state.protocol = protocol.unwrap_or(state.protocol);
    let protocol = state.protocol;
    Ok(Next::Reply(greeting(node, session, protocol)))
}

fn greeting(node: &Node, session: SessionId, protocol: Protocol) -> Reply {
    let role = match node.data().role {
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

fn client(node: &mut Node, session: SessionId, words: &[Vec<u8>]) -> Result<Next, Refusal> {
    let word = words
        .get(1)
        .map(|word| word.to_ascii_lowercase())
        .unwrap_or_default();
    let reply = match (word.as_slice(), words.get(2..).unwrap_or_default()) {
        (b"id", []) => id(session),
        (b"getname", []) => match node.session(session).name.as_slice() {
            [] => Reply::Nil,
            name => Reply::bulk(name),
        },
        (b"setname", [name]) => {
            check_name(name)?;
            node.session(session).name.clone_from(name);
            Reply::OK
        }
        (b"info", []) => Reply::Text(describe(node, session)),
        (b"list", []) => {
            let all = node.sessions();
            Reply::Text(
                all.into_iter()
                    .map(|session| describe(node, session))
                    .collect(),
            )
        }
        (b"id" | b"getname" | b"setname" | b"info" | b"list", _) => {
            let name = String::from_utf8_lossy(&word);
            return Err(Refusal::arity(&format!("client|{name}")));
        }
        _ => return Err(Refusal::unknown_subcommand(words)),
    };
    Ok(Next::Reply(reply))
}

fn describe(node: &mut Node, session: SessionId) -> String {
    let count = |named| node.data().channels.of(session, named).len();
    let (sub, psub) = (count(Named::Exactly), count(Named::ByPattern));
    let state = node.session(session);
    let name = String::from_utf8_lossy(&state.name);
    format!(
        "id={} name={name} db={} sub={sub} psub={psub}\n",
        session.0, state.db
    )
}

/// Resets the connection to the state of a new one.
fn reset(node: &mut Node, session: SessionId) -> Reply {
    node.data().channels.forget(session);
    let trust = node.first_trust();
    let state = node.session(session);
    state.protocol = Protocol::Resp2;
    state.trust = trust;
    state.db = 0;
    state.name.clear();
    state.queued = None;
    Reply::Status(b"RESET".into())
}
