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
/// It runs in one thread. Time is an argument: a server never acts without a call.
#[derive(Debug)]
pub struct Server(Node);

impl Server {
    /// Returns a primary without keys. The seed determines its identities, and nothing else.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Server(Node::new(Data::new(seed), table::find_for_script))
    }

    /// Returns the same server with the identity of another process, so that its answers equal those of that process.
    #[must_use]
    pub fn with_identity(self, run_id: &str, replication_id: &str) -> Self {
        {
            let ids = &mut self.0.data().ids;
            run_id.clone_into(&mut ids.run_id);
            replication_id.clone_into(&mut ids.replication_id);
        }
        self
    }

    /// Returns the same server with a password, which every connection must present.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.0.set_password(password);
        self
    }

    /// Opens a connection.
    pub fn open_session(&mut self) -> SessionId {
        self.0.open_session()
    }

    /// Closes a connection; output that was not taken is lost. Does nothing if it is closed already.
    pub fn close_session(&mut self, session: SessionId) {
        self.0.close_session(session);
    }

    /// Receives bytes on a connection, at this time of the node's clock, in pieces of any size. Executes every request
    /// that is complete. The replies are added to the output of this session, and published messages to the outputs of
    /// the sessions that listen to them.
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

    /// Sets the clock. A primary deletes expired keys and records this for its replicas; real servers do so ten times a
    /// second. [`receive`](Self::receive) does it, too.
    pub fn tick(&mut self, now: WallMicros) {
        let mut data = self.0.data();
        data.now = now;
        data.started.get_or_insert(now);
        data.expire();
    }

    /// Takes the pending output of a connection, in order. Returns nothing if there is none or no such connection.
    pub fn take_output(&mut self, session: SessionId) -> Vec<u8> {
        let state = self.0.find_session_mut(session);
        state
            .map(|state| std::mem::take(&mut state.output))
            .unwrap_or_default()
    }

    /// Returns the connections that have pending output.
    pub fn sessions_with_output(&self) -> impl Iterator<Item = SessionId> {
        let all = self.0.all_sessions();
        all.filter(|(_, state)| !state.output.is_empty())
            .map(|(id, _)| id)
    }

    /// Returns whether the server closes the connection once its output is sent: the client sent `QUIT`, or bytes that
    /// are not a request.
    #[must_use]
    pub fn is_closing(&self, session: SessionId) -> bool {
        self.0
            .find_session(session)
            .is_none_or(|state| state.is_closing)
    }

    /// Returns what was received on a connection and not yet executed: requests that are not complete, or that wait behind one
    /// that blocks. Empty if there is no such connection.
    #[must_use]
    pub fn pending(&self, session: SessionId) -> &[u8] {
        let state = self.0.find_session(session);
        state.map_or(&[], |state| &state.input)
    }

    /// Returns all keys as they are now: the contents of a disk that is written before every answer, or of a snapshot.
    #[must_use]
    pub fn dataset(&self) -> Dataset {
        self.0.data().dataset().clone()
    }

    /// Ends the process and starts another one with these keys. All connections, scripts and subscriptions are gone,
    /// and the server has another identity. It is a primary without replicas, in no [`Condition`].
    ///
    /// For a server without persistence, pass [`Dataset::empty`]; for one that keeps everything, its own
    /// [`dataset`](Self::dataset).
    pub fn restart(&mut self, keys: Dataset) {
        self.0.restart(keys);
    }

    /// Replaces all keys, without effects on connections and replicas.
    pub fn replace(&mut self, keys: Dataset) {
        self.0.data().replace(keys);
    }

    /// Removes all keys, as `FLUSHALL` does.
    pub fn flush(&mut self) {
        self.0.data().empty_all();
    }

    /// Evicts a key from the first database. Returns whether it existed.
    pub fn evict(&mut self, key: &[u8]) -> bool {
        self.0.data().remove(0, key)
    }

    /// Removes all scripts, as `SCRIPT FLUSH` does.
    pub fn forget_scripts(&mut self) {
        self.0.scripts.forget();
    }

    /// Sets the condition. From now on the server answers requests with its error where Redis does so; with `None` it
    /// answers normally again.
    pub fn set_condition(&mut self, condition: Option<Condition>) {
        self.0.data().condition = condition;
    }

    /// Begins to record changes. A replica is a server that [follows](Self::follow), and then receives every
    /// [effect](Self::take_effects).
    pub fn replicate(&mut self) {
        self.0.data().effects.get_or_insert_default();
    }

    /// Takes the changes since the last call, in order; none unless they are [recorded](Self::replicate). The changes
    /// of one request should reach a replica together.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        let mut data = self.0.data();
        data.effects
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Sets the number of replicas that follow the server, which `INFO` reports. A server without a backlog draws a
    /// new `master_replid` when the first replica attaches, and forgets its former one. A backup (`redis-cli --rdb`)
    /// is such a replica.
    pub fn set_replicas(&mut self, many: usize) {
        self.0.data().set_replicas(many);
    }

    /// Frees the backlog of a server without replicas, as Redis does when the last replica has been away for
    /// `repl-backlog-ttl`. The server draws a new `master_replid`.
    pub fn free_backlog(&mut self) {
        self.0.data().free_backlog();
    }

    /// Makes the server a replica with all keys that the primary has now. A replica refuses writes, and deletes no
    /// expired keys without an effect from its primary.
    pub fn follow(&mut self, primary: &Server) {
        self.0.data().follow(&primary.0.data());
        self.0.end_waits();
    }

    /// Applies a change of the primary, if the server is a replica.
    pub fn apply(&mut self, effect: &Effect) {
        let mut data = self.0.data();
        if data.role == Role::Replica {
            data.apply(effect);
        }
    }

    /// Makes the server a primary with its own history. From now on its own clock determines when keys expire.
    pub fn promote(&mut self) {
        self.0.data().promote();
    }

    /// Takes the connections that have begun to wait for replicas (`WAIT`) since the last call. Only a server whose
    /// changes are [recorded](Self::replicate) lets them wait; any other answers at once that no replica has confirmed.
    pub fn take_awaited(&mut self) -> Vec<Awaited> {
        std::mem::take(&mut self.0.awaited)
    }

    /// Answers a waiting connection: this many replicas have confirmed, or it has waited long enough. Requests that
    /// arrived on it in the meantime are executed. Does nothing for a connection that does not wait.
    pub fn confirm(&mut self, session: SessionId, now: WallMicros, replicas: usize) {
        let state = self.0.find_session_mut(session);
        let Some(state) = state.filter(|state| state.is_blocked) else {
            return;
        };
        state.is_blocked = false;
        state.write(&Reply::Int(i64::try_from(replicas).unwrap_or(i64::MAX)));
        self.receive(session, now, b"");
    }

    /// Returns the number of changes that the server has ever made or received from its primary. Of two replicas, the
    /// one with the larger number is more recent.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.data().offset
    }

    /// Returns the identity of the process, as `INFO` reports it.
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
        // `ASKING` applies only to the next request.
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

    /// Returns the command, if it may be executed now on this connection.
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

    /// Executes an admitted command, and delivers the messages that it published.
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
                // Commands in a transaction do not wait.
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

    /// Writes published messages to the sessions that listen.
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

    /// Formats the reply to `PING`. On a RESP2 connection with subscriptions it has the form of a message.
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

/// Commands that `MULTI` does not queue.
const ENDS_TRANSACTION: [&str; 5] = ["discard", "exec", "multi", "quit", "reset"];

#[cfg(test)]
mod tests;
#[cfg(test)]
mod waits;
