//! One server: a connection for requests, and one for wake-ups.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::message::{Acquire, Mode, Release, Request};
use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{Cmd, ServerErrorKind, Value};

use crate::connection::ConnectionManager;
use crate::link::Connection;
use crate::multiplexer::{Answer, Native};
use crate::native::{self, Made, Natives, NotGranted};
use crate::script::batch::BatchMember;
use crate::script::{self, By, Home};
use crate::subscription::Wakes;
use crate::target::Target;
use crate::timer::{self, Instant};
use crate::wait::Wait;
use crate::{error, key};

/// A server with a fixed address, or the one that a source currently names.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) target: Arc<Target>,
    pub(crate) connection: Arc<ConnectionManager>,
    pub(crate) wakes: Wakes,
    natives: Natives,
}

/// How a request is sent to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Without a script, or in a batch with other requests, if it can be.
    Together,
    /// By itself.
    Alone,
    /// By itself, directly after an `ASKING`, to a cluster node that is importing its slot.
    Asking,
}

/// A request, and its home.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) request: &'a Arc<Request>,
    pub(crate) home: &'a Home,
}

/// The limits of a request in time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// When the caller stops waiting for the reply.
    pub(crate) deadline: Instant,
    /// How long the server may be silent before the connection is suspected.
    pub(crate) patience: Duration,
    /// How long calls fail at once after a failed attempt to connect.
    pub(crate) longest_pause: Duration,
}

impl Server {
    pub(crate) fn new(target: Target) -> Self {
        let target = Arc::new(target);
        Server {
            connection: ConnectionManager::new(Arc::clone(&target)),
            wakes: Wakes::new(Arc::clone(&target)),
            natives: Natives::new(target.config().youngest),
            target,
        }
    }

    /// Sends a request. Returns the reply, which may be an error reply, and the connection that it came on.
    ///
    /// # Errors
    /// An error that states why there is no reply, and whether the request may have been executed.
    pub(crate) async fn ask(
        &self,
        job: Job<'_>,
        manner: Manner,
        now: Instant,
        bounds: &Bounds,
    ) -> Result<(Arc<Connection>, Value), TransportError> {
        let Job { request, home } = job;
        let may_do_without = manner == Manner::Together && !self.target.config().only_scripts;
        let link = self
            .link(now, bounds.deadline, bounds.longest_pause)
            .await?;
        if may_do_without && let Some(answer) = self.by_commands(&link, job, now, bounds).await? {
            return Ok((link, answer));
        }
        let mut answer = Value::Nil;
        if manner == Manner::Together
            && let Some(member) = BatchMember::of(request)
        {
            let joined = link.join(member, bounds.deadline, bounds.patience)?;
            answer = self.answer(&link, joined).await?;
        }
        // Nothing was sent yet, or the server has refused the batch and executed nothing of it: the request is not
        // executed twice.
        if matches!(answer, Value::Nil) {
            let cmd = script::encode(request, home, By::Digest);
            answer = self.send(&link, &cmd, manner, bounds).await?;
        }
        if let Value::ServerError(error) = &answer
            && error.kind() == Some(ServerErrorKind::NoScript)
        {
            // The scripts were flushed since the connection was made. The server has executed nothing, so it is sent
            // the text.
            let cmd = script::encode(request, home, By::Text);
            answer = self.send(&link, &cmd, manner, bounds).await?;
        }
        if may_do_without && let Request::Acquire(ask) = &**request {
            self.natives.told(&link, ask, &answer, now);
        }
        Ok((link, answer))
    }

    /// Executes a request without a script. Returns `None` if nothing was done, and the script must be run.
    async fn by_commands(
        &self,
        link: &Arc<Connection>,
        job: Job<'_>,
        now: Instant,
        bounds: &Bounds,
    ) -> Result<Option<Value>, TransportError> {
        match &**job.request {
            Request::Acquire(ask) => {
                let Some((commands, seen)) = self.natives.take(link, ask, job.home, now) else {
                    return Ok(None);
                };
                let mut answer = self.send_native(link, commands, bounds).await?;
                if let Some(check) = native::unchecked(&mut answer) {
                    *check = Box::pin(self.check(link, ask, bounds)).await?;
                }
                match self.natives.taken(link, ask, seen, &answer, timer::now) {
                    Ok(granted) => Ok(Some(granted)),
                    Err(rest) => Box::pin(self.follow_up(link, ask, rest, bounds)).await,
                }
            }
            Request::Release(ask) => {
                let Some(commands) = self.natives.end(link, ask, now) else {
                    return Ok(None);
                };
                let answer = self.send_native(link, commands, bounds).await?;
                Ok(self.natives.ended(link, answer))
            }
            _ => Ok(None),
        }
    }

