//! `quorlock run`: runs a command while a lock is held.
//!
//! There are four processes. The **wrapper** has the client, acquires the lock and renews it. It starts the
//! **guardian**, which receives the time until which the lock is valid whenever that time moves, and ends the command's
//! process group by then. The guardian does so even if the wrapper is killed or stopped. Suppose A holds the lock and
//! A's machine swaps for a minute: the server gives the lock to B, and A's command must not continue to work. The
//! guardian starts the **command** through `launch`, which ties it to the life of the guardian and becomes the
//! command. The **sentry** kills the group if the guardian is killed or late, also when the wrapper is gone as well.
//!
//! What they decide is in `guarding`, `holding` and `sentry`, with time as an input, so that `simulated` runs all of
//! them against a majority of nodes while they are stopped and killed.

pub(crate) mod guarded;
pub(crate) mod guardian;
pub(crate) mod launch;
pub(crate) mod sentry;

pub(crate) mod guarding;
pub(crate) mod held;
pub(crate) mod holder;
pub(crate) mod holding;
pub(crate) mod notify;
pub(crate) mod signals;
pub(crate) mod stranger;
pub(crate) mod tenure;
pub(crate) mod timing;
mod wanted;

mod alarm;
mod clock;
mod link;
#[cfg(test)]
mod simulated;
mod terminal;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use clap::Args;
use quorlock::{AcquireError, Guard, Locks, ReleaseError, RetryPolicy, Semaphore};
use rustix::process::Signal;

use self::guarded::Guarded;
use self::held::{End, GroupThen, Work};
use self::holding::HoldThen;
use self::notify::Notify;
use self::signals::{ENDING, Signals};
use self::stranger::refuse_strangers;
use self::tenure::Tenure as _;
use self::timing::Timing;
use self::wanted::{Wanted, waits_for_trust};
use crate::connect::{Patience, connect};
use crate::failure::{Code, Failure};
use crate::messages::Voice;
use crate::settings::{Reach, Settings};
use crate::span::Span;

/// Run a command while a lock is held, and end it in time if the lock is lost.
///
/// The command gets these environment variables: QUORLOCK_NAME, QUORLOCK_FENCING_TOKEN (a number that grows with every
/// hold: pass it to the store that the command writes to), QUORLOCK_OWNER, QUORLOCK_DEADLINE (the end of the validity
/// without renewals, as of the start of the command, in seconds since 1970) and QUORLOCK_FD (a file descriptor that
/// reaches its end when the lock is lost). For names of --also: QUORLOCK_NAME_1, QUORLOCK_FENCING_TOKEN_1 and so on.
/// With --permits, QUORLOCK_NAME is the name of the permit, and the token counts the holds of this permit.
#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    reach: Reach,
    /// Do not wait: exit with 75 if others hold the lock. Servers of a majority that are new or were restarted are watched
    /// first, for one longest lease.
    #[arg(short, long, conflicts_with = "wait")]
    no_wait: bool,
    /// Wait at most this long for the lock, also while servers are down, then exit with 75, or with 69 if no majority
    /// answers. Without -n or -w, wait until the lock is free, but at most 30 s for a majority to answer.
    #[arg(short, long, value_name = "SPAN")]
    wait: Option<Span>,
    /// Lease of the lock, which is renewed every third of it. If this machine fails, the lock is free after this time
    /// [default: 30s].
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    /// Hold the lock at most this long, and end the command before that if it still runs.
    #[arg(long, value_name = "SPAN")]
    max_hold: Option<Span>,
    /// Lock as a reader. Readers share the lock, and exclude writers.
    #[arg(long, conflicts_with_all = ["write", "fair"])]
    read: bool,
    /// Lock as a writer, which excludes readers and other writers.
    #[arg(long, conflicts_with = "fair")]
    write: bool,
    /// Serve waiters in the order in which they arrive. Not on a majority of servers.
    #[arg(long)]
    fair: bool,
    /// Let up to this many runs of the name hold it at once. Each has one of N permits, which are locks for `inspect` and
    /// `force-release`: those of printers are {printers}:permit:0, {printers}:permit:1 and so on. A run with a smaller
    /// number uses only the first of them, and other runs keep what they hold.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=Semaphore::MOST_PERMITS as i64),
        conflicts_with_all = ["read", "write", "fair", "also"]
    )]
    permits: Option<u16>,
    /// Lock this name as well: all names are locked, or none. May be given several times.
    #[arg(long, value_name = "NAME")]
    also: Vec<String>,
    /// Do not release the lock if the command exits with 0, but let its lease end. Hosts that start the same job a
    /// little later then find the lock held.
    #[arg(long)]
    keep: bool,
    /// Exit with this code instead of 75 if others hold the lock.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = 75)]
    conflict_exit_code: u8,
    /// Name to lock.
    name: String,
    #[command(flatten)]
    guarded: Guarded,
}

