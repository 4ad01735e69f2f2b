//! The option `--beside`: storms in which half of the clients are another library's.

use std::fmt;

use clap::ValueEnum;

use super::super::CliError;
use super::asked::{Asked, locks};
use crate::chaos::other_library::{NamesOfOthers, OtherClients};
use crate::chaos::redisson;
use crate::study::matrix::{Candidate, Class, Storm, StormWork};
use crate::study::predicted::Expected;

/// A library whose clients use the same names on the same servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Library {
    /// Redisson on a JVM. Needs a JDK (17 or newer) and Maven.
    Redisson,
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Library::Redisson => "redisson",
        })
    }
}

/// The lock whose keys the other library shares.
const SHARED: &str = "ours, one node";

/// The control: the same lock, beside clients that lock other names. Without it, a checker that misses violations between
/// the two libraries would look like two libraries that exclude each other.
pub(super) const APART: &str = "ours, one node, other names";

/// The work that the other library's clients can do.
const WORK: [StormWork; 3] = [StormWork::Plain, StormWork::Fair, StormWork::ReadWrite];

/// Returns the name of a class in tables.
pub(super) fn label(beside: Option<Library>, work: StormWork, class: &str) -> String {
    let label = work.label(class);
    match beside {
        Some(library) => format!("{label}; beside {library}"),
        None => label,
    }
}

/// Returns the two storms of a class: the lock, and the control. `named` are the locks that the command line names; if
/// empty, both.
pub(super) fn asked(
    library: Library,
    class: &Class,
    storm: Storm,
    named: &[String],
) -> Result<Vec<Asked>, CliError> {
    let wrong = |why: &str| {
        let class = class.id;
        CliError::Other(format!("{class}, beside {library}: {why}"))
    };
    if !WORK.contains(&storm.work) {
        let work: Vec<String> = WORK.iter().map(StormWork::to_string).collect();
        return Err(wrong(&format!("the work is one of {}", work.join(", "))));
    }
    let mut others = named.iter();
    if let Some(other) = others.find(|id| ![SHARED, APART].contains(&id.as_str())) {
        let why = format!("the lock is {SHARED:?} or {APART:?}, not {other:?}");
        return Err(wrong(&why));
    }
    let candidate = locks().find(|lock| lock.id == SHARED && lock.meets(class));
    let candidate = candidate.ok_or_else(|| {
        wrong("the class strikes Sentinel groups or clusters, which are not shared here")
    })?;
    let of = |lock: &str, names, expected| Asked {
        lock: lock.to_owned(),
        class: label(Some(library), storm.work, class.id),
        plan: candidate.storm(class, storm),
        expected,
        beside: Some(names),
    };
    let shared = of(SHARED, NamesOfOthers::Shared, expected(candidate, class));
    let apart = of(APART, NamesOfOthers::Apart, Expected::Breaks);
    let both = [shared, apart].into_iter();
    let is_named = |asked: &Asked| named.is_empty() || named.contains(&asked.lock);
    Ok(both.filter(is_named).collect())
}

fn expected(lock: &Candidate, class: &Class) -> Expected {
    match lock.keeps_exclusion(class) {
        true => Expected::Holds {
            order: lock.keeps_order(class),
        },
        false => Expected::Anything,
    }
}

/// Builds the other library's program, if any of the storms needs it. Returns the command line of its clients.
pub(super) fn prepare(cells: &[Asked]) -> Result<Option<Vec<String>>, CliError> {
    let mut named: Vec<&str> = cells
        .iter()
        .filter(|cell| cell.beside.is_some())
        .map(|cell| cell.class.as_str())
        .collect();
    named.dedup();
    if named.is_empty() {
        return Ok(None);
    }
    let built = redisson::build().map(Some);
    built.map_err(|why| CliError::Other(format!("{why}\nnot run: {}", named.join(", "))))
}

/// Returns the other library's clients in a storm.
pub(super) fn clients(asked: &Asked, command: Option<&[String]>) -> Option<OtherClients> {
    Some(OtherClients {
        command: command?.into(),
        names: asked.beside?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::storms::Storms;
    use super::*;

    fn storms(work: StormWork, lock: &[&str]) -> Storms {
        Storms {
            class: vec!["quiet".to_owned()],
            work,
            beside: Some(Library::Redisson),
            lock: lock.iter().map(|id| (*id).to_owned()).collect(),
            minutes: 1.0,
            scale: 10,
            seed: 7,
        }
    }

    #[test]
    fn every_work_has_a_lock_that_must_hold_and_a_control_that_must_break() {
        for work in WORK {
            let asked = storms(work, &[]).asked(&["ours"]).unwrap();
            let expected: Vec<Expected> = asked.iter().map(|asked| asked.expected).collect();
            assert_eq!(
                expected,
                [Expected::Holds { order: true }, Expected::Breaks]
            );
            let is_labelled = |asked: &Asked| asked.class.ends_with("; beside redisson");
            assert!(asked.iter().all(is_labelled), "{asked:?}");
        }
    }

    #[test]
    fn other_work_and_other_locks_are_refused() {
        for (work, lock) in [
            (StormWork::Leading, SHARED),
            (StormWork::Several, SHARED),
            (StormWork::Plain, "ours"),
        ] {
            let refused = storms(work, &[lock]).asked(&[]);
            let why = refused.err().map(|error| error.to_string());
            assert!(why.is_some_and(|why| why.starts_with("quiet, beside redisson: ")));
        }
        let one = storms(StormWork::Plain, &[APART]).asked(&[]).unwrap();
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn the_control_is_a_lock_only_beside_another_library() {
        let without = Storms {
            beside: None,
            ..storms(StormWork::Plain, &[APART])
        };
        let why = without.asked(&[]).err().map(|error| error.to_string());
        assert!(why.is_some_and(|why| why.contains("--beside")));
    }
}
