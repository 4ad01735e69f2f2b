//! The executable specification of one lock server.
//!
//! Plain Rust that applies a [`Request`] to the keys of one node at a given time of the node's own clock. The
//! in-memory node and the simulator run it; the Lua scripts of `quorlock-redis` on a real server answer alike, which
//! a conformance test checks on generated sequences.

use std::collections::BTreeMap;

use crate::fencing::{Fence, Token, mint};
use crate::message::{
    Acquire, AcquireReply, Claim, ForceRelease, ForceReleaseReply, Found, Freshness, Inspect,
    InspectReply, Mode, Release, ReleaseReply, Renew, RenewReply, Reply, Request, Retention, Ttl,
    Wake,
};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;
use crate::transport::Cause;

/// The keys of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Node {
    claims: BTreeMap<Name, Key<Held>>,
    tokens: BTreeMap<Name, Key<Token>>,
    swept_at_len: usize,
}

/// A key with its expiry, as Redis keeps it: an absolute time of the node's own clock, at which it still exists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key<V> {
    value: V,
    expires: Option<WallMillis>,
}

impl<V> Key<V> {
    fn is_there(&self, now: WallMillis) -> bool {
        self.expires.is_none_or(|expires| now <= expires)
    }

    fn ttl(&self, now: WallMillis) -> Ttl {
        self.expires.map_or(Ttl::Unbounded, |expires| {
            Ttl::Millis(expires.0.saturating_sub(now.0))
        })
    }

    fn extend(&mut self, now: WallMillis, lease_millis: u64) {
        if let Some(expires) = &mut self.expires {
            *expires = (*expires).max(now.plus(lease_millis));
        }
    }
}

/// What stands under the key of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Held {
    /// A claim of a plain lock.
    Plain {
        /// Whose.
        owner: OwnerId,
        /// At which hold count.
        count: u32,
    },
    /// A lock of another mode.
    Mode(Mode),
    /// A key that is no lock at all.
    NotALock,
}

/// What a request did.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Applied {
    /// The reply, or the error that the server raises before its first write.
    pub reply: Result<Reply, Cause>,
    /// What the node publishes.
    pub published: Option<(Name, Wake)>,
}

impl Node {
    /// A node without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Executes one request, atomically, at `now` of the node's clock.
    pub fn apply(&mut self, now: WallMillis, request: &Request) -> Applied {
        let mut published = None;
        let reply = match request {
            Request::Acquire(acquire) => self.acquire(now, acquire).map(Reply::Acquire),
            Request::Renew(renew) => Ok(Reply::Renew(self.renew(now, renew))),
            Request::Release(release) => self.release(now, release).map(|reply| {
                if reply == ReleaseReply::Freed {
                    published = Some((release.name.clone(), Wake::Unlocked));
                }
                Reply::Release(reply)
            }),
            Request::Inspect(inspect) => Ok(Reply::Inspect(self.inspect(now, inspect))),
            Request::ForceRelease(force) => self.force_release(now, force).map(|reply| {
                if reply == ForceReleaseReply::Freed {
                    published = Some((force.name.clone(), Wake::Unlocked));
                }
                Reply::ForceRelease(reply)
            }),
        };
        Applied { reply, published }
    }

    fn acquire(&mut self, now: WallMillis, ask: &Acquire) -> Result<AcquireReply, Cause> {
        let freshness = match self
            .claims
            .get_mut(&ask.name)
            .filter(|key| key.is_there(now))
        {
            None => {
                let held = Held::Plain {
                    owner: ask.owner,
                    count: ask.count,
                };
                self.put(&ask.name, held, Some(now.plus(ask.lease.millis())));
                Freshness::Anew
            }
            Some(key) => match &mut key.value {
                Held::NotALock => return Err(Cause::WrongType),
                Held::Mode(mode) => return Ok(AcquireReply::OtherMode(*mode)),
                Held::Plain { owner, count } if *owner == ask.owner => {
                    *count = ask.count;
                    key.extend(now, ask.lease.millis());
                    Freshness::AlreadyYours
                }
                Held::Plain { .. } => {
                    return Ok(AcquireReply::Refused { ttl: key.ttl(now) });
                }
            },
        };
        let stored = self.token(now, &ask.name);
        let token = match (freshness, stored, ask.fence) {
            // A resent request gets the value that it was given.
            (Freshness::AlreadyYours, Some(stored), Fence::Mint { .. }) => stored,
            _ => mint(stored, ask.fence, now),
        };
        self.store_token(now, &ask.name, token, ask.retention);
        Ok(AcquireReply::Granted { freshness, token })
    }

