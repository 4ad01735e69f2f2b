//! Commands that are executed together.

use super::{Command, Flag, Refusal, Said, on_connection};
use crate::redis::reply::Reply;
use crate::redis::server::Server;
use crate::redis::session::{Queued, SessionId};

pub(super) const COMMANDS: &[Command] = &[
    on_connection("discard", 1, ALSO_WHILE_BUSY, discard),
    on_connection("exec", 1, FLAGS, execute),
    on_connection("multi", 1, ALSO_WHILE_BUSY, begin),
];

const FLAGS: &[Flag] = &[Flag::NotInScripts, Flag::WhileLoading];
const ALSO_WHILE_BUSY: &[Flag] = &[Flag::NotInScripts, Flag::WhileLoading, Flag::WhileBusy];

fn begin(server: &mut Server, session: SessionId, _: &[Vec<u8>]) -> Said {
    let queued = &mut server.session(session).queued;
    if queued.is_some() {
        return Err(Refusal::of("ERR MULTI calls can not be nested"));
    }
    *queued = Some(Queued::default());
    Ok(Some(Reply::OK))
}

fn discard(server: &mut Server, session: SessionId, _: &[Vec<u8>]) -> Said {
    let queued = server.session(session).queued.take();
    queued
        .map(|_| Some(Reply::OK))
        .ok_or(Refusal::of("ERR DISCARD without MULTI"))
}

fn execute(server: &mut Server, session: SessionId, _: &[Vec<u8>]) -> Said {
    let queued = server.session(session).queued.take();
    let queued = queued.ok_or(Refusal::of("ERR EXEC without MULTI"))?;
    if queued.is_spoilt {
        return Err(Refusal::of(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    // A command that has more than one reply writes them itself.
    let replies = queued
        .commands
        .iter()
        .filter_map(|words| server.run(session, words));
    Ok(Some(Reply::Array(replies.collect())))
}
