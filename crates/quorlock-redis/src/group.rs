//! A Sentinel group. Its sentinels report which server is the primary, and when another one is promoted.

pub(crate) mod answer;
mod hints;
mod sentinel;

use std::fmt;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::transport::TransportError;
use redis::{Cmd, RedisConnectionInfo, Value};
use tokio::sync::watch;

use self::answer::GroupView;
use self::hints::SentinelHints;
use self::sentinel::{Origin, Sentinel};
use crate::address::group::GroupAddress;
use crate::address::hosts::login;
use crate::config::RedisConfig;
use crate::connect::Endpoint;
use crate::error;
use crate::security::Security;
use crate::source::fixed::Fixed;
use crate::source::refusals::Refusals;
use crate::source::{
    Finding, GroupMark, Lead, Namer, Recall, SentinelFacts, Source, Surveying, Whence, Wrong,
};
use crate::sync::task::AbortHandle;
use crate::sync::{Mutex, MutexGuard};
use crate::target::Target;
use crate::timer;

/// The pause before the sentinels are queried again about a server that is not a primary. A promotion takes about this
/// long.
const AGAIN: Duration = Duration::from_millis(100);

/// The longest pause between connection attempts: a new primary is found within about this time after the sentinels name
/// it.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// The maximum number of known sentinels. A group has three or five.
const MOST_KNOWN: usize = 32;

/// The maximum number of sentinels that are subscribed to, apart from those of the address.
const MOST_HEARD: usize = 5;

/// A source that leads to the primary of a group.
///
/// Before each connection, the sentinels are queried one after another, and the first valid answer is used. Between
/// connections, their messages are hints to query them again. A connection to a server that is no longer the primary is
/// ended, because that server may still answer on it and grant locks.
pub(crate) struct Group {
    /// Name of the primary, as the sentinels know it.
    name: String,
    config: RedisConfig,
    /// Security of the connections to the sentinels.
    security: Security,
    /// Login for the sentinels.
    login: RedisConnectionInfo,
    /// The primary, according to the last valid answer.
    primary: watch::Sender<Option<Endpoint>>,
    hints: Arc<SentinelHints>,
    state: Mutex<GroupState>,
    this: Weak<Group>,
}

struct GroupState {
    /// The sentinels, in the order in which they are queried.
    sentinels: Vec<Arc<Sentinel>>,
    /// The highest configuration epoch of any answer. A sentinel that was cut off names the old primary, with a
    /// lower epoch.
    epoch: u64,
    /// The task that follows hints.
    lookout: Option<AbortHandle>,
}

impl Group {
    /// Returns the target of a transport to the primary of a group.
    pub(crate) fn target(address: GroupAddress, config: RedisConfig) -> Target {
        let login = address
            .sentinel_login
            .or_else(|| config.sentinel_login.clone())
            .unwrap_or_else(|| login(None, None));
        let group = Arc::new_cyclic(|this| Group {
            name: address.name,
            security: config.sentinel_security(address.scheme),
            // Sentinels have their own logins.
            config: RedisConfig {
                credentials: None,
                // They have no claims.
                watches_claims: false,
                ..config.clone()
            },
            login,
            primary: watch::Sender::new(None),
            hints: Arc::default(),
            state: Mutex::new(GroupState {
                sentinels: Vec::new(),
                epoch: 0,
                lookout: None,
            }),
            this: this.clone(),
        });
        let given = address.sentinels.into_iter();
        let given = given.map(|endpoint| group.sentinel(endpoint, Origin::Given));
        group.lock().sentinels = given.collect();
        let security = config.security(address.scheme);
        Target::behind(group, security, address.login, address.shown, config)
    }

    fn sentinel(&self, endpoint: Endpoint, origin: Origin) -> Arc<Sentinel> {
        let source = Arc::new(Fixed(endpoint.clone()));
        let target = Target::behind(
            source,
            self.security.clone(),
            self.login.clone(),
            endpoint.to_string(),
            self.config.clone(),
        );
        Arc::new(Sentinel::new(endpoint, origin, target))
    }