    fn renew(&mut self, now: WallMillis, ask: &Renew) -> Vec<RenewReply> {
        ask.claims
            .iter()
            .map(|claim| self.renew_one(now, claim, ask.retention))
            .collect()
    }

    fn renew_one(&mut self, now: WallMillis, claim: &Claim, retention: Retention) -> RenewReply {
        let Some(key) = self
            .claims
            .get_mut(&claim.name)
            .filter(|key| key.is_there(now))
        else {
            return RenewReply::NotYours;
        };
        match &mut key.value {
            Held::Plain { owner, count } if *owner == claim.owner => *count = claim.count,
            _ => return RenewReply::NotYours,
        }
        key.extend(now, claim.lease.millis());
        let stored = self.token(now, &claim.name);
        let token = stored.map_or(claim.token, |stored| stored.max(claim.token));
        self.store_token(now, &claim.name, token, retention);
        RenewReply::AlreadyYours { token }
    }

    fn release(&mut self, now: WallMillis, ask: &Release) -> Result<ReleaseReply, Cause> {
        let Some(key) = self
            .claims
            .get_mut(&ask.name)
            .filter(|key| key.is_there(now))
        else {
            return Ok(ReleaseReply::NotYours);
        };
        match &mut key.value {
            Held::NotALock => Err(Cause::WrongType),
            Held::Plain { owner, count } if *owner == ask.owner => {
                if ask.count == 0 {
                    self.claims.remove(&ask.name);
                    Ok(ReleaseReply::Freed)
                } else {
                    *count = ask.count;
                    Ok(ReleaseReply::Kept)
                }
            }
            Held::Plain { .. } | Held::Mode(_) => Ok(ReleaseReply::NotYours),
        }
    }

    fn inspect(&self, now: WallMillis, ask: &Inspect) -> InspectReply {
        let found = match self.held(now, &ask.name) {
            None => Found::Nothing,
            Some((Held::Plain { owner, count }, ttl)) => Found::Plain {
                owner: owner.to_string(),
                count: count.into(),
                ttl,
            },
            Some((Held::Mode(mode), ttl)) => Found::OtherMode { mode, ttl },
            Some((Held::NotALock, _)) => Found::NotALock,
        };
        let token = self.token(now, &ask.name);
        InspectReply { found, token }
    }

    fn force_release(
        &mut self,
        now: WallMillis,
        ask: &ForceRelease,
    ) -> Result<ForceReleaseReply, Cause> {
        match self.held(now, &ask.name) {
            None => Ok(ForceReleaseReply::WasFree),
            Some((Held::Plain { .. }, _)) => {
                self.claims.remove(&ask.name);
                Ok(ForceReleaseReply::Freed)
            }
            Some((Held::Mode(mode), _)) => Ok(ForceReleaseReply::OtherMode(mode)),
            Some((Held::NotALock, _)) => Err(Cause::WrongType),
        }
    }

    fn token(&self, now: WallMillis, name: &Name) -> Option<Token> {
        self.tokens
            .get(name)
            .filter(|key| key.is_there(now))
            .map(|key| key.value)
    }

    fn store_token(&mut self, now: WallMillis, name: &Name, token: Token, retention: Retention) {
        let expires = match retention {
            Retention::Millis(millis) => Some(now.plus(millis)),
            Retention::Forever => None,
        };
        if let Some(key) = self.tokens.get_mut(name) {
            *key = Key {
                value: token,
                expires,
            };
            return;
        }
        self.sweep(now);
        self.tokens.insert(
            name.clone(),
            Key {
                value: token,
                expires,
            },
        );
    }

