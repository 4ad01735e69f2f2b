//! Read-write locks: a writer is alone, and a client that has left keeps no other client out.

use std::collections::BTreeMap;

use quorlock::OwnerId;

use super::{Property, Violation, moment};
use quorlock_sim_world::history::{Access, Answered, History, LockAnswer, NameId, Section};

pub(super) fn check(history: &History) -> Option<Violation> {
    let violations = [beside_a_writer(history), kept_out_by_nobody(history)];
    violations.into_iter().flatten().min_by_key(|v| v.at)
}

/// Finds a client that believes in a read or write hold while another client believes in a write hold. An owner that
/// writes may also read.
pub(super) fn beside_a_writer(history: &History) -> Option<Violation> {
    let mut stays: Vec<(&Section, u64)> = history
        .sections
        .iter()
        .filter(|section| section.access != Access::Alone)
        .filter_map(|section| Some((section, section.believed?)))
        .collect();
    stays.sort_by_key(|(section, _)| section.won);
    // Sections of any name that may still last. The first violation is reported, whatever its name.
    let mut inside: Vec<(&Section, u64)> = Vec::new();
    for (section, believed) in stays {
        inside.retain(|(_, until)| section.won < *until);
        let mut others = inside.iter().filter(|(o, _)| o.name == section.name);
        let in_the_way = others.find(|(other, _)| !together(other, section));
        if let Some((other, until)) = in_the_way {
            let story = format!(
                "{} won its lock at {} to {} and still found it held at {}; {} won it at {} to {}",
                other.process,
                moment(other.won),
                purpose(other),
                moment(*until),
                section.process,
                moment(section.won),
                purpose(section),
            );
            let at = section.won;
            let violation = Violation::new(Property::ReadWrite, at, history, section.name, story);
            return Some(violation.by(&[other.process, section.process]));
        }
        inside.push((section, believed));
    }
    None
}

fn together(one: &Section, other: &Section) -> bool {
    let is_under = |reader: &Section, writer: &Section| {
        reader.access == Access::Read && reader.under == writer.hold
    };
    one.hold == other.hold
        || (one.access == Access::Read && other.access == Access::Read)
        || is_under(one, other)
        || is_under(other, one)
}

fn purpose(section: &Section) -> &'static str {
    match section.access {
        Access::Read => "read",
        _ => "write",
    }
}

/// A name on a node.
type NameOnNode = (u16, NameId);

/// A claim: its owner, and whether it is a read claim.
type Inside = (OwnerId, bool);

/// Finds a client that a node kept out although no other client had a claim whose lease was valid. The writer has no
/// separate lease in the layout: an owner that writes and reads keeps both claims with either lease. Nodes that lost
/// their data are ignored, because their claims are unknown.
fn kept_out_by_nobody(history: &History) -> Option<Violation> {
    // Each claim with its expiry by the node's clock, and the answer that stated it.
    let mut claims: BTreeMap<NameOnNode, BTreeMap<Inside, (u64, &LockAnswer)>> = BTreeMap::new();
    for turn in history.turns.iter().filter(|turn| turn.life == 0) {
        let claims = claims.entry((turn.node, turn.name));
        let claims = claims.or_default();
        match turn.answer {
            Answered::Reads { until } | Answered::Writes { until } => {
                let reads = matches!(turn.answer, Answered::Reads { .. });
                let claim = claims.entry((turn.owner, reads)).or_insert((until, turn));
                *claim = (claim.0.max(until), turn);
                let writers = claims.iter_mut().filter(|((_, reads), _)| !reads);
                writers.for_each(|(_, claim)| claim.0 = claim.0.max(until));
            }
            Answered::Left(access) => {
                claims.remove(&(turn.owner, access == Access::Read));
            }
            Answered::KeptOut => {
                if claims.values().any(|(until, _)| turn.wall <= *until) {
                    continue;
                }
                let last = claims.values().max_by_key(|(until, _)| *until);
                return Some(kept_out(history, turn, last.copied()));
            }
            _ => {}
        }
    }
    None
}