    /// Queries the sentinels in order, until one has a valid answer.
    async fn search(&self) -> Result<Whence, TransportError> {
        let sentinels = self.lock().sentinels.clone();
        let bound = self.bound(sentinels.len());
        let mut refusals = Refusals::default();
        let mut outdated: Option<(Arc<Sentinel>, GroupView)> = None;
        for sentinel in sentinels {
            match sentinel.ask(&self.name, bound).await {
                Ok(told) if self.lock().epoch <= told.epoch => {
                    return Ok(self.accept(&sentinel, told));
                }
                // This sentinel was cut off or stopped during a failover that this client has already seen.
                Ok(told) => {
                    self.move_to_back(sentinel.endpoint());
                    if outdated
                        .as_ref()
                        .is_none_or(|(_, other)| other.epoch < told.epoch)
                    {
                        outdated = Some((sentinel, told));
                    }
                }
                Err(error) => {
                    self.move_to_back(sentinel.endpoint());
                    refusals.push(sentinel.endpoint(), error);
                }
            }
        }
        match outdated {
            // All sentinels that answer have a lower epoch: the group was set up again.
            Some((sentinel, told)) => Ok(self.accept(&sentinel, told)),
            None => {
                let name = &self.name;
                let what = format!("no sentinel names a primary for {name:?}");
                Err(refusals.into_error(&what))
            }
        }
    }

    /// Bounds one query, so that several sentinels that do not answer leave time for one that does.
    fn bound(&self, sentinels: usize) -> Duration {
        let sentinels = u32::try_from(sentinels).unwrap_or(u32::MAX).max(1);
        let share = self.config.connect_timeout * 3 / 4 / sentinels;
        self.config.sentinel_timeout.min(share)
    }

    /// Accepts an answer: ends connections to other servers.
    fn accept(&self, by: &Arc<Sentinel>, told: GroupView) -> Whence {
        self.move_to_front(by.endpoint());
        let mut state = self.lock();
        state.epoch = told.epoch;
        let forgotten = state.forget(&told.others, by.endpoint());
        for endpoint in told.others {
            let is_known = state.sentinels.iter().any(|s| *s.endpoint() == endpoint);
            if !is_known && state.sentinels.len() < MOST_KNOWN {
                let learned = self.sentinel(endpoint, Origin::Learned);
                state.sentinels.push(learned);
            }
        }
        let mut heard = 0;
        for sentinel in &state.sentinels {
            if heard < MOST_HEARD || sentinel.origin() == Origin::Given {
                heard += 1;
                sentinel.listen(&self.hints);
            }
        }
        let has_ended = |task: &AbortHandle| task.is_finished();
        if state.lookout.as_ref().is_none_or(has_ended) {
            let task = follow(Arc::clone(&self.hints), self.this.clone());
            state.lookout = Some(timer::spawn(task).abort_handle());
        }
        drop(state);
        // Outside the mutex: their drop ends subscriptions, which runs other code.
        drop(forgotten);
        self.primary.send_if_modified(|primary| {
            let is_other = primary.as_ref() != Some(&told.primary);
            if is_other {
                *primary = Some(told.primary.clone());
            }
            is_other
        });
        Whence {
            endpoint: told.primary,
            named_by: Some(Namer::Sentinel(by.endpoint().clone())),
        }
    }

    /// Ready when another server is the primary.
    fn recall(&self, endpoint: Endpoint) -> Recall {
        let mut primary = self.primary.subscribe();
        Box::pin(async move {
            let is_other = |primary: &Option<Endpoint>| primary.as_ref() != Some(&endpoint);
            let other = primary.wait_for(is_other).await;
            let Ok(other) = other.map(|other| other.as_ref().map(Endpoint::to_string)) else {
                // The transport was dropped, and calls in flight are left to end.
                return std::future::pending().await;
            };
            let other = other.unwrap_or_default();
            error::closed(format!("the sentinels name {other} as the primary"))
        })
    }

