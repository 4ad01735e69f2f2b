//! Handing over: at most one hold continues another one, and no other client has the lock in between.

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{Access, Adoption, Grant, History};

/// Finds a hold that was adopted twice.
pub(super) fn adopted_twice(history: &History) -> Option<Violation> {
    let mut all = history.adoptions.iter().enumerate();
    let (again, earlier) = all.find_map(|(index, again)| {
        let mut earlier = history.adoptions.iter().take(index);
        let earlier = earlier.find(|earlier| earlier.before == again.before)?;
        Some((again, earlier))
    })?;
    let first = grants(history, earlier).next()?;
    let second = grants(history, again).next()?;
    let story = format!(
        "{} adopted at {} what {} had adopted at {}",
        second.process,
        moment(second.won),
        first.process,
        moment(first.won)
    );
    let violation = Violation::new(Property::Exclusion, second.won, history, second.name, story);
    Some(violation.by(&[first.process, second.process]))
}

/// Finds a hold between which and the one that it continues another client was granted the lock.
///
/// That grant is recognized by its token, which lies between theirs: it may be recorded later than it was made. So this is a matter
/// of fencing, whose plans demand that tokens are in order.
pub(super) fn in_between(history: &History) -> Option<Violation> {
    let mut all = history.adoptions.iter();
    all.find_map(|adoption| of_each_name(history, adoption))
}

fn of_each_name(history: &History, adoption: &Adoption) -> Option<Violation> {
    grants(history, adoption).find_map(|next| {
        let mut all = history.grants.iter();
        let before = all.find(|it| it.owner == adoption.before && it.name == next.name)?;
        let mut others = history.grants.iter();
        let other = others.find(|it| {
            let is_between = before.token < it.token && it.token < next.token;
            it.name == next.name && it.access == Access::Alone && is_between
        })?;
        let story = format!(
            "{} adopted at {} what {} had handed over, and {} won it in between, at {}",
            next.process,
            moment(next.won),
            before.process,
            other.process,
            moment(other.won)
        );
        let violation = Violation::new(Property::Fencing, next.won, history, next.name, story);
        Some(violation.by(&[before.process, other.process, next.process]))
    })
}

fn grants<'a>(history: &'a History, adoption: &Adoption) -> impl Iterator<Item = &'a Grant> {
    let owner = adoption.owner;
    history.grants.iter().filter(move |it| it.owner == owner)
}

#[cfg(test)]
mod tests {
    use quorlock::OwnerId;

    use super::*;
    use crate::samples::{granted, history};

    fn owner(number: u64) -> OwnerId {
        let client = "00000000-0000-4000-8000-000000000001";
        format!("{client}:{number}").parse().unwrap()
    }

    /// Checks holds with these tokens, each of which is of the owner with this number, and these adoptions.
    fn of(tokens: &[u64], adoptions: &[(u64, u64)]) -> Option<Violation> {
        let mut history = history(Vec::new());
        for (hold, token) in (0..).zip(tokens) {
            let won = u64::from(hold) * 10;
            let grant = granted(hold, won, won + 1, *token);
            let owner = owner(u64::from(hold));
            history.grants.push(Grant { owner, ..grant });
        }
        let adoptions = adoptions.iter().map(|(before, next)| Adoption {
            before: owner(*before),
            owner: owner(*next),
        });
        history.adoptions.extend(adoptions);
        adopted_twice(&history).or_else(|| in_between(&history))
    }

    #[test]
    fn holds_that_follow_one_another_are_fine() {
        assert_eq!(of(&[1, 2, 3], &[(0, 1), (1, 2)]), None);
        assert_eq!(of(&[1, 2, 3], &[(0, 1)]), None);
    }

    #[test]
    fn a_hold_that_is_adopted_twice_is_found() {
        let violation = of(&[1, 2, 3], &[(0, 1), (0, 2)]).unwrap();
        assert!(violation.story.contains("adopted"), "{violation}");
    }

    #[test]
    fn a_grant_in_between_is_found_in_whatever_order_it_was_recorded() {
        for tokens in [[1, 2, 3], [1, 3, 2]] {
            let next = if tokens[1] == 3 { 1 } else { 2 };
            let violation = of(&tokens, &[(0, next)]).unwrap();
            assert!(violation.story.contains("in between"), "{violation}");
        }
    }
}