/// The result of one try.
type Tried = Result<Option<Guard>, AcquireError>;

/// The bounds of the time after which a client asks servers in quarantine again. Another client that has watched them for longer may
/// end the quarantine early.
const SHORTEST_POLL: Duration = Duration::from_millis(10);
const POLL: Duration = Duration::from_secs(1);

/// How long releases in the background may take when servers do not answer.
const CLOSING: Duration = Duration::from_secs(2);

impl Run {
    pub(crate) fn run(&self) -> Code {
        let voice = self.guarded.voice();
        let ended = guarded::block_on(self.hold(voice));
        match ended {
            Ok(code) => code,
            Err(failure) => {
                voice.failure(&failure);
                match failure.code {
                    Code::CONTENDED => Code(self.conflict_exit_code),
                    code => code,
                }
            }
        }
    }

    async fn hold(&self, voice: Voice) -> Result<Code, Failure> {
        let mut settings = self.reach.settings()?;
        let timing = self.guarded.timing(self.lease, &mut settings)?;
        if let Some(max) = self.max_hold {
            settings.builder = settings.builder.max_hold(max.0);
        }
        let mut signals = Signals::catch(&ENDING)
            .map_err(|error| Failure::system("signals cannot be caught", error))?;
        Notify::of_environment().tell(&format!("STATUS=waiting for the lock {}", self.name));

        let began = now();
        let connected = unless_told(&mut signals, self.connect(&settings, began)).await;
        let locks = match connected {
            Ok(locks) => locks?,
            Err(signal) => return Ok(Code::of_signal(signal.as_raw())),
        };
        let acquired = unless_told(&mut signals, self.acquire(&locks, began)).await;
        let code = match acquired {
            Ok(Ok(guard)) => {
                let ended = self.work(&guard, &timing, &mut signals, voice).await;
                self.let_go(guard, ended, &timing, voice).await
            }
            Ok(Err(failure)) => Err(failure),
            Err(signal) => Ok(Code::of_signal(signal.as_raw())),
        };
        // Grants of a lost round, and releases that slower servers have not received so far, are handled in the
        // background, which ends with this process.
        close(&locks).await;
        code
    }

    /// Returns a client.
    async fn connect(&self, settings: &Settings, began: Instant) -> Result<Locks, Failure> {
        let bound = match self.wait {
            Some(wait) => wait.0,
            None => RetryPolicy::default().without_quorum,
        };
        let patience = match (self.no_wait, began.checked_add(bound)) {
            (false, Some(until)) => Patience::Until(until),
            _ => Patience::None,
        };
        connect(settings, patience, self.guarded.voice()).await
    }