    /// Forgets expired keys whenever their number has doubled, so that memory follows what is in use.
    fn sweep(&mut self, now: WallMillis) {
        let len = self.claims.len() + self.tokens.len();
        if 2 * self.swept_at_len + 1024 <= len {
            self.claims.retain(|_, key| key.is_there(now));
            self.tokens.retain(|_, key| key.is_there(now));
            self.swept_at_len = self.claims.len() + self.tokens.len();
        }
    }

    /// Puts something under the key of a name, as another program would.
    pub fn put(&mut self, name: &Name, held: Held, expires: Option<WallMillis>) {
        let key = Key {
            value: held,
            expires,
        };
        self.claims.insert(name.clone(), key);
    }

    /// Sets a token counter, as another program would.
    pub fn put_token(&mut self, name: &Name, token: Token, expires: Option<WallMillis>) {
        let key = Key {
            value: token,
            expires,
        };
        self.tokens.insert(name.clone(), key);
    }

    /// Forgets everything, as a restart without persistence or `FLUSHALL` does.
    pub fn flush(&mut self) {
        *self = Node::default();
    }

    /// What stands under a name at `now`, and what is left of it.
    #[must_use]
    pub fn held(&self, now: WallMillis, name: &Name) -> Option<(Held, Ttl)> {
        self.claims
            .get(name)
            .filter(|key| key.is_there(now))
            .map(|key| (key.value, key.ttl(now)))
    }

    /// The token stored for a name at `now`.
    #[must_use]
    pub fn stored_token(&self, now: WallMillis, name: &Name) -> Option<Token> {
        self.token(now, name)
    }

