//! One connection to a server, and its health.

mod health;
mod login;
mod probe;
mod wire;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesOrdered, StreamExt as _};
use quorlock_core::transport::{Cause, TransportError};
use redis::{Cmd, Value};

pub(crate) use self::health::Health;
use self::health::Watched;
use self::login::Way;
pub(crate) use self::probe::{LEAST, Probes, longest_pause, patience};
use self::wire::Wire;
use crate::credentials::Login;
use crate::multiplexer::{Answer, Driver, Native};
use crate::script::batch::BatchMember;
use crate::source::{Lead, Recall, Whence};
use crate::subscription::registry::Registry;
use crate::sync::task::AbortHandle;
use crate::target::Target;
use crate::timer::{self, Instant};
use crate::{error, script};

/// The use of a connection.
pub(crate) enum Usage {
    /// A few commands, one after another.
    Questions,
    /// Calls of many callers.
    Calls {
        /// Try another connection when this one is silent for too long.
        probes: Probes,
        ended: Ended,
    },
    /// Wake-ups: the server's messages go to the registry.
    WakeUps(Arc<Registry>),
}

/// Called when a connection has ended by itself: its server closed it, or is no longer the right one.
pub(crate) type Ended = Box<dyn Fn() + Send + Sync>;

/// A connection that many calls share. Once it is replaced, only calls that still wait for a reply keep it alive.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Wire,
    driver: AbortHandle,
    /// The task that follows changes of the credentials, if they can change.
    follower: Option<AbortHandle>,
    whence: Whence,
}

impl Connection {
    /// Connects to the right server, logs in, and stays logged in. The caller bounds the time by the deadline.
    pub(crate) async fn open(
        target: &Arc<Target>,
        lead: Lead,
        usage: Usage,
        deadline: Instant,
    ) -> Result<Connection, TransportError> {
        let listens = matches!(usage, Usage::WakeUps(_));
        let (mut link, login) = Connection::connect(target, lead, usage, deadline).await?;
        if let Some(login) = login
            && target.has_changing_credentials()
        {
            let way = if listens {
                Way::Anew(link.driver.clone())
            } else {
                Way::Again(link.wire.clone())
            };
            let follower = login::follow(Arc::clone(target), login, way);
            link.follower = Some(timer::spawn(follower).abort_handle());
        }
        Ok(link)
    }

    /// Opens a connection for the commands of a check. The caller bounds the time by the deadline.
    pub(crate) async fn trial(
        target: &Target,
        deadline: Instant,
    ) -> Result<Connection, TransportError> {
        let open = |lead| Connection::connect(target, lead, Usage::Questions, deadline);
        let (link, _) = target.open(deadline, open).await?;
        Ok(link)
    }

    /// Sends a command while no call uses the connection.
    pub(crate) async fn ask(&self, target: &Target, cmd: &Cmd) -> Result<Value, TransportError> {
        self.wire.ask(target, cmd).await
    }

    /// Connects and logs in. Returns the login, if there was one.
    async fn connect(
        target: &Target,
        lead: Lead,
        usage: Usage,
        deadline: Instant,
    ) -> Result<(Connection, Option<Login>), TransportError> {
        let stream = target.stream(&lead.whence.endpoint, deadline).await?;
        let wire = Wire::new();
        let stream = Box::new(Watched::new(stream, Arc::clone(&wire.health)));
        let (registry, probes, ended) = match usage {
            Usage::Questions => (None, None, None),
            Usage::Calls { probes, ended } => (None, Some(probes), Some(ended)),
            Usage::WakeUps(registry) => (Some(registry), None, None),
        };
        let owes = wire.owes();
        let driver = timer::spawn(Carrier {
            driver: Driver::new(
                stream,
                Arc::clone(&wire.multiplexer),
                registry.clone(),
                owes,
            ),
            wire: wire.clone(),
            probes,
            ended,
            recall: lead.recall,
            _end: End {
                health: Arc::clone(&wire.health),
                registry,
            },
        });
        let link = Connection {
            wire,
            driver: driver.abort_handle(),
            follower: None,
            whence: lead.whence,
        };
        let login = login::log_in(&link.wire, target).await?;
        if let Some(question) = target.source().question() {
            // Sent on this connection, because another one to the same address may lead to another server.
            target.source().judge(&link.ask(target, &question).await?)?;
        }
        Ok((link, login))
    }