    /// Acquires the lock.
    async fn acquire(&self, locks: &Locks, began: Instant) -> Result<Guard, Failure> {
        let wanted = self.wanted(locks);
        let mut tried = wanted.try_acquire().await;
        if self.no_wait {
            tried = self.try_until_trusted(&wanted, tried).await;
        }
        // Servers that do not answer now may answer during the wait.
        match tried {
            Ok(Some(guard)) => return Ok(guard),
            // A key that is no lock is in the way of one permit alone.
            Ok(None) if self.permits.is_some() => {}
            Ok(None) => refuse_strangers(locks, self.names()).await?,
            Err(error) if self.no_wait => return Err(error.into()),
            Err(_) => {}
        }
        if self.no_wait {
            let holders = holder::of(locks, self.names()).await;
            return Err(Failure::new(
                Code::CONTENDED,
                wanted.refusal(&self.name) + &holders,
            ));
        }
        let name = self.name.to_string();
        self.guarded
            .voice()
            .event("waiting", &[("name", name.into())]);
        let left = self.wait.map(|wait| wait.0.saturating_sub(began.elapsed()));
        Ok(wanted.acquire(left).await?)
    }

    /// Tries again until servers that are in quarantine count, if these are all that is missing: `--no-wait` is about others that
    /// hold the lock.
    ///
    /// Each run is a new client, and servers are trusted that one client has watched for a longest lease. Of runs that give up at
    /// once, none watches them for that long, and after a restart of the servers none would ever get the lock.
    async fn try_until_trusted(&self, wanted: &Wanted, mut tried: Tried) -> Tried {
        let mut until = None;
        loop {
            let left = match &tried {
                Err(error) => waits_for_trust(error),
                Ok(_) => None,
            };
            let Some(left) = left else { return tried };
            let is_first = until.is_none();
            // A server that is restarted in the meantime is watched again. That is waited for once.
            let until = *until.get_or_insert_with(|| now() + 2 * left + POLL);
            if until <= now() {
                return tried;
            }
            if is_first {
                let seconds = left.as_secs_f64().ceil();
                let text = format!(
                    "{}: the servers are new or were restarted, and are watched first, for about {seconds} s",
                    self.name
                );
                let fields = [
                    ("name", self.name.to_string().into()),
                    ("seconds", seconds.into()),
                ];
                self.guarded.voice().warn("watching", &text, &fields);
            }
            sleep(left.clamp(SHORTEST_POLL, POLL)).await;
            tried = wanted.try_acquire().await;
        }
    }

    /// Runs the command while the lock is held.
    async fn work(
        &self,
        guard: &Guard,
        timing: &Timing,
        signals: &mut Signals,
        voice: Voice,
    ) -> Result<End, Failure> {
        match unless_told(signals, lasting(guard, timing)).await {
            Ok(lasts) => lasts?,
            Err(signal) => {
                return Ok(End {
                    code: Code::of_signal(signal.as_raw()),
                    hold: HoldThen::Held,
                    group: GroupThen::Gone,
                });
            }
        }
        let name = self.held(guard);
        let token = guard.fencing_token_of(&name);
        let fields = [
            ("name", name.into()),
            ("token", token.map_or(0, |token| token.0).into()),
            ("owner", guard.owner_id().to_string().into()),
        ];
        voice.event("acquired", &fields);
        let notify = Notify::of_environment();
        notify.tell(&format!("READY=1\nSTATUS=holds the lock {}", self.name));
        let work = Work {
            command: &self.guarded.command,
            variables: self.variables(guard),
            timing: *timing,
            on_loss: self.guarded.on_loss,
            voice,
        };
        let ended = held::run(&work, guard, signals).await;
        notify.tell("STOPPING=1");
        ended
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        [&self.name].into_iter().chain(&self.also)
    }

    /// Returns the name that is held: that of the lock, or of the permit.
    fn held(&self, guard: &Guard) -> String {
        let permit = self.permits.and_then(|_| guard.names().next());
        permit.map_or_else(|| self.name.clone(), ToString::to_string)
    }

    fn wanted(&self, locks: &Locks) -> Wanted {
        if let Some(permits) = self.permits {
            return Wanted::Permit(locks.semaphore(&self.name, permits.into()));
        }
        let mut parts = self
            .names()
            .map(|name| match (self.read, self.write, self.fair) {
                (true, _, _) => locks.read(name),
                (_, true, _) => locks.write(name),
                (_, _, true) => locks.fair(name),
                _ => locks.lock(name),
            });
        let first = parts.next().expect("BUG: a run has a name");
        Wanted::Lock(first.and(parts))
    }

