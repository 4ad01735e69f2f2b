//! Commands for sorted sets.

use crate::call::{Answer, Call, range};
use crate::definition::{Command, grow, read, write};
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::value::SortedSet;

pub(crate) const COMMANDS: &[Command] = &[
    grow("zadd", -4, add),
    read("zcard", 2, |call| {
        let set = call.collection::<SortedSet>(call.word(1))?;
        Ok(Reply::count(set.map_or(0, SortedSet::len)))
    }),
    read("zcount", 4, |call| {
        let bounds = Bounds::of(call, 2, 3)?;
        let set = call.collection::<SortedSet>(call.word(1))?;
        let scores = set.into_iter().flat_map(SortedSet::iter);
        Ok(Reply::count(
            scores.filter(|(score, _)| bounds.contain(*score)).count(),
        ))
    }),
    grow("zincrby", 4, |call| {
        let (key, by, member) = (call.word(1), score(call.word(2))?, call.word(3));
        let old = call
            .collection::<SortedSet>(key)?
            .and_then(|set| set.score(member));
        let new = sum(old, by)?;
        call.edit(key, |set: &mut SortedSet| set.set(member, new))?;
        Ok(Reply::Double(new))
    }),
    read("zrange", -4, slice),
    read("zrangebyscore", -4, slice_by_score),
    read("zrank", 3, |call| {
        let set = call.collection::<SortedSet>(call.word(1))?;
        Ok(set
            .and_then(|set| set.rank(call.word(2)))
            .map_or(Reply::Nil, Reply::count))
    }),
    write("zrem", -3, |call| {
        let members = call.words_from(2).iter();
        remove(call, |set| {
            members.filter(|member| set.remove(member)).count()
        })
    }),
    write("zremrangebyscore", 4, |call| {
        let bounds = Bounds::of(call, 2, 3)?;
        remove(call, |set| {
            let inside = set.iter().filter(|(score, _)| bounds.contain(*score));
            let inside: Vec<_> = inside.map(|(_, member)| member.clone()).collect();
            inside.iter().filter(|member| set.remove(member)).count()
        })
    }),
    read("zscore", 3, |call| {
        let set = call.collection::<SortedSet>(call.word(1))?;
        Ok(set
            .and_then(|set| set.score(call.word(2)))
            .map_or(Reply::Nil, Reply::Double))
    }),
];

fn score(text: &[u8]) -> Result<f64, Refusal> {
    number::parse_double(text).ok_or(Refusal::NOT_A_FLOAT)
}

fn sum(old: Option<f64>, by: f64) -> Result<f64, Refusal> {
    let new = old.unwrap_or(0.0) + by;
    let none = Refusal::of("ERR resulting score is not a number (NaN)");
    if new.is_nan() { Err(none) } else { Ok(new) }
}

fn remove(call: &mut Call<'_>, remove: impl FnOnce(&mut SortedSet) -> usize) -> Answer {
    let key = call.word(1);
    if call.collection::<SortedSet>(key)?.is_none() {
        return Ok(Reply::Int(0));
    }
    call.edit(key, remove).map(Reply::count)
}

/// A range of scores, with each end included or excluded.
struct Bounds {
    least: (f64, Edge),
    most: (f64, Edge),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Included,
    Excluded,
}

impl Bounds {
    fn of(call: &Call<'_>, least: usize, most: usize) -> Result<Self, Refusal> {
        let bound = |at: usize| {
            let (text, edge) = match call.word(at).strip_prefix(b"(") {
                Some(text) => (text, Edge::Excluded),
                None => (call.word(at), Edge::Included),
            };
            let none = Refusal::of("ERR min or max is not a float");
            Ok((number::parse_double(text).ok_or(none)?, edge))
        };
        Ok(Bounds {
            least: bound(least)?,
            most: bound(most)?,
        })
    }

    fn contain(&self, score: f64) -> bool {
        let above = match self.least {
            (least, Edge::Included) => least <= score,
            (least, Edge::Excluded) => least < score,
        };
        let below = match self.most {
            (most, Edge::Included) => score <= most,
            (most, Edge::Excluded) => score < most,
        };
        above && below
    }
}

/// Returns members, with their scores if requested.
fn members<'a>(found: impl Iterator<Item = &'a (f64, Vec<u8>)>, with_scores: bool) -> Reply {
    let mut replies = Vec::new();
    for (score, member) in found {
        replies.push(Reply::bulk(member));
        if with_scores {
            replies.push(Reply::Bulk(number::double(*score).into_bytes()));
        }
    }
    Reply::Array(replies)
}