    async fn send_native(
        &self,
        link: &Arc<Connection>,
        commands: Native,
        bounds: &Bounds,
    ) -> Result<Value, TransportError> {
        let answer = link.send_native(timer::now(), commands, bounds.deadline, bounds.patience)?;
        self.answer(link, answer).await
    }

    /// Asks whether the fair lock of a name that was claimed without a script has waiters.
    ///
    /// # Errors
    /// An indeterminate error: the claim may still be there.
    async fn check(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        bounds: &Bounds,
    ) -> Result<Value, TransportError> {
        let mut cmd = redis::cmd("EXISTS");
        cmd.arg(key::queue(&ask.name));
        let answer = self.send(link, &cmd, Manner::Alone, bounds).await;
        answer.map_err(|error| error.with_execution(Execution::Indeterminate))
    }

    /// Does what is left to do after the commands of an acquire that did not grant it. Returns the reply of the script,
    /// or `None` if it must be run.
    ///
    /// # Errors
    /// An indeterminate error if a claim may still be there.
    async fn follow_up(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        rest: NotGranted,
        bounds: &Bounds,
    ) -> Result<Option<Value>, TransportError> {
        let made = match rest.claim {
            Made::Unnumbered(token) => self.number(link, ask, token, bounds).await,
            Made::Nothing => Ok(None),
            Made::Untrusted => {
                let ended = self.end(link, ask, Mode::Plain, bounds).await;
                ended.map(|()| None)
            }
            Made::Behind => self.leave(link, ask, bounds).await.map(Some),
            Made::Void(reply) => {
                let ended = self.end(link, ask, Mode::Plain, bounds).await;
                ended.and_then(|()| Err(error::void(&reply)))
            }
        };
        let is_stated = matches!(made, Ok(Some(Value::Int(_))));
        if rest.is_counter_new
            && !is_stated
            && let Some(cmd) = native::keep_counter(ask)
        {
            let kept = self.send(link, &cmd, Manner::Alone, bounds).await;
            return made.and_then(|made| kept.map(|_| made));
        }
        made
    }

    /// Ends the claim of an acquire, because the fair lock of the name has waiters. Returns the reply of the script in this
    /// case.
    ///
    /// # Errors
    /// An indeterminate error: the claim may still be there.
    async fn leave(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        bounds: &Bounds,
    ) -> Result<Value, TransportError> {
        // That of the fair lock wakes the first waiter, but a user of plain locks may not use its keys.
        let ended = self.end(link, ask, Mode::Fair, bounds).await;
        if ended.is_err() {
            self.end(link, ask, Mode::Plain, bounds).await?;
        }
        Ok(Value::BulkString(b"fair".to_vec()))
    }

    /// States the token of a claim that was made when the counter was lost. Returns the reply of the script.
    ///
    /// # Errors
    /// An indeterminate error: the claim may still be there.
    async fn number(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        token: Token,
        bounds: &Bounds,
    ) -> Result<Option<Value>, TransportError> {
        let stated = i64::try_from(token.0).map_or(Value::Nil, Value::Int);
        let answer = self
            .follow(link, &native::renewal(ask, token), bounds)
            .await;
        // Any other token may be that of another hold.
        if let Ok(Value::Array(tokens)) = &answer
            && tokens.as_slice() == [stated.clone()]
        {
            return Ok(Some(stated));
        }
        self.end(link, ask, Mode::Plain, bounds).await?;
        Err(answer.map_or_else(|error| error, |answer| error::void(&answer)))
    }

