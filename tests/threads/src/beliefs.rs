//! Records when each holder believed that it held a lock.

use std::sync::{Arc, Mutex};

use quorlock::{Guard, OwnerId, Token};

/// The periods in which holders believed that they held one lock, on one timeline. Two holds at the same moment are a
/// violation, whatever the holders do at that moment.
///
/// A hold lasts from when it was won to the beginning of the last check that returned "held". Because a lost hold stays
/// lost, the lock was held when that check began, whatever happened before it returned.
#[derive(Clone, Default, Debug)]
pub struct Beliefs(Arc<Mutex<Line>>);

#[derive(Default, Debug)]
struct Line {
    now: u64,
    spans: Vec<Span>,
    /// The largest token that was won.
    token: Token,
}

#[derive(Debug)]
struct Span {
    owner: OwnerId,
    from: u64,
    to: u64,
}

/// A hold, whose holder checks now and then whether it still holds the lock.
#[derive(Debug)]
pub struct Holding<'a> {
    beliefs: &'a Beliefs,
    guard: &'a Guard,
    index: usize,
}

impl Beliefs {
    /// Returns the largest token before a lock is requested. The token of the new hold must be larger.
    pub fn asked(&self) -> Token {
        self.0.lock().unwrap().token
    }

    /// Records a lock that was won. `asked` was the largest token when it was requested. A re-entry has the token of its
    /// hold.
    pub fn won<'a>(&'a self, asked: Token, guard: &'a Guard) -> Holding<'a> {
        let (owner, token) = (guard.owner_id(), guard.fencing_token());
        let mut line = self.0.lock().unwrap();
        line.now += 1;
        let (index, now) = (line.spans.len(), line.now);
        let is_new = !line.spans.iter().any(|span| span.owner == owner);
        line.spans.push(Span {
            owner,
            from: now,
            // The hold does not count yet, because its lease may have ended before its thread reached this point.
            to: 0,
        });
        line.token = line.token.max(token);
        drop(line);
        assert!(
            asked < token || !is_new,
            "{token:?} was won after {asked:?} had been seen"
        );
        Holding {
            beliefs: self,
            guard,
            index,
        }
    }

    /// Checks that no two spans of different holds have a moment in common.
    fn check(&self, index: usize) {
        let line = self.0.lock().unwrap();
        let this = &line.spans[index];
        let other = line.spans.iter().find(|other| {
            other.owner != this.owner && other.from <= this.to && this.from <= other.to
        });
        let both = other.map(|other| (this.owner, other.owner));
        drop(line);
        assert!(both.is_none(), "two holders at once: {both:?}");
    }
}

impl Holding<'_> {
    /// Checks whether the lock is held.
    pub fn ask(&self) -> bool {
        let asked_at = {
            let mut line = self.beliefs.0.lock().unwrap();
            line.now += 1;
            line.now
        };
        let is_held = self.guard.is_held();
        if is_held {
            self.beliefs.0.lock().unwrap().spans[self.index].to = asked_at;
            self.beliefs.check(self.index);
        }
        is_held
    }
}
