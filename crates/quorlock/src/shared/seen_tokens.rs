//! The tokens of names that a client held lately.
//!
//! The first token of a name is chosen by the clock: the first acquire of a name states the client's clock as its floor, and the following ones,
//! for [`SPAN`], also that they have seen a token. A watched node that is the process which the client trusts has not lost its counter, and hands
//! out the next number. That needs no clock, so a server needs no script for it, and all nodes of a majority hand out the same number,
//! however they execute the request. Any other node chooses by the clock: its counters may be older than what was seen. If nodes disagree
//! nevertheless, the next acquires for [`SPAN`] are by the clock: in a majority with a store, which always chooses by the clock, each of
//! them would need a proposal.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::message::Acquire;
use quorlock_core::name::Name;
use quorlock_core::time::{Time, WallMillis};

use crate::mutex::Mutex;

/// For how long acquires follow one whose token was chosen by the clock.
const SPAN: Duration = Duration::from_secs(1);

/// The largest number of names that are remembered.
const MOST: usize = 4_096;

/// The tokens of names that a client held lately, by name.
#[derive(Debug, Default)]
pub(crate) struct SeenTokens(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    names: BTreeMap<Name, Seen>,
    /// When names that are of no use may be removed again.
    sweep_after: Time,
}

#[derive(Debug)]
struct Seen {
    token: Token,
    /// The clock by which a token was chosen last.
    clock: WallMillis,
    /// Acquires by a clock that stands still follow until then.
    until: Time,
    /// Nodes disagreed: no acquires follow until then.
    not_before: Time,
}

impl Seen {
    fn is_recent(&self, now: Time, clock: WallMillis) -> bool {
        let span = SPAN.as_millis() as u64;
        self.not_before <= now
            && now < self.until
            && self.clock <= clock
            && clock < self.clock.plus(span)
    }
}

impl SeenTokens {
    /// Returns the token that an acquire of a name states at this time.
    pub(crate) fn of(&self, name: &Name, now: Time, clock: WallMillis) -> Option<Token> {
        let remembered = self.0.lock();
        let seen = remembered.names.get(name)?;
        seen.is_recent(now, clock).then_some(seen.token)
    }

    /// Forgets all of them, because a node is another process.
    pub(crate) fn clear(&self) {
        self.0.lock().names.clear();
    }

    /// Handles that nodes have disagreed on the token of a hold whose acquire stated one that had been seen.
    pub(crate) fn handle_disagreement(&self, name: &Name, now: Time) {
        if let Some(seen) = self.0.lock().names.get_mut(name) {
            seen.not_before = now + SPAN;
        }
    }

    /// Remembers the token of a hold whose acquire stated this clock, and this token that had been seen.
    pub(crate) fn record(
        &self,
        name: &Name,
        token: Token,
        after: Option<Token>,
        now: Time,
        clock: WallMillis,
    ) {
        let mut remembered = self.0.lock();
        let by_the_clock = Seen {
            token,
            clock,
            until: now + Acquire::SEEN_WITHIN,
            not_before: now,
        };
        match remembered.names.get_mut(name) {
            Some(seen) if after.is_some() => seen.token = seen.token.max(token),
            Some(seen) => {
                *seen = Seen {
                    not_before: seen.not_before,
                    ..by_the_clock
                };
            }
            None => {
                if after.is_none() && remembered.has_room(now) {
                    remembered.names.insert(name.clone(), by_the_clock);
                }
            }
        }
    }
}

impl Remembered {
    fn has_room(&mut self, now: Time) -> bool {
        // Not each time: all names may be in use.
        if MOST <= self.names.len() && self.sweep_after <= now {
            self.sweep_after = now + SPAN;
            self.names.retain(|_, seen| now < seen.until);
        }
        self.names.len() < MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: WallMillis = WallMillis(1_795_000_000_000);

    fn name(number: usize) -> Name {
        Name::new(format!("name {number}")).unwrap()
    }

    fn at(millis: u64) -> (Time, WallMillis) {
        let span = Duration::from_millis(millis);
        (Time::ZERO + span, CLOCK.plus(millis))
    }

    #[test]
    fn acquires_follow_one_by_the_clock_for_a_second() {
        let seen = SeenTokens::default();
        let of = |millis| seen.of(&name(0), at(millis).0, at(millis).1);
        let record = |millis, token, after| {
            let (now, clock) = at(millis);
            seen.record(&name(0), Token(token), after, now, clock);
        };
        assert_eq!(of(0), None);
        record(0, 7, None);
        assert_eq!(of(999), Some(Token(7)));
        record(999, 8, of(999));
        assert_eq!(of(999), Some(Token(8)));
        assert_eq!(of(1_000), None, "the clock is next");
        record(1_000, 2_000, None);
        assert_eq!(of(1_999), Some(Token(2_000)));
        record(1_999, 12, Some(Token(11)));
        assert_eq!(of(1_999), Some(Token(2_000)), "that one was late");
    }

    #[test]
    fn acquires_are_by_the_clock_while_nodes_disagree() {
        let seen = SeenTokens::default();
        let of = |millis| seen.of(&name(0), at(millis).0, at(millis).1);
        let record = |millis, token| {
            let (now, clock) = at(millis);
            seen.record(&name(0), Token(token), of(millis), now, clock);
        };
        record(0, 7);
        assert_eq!(of(10), Some(Token(7)));
        seen.handle_disagreement(&name(0), at(10).0);
        record(20, 30);
        assert_eq!(of(20), None);
        record(1_000, 1_001);
        assert_eq!(of(1_009), None);
        assert_eq!(of(1_010), Some(Token(1_001)));
    }

    #[test]
    fn a_clock_that_goes_back_or_stands_still_ends_this() {
        let seen = SeenTokens::default();
        seen.record(&name(0), Token(7), None, Time::ZERO, CLOCK);
        assert_eq!(seen.of(&name(0), Time::ZERO, CLOCK.minus(1)), None);
        assert!(seen.of(&name(0), at(1_999).0, CLOCK).is_some());
        assert!(seen.of(&name(0), at(2_000).0, CLOCK).is_none());
    }

    #[test]
    fn names_are_forgotten_when_there_are_too_many() {
        let seen = SeenTokens::default();
        for number in 0..2 * MOST {
            let (now, clock) = at(number as u64);
            seen.record(&name(number), Token(7), None, now, clock);
        }
        let names = seen.0.lock().names.len();
        assert!((1..=MOST).contains(&names), "{names}");
        let (now, clock) = at(20_000);
        seen.record(&name(9_999), Token(7), None, now, clock);
        assert_eq!(seen.of(&name(9_999), now, clock), Some(Token(7)));
    }
}