    /// Ends the claim of an acquire, as one of this mode.
    ///
    /// # Errors
    /// An indeterminate error: the claim may still be there.
    async fn end(
        &self,
        link: &Arc<Connection>,
        ask: &Acquire,
        mode: Mode,
        bounds: &Bounds,
    ) -> Result<(), TransportError> {
        let release = Request::Release(Release {
            name: ask.name.clone(),
            mode,
            owner: ask.owner,
            count: 0,
        });
        self.follow(link, &release, bounds).await.map(drop)
    }

    /// Sends a request about a claim that an acquire has made.
    ///
    /// # Errors
    /// An indeterminate error: the claim may still be there.
    async fn follow(
        &self,
        link: &Arc<Connection>,
        request: &Request,
        bounds: &Bounds,
    ) -> Result<Value, TransportError> {
        let uncertain = |error: TransportError| error.with_execution(Execution::Indeterminate);
        // By its text: this is rare, and the scripts may have been lost together with the counter.
        let cmd = script::encode(request, &Home::PLAIN, By::Text);
        let answer = self.send(link, &cmd, Manner::Alone, bounds).await;
        match answer.map_err(uncertain)? {
            Value::ServerError(error) => {
                let error = error::server(&error);
                self.retire_if_useless(link, &error);
                Err(uncertain(error))
            }
            answer => Ok(answer),
        }
    }

    async fn send(
        &self,
        link: &Arc<Connection>,
        cmd: &Cmd,
        manner: Manner,
        bounds: &Bounds,
    ) -> Result<Value, TransportError> {
        let &Bounds {
            deadline, patience, ..
        } = bounds;
        let now = timer::now();
        let answer = match manner {
            Manner::Together | Manner::Alone => link.send(now, cmd, deadline, patience),
            Manner::Asking => link.send_asking(now, cmd, deadline, patience),
        };
        self.answer(link, answer?).await
    }

    /// Sends a command of the adapter itself, and waits for the reply within the bounds of a call.
    pub(crate) async fn command(&self, cmd: &Cmd) -> Result<Value, TransportError> {
        let now = timer::now();
        let patience = self.target.config().call_bound();
        let deadline = now + patience;
        let link = self.link(now, deadline, Duration::MAX).await?;
        let answer = link.send(now, cmd, deadline, patience)?;
        match self.answer(&link, answer).await? {
            Value::ServerError(error) => {
                let error = error::server(&error);
                self.retire_if_useless(&link, &error);
                Err(error)
            }
            value => Ok(value),
        }
    }

    /// Waits until replicas have the writes of this connection; the server counts only those.
    pub(crate) async fn wait(
        &self,
        link: &Arc<Connection>,
        wait: &Wait,
        deadline: Instant,
    ) -> Result<(), TransportError> {
        // The request has been executed: an error here does not undo it, even if the error of the wait is definite.
        let uncertain = |error: TransportError| error.with_execution(Execution::Indeterminate);
        let patience = self.target.config().call_bound();
        let answer = link.send(timer::now(), &wait.command(), deadline, patience);
        let answer = self.answer(link, answer.map_err(uncertain)?).await;
        wait.judge(&answer.map_err(uncertain)?)
    }

    async fn link(
        &self,
        now: Instant,
        deadline: Instant,
        longest_pause: Duration,
    ) -> Result<Arc<Connection>, TransportError> {
        match self.connection.current(now) {
            Some(link) => Ok(link),
            // Boxed, like every rare path; otherwise each call would reserve memory for it.
            None => Box::pin(self.connection.next(now, deadline, longest_pause)).await,
        }
    }

    /// Retires a connection whose error shows that it cannot be used any longer. After a failover, the same
    /// address may lead to the new primary, but only on a new connection. A server that no longer accepts the
    /// login accepts a new connection that logs in again.
    pub(crate) fn retire_if_useless(&self, link: &Arc<Connection>, error: &TransportError) {
        match error.cause {
            Cause::ReadOnly => self.connection.refuse(link),
            Cause::NoAuth => self.connection.retire(link),
            _ => {}
        }
    }

    /// Waits for a reply. A connection that broke, or on which a call got no reply in time, is retired.
    async fn answer(
        &self,
        link: &Arc<Connection>,
        answer: Answer,
    ) -> Result<Value, TransportError> {
        answer.await.inspect_err(|_| self.connection.retire(link))
    }
}