    /// Queries the sentinels again after a hint.
    async fn look(&self) {
        if let Some(by) = self.hints.take_messenger() {
            // The other sentinels learn of the failover only within seconds. If they were queried now, they would
            // name the old primary.
            self.move_to_front(&by);
        }
        let deadline = timer::now() + self.config.connect_timeout;
        // If no sentinel answers, connections are kept, because they were right when they were made.
        let _ = timer::by(deadline, self.search()).await;
    }

    fn move_to_front(&self, endpoint: &Endpoint) {
        self.lock()
            .sentinels
            .sort_by_key(|s| s.endpoint() != endpoint);
    }

    fn move_to_back(&self, endpoint: &Endpoint) {
        self.lock()
            .sentinels
            .sort_by_key(|s| s.endpoint() == endpoint);
    }

    /// The mutex is held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GroupState {
    /// Removes learned sentinels that the others no longer know. Returns them.
    fn forget(&mut self, others: &[Endpoint], by: &Endpoint) -> Vec<Arc<Sentinel>> {
        let stays = |sentinel: &Arc<Sentinel>| {
            let endpoint = sentinel.endpoint();
            sentinel.origin() == Origin::Given || endpoint == by || others.contains(endpoint)
        };
        let (stay, forgotten) = self.sentinels.drain(..).partition(stays);
        self.sentinels = stay;
        forgotten
    }
}

impl Source for Group {
    fn find(&self) -> Finding<'_> {
        Box::pin(async {
            let whence = self.search().await?;
            Ok(Lead {
                recall: Some(self.recall(whence.endpoint.clone())),
                whence,
            })
        })
    }

    fn question(&self) -> Option<Cmd> {
        Some(redis::cmd("ROLE"))
    }

    fn judge(&self, answer: &Value) -> Result<(), TransportError> {
        answer::must_be_primary(answer)
    }

    fn was_wrong(&self, whence: &Whence, why: Wrong<'_>) -> Option<Duration> {
        match why {
            Wrong::Opening(error) => {
                if let Some(Namer::Sentinel(by)) = &whence.named_by {
                    // The sentinel may lie, or be cut off together with the old primary. Next time, another one is
                    // queried first.
                    self.move_to_back(by);
                }
                error.cause.may_pass().then_some(AGAIN)
            }
            Wrong::Call | Wrong::Channel => {
                // The wake-up connection may lead to the same wrong server.
                self.hints.look_again();
                None
            }
        }
    }

    fn group(&self) -> Option<GroupMark> {
        let sentinels = self.lock().sentinels.clone();
        let sentinels = sentinels.iter().map(|sentinel| sentinel.endpoint().clone());
        Some(GroupMark {
            name: self.name.clone(),
            known: sentinels.collect(),
        })
    }

    fn survey(&self) -> Surveying<'_> {
        Box::pin(async move {
            let sentinels = self.lock().sentinels.clone();
            let bound = self.config.sentinel_timeout;
            let asked = sentinels.iter().map(|sentinel| async move {
                let told = sentinel.ask(&self.name, bound).await;
                SentinelFacts {
                    address: sentinel.endpoint().to_string(),
                    quorum: told.as_ref().ok().and_then(|told| told.quorum),
                    primary: told
                        .map(|told| told.primary.to_string())
                        .map_err(|error| error.to_string()),
                }
            });
            join_all(asked).await
        })
    }

    fn rest(&self, failures: u32) -> Duration {
        timer::delay(failures).min(LONGEST_REST)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("name", &self.name)
            .field("primary", &*self.primary.borrow())
            .finish_non_exhaustive()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(lookout) = self.lock().lookout.take() {
            lookout.abort();
        }
    }
}

/// Queries the sentinels again after each hint, as long as the group exists.
async fn follow(hints: Arc<SentinelHints>, group: Weak<Group>) {
    loop {
        hints.given().await;
        let Some(group) = group.upgrade() else {
            return;
        };
        group.look().await;
    }
}