    /// Where the connection leads.
    pub(crate) fn whence(&self) -> &Whence {
        &self.whence
    }

    /// Loads the scripts, so that a call needs only one round trip.
    ///
    /// It also proves that there is a server: a suspended server, or a proxy without a server behind it, accepts
    /// connections too. Any reply is fine unless it states that the login is missing. A user who may not load scripts
    /// may still be allowed to run them, and a busy server will not be busy for ever.
    pub(crate) async fn greet(&self, target: &Target) -> Result<(), TransportError> {
        let loads: Vec<Cmd> = script::load().collect();
        let answers = loads.iter().map(|cmd| self.ask(target, cmd));
        // One after another: a server that turns clients away may answer the first one only.
        let mut answers: FuturesOrdered<_> = answers.collect();
        let mut farewell = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(Value::ServerError(refusal)) => {
                    let error = error::server(&refusal);
                    if error.cause == Cause::NoAuth || error::is_farewell(&error) {
                        return Err(error);
                    }
                    let is_unexpected = error.cause == Cause::Server;
                    farewell = farewell.or(is_unexpected.then_some(refusal));
                }
                Ok(_) => {}
                // What the server said before it ended the connection is the reason.
                Err(error) => {
                    return Err(farewell.map_or(error, |words| error::turned_away(&words)));
                }
            }
        }
        Ok(())
    }

    /// Sends a command, and waits for the reply (which may be an error reply) until the deadline. If the server is
    /// silent for `patience`, it is probed on another connection.
    ///
    /// # Errors
    /// A definite error if nothing was sent.
    pub(crate) fn send(
        &self,
        now: Instant,
        cmd: &Cmd,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        self.wire.send(now, cmd, deadline, patience)
    }

    /// Like [`Connection::send`], for the commands of a request without a script, whose replies are one array.
    ///
    /// # Errors
    /// A definite error if nothing was sent.
    pub(crate) fn send_native(
        &self,
        now: Instant,
        native: Native,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        self.wire.send_native(now, native, deadline, patience)
    }

    /// Like [`Connection::send`], directly after an `ASKING`, which makes a cluster node that is importing a slot
    /// execute the command.
    ///
    /// # Errors
    /// A definite error if nothing was sent.
    pub(crate) fn send_asking(
        &self,
        now: Instant,
        cmd: &Cmd,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        let asking = redis::cmd("ASKING");
        self.wire.send_behind(&asking, now, cmd, deadline, patience)
    }

    /// Like [`Connection::send`], but the request may be batched with others.
    ///
    /// # Errors
    /// A definite error if nothing was sent.
    pub(crate) fn join(
        &self,
        member: BatchMember,
        deadline: Instant,
        patience: Duration,
    ) -> Result<Answer, TransportError> {
        self.wire.multiplexer.join(member, deadline, patience)
    }

    /// Whether this is the health of this connection.
    pub(crate) fn has(&self, health: &Arc<Health>) -> bool {
        Arc::ptr_eq(&self.wire.health, health)
    }

    /// Ends the calls that wait for replies on this connection.
    pub(crate) fn close(&self, why: &TransportError) {
        self.wire.multiplexer.close(why);
    }

    /// Marks the connection as in use: its next replies are those to calls.
    pub(crate) fn serves(&self) {
        self.wire.health.serves();
    }

    /// Whether a call has been answered on this connection.
    pub(crate) fn has_served(&self) -> bool {
        self.wire.health.has_served()
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.wire.health.is_closed()
    }

    /// Whether every request on this connection has been answered.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.wire.health.asked() == 0
    }

    /// Whether a call may be sent on this connection: it is open, and has not been silent for as long as a call may
    /// take.
    ///
    /// A caller that gives up early drops its call, so on a connection whose packets are lost no call may ever time
    /// out. The next call detects the silence here.
    pub(crate) fn is_good(&self, now: Instant, patience: Duration) -> bool {
        !self.wire.health.is_closed() && !self.wire.health.is_silent(now, patience)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Without the abort, the driver would wait for replies of a server that never answers.
        self.driver.abort();
        if let Some(follower) = &self.follower {
            follower.abort();
        }
    }
}

