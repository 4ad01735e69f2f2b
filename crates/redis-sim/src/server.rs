//! One node and its connections.

mod cluster;
mod sentinel;

use crate::call::{Call, Flag, OnData};
use crate::condition::Condition;
use crate::data::{Data, Dataset, Effect, Role, WallMicros};
use crate::definition::{Command, Next, Run};
use crate::node::Node;
use crate::refusal::Refusal;
use crate::reply::{Protocol, Reply};
use crate::request::{self, Parsed, Trust, Words};
use crate::session::{Awaited, SessionId};
use crate::table;

/// A Redis server without sockets and clocks.
///
/// It lives in one thread. Time is an argument: a server never goes on by itself.
#[derive(Debug)]
pub struct Server(Node);

impl Server {
    /// A primary without keys. The seed decides by what identities it goes, and nothing else.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Server(Node::new(Data::new(seed), table::find_for_script))
    }

    /// The same with the identity of another process: what it answers by it is the same then.
    #[must_use]
    pub fn with_identity(self, run_id: &str, replication_id: &str) -> Self {
        {
            let ids = &mut self.0.data().ids;
            run_id.clone_into(&mut ids.run_id);
            replication_id.clone_into(&mut ids.replication_id);
        }
        self
    }

    /// The same with a password, which every connection must show.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.0.set_password(password);
        self
    }

    /// A client connects.
    pub fn open_session(&mut self) -> SessionId {
        self.0.open_session()
    }

    /// The connection has ended; what is yet to be sent is lost. Does nothing if it had before.
    pub fn close_session(&mut self, session: SessionId) {
        self.0.close_session(session);
    }

    /// Bytes arrive on a connection at this time of the node's clock, in pieces of any size. Every request that is
    /// complete is executed; what is said about it waits in the outputs: that of this session, and those of sessions
    /// that listen to what was published.
    pub fn receive(&mut self, session: SessionId, now: WallMicros, bytes: &[u8]) {
        self.tick(now);
        let Some(state) = self.0.find_session_mut(session) else {
            return;
        };
        let mut input = std::mem::take(&mut state.input);
        input.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(state) = self
            .0
            .find_session_mut(session)
            .filter(|state| !state.is_closing && !state.is_blocked)
        {
            match request::parse(input.get(at..).unwrap_or_default(), state.trust) {
                Parsed::Incomplete => break,
                Parsed::Request(words, used) => {
                    at += used;
                    self.answer(session, words);
                }
                Parsed::Broken(what) => {
                    state.write(&Reply::error(format!("ERR Protocol error: {what}")));
                    state.is_closing = true;
                }
            }
        }
        if let Some(state) = self.0.find_session_mut(session) {
            input.drain(..at);
            state.input = input;
        }
    }

    /// The clock has come so far. A primary deletes the keys whose time is over, and tells its replicas: real servers
    /// do that ten times a second. [`receive`](Self::receive) does it, too.
    pub fn tick(&mut self, now: WallMicros) {
        let mut data = self.0.data();
        data.now = now;
        data.started.get_or_insert(now);
        data.expire();
    }

    /// The output that waits for a connection, in order; empty if there is nothing, or no such connection.
    pub fn take_output(&mut self, session: SessionId) -> Vec<u8> {
        let state = self.0.find_session_mut(session);
        state
            .map(|state| std::mem::take(&mut state.output))
            .unwrap_or_default()
    }

    /// The connections on which there is something to be sent.
    pub fn sessions_with_output(&self) -> impl Iterator<Item = SessionId> {
        let all = self.0.all_sessions();
        all.filter(|(_, state)| !state.output.is_empty())
            .map(|(id, _)| id)
    }

    /// Whether the server closes the connection, once its output is sent: the client said `QUIT`, or no request.
    #[must_use]
    pub fn is_closing(&self, session: SessionId) -> bool {
        self.0
            .find_session(session)
            .is_none_or(|state| state.is_closing)
    }

    /// All keys as they are now: what a disk keeps that is written before every answer, or a snapshot.
    #[must_use]
    pub fn dataset(&self) -> Dataset {
        self.0.data().dataset().clone()
    }

    /// The process has ended, and another one begins with these keys: all connections, scripts and subscriptions are
    /// gone, and it goes by another identity. It is a primary, takes no notice of replicas, and no trouble is left.
    ///
    /// Memory only is [`Dataset::empty`], everything is its own [`dataset`](Self::dataset).
    pub fn restart(&mut self, keys: Dataset) {
        self.0.restart(keys);
    }

    /// Puts these keys in the place of all that it has, unnoticed by connections and replicas.
    pub fn replace(&mut self, keys: Dataset) {
        self.0.data().replace(keys);
    }

    /// `FLUSHALL`.
    pub fn flush(&mut self) {
        self.0.data().empty_all();
    }

    /// Evicts one key of the first database. Returns whether it was there.
    pub fn evict(&mut self, key: &[u8]) -> bool {
        self.0.data().remove(0, key)
    }

    /// `SCRIPT FLUSH`.
    pub fn forget_scripts(&mut self) {
        self.0.scripts.forget();
    }

    /// From now on, requests are answered with this error as far as Redis does so; without one, normally again.
    pub fn set_condition(&mut self, condition: Option<Condition>) {
        self.0.data().condition = condition;
    }

    /// Begins to write down what changes. A replica is a server that [follows](Self::follow), and is then told every
    /// [effect](Self::take_effects).
    pub fn replicate(&mut self) {
        self.0.data().effects.get_or_insert_default();
    }

    /// What has changed since this was asked last, in order; nothing unless [replicated](Self::replicate). What one
    /// request changed should reach a replica as a whole.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        let mut data = self.0.data();
        data.effects
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// So many replicas follow it from now on: `INFO` says so. A server without a backlog draws its `master_replid` anew
    /// when the first one comes, and forgets what it was before; a backup (`redis-cli --rdb`) is such a replica.
    pub fn set_replicas(&mut self, many: usize) {
        self.0.data().set_replicas(many);
    }

    /// Frees the backlog of a server without replicas, as Redis does when the last one has been away for
    /// `repl-backlog-ttl`: `master_replid` is drawn anew.
    pub fn free_backlog(&mut self) {
        self.0.data().free_backlog();
    }

    /// Becomes a replica that has all that the primary has now. It refuses writes, and expires nothing by itself.
    pub fn follow(&mut self, primary: &Server) {
        self.0.data().follow(&primary.0.data());
        self.0.end_waits();
    }

    /// Does what its primary did, if it is a replica.
    pub fn apply(&mut self, effect: &Effect) {
        let mut data = self.0.data();
        if data.role == Role::Replica {
            data.apply(effect);
        }
    }

    /// Becomes a primary, with a history of its own; from now on its own clock says when keys expire.
    pub fn promote(&mut self) {
        self.0.data().promote();
    }

    /// Connections that have begun to wait for replicas (`WAIT`) since this was asked last. Only a server whose writes are
    /// [taken down](Self::replicate) lets them wait; any other one answers at once that no replica has confirmed.
    pub fn take_awaited(&mut self) -> Vec<Awaited> {
        std::mem::take(&mut self.0.awaited)
    }

    /// So many replicas have what a connection waited for, or it has waited long enough: that is its answer, and what came on
    /// it meanwhile is executed. Does nothing for a connection that does not wait.
    pub fn confirm(&mut self, session: SessionId, now: WallMicros, replicas: usize) {
        let state = self.0.find_session_mut(session);
        let Some(state) = state.filter(|state| state.is_blocked) else {
            return;
        };
        state.is_blocked = false;
        state.write(&Reply::Int(i64::try_from(replicas).unwrap_or(i64::MAX)));
        self.receive(session, now, b"");
    }

    /// How much it has ever written, or been told by its primary: of two replicas, the one with more is more recent.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.data().offset
    }

    /// The identity of the process, as `INFO` says it.
    #[must_use]
    pub fn run_id(&self) -> String {
        self.0.data().ids.run_id.clone()
    }
}

