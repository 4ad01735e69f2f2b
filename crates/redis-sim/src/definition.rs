//! The definition of a command: its shape, and the function that executes it.

use crate::call::{Flag, OnData, Shape};
use crate::node::Node;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Words;
use crate::session::{Awaited, SessionId};

/// A command and the function that executes it.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) shape: Shape,
    pub(crate) run: Run,
}

/// The function that executes a command, by what it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// A command that needs keys, clock and channels. A script can call it, too.
    OnData(OnData),
    /// A command that needs a connection.
    OnConnection(OnConnection),
}

pub(crate) type OnConnection = fn(&mut Node, SessionId, &[Vec<u8>]) -> Result<Next, Refusal>;

/// What the server does after a command of a connection.
#[derive(Debug)]
pub(crate) enum Next {
    /// Writes this reply.
    Reply(Reply),
    /// Writes nothing: the command has written its replies itself.
    Nothing,
    /// Writes nothing until replicas have confirmed.
    Waits(Awaited),
    /// Executes these commands, and writes all their replies as one.
    ExecuteAll(Vec<Words>),
}

pub(crate) const fn read(name: &'static str, arity: i32, run: OnData) -> Command {
    on_data(name, arity, &[], run)
}

pub(crate) const fn write(name: &'static str, arity: i32, run: OnData) -> Command {
    on_data(name, arity, &[Flag::Write], run)
}

/// Returns a command that writes, and may need memory.
pub(crate) const fn grow(name: &'static str, arity: i32, run: OnData) -> Command {
    on_data(name, arity, &[Flag::Write, Flag::Grows], run)
}

pub(crate) const fn on_data(
    name: &'static str,
    arity: i32,
    flags: &'static [Flag],
    run: OnData,
) -> Command {
    Command {
        shape: Shape { name, arity, flags },
        run: Run::OnData(run),
    }
}

pub(crate) const fn on_connection(
    name: &'static str,
    arity: i32,
    flags: &'static [Flag],
    run: OnConnection,
) -> Command {
    Command {
        shape: Shape { name, arity, flags },
        run: Run::OnConnection(run),
    }
}