/// The task of a connection: transfers bytes, and watches its health.
struct Carrier {
    driver: Driver,
    wire: Wire,
    probes: Option<Probes>,
    ended: Option<Ended>,
    /// Ends the connection when its server is no longer the right one.
    recall: Option<Recall>,
    /// Marks the end of the driver, also when it is dropped together with its runtime.
    _end: End,
}

impl Future for Carrier {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let carrier = self.get_mut();
        if let Some(recall) = &mut carrier.recall
            && let Poll::Ready(why) = recall.as_mut().poll(cx)
        {
            // Calls in flight end now. A renewal is not sent again before its call has ended, and the lease would run
            // out meanwhile.
            carrier.wire.multiplexer.close(&why);
            return carrier.end();
        }
        if Pin::new(&mut carrier.driver).poll(cx).is_ready() {
            return carrier.end();
        }
        if let Some(probes) = &mut carrier.probes {
            // A reply has come, but the next request may be lost on the network, and nothing else would notice.
            let Wire {
                multiplexer,
                health,
            } = &carrier.wire;
            if health.asked() == 0 {
                multiplexer.look(|owed| health.settle(timer::now(), owed));
            }
            probes.poll(cx, health);
        }
        Poll::Pending
    }
}

impl Carrier {
    /// The connection has ended by itself. (When the carrier is dropped, the connection is unused, or the runtime is
    /// shut down.)
    fn end(&mut self) -> Poll<()> {
        // Closed first, so that `ended` finds the connection closed.
        self.wire.health.close();
        if let Some(ended) = self.ended.take() {
            ended();
        }
        Poll::Ready(())
    }
}

/// Marks the end of a driver when it is dropped.
struct End {
    health: Arc<Health>,
    registry: Option<Arc<Registry>>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.health.close();
        if let Some(registry) = &self.registry {
            registry.nudge();
        }
    }
}

#[cfg(test)]
impl Connection {
    /// Returns a connection that sends nothing. It needs a runtime.
    pub(crate) fn idle() -> Self {
        Connection {
            wire: Wire::new(),
            driver: timer::spawn(std::future::pending::<()>()).abort_handle(),
            follower: None,
            whence: Whence {
                endpoint: crate::connect::Endpoint::Unix { path: "/".into() },
                named_by: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Wake, Waker};

    use super::*;
    use crate::multiplexer::Multiplexer;

    /// Stands for a driver on another thread, which sends a request and receives its reply as soon as it is woken.
    struct Quick {
        health: Arc<Health>,
        owed_since: AtomicU64,
    }

    impl Wake for Quick {
        fn wake(self: Arc<Self>) {
            self.owed_since
                .store(self.health.asked(), Ordering::Relaxed);
        }
    }

    /// If the reply came before it was noted as owed, it would be owed for ever, and the connection would be replaced.
    #[tokio::test]
    async fn a_request_is_owed_an_answer_before_it_can_leave() {
        let (stream, _server) = tokio::io::duplex(64);
        let multiplexer = Multiplexer::new();
        let mut driver = Driver::new(
            Box::new(stream),
            Arc::clone(&multiplexer),
            None,
            Box::new(|_| {}),
        );
        let health = Arc::new(Health::new(timer::now()));
        let quick = Arc::new(Quick {
            health: Arc::clone(&health),
            owed_since: AtomicU64::new(0),
        });
        let waker = Waker::from(Arc::clone(&quick));
        let waits = Pin::new(&mut driver).poll(&mut Context::from_waker(&waker));
        assert!(waits.is_pending());
        let mut link = Connection::idle();
        link.wire = Wire {
            multiplexer,
            health,
        };
        let (now, patience) = (timer::now(), Duration::from_millis(100));
        let answer = link.send(now, &redis::cmd("PING"), now + 20 * patience, patience);
        drop(answer.expect("it is open"));
        assert_ne!(quick.owed_since.load(Ordering::Relaxed), 0);
    }
}
