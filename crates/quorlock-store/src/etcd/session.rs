//! The connection to a member of the cluster.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Error, KvClient, WatchClient};
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use quorlock_core::transport::{Cause, TransportError};
use tokio::time::{sleep, timeout};

use super::error::Failure;
use crate::database::Phase;
use crate::links::{self, Links};
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long a member may take to take a connection and to answer its first read.
const CONNECTED: Duration = Duration::from_secs(5);

/// How often a member without a leader is asked again. An election takes a second or two by default. A transport waits for a call
/// of a store for 1 s, and is told within that time what it waits for.
const LOOKS: u32 = 8;

/// The time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// How long a member may take for one call. After that, it is taken for one that has vanished.
const LONGEST: Duration = Duration::from_secs(10);

/// A member that takes this long for a call is left by the next one, if there are others. A transport waits for a call of a store for 1 s and then
/// asks again, which must not be the member that stands still.
const SLOW: Duration = Duration::from_millis(750);

/// A connection with calls that is silent for this long is tried. Servers end those that are tried every 5 s or more often.
const PING: Duration = Duration::from_secs(6);

/// How long a server may take to answer such a trial.
const PONG: Duration = Duration::from_secs(3);

/// The one connection of a store, which carries all calls at once.
pub(super) type Link = Links<Session, 1>;

/// How a connection is made.
pub(super) struct Dial {
    pub(super) members: Vec<String>,
    pub(super) options: ConnectOptions,
    /// A key that is read to see whether a member serves calls.
    pub(super) first_read: Vec<u8>,
}

/// A connection to a member that has served a read.
pub(super) struct Session {
    kv: KvClient,
    pub(super) watch: WatchClient,
    /// After this time of a call, the next one uses another connection.
    slow: Duration,
    has_ended: AtomicBool,
}

/// Adds what a lock needs to the options of the driver.
pub(super) fn fit(options: ConnectOptions) -> ConnectOptions {
    options
        .with_connect_timeout(CONNECTED)
        // A member that is cut off from the others says so, and does not let calls wait.
        .with_require_leader(true)
        // A token ends when its member is started again. A call that is refused for it was not executed.
        .with_auto_token_refresh(true)
        .with_tcp_keepalive(Duration::from_secs(10))
        .with_keep_alive(PING, PONG)
        .with_keep_alive_while_idle(false)
}

impl links::Session for Session {
    type Target = Arc<Dial>;

    /// Connects to all members at once, and keeps the one that answers first.
    async fn open(dial: Arc<Dial>) -> Result<Session, TransportError> {
        let tries = dial.members.iter().map(|member| dial.connect(member));
        let mut tries: FuturesUnordered<_> = tries.collect();
        let mut problem: Option<TransportError> = None;
        while let Some(tried) = tries.next().await {
            let error = match tried {
                Ok(session) => return Ok(session),
                Err(error) => error,
            };
            // The members agree on their users, so no other one is waited for.
            if matches!(error.cause, Cause::NoAuth | Cause::NoPermission) {
                return Err(error);
            }
            let says_more = |before: &TransportError| weight(before.cause) < weight(error.cause);
            if problem.as_ref().is_none_or(says_more) {
                problem = Some(error);
            }
        }
        Err(problem.expect("BUG: an address has members"))
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

/// Returns whether a server is older than version 3.4, since when a client numbers its watches.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    let (major, minor) = (numbers.next(), numbers.next());
    major.zip(minor).is_some_and(|version| version < (3, 4))
}

/// Returns how much an error of a member says about the cluster.
fn weight(cause: Cause) -> u8 {
    match cause {
        Cause::Unreachable => 0,
        Cause::TimedOut => 1,
        cause if cause.may_pass() => 2,
        _ => 3,
    }
}

impl Dial {
    async fn connect(&self, member: &str) -> Result<Session, TransportError> {
        let connected = in_time(CONNECTED, self.connect_to_led(member)).await;
        connected.map_err(|failure| {
            let mut error = failure.into_error(Phase::Connect);
            error.detail = format!("{member}: {}", error.detail);
            error
        })
    }

    /// Connects, and waits for a while if the members elect a leader.
    async fn connect_to_led(&self, member: &str) -> Result<Session, Failure> {
        for _ in 0..LOOKS {
            match self.connect_once(member).await {
                Err(failure) if failure.is_of_election() => {}
                connected => return connected,
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "waits for a server, decides nothing"
            )]
            sleep(BETWEEN_LOOKS).await;
        }
        self.connect_once(member).await
    }

    async fn connect_once(&self, member: &str) -> Result<Session, Failure> {
        let options = Some(self.options.clone());
        let client = Client::connect([member], options).await?;
        let mut kv = client.kv_client();
        kv.get(&*self.first_read, None).await?;
        // A server may keep its version from this user.
        if let Ok(status) = client.maintenance_client().status().await
            && is_too_old(status.version())
        {
            return Err(Failure::Old(status.version().to_owned()));
        }
        // The calls of a server that stands still are answered when it goes on, if there is no other one to ask.
        let slow = match self.members.len() {
            1 => LONGEST,
            _ => SLOW,
        };
        Ok(Session {
            kv,
            watch: client.watch_client(),
            slow,
            has_ended: AtomicBool::new(false),
        })
    }
}

impl Session {
    /// Lets the next call make another connection.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Waits for a call, and looks whether the member is slow.
    async fn wait<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
        phase: Phase,
    ) -> Result<T, Failure> {
        let mut call = pin!(call);
        #[expect(
            clippy::disallowed_methods,
            reason = "chooses another member, decides nothing"
        )]
        let slow = pin!(sleep(self.slow));
        if let Either::Left((done, _)) = select(call.as_mut(), slow).await {
            return Ok(done?);
        }
        self.end();
        match phase {
            // It is asked of another member.
            Phase::Read => Err(Failure::Late),
            Phase::Connect | Phase::Write => in_time(LONGEST - self.slow, call).await,
        }
    }
}

/// Waits for a call, but not for ever.
#[expect(
    clippy::disallowed_methods,
    reason = "the driver has no time-outs, and no caller waits as long as that"
)]
pub(super) async fn in_time<T, E>(
    bound: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure>
where
    Failure: From<E>,
{
    match timeout(bound, call).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Failure::Late),
    }
}

/// Makes a call. It is made again where another connection may do better, and it was not executed.
pub(super) async fn call<T, F>(
    link: &Link,
    phase: Phase,
    send: impl Fn(KvClient) -> F,
) -> Result<T, TransportError>
where
    F: Future<Output = Result<T, Error>>,
{
    let session = link.session().await?;
    let failure = match session.wait(send(session.kv.clone()), phase).await {
        Ok(done) => return Ok(done),
        Err(failure) => failure,
    };
    if failure.ends_session() {
        session.end();
    }
    let may_repeat = match phase {
        Phase::Read => failure.ends_session(),
        Phase::Connect | Phase::Write => failure.may_move(),
    };
    if !may_repeat {
        return Err(failure.into_error(phase));
    }
    let session = link.session().await?;
    let done = in_time(LONGEST, send(session.kv.clone())).await;
    done.map_err(|failure| {
        if failure.ends_session() {
            session.end();
        }
        failure.into_error(phase)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_version_is_not_too_old() {
        for version in ["2.3.8", "3.3.27", "3.0"] {
            assert!(is_too_old(version), "{version}");
        }
        for version in ["3.4.23", "3.10.0", "3.6.0-rc.1", "4.0.0", "", "main"] {
            assert!(!is_too_old(version), "{version}");
        }
    }
}