fn kept_out(history: &History, turn: &LockAnswer, last: Option<(u64, &LockAnswer)>) -> Violation {
    let inside = match last {
        None => "no client was inside".to_owned(),
        Some((until, last)) => format!(
            "no client was inside but {}, last alive at {}, whose claim had ended {} ms ago",
            last.process,
            moment(last.at),
            turn.wall.saturating_sub(until),
        ),
    };
    let story = format!(
        "node {} kept {} out at {}, when {inside}",
        turn.node,
        turn.process,
        moment(turn.at),
    );
    let violation = Violation::new(Property::ReadWrite, turn.at, history, turn.name, story);
    let last = last.map(|(_, last)| last.process);
    let processes: Vec<_> = last.into_iter().chain([turn.process]).collect();
    violation.by(&processes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{answered, believed, history};
    use quorlock_sim_world::history::HoldId;

    fn stay(access: Access, hold: u32, from: u64, until: u64) -> Section {
        let client = u16::try_from(hold).unwrap();
        Section {
            access,
            ..believed(client, hold, from, until)
        }
    }

    #[test]
    fn readers_overlap_and_writers_follow_each_other() {
        let sections = vec![
            stay(Access::Read, 0, 0, 10),
            stay(Access::Read, 1, 5, 15),
            stay(Access::Write, 2, 15, 20),
            stay(Access::Write, 3, 20, 30),
            stay(Access::Read, 4, 30, 40),
        ];
        assert_eq!(check(&history(sections)), None);
    }

    #[test]
    fn a_writer_beside_anybody_is_found_in_whatever_order() {
        use Access::{Read, Write};
        for (one, other) in [(Write, Write), (Write, Read), (Read, Write)] {
            for (first, second) in [((0, 10), (9, 20)), ((5, 10), (0, 6)), ((0, 10), (3, 3))] {
                let sections = vec![
                    stay(one, 0, first.0, first.1),
                    stay(other, 1, second.0, second.1),
                ];
                let violation = check(&history(sections)).unwrap();
                assert_eq!(violation.property, Property::ReadWrite);
                assert_eq!(violation.processes.len(), 2);
            }
        }
    }

    #[test]
    fn a_writer_is_alone_from_its_guard_on_and_not_only_inside() {
        let mut dawdling = stay(Access::Write, 0, 30, 40);
        dawdling.won = 5;
        let reader = stay(Access::Read, 1, 10, 20);
        assert!(check(&history(vec![dawdling, reader])).is_some());
    }

    #[test]
    fn a_long_reader_is_not_forgotten_behind_short_ones() {
        let sections = vec![
            stay(Access::Read, 0, 0, 100),
            stay(Access::Read, 1, 1, 2),
            stay(Access::Read, 2, 3, 60),
            stay(Access::Write, 3, 70, 80),
        ];
        assert!(check(&history(sections)).is_some());
    }

    #[test]
    fn whoever_writes_may_read_and_nobody_else() {
        let writing = stay(Access::Write, 0, 0, 10);
        let mut own = stay(Access::Read, 1, 5, 20);
        own.under = HoldId(0);
        assert_eq!(check(&history(vec![writing.clone(), own.clone()])), None);
        own.under = HoldId(7);
        assert!(check(&history(vec![writing, own])).is_some());
    }

    #[test]
    fn one_that_did_not_believe_and_other_names_and_other_locks_do_not_count() {
        let mut unbelieving = stay(Access::Read, 1, 5, 8);
        unbelieving.believed = None;
        let mut elsewhere = stay(Access::Read, 2, 5, 8);
        elsewhere.name = NameId(1);
        let alone = stay(Access::Alone, 3, 5, 8);
        let sections = vec![stay(Access::Write, 0, 0, 10), unbelieving, elsewhere, alone];
        assert_eq!(check(&history(sections)), None);
    }

    fn checked(answers: &[(u16, u64, Answered)]) -> Option<Violation> {
        let mut history = history(Vec::new());
        let turns = answers
            .iter()
            .map(|(client, at, answer)| answered(*client, *at, *answer));
        history.turns = turns.collect();
        check(&history)
    }

    #[test]
    fn whoever_is_kept_out_is_so_by_somebody() {
        let reads = |until| Answered::Reads { until };
        let writes = |until| Answered::Writes { until };
        let inside = [(0, 0, reads(10)), (1, 1, writes(20))];
        for (at, is_found) in [(10, false), (20, false), (21, true)] {
            let mut turns = inside.to_vec();
            turns.push((2, at, Answered::KeptOut));
            assert_eq!(checked(&turns).is_some(), is_found, "{at}");
        }
        // The claim was renewed in the meantime.
        let renewed = [
            (0, 0, reads(10)),
            (0, 9, reads(19)),
            (2, 19, Answered::KeptOut),
        ];
        assert_eq!(checked(&renewed), None);
    }

    #[test]
    fn whoever_writes_and_reads_stays_for_as_long_as_either_claim_and_no_longer() {
        for (at, is_found) in [(30, false), (31, true)] {
            let turns = [
                (0, 0, Answered::Writes { until: 10 }),
                (1, 5, Answered::Reads { until: 30 }),
                (1, 9, Answered::Left(Access::Read)),
                (2, at, Answered::KeptOut),
            ];
            assert_eq!(checked(&turns).is_some(), is_found, "{at}");
        }
    }

    #[test]
    fn whoever_has_left_keeps_nobody_out() {
        let turns = [
            (0, 0, Answered::Reads { until: 10 }),
            (1, 0, Answered::Reads { until: 1 }),
            (0, 4, Answered::Left(Access::Read)),
            (2, 5, Answered::KeptOut),
        ];
        let violation = checked(&turns).unwrap();
        assert_eq!(violation.processes.len(), 2);
        assert_eq!(violation.processes.first().unwrap().client, 1);
    }

    #[test]
    fn a_node_that_keeps_out_without_anybody_inside_is_found_unless_it_has_forgotten_who_was() {
        let mut turns = vec![answered(2, 5, Answered::KeptOut)];
        for (life, is_found) in [(0, true), (1, false)] {
            turns.iter_mut().for_each(|turn| turn.life = life);
            let mut history = history(Vec::new());
            history.turns.clone_from(&turns);
            assert_eq!(check(&history).is_some(), is_found);
        }
    }
}