impl Server {
    fn answer(&mut self, session: SessionId, words: Words) {
        if words.is_empty() {
            return;
        }
        let admitted = self.admit(session, &words);
        // It is about the next request alone.
        self.0.session(session).asks = false;
        let reply = match admitted {
            Err(refusal) => {
                if let Some(queued) = &mut self.0.session(session).queued {
                    queued.is_spoilt = true;
                }
                Some(refusal.into())
            }
            Ok(command) => match &mut self.0.session(session).queued {
                Some(queued) if !ENDS_TRANSACTION.contains(&command.shape.name) => {
                    queued.commands.push(words);
                    Some(Reply::Status(b"QUEUED".into()))
                }
                _ => self.run(session, &words),
            },
        };
        if let Some(reply) = reply {
            self.0.say(session, &reply);
        }
    }

    /// Finds the command, if it may be used here and now.
    fn admit(&self, session: SessionId, words: &[Vec<u8>]) -> Result<&'static Command, Refusal> {
        let found = words.first().and_then(|name| table::find(name));
        let command = found.ok_or_else(|| Refusal::unknown_command(words))?;
        let is_there = match self.0.data().watch {
            Some(_) => OF_SENTINELS.contains(&command.shape.name),
            None => command.shape.name != "sentinel",
        };
        if !is_there {
            return Err(Refusal::unknown_command(words));
        }
        if !command.shape.takes(words.len()) {
            return Err(Refusal::arity(command.shape.name));
        }
        let state = self.0.find_session(session);
        let is_stranger = state.is_some_and(|state| state.trust == Trust::Stranger);
        if is_stranger && !command.shape.is(Flag::BeforeLogin) {
            return Err(Refusal::of("NOAUTH Authentication required."));
        }
        let data = self.0.data();
        if data.condition == Some(Condition::OutOfMemory) && command.shape.is(Flag::Grows) {
            return Err(Refusal::OUT_OF_MEMORY);
        }
        self.check_slot(&data, session, command.shape.name, words)?;
        let is_read_only =
            data.role == Role::Replica || data.condition == Some(Condition::ReadOnly);
        if is_read_only && command.shape.is(Flag::Write) {
            return Err(Refusal::READ_ONLY);
        }
        if data.condition == Some(Condition::FewReplicas) && command.shape.is(Flag::Write) {
            return Err(Refusal::FEW_REPLICAS);
        }
        let is_old = state.is_some_and(|state| state.protocol == Protocol::Resp2);
        if is_old && 0 < data.channels.count(session) && !command.shape.is(Flag::WhileSubscribed) {
            let name = command.shape.name;
            return Err(Refusal(format!("ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context").into()));
        }
        if data.condition == Some(Condition::Loading) && !command.shape.is(Flag::WhileLoading) {
            return Err(Refusal::of(
                "LOADING Redis is loading the dataset in memory",
            ));
        }
        if data.condition == Some(Condition::Busy) && !command.shape.is(Flag::WhileBusy) {
            return Err(Refusal::of(
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            ));
        }
        Ok(command)
    }

    /// Executes a command that was admitted, and delivers what it published.
    fn run(&mut self, session: SessionId, words: &[Vec<u8>]) -> Option<Reply> {
        let command = words.first().and_then(|name| table::find(name))?;
        let answer = match command.run {
            Run::OnData(run) => self.run_on_data(session, run, words).map(Next::Reply),
            Run::OnConnection(run) => run(&mut self.0, session, words),
        };
        let answer = answer.map(|next| match next {
            Next::Reply(reply) => Some(reply),
            Next::Nothing => None,
            Next::Waits(awaited) => {
                self.0.session(session).is_blocked = true;
                self.0.awaited.push(awaited);
                None
            }
            Next::ExecuteAll(commands) => {
                let replies = commands.iter().filter_map(|words| self.run(session, words));
                let replies = replies.collect();
                // A transaction does not wait.
                if std::mem::take(&mut self.0.session(session).is_blocked) {
                    self.0.awaited.retain(|awaited| awaited.session != session);
                }
                Some(Reply::Array(replies))
            }
        });
        self.deliver();
        let reply = answer.unwrap_or_else(|refusal| Some(refusal.into()));
        if command.shape.name == "ping" {
            return reply.map(|reply| self.pong(session, reply));
        }
        reply
    }

    /// Writes what was published to those who listen.
    fn deliver(&mut self) {
        let messages = self.0.data().channels.take_messages();
        for (listener, message) in messages {
            self.0.say(listener, &message);
        }
    }

    fn run_on_data(
        &mut self,
        session: SessionId,
        run: OnData,
        words: &[Vec<u8>],
    ) -> Result<Reply, Refusal> {
        let mut db = self.0.session(session).db;
        let answer = run(&mut Call {
            data: &mut self.0.data(),
            db: &mut db,
            words,
        });
        self.0.session(session).db = db;
        answer
    }

    /// Among messages of RESP2, an answer looks like one.
    fn pong(&mut self, session: SessionId, reply: Reply) -> Reply {
        let is_old = self.0.session(session).protocol == Protocol::Resp2;
        if !is_old || self.0.data().channels.count(session) == 0 {
            return reply;
        }
        let text = match reply {
            Reply::Bulk(text) => Reply::Bulk(text),
            Reply::Error(_) => return reply,
            _ => Reply::bulk(""),
        };
        Reply::Array(vec![Reply::bulk("pong"), text])
    }
}

/// The commands of a sentinel.
const OF_SENTINELS: [&str; 13] = [
    "auth",
    "client",
    "hello",
    "info",
    "ping",
    "psubscribe",
    "publish",
    "punsubscribe",
    "quit",
    "role",
    "sentinel",
    "subscribe",
    "unsubscribe",
];

/// What is not put off by `MULTI`.
const ENDS_TRANSACTION: [&str; 5] = ["discard", "exec", "multi", "quit", "reset"];

#[cfg(test)]
mod tests;
#[cfg(test)]
mod waits;