/// Executes `ZRANGE` by rank.
fn slice(call: &mut Call<'_>) -> Answer {
    let with_scores = match call.words_from(4) {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"withscores") => true,
        _ => return Err(Refusal::SYNTAX),
    };
    let (from, to) = (call.int(2)?, call.int(3)?);
    let Some(set) = call.collection::<SortedSet>(call.word(1))? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let range = range(from, to, set.len());
    Ok(members(
        set.iter().skip(range.start).take(range.len()),
        with_scores,
    ))
}

fn slice_by_score(call: &mut Call<'_>) -> Answer {
    let bounds = Bounds::of(call, 2, 3)?;
    let (mut with_scores, mut offset, mut count) = (false, 0, usize::MAX);
    let mut at = 4;
    while at < call.words.len() {
        if call.word_is(at, "withscores") {
            with_scores = true;
            at += 1;
        } else if call.word_is(at, "limit") && at + 2 < call.words.len() {
            offset = usize::try_from(call.int(at + 1)?).unwrap_or(usize::MAX);
            count = usize::try_from(call.int(at + 2)?).unwrap_or(usize::MAX);
            at += 3;
        } else {
            return Err(Refusal::SYNTAX);
        }
    }
    let set = call.collection::<SortedSet>(call.word(1))?;
    let found = set.into_iter().flat_map(SortedSet::iter);
    let found = found.filter(|(score, _)| bounds.contain(*score));
    Ok(members(found.skip(offset).take(count), with_scores))
}

/// The options of `ZADD`, which precede the scores.
#[derive(Default)]
struct ZaddOptions {
    only_new: bool,
    only_there: bool,
    only_greater: bool,
    only_less: bool,
    counts_changes: bool,
    adds_up: bool,
}

impl ZaddOptions {
    /// Parses the options. Also returns the index of the first score.
    fn of(call: &Call<'_>) -> Result<(Self, usize), Refusal> {
        let mut options = ZaddOptions::default();
        let mut at = 2;
        loop {
            let option = match call.word(at).to_ascii_lowercase().as_slice() {
                b"nx" => &mut options.only_new,
                b"xx" => &mut options.only_there,
                b"gt" => &mut options.only_greater,
                b"lt" => &mut options.only_less,
                b"ch" => &mut options.counts_changes,
                b"incr" => &mut options.adds_up,
                _ => break,
            };
            *option = true;
            at += 1;
        }
        let pairs = call.words.len() - at.min(call.words.len());
        if pairs == 0 || !pairs.is_multiple_of(2) {
            return Err(Refusal::SYNTAX);
        }
        if options.only_new && options.only_there {
            return Err(Refusal::of(
                "ERR XX and NX options at the same time are not compatible",
            ));
        }
        if [options.only_greater, options.only_less, options.only_new]
            .iter()
            .filter(|x| **x)
            .count()
            > 1
        {
            return Err(Refusal::of(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if options.adds_up && pairs != 2 {
            return Err(Refusal::of(
                "ERR INCR option supports a single increment-element pair",
            ));
        }
        Ok((options, at))
    }

    /// Returns the new score of a member; `None` if the options prevent a change.
    fn score(&self, old: Option<f64>, given: f64) -> Result<Option<f64>, Refusal> {
        let new = if self.adds_up {
            sum(old, given)?
        } else {
            given
        };
        let is_wanted = match old {
            Some(old) => {
                !(self.only_new || self.only_greater && new <= old || self.only_less && old <= new)
            }
            None => !self.only_there,
        };
        Ok(is_wanted.then_some(new))
    }
}

fn add(call: &mut Call<'_>) -> Answer {
    let (options, at) = ZaddOptions::of(call)?;
    let key = call.word(1);
    let mut pairs = Vec::new();
    for pair in call.words_from(at).chunks_exact(2) {
        if let [text, member] = pair {
            pairs.push((score(text)?, member));
        }
    }
    let set = call.collection::<SortedSet>(key)?;
    if let (true, [(given, member)]) = (options.adds_up, pairs.as_slice()) {
        let new = options.score(set.and_then(|set| set.score(member)), *given)?;
        let Some(new) = new else {
            return Ok(Reply::Nil);
        };
        call.edit(key, |set: &mut SortedSet| set.set(member, new))?;
        return Ok(Reply::Double(new));
    }
    let (mut added, mut changed) = (0, 0);
    call.edit(key, |set: &mut SortedSet| {
        for (given, member) in pairs {
            let old = set.score(member);
            let Ok(Some(new)) = options.score(old, given) else {
                continue;
            };
            added += usize::from(old.is_none());
            changed += usize::from(old.is_some_and(|old| old != new));
            set.set(member, new);
        }
    })?;
    Ok(Reply::count(if options.counts_changes {
        added + changed
    } else {
        added
    }))
}
