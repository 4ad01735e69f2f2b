//! Who believed when that it holds a lock.

use std::sync::{Arc, Mutex};

use quorlock::{Guard, OwnerId, Token};

/// Who believed when that it holds one lock, on one line of moments. Two holds at one moment are a violation, whatever
/// the holders do meanwhile.
///
/// A hold is believed in from when it was won to the beginning of the last question that was answered by "held": a hold
/// that is lost stays lost, so it was held then, whatever happened before the answer came.
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

/// One hold, of which its holder asks now and then whether it is held.
#[derive(Debug)]
pub struct Holding<'a> {
    beliefs: &'a Beliefs,
    guard: &'a Guard,
    index: usize,
}

impl Beliefs {
    /// Reads what is known before a lock is asked for: the token of its hold will be larger than this one.
    pub fn asked(&self) -> Token {
        self.0.lock().unwrap().token
    }

    /// A lock was won that was asked for when the largest token was this one. One that was entered once more has the token
    /// that it had.
    pub fn won<'a>(&'a self, asked: Token, guard: &'a Guard) -> Holding<'a> {
        let (owner, token) = (guard.owner_id(), guard.fencing_token());
        let mut line = self.0.lock().unwrap();
        line.now += 1;
        let (index, now) = (line.spans.len(), line.now);
        let is_new = !line.spans.iter().any(|span| span.owner == owner);
        line.spans.push(Span {
            owner,
            from: now,
            // Not believed in yet: its lease may have ended before its thread got here.
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

    /// No two spans of different holds have a moment in common.
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
    /// Asks whether it is held.
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