    /// Returns the variables in the environment of the command.
    fn variables(&self, guard: &Guard) -> Vec<(String, String)> {
        let token = |name: &str| {
            let token = guard.fencing_token_of(name);
            token.map_or_else(String::new, |token| token.0.to_string())
        };
        let name = self.held(guard);
        let mut variables = vec![
            ("QUORLOCK_FENCING_TOKEN".into(), token(&name)),
            ("QUORLOCK_NAME".into(), name),
            ("QUORLOCK_OWNER".into(), guard.owner_id().to_string()),
            ("QUORLOCK_DEADLINE".into(), guard.deadline().to_string()),
        ];
        for (number, name) in (1..).zip(&self.also) {
            variables.push((format!("QUORLOCK_NAME_{number}"), name.clone()));
            variables.push((format!("QUORLOCK_FENCING_TOKEN_{number}"), token(name)));
        }
        variables
    }

    /// Releases the lock, and reports how the run ended.
    async fn let_go(
        &self,
        guard: Guard,
        ended: Result<End, Failure>,
        timing: &Timing,
        voice: Voice,
    ) -> Result<Code, Failure> {
        let stays = match &ended {
            Ok(end) if end.group == GroupThen::Survives => true,
            Ok(end) => self.keep && end.hold == HoldThen::Held && end.code == Code::SUCCESS,
            Err(_) => false,
        };
        let mut was_held = true;
        let mut is_released = true;
        if stays {
            // The lease counts from now, not from the last renewal.
            was_held = guard.extend(timing.lease).await.is_ok() || guard.is_held();
            guard.leak();
        } else {
            match guard.release().await {
                Ok(()) => voice.event("released", &[]),
                Err(ReleaseError::NotHeld { .. }) => was_held = false,
                Err(error) => {
                    is_released = false;
                    let text = format!("{error}; the lease ends it at the latest");
                    voice.warn("unconfirmed", &text, &[]);
                }
            }
        }
        let end = ended?;
        if end.hold == HoldThen::Lost {
            return Ok(Code::LOST);
        }
        if !was_held {
            let text =
                "the lock was lost while the command ran: others may have held it in the meantime";
            voice.warn("lost", text, &[]);
            return Ok(Code::LOST);
        }
        Ok(match is_released {
            true => end.code,
            false => end.code.of_unreleased(),
        })
    }
}

/// Extends the lock if too little of its validity is left for the command to start.
async fn lasting(guard: &Guard, timing: &Timing) -> Result<(), Failure> {
    if guard.validity() < timing.needed() {
        let _ = guard.extend(timing.lease).await;
    }
    let validity = guard.validity();
    if timing.needed() <= validity {
        return Ok(());
    }
    Err(Failure::new(
        Code::UNAVAILABLE,
        format!(
            "the servers are so slow that only {validity:?} of a lease of {:?} are left, but the command needs {:?} to start (--min-validity plus --grace): set a longer --lease",
            timing.lease,
            timing.needed()
        ),
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command runs on the real clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command runs on the real clock"
)]
async fn sleep(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Runs the work until it is done or a signal arrives that ends a program.
pub(crate) async fn unless_told<F: Future>(
    signals: &mut Signals,
    work: F,
) -> Result<F::Output, Signal> {
    let mut work = pin!(work);
    poll_fn(|cx| match signals.poll(cx) {
        Poll::Ready(signal) => Poll::Ready(Err(signal)),
        Poll::Pending => work.as_mut().poll(cx).map(Ok),
    })
    .await
}

/// Lets the client finish its background work, within a bound.
#[expect(
    clippy::disallowed_methods,
    reason = "the command runs on the real clock"
)]
pub(crate) async fn close(locks: &Locks) {
    let _ = tokio::time::timeout(CLOSING, locks.close()).await;
}
