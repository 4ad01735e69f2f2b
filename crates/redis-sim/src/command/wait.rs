//! `WAIT`: a connection waits until replicas have its writes.

use std::time::Duration;

use crate::call::Flag;
use crate::data::Role;
use crate::definition::{Command, Next, on_connection};
use crate::node::Node;
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::session::{Awaited, SessionId};

pub(crate) const COMMANDS: &[Command] = &[on_connection("wait", 3, &[Flag::NotInScripts], wait)];

/// Executes `WAIT`. A server that does not record its changes has no replicas that could confirm, and answers at once.
fn wait(node: &mut Node, session: SessionId, words: &[Vec<u8>]) -> Result<Next, Refusal> {
    if node.data().role == Role::Replica {
        return Err(Refusal::of(
            "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.",
        ));
    }
    let number = |at: usize| number::parse_int(words.get(at).map_or(b"", Vec::as_slice));
    let replicas = number(1).ok_or(Refusal::NOT_AN_INTEGER)?;
    let millis = number(2).ok_or(Refusal::of("ERR timeout is not an integer or out of range"))?;
    let millis = u64::try_from(millis).map_err(|_| Refusal::of("ERR timeout is negative"))?;
    if node.data().effects.is_none() {
        return Ok(Next::Reply(Reply::Int(0)));
    }
    Ok(Next::Waits(Awaited {
        session,
        replicas: usize::try_from(replicas).unwrap_or(0),
        within: (millis != 0).then(|| Duration::from_millis(millis)),
    }))
}
