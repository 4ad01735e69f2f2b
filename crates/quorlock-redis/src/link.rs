//! One connection to a server, and what is known about its health.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::transport::{Cause, Execution, TransportError};
use redis::{Cmd, ServerError, Value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;

use crate::connect::ByteStream;
use crate::multiplexer::{Answer, Driver, Multiplexer};
use crate::subscription::Register;
use crate::target::Target;
use crate::timer::{self, Instant};
use crate::{error, script};

/// A connection that many calls share. Calls that still wait for a reply keep it alive, and nothing else does once it
/// is replaced.
#[derive(Debug)]
pub(crate) struct Link {
    multiplexer: Arc<Multiplexer>,
    health: Arc<Health>,
    driver: AbortHandle,
}

impl Link {
    /// Connects and logs in. What the server publishes goes to the register. The caller bounds it in time.
    pub(crate) async fn open(
        target: &Target,
        register: Option<Arc<Register>>,
    ) -> Result<Link, TransportError> {
        let stream = target.stream().await?;
        let health = Arc::new(Health::new(timer::now()));
        let stream = Box::new(Watched {
            stream,
            health: Arc::clone(&health),
        });
        let multiplexer = Multiplexer::new();
        let driver = Driver::new(stream, Arc::clone(&multiplexer), register.clone());
        let end = End {
            health: Arc::clone(&health),
            register,
        };
        let driver = timer::spawn(async move {
            // Says so when the driver has ended, or was dropped together with its runtime.
            let _end = end;
            driver.await;
        });
        let link = Link {
            multiplexer,
            health,
            driver: driver.abort_handle(),
        };
        link.log_in(target).await?;
        Ok(link)
    }

    async fn log_in(&self, target: &Target) -> Result<(), TransportError> {
        let login = target.login();
        if let Some(password) = login.password() {
            let mut answer = self.ask(target, &auth(login.username(), password)).await?;
            if let Value::ServerError(refusal) = &answer
                && knows_no_users(refusal)
            {
                answer = self.ask(target, &auth(None, password)).await?;
            }
            if let Value::ServerError(refusal) = answer {
                return Err(error::not_logged_in(&refusal));
            }
        }
        if login.db() != 0 {
            let mut select = redis::cmd("SELECT");
            select.arg(login.db());
            if let Value::ServerError(refusal) = self.ask(target, &select).await? {
                return Err(error::no_such_database(&refusal));
            }
        }
        Ok(())
    }

    /// Loads the scripts, so that calls find them and are done with one message.
    ///
    /// It also proves that a server is there: one that is stopped, or a proxy without a server behind it, accepts
    /// connections too. Any answer will do, except that the login is missing: a user who may not load scripts may be
    /// allowed to run them, and a busy server will not be busy for ever.
    pub(crate) async fn greet(&self, target: &Target) -> Result<(), TransportError> {
        let loads: Vec<Cmd> = script::load().collect();
        let answers = join_all(loads.iter().map(|cmd| self.ask(target, cmd)));
        for answer in answers.await {
            if let Value::ServerError(refusal) = answer? {
                let refusal = error::server(&refusal);
                if refusal.cause == Cause::NoAuth {
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }

    /// Sends a command while the connection is being made: an error says that there is none.
    async fn ask(&self, target: &Target, cmd: &Cmd) -> Result<Value, TransportError> {
        let now = timer::now();
        let deadline = now + target.config().connect_timeout;
        let answer = self.send(now, cmd, deadline)?;
        answer.await.map_err(|error| match error.cause {
            Cause::TimedOut => error::no_handshake(),
            Cause::Closed => error::unreachable(error.detail),
            _ => TransportError {
                execution: Execution::Definite,
                ..error
            },
        })
    }

    /// Sends a command, whose reply (which may be an error reply) is waited for until the deadline.
    ///
    /// # Errors
    /// A definite one when nothing was sent.
    pub(crate) fn send(
        &self,
        now: Instant,
        cmd: &Cmd,
        deadline: Instant,
    ) -> Result<Answer, TransportError> {
        self.health.owes_an_answer(now);
        self.multiplexer.send(cmd, deadline)
    }

    /// Whether it has come to its end.
    pub(crate) fn is_closed(&self) -> bool {
        self.health.is_closed()
    }

    /// Whether a call may be sent over it: it is open, and has not been silent for as long as a call may take.
    ///
    /// A caller that gives up early drops its call, so that no call ever times out on a connection that a network
    /// swallowed. The next call finds it out here.
    pub(crate) fn is_good(&self, now: Instant, patience: Duration) -> bool {
        !self.health.is_closed() && !self.health.is_silent(now, patience)
    }
}

fn auth(user: Option<&str>, password: &str) -> Cmd {
    let mut cmd = redis::cmd("AUTH");
    if let Some(user) = user {
        cmd.arg(user);
    }
    cmd.arg(password);
    cmd
}

/// Before Redis 6 there was a password and nothing else.
fn knows_no_users(refusal: &ServerError) -> bool {
    let detail = refusal.details().unwrap_or_default();
    detail.contains("wrong number of arguments for 'auth' command")
}

impl Drop for Link {
    fn drop(&mut self) {
        // The driver would wait for the replies of a server that never answers.
        self.driver.abort();
    }
}

/// Whether a connection is open, and since when it owes an answer.
#[derive(Debug)]
struct Health {
    opened: Instant,
    closed: AtomicBool,
    /// When a request went out for the first time since the server was last heard, in milliseconds after `opened`
    /// and one more; 0 when nothing is owed.
    asked: AtomicU64,
}

impl Health {
    fn new(opened: Instant) -> Self {
        Health {
            opened,
            closed: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.opened).as_millis()).unwrap_or(u64::MAX)
    }

    fn owes_an_answer(&self, now: Instant) {
        if self.asked.load(Ordering::Relaxed) == 0 {
            let asked = self.millis(now).saturating_add(1);
            self.asked.store(asked, Ordering::Relaxed);
        }
    }

    fn heard(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }

    fn is_silent(&self, now: Instant, patience: Duration) -> bool {
        let asked = self.asked.load(Ordering::Relaxed);
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        asked != 0 && asked.saturating_add(patience) <= self.millis(now)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// Notes the end of a driver.
struct End {
    health: Arc<Health>,
    register: Option<Arc<Register>>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.health.closed.store(true, Ordering::Release);
        if let Some(register) = &self.register {
            register.nudge();
        }
    }
}

/// A stream that notes when the server is heard.
struct Watched {
    stream: Box<dyn ByteStream>,
    health: Arc<Health>,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.health.heard();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_silent_when_nothing_is_heard_for_long_after_a_request() {
        let start = timer::now();
        let at = |millis| start + Duration::from_millis(millis);
        let patience = Duration::from_millis(100);
        let health = Health::new(start);
        assert!(!health.is_silent(at(10_000), patience), "nothing was asked");
        health.owes_an_answer(at(10_000));
        health.owes_an_answer(at(10_090));
        assert!(!health.is_silent(at(10_100), patience));
        assert!(health.is_silent(at(10_101), patience));
        health.heard();
        assert!(!health.is_silent(at(20_000), patience));
    }
}
