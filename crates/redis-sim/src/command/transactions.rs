//! Commands for transactions.

use crate::call::Flag;
use crate::definition::{Command, Next, on_connection};
use crate::node::Node;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::session::{Queued, SessionId};

pub(crate) const COMMANDS: &[Command] = &[
    on_connection("discard", 1, ALSO_WHILE_BUSY, discard),
    on_connection("exec", 1, FLAGS, execute),
    on_connection("multi", 1, ALSO_WHILE_BUSY, begin),
];

const FLAGS: &[Flag] = &[Flag::NotInScripts, Flag::WhileLoading];
const ALSO_WHILE_BUSY: &[Flag] = &[Flag::NotInScripts, Flag::WhileLoading, Flag::WhileBusy];

fn begin(node: &mut Node, session: SessionId, _: &[Vec<u8>]) -> Result<Next, Refusal> {
    let queued = &mut node.session(session).queued;
    if queued.is_some() {
        return Err(Refusal::of("ERR MULTI calls can not be nested"));
    }
    *queued = Some(Queued::default());
    Ok(Next::Reply(Reply::OK))
}

fn discard(node: &mut Node, session: SessionId, _: &[Vec<u8>]) -> Result<Next, Refusal> {
    let queued = node.session(session).queued.take();
    queued
        .map(|_| Next::Reply(Reply::OK))
        .ok_or(Refusal::of("ERR DISCARD without MULTI"))
}

fn execute(node: &mut Node, session: SessionId, _: &[Vec<u8>]) -> Result<Next, Refusal> {
    let queued = node.session(session).queued.take();
    let queued = queued.ok_or(Refusal::of("ERR EXEC without MULTI"))?;
    if queued.is_spoilt {
        return Err(Refusal::of(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    Ok(Next::ExecuteAll(queued.commands))
}