    /// Every name under which something stands at `now`, in order.
    pub fn names(&self, now: WallMillis) -> impl Iterator<Item = &Name> {
        self.claims
            .iter()
            .filter(move |(_, key)| key.is_there(now))
            .map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Lease;
    use crate::owner::ClientId;
    use std::time::Duration;

    const START: u64 = 1_700_000_000_000;

    fn at(millis: u64) -> WallMillis {
        WallMillis(START + millis)
    }

    fn name() -> Name {
        Name::new("orders/42").unwrap()
    }

    fn owner(number: u64) -> OwnerId {
        OwnerId {
            client: ClientId::from_random(1),
            number,
        }
    }

    fn lease() -> Lease {
        Lease::new(Duration::from_secs(10)).unwrap()
    }

    fn acquire(number: u64, count: u32) -> Request {
        Request::Acquire(Acquire {
            name: name(),
            owner: owner(number),
            count,
            lease: lease(),
            fence: Fence::Mint {
                floor: at(0),
                slack_millis: 15_000,
            },
            retention: Retention::Millis(86_400_000),
        })
    }

    fn renew(number: u64, token: u64) -> Request {
        Request::Renew(Renew {
            claims: vec![Claim {
                name: name(),
                owner: owner(number),
                count: 1,
                lease: lease(),
                token: Token(token),
            }],
            retention: Retention::Forever,
        })
    }

    fn release(number: u64, count: u32) -> Request {
        Request::Release(Release {
            name: name(),
            owner: owner(number),
            count,
        })
    }

    fn granted(freshness: Freshness, token: u64) -> Result<Reply, Cause> {
        let token = Token(token);
        Ok(Reply::Acquire(AcquireReply::Granted { freshness, token }))
    }

    #[test]
    fn a_free_name_is_granted_anew_with_the_floor_as_its_token() {
        let mut node = Node::new();
        let reply = node.apply(at(0), &acquire(1, 1)).reply;
        assert_eq!(reply, granted(Freshness::Anew, START));
        let held = Held::Plain {
            owner: owner(1),
            count: 1,
        };
        assert_eq!(node.held(at(0), &name()), Some((held, Ttl::Millis(10_000))));
    }

    #[test]
    fn a_request_executed_twice_changes_nothing() {
        for request in [acquire(1, 2), renew(1, 5), release(1, 1)] {
            let mut once = Node::new();
            once.apply(at(0), &acquire(1, 1));
            once.apply(at(1), &request);
            let mut twice = once.clone();
            twice.apply(at(1), &request);
            assert_eq!(once, twice);
        }
        let mut node = Node::new();
        assert_eq!(
            node.apply(at(0), &acquire(1, 1)).reply,
            granted(Freshness::Anew, START)
        );
        assert_eq!(
            node.apply(at(9), &acquire(1, 1)).reply,
            granted(Freshness::AlreadyYours, START)
        );
    }

    #[test]
    fn a_held_name_is_refused_with_its_ttl_until_it_expires() {
        let mut node = Node::new();
        node.apply(at(0), &acquire(1, 1));
        let refused = |left| {
            let ttl = Ttl::Millis(left);
            Ok(Reply::Acquire(AcquireReply::Refused { ttl }))
        };
        assert_eq!(node.apply(at(4_000), &acquire(2, 1)).reply, refused(6_000));
        assert_eq!(node.apply(at(10_000), &acquire(2, 1)).reply, refused(0));
        assert_eq!(
            node.apply(at(10_001), &acquire(2, 1)).reply,
            granted(Freshness::Anew, START + 1)
        );
    }

    #[test]
    fn a_shorter_lease_never_shortens_the_ttl() {
        let mut node = Node::new();
        node.apply(at(0), &acquire(1, 1));
        let Request::Acquire(mut again) = acquire(1, 2) else {
            unreachable!()
        };
        again.lease = Lease::new(Duration::from_secs(1)).unwrap();
        node.apply(at(0), &Request::Acquire(again));
        assert_eq!(node.held(at(0), &name()).unwrap().1, Ttl::Millis(10_000));
    }

    #[test]
    fn renewal_extends_what_is_there_and_makes_nothing() {
        let mut node = Node::new();
        let reply = |reply| Ok(Reply::Renew(vec![reply]));
        assert_eq!(
            node.apply(at(0), &renew(1, 7)).reply,
            reply(RenewReply::NotYours)
        );
        assert_eq!(node.names(at(0)).count(), 0);
        node.apply(at(0), &acquire(1, 1));
        assert_eq!(
            node.apply(at(5_000), &renew(2, 7)).reply,
            reply(RenewReply::NotYours)
        );
        let token = Token(START + 7);
        assert_eq!(
            node.apply(at(5_000), &renew(1, START + 7)).reply,
            reply(RenewReply::AlreadyYours { token })
        );
        assert_eq!(
            node.held(at(5_000), &name()).unwrap().1,
            Ttl::Millis(10_000)
        );
        assert_eq!(node.stored_token(at(5_000), &name()), Some(token));
    }

    #[test]
    fn only_the_owner_releases_and_only_the_last_release_wakes() {
        let mut node = Node::new();
        node.apply(at(0), &acquire(1, 2));
        let reply = |reply| Ok(Reply::Release(reply));
        let stranger = node.apply(at(0), &release(2, 0));
        assert_eq!(stranger.reply, reply(ReleaseReply::NotYours));
        let inner = node.apply(at(0), &release(1, 1));
        assert_eq!(inner.reply, reply(ReleaseReply::Kept));
        assert_eq!(inner.published, None);
        let outer = node.apply(at(0), &release(1, 0));
        assert_eq!(outer.reply, reply(ReleaseReply::Freed));
        assert_eq!(outer.published, Some((name(), Wake::Unlocked)));
        let again = node.apply(at(0), &release(1, 0));
        assert_eq!(again.reply, reply(ReleaseReply::NotYours));
        assert_eq!(again.published, None);
    }

    #[test]
    fn another_mode_is_named_and_another_type_is_an_error() {
        let mut node = Node::new();
        node.put(&name(), Held::Mode(Mode::Read), None);
        let reply = node.apply(at(0), &acquire(1, 1)).reply;
        assert_eq!(
            reply,
            Ok(Reply::Acquire(AcquireReply::OtherMode(Mode::Read)))
        );
        let before = node.clone();
        node.put(&name(), Held::NotALock, None);
        assert_eq!(
            node.apply(at(0), &acquire(1, 1)).reply,
            Err(Cause::WrongType)
        );
        assert_eq!(
            node.apply(at(0), &release(1, 0)).reply,
            Err(Cause::WrongType)
        );
        assert_eq!(
            node.apply(at(0), &renew(1, 1)).reply,
            Ok(Reply::Renew(vec![RenewReply::NotYours]))
        );
        node.put(&name(), Held::Mode(Mode::Read), None);
        assert_eq!(node, before);
    }

    #[test]
    fn a_claim_without_expiry_is_shown_as_such() {
        let mut node = Node::new();
        let held = Held::Plain {
            owner: owner(9),
            count: 1,
        };
        node.put(&name(), held, None);
        let ttl = Ttl::Unbounded;
        let reply = node.apply(at(0), &acquire(1, 1)).reply;
        assert_eq!(reply, Ok(Reply::Acquire(AcquireReply::Refused { ttl })));
    }

    fn inspect(node: &mut Node, millis: u64) -> InspectReply {
        let request = Request::Inspect(Inspect { name: name() });
        let before = node.clone();
        let applied = node.apply(at(millis), &request);
        assert_eq!((&before, applied.published), (&*node, None));
        match applied.reply {
            Ok(Reply::Inspect(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_look_says_what_stands_there_and_changes_nothing() {
        let mut node = Node::new();
        let nothing = InspectReply {
            found: Found::Nothing,
            token: None,
        };
        assert_eq!(inspect(&mut node, 0), nothing);
        node.apply(at(0), &acquire(1, 3));
        let held = InspectReply {
            found: Found::Plain {
                owner: owner(1).to_string(),
                count: 3,
                ttl: Ttl::Millis(6_000),
            },
            token: Some(Token(START)),
        };
        assert_eq!(inspect(&mut node, 4_000), held);
        let expired = InspectReply {
            token: Some(Token(START)),
            ..nothing
        };
        assert_eq!(inspect(&mut node, 10_001), expired);
        node.put(&name(), Held::Mode(Mode::Write), None);
        let found = Found::OtherMode {
            mode: Mode::Write,
            ttl: Ttl::Unbounded,
        };
        assert_eq!(inspect(&mut node, 0).found, found);
        node.put(&name(), Held::NotALock, None);
        assert_eq!(inspect(&mut node, 0).found, Found::NotALock);
    }

    #[test]
    fn force_ends_a_plain_lock_whoever_holds_it_and_wakes_once() {
        let mut node = Node::new();
        node.apply(at(0), &acquire(1, 2));
        let force = Request::ForceRelease(ForceRelease { name: name() });
        let reply = |reply| Ok(Reply::ForceRelease(reply));
        let freed = node.apply(at(0), &force);
        assert_eq!(freed.reply, reply(ForceReleaseReply::Freed));
        assert_eq!(freed.published, Some((name(), Wake::Unlocked)));
        let again = node.apply(at(0), &force);
        assert_eq!(again.reply, reply(ForceReleaseReply::WasFree));
        assert_eq!(again.published, None);
        // The counter stays: the next hold's token is larger.
        let next = node.apply(at(0), &acquire(2, 1)).reply;
        assert_eq!(next, granted(Freshness::Anew, START + 1));
    }

    #[test]
    fn force_ends_nothing_that_is_not_a_plain_lock() {
        let mut node = Node::new();
        let force = Request::ForceRelease(ForceRelease { name: name() });
        let other = Ok(Reply::ForceRelease(ForceReleaseReply::OtherMode(
            Mode::Read,
        )));
        for (held, reply) in [
            (Held::Mode(Mode::Read), other),
            (Held::NotALock, Err(Cause::WrongType)),
        ] {
            node.put(&name(), held, None);
            let before = node.clone();
            let applied = node.apply(at(0), &force);
            assert_eq!((applied.reply, applied.published), (reply, None));
            assert_eq!(node, before);
        }
    }

    #[test]
    fn unused_token_counters_are_forgotten() {
        let mut node = Node::new();
        for i in 0..10_000u64 {
            let name = Name::new(format!("n{i}")).unwrap();
            node.store_token(at(i * 100), &name, Token(i), Retention::Millis(1_000));
        }
        assert!(node.tokens.len() < 3_000, "{}", node.tokens.len());
    }
}
