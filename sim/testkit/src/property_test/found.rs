//! The outcome of a test: it passed, a property was broken, or a property was never exercised.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;

use super::CodeLocation;
use super::settings::Settings;
use crate::assertion::NO_PANIC;
use crate::shrink::Size;
use quorlock_sim_check::Violation;
use quorlock_sim_check::determinism::Difference;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_check::story;
use quorlock_sim_world::history::own::Modality;

/// The size of a failure before and after shrinking, and the number of runs that shrinking took.
pub(super) type Sizes = (Size, Size, u32);

/// The results of a test's properties over all its runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    runs: u64,
    vacuous: u64,
    /// How many times each property was evaluated, and how many times it was true.
    properties: BTreeMap<(Modality, String), (u64, u64)>,
    notes: Vec<String>,
}

impl Passed {
    /// Returns the number of runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns each property, with how many times it was evaluated and how many times it was true.
    pub fn properties(&self) -> impl Iterator<Item = (Modality, &str, u64, u64)> {
        let properties = self.properties.iter();
        properties.map(|((modality, name), (checks, holds))| (*modality, &**name, *checks, *holds))
    }

    /// Returns notes for the user, for example that a failure file belongs to another test.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Prints the notes of a test that passes. Cargo shows what a passing test prints with `-- --nocapture`.
    #[expect(
        clippy::print_stderr,
        reason = "a test that passes has no other way to say something"
    )]
    pub(super) fn print_notes(&self) {
        for note in &self.notes {
            eprintln!("note: {note}");
        }
    }

    /// Returns the first property that was expected or evaluated and that no run exercised.
    pub(super) fn missed(&self, expected: &[String]) -> Option<Shortfall> {
        if self.runs != 0 && self.vacuous == self.runs {
            return Some(Shortfall::Idle { runs: self.runs });
        }
        let is_unknown = |name: &&String| !self.properties.keys().any(|(_, known)| known == *name);
        if let Some(name) = expected.iter().find(is_unknown) {
            return Some(Shortfall::NeverLookedAt {
                name: name.clone(),
                runs: self.runs,
            });
        }
        let is_unmet = |((modality, _), (_, holds)): &(&(Modality, String), &(u64, u64))| {
            *modality == Modality::Sometimes && *holds == 0
        };
        let ((_, name), (checks, _)) = self.properties.iter().find(is_unmet)?;
        Some(Shortfall::NeverTrue {
            name: name.clone(),
            checks: *checks,
            runs: self.runs,
        })
    }
}

/// The results added up over the runs so far.
#[derive(Debug, Default)]
pub(super) struct Tally(Passed);

impl Tally {
    pub(super) fn add(&mut self, run: &Run) {
        self.0.runs += 1;
        self.0.vacuous += u64::from(run.verdict == Verdict::Vacuous);
        for stated in &run.history.stated {
            if stated.name == NO_PANIC {
                continue;
            }
            let key = (stated.modality, stated.name.clone());
            let (checks, holds) = self.0.properties.entry(key).or_default();
            *checks += stated.checks;
            *holds += stated.holds;
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.0.notes.push(note);
    }

    pub(super) fn passed(self) -> Passed {
        self.0
    }

    pub(super) fn into_notes(self) -> Vec<String> {
        self.0.notes
    }
}

/// The reason why a test fails.
#[derive(Debug)]
pub enum Found {
    /// A run broke a property.
    Violated(Box<Violated>),
    /// No run broke a property, but a property was never exercised.
    Shortfall(Shortfall),
    /// A run was not the same when it was made again.
    Differs(Box<Difference>),
    /// The failure file could not be replayed.
    File(String),
}

impl Found {
    /// Returns the name of the property for which the test fails.
    #[must_use]
    pub fn property(&self) -> Option<&str> {
        match self {
            Found::Violated(violated) => violated.violation.name.as_deref(),
            Found::Shortfall(
                Shortfall::NeverLookedAt { name, .. } | Shortfall::NeverTrue { name, .. },
            ) => Some(name),
            Found::Shortfall(Shortfall::Idle { .. }) | Found::Differs(_) | Found::File(_) => None,
        }
    }

    /// Returns the run that broke a property, if one did.
    #[must_use]
    pub fn violated(&self) -> Option<&Violated> {
        match self {
            Found::Violated(violated) => Some(violated),
            Found::Shortfall(_) | Found::Differs(_) | Found::File(_) => None,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Violated(violated) => violated.fmt(f),
            Found::Shortfall(shortfall) => shortfall.fmt(f),
            Found::Differs(difference) => difference.fmt(f),
            Found::File(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for Found {}

/// A property that no run exercised. The test fails, because it shows nothing about the property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shortfall {
    /// No run evaluated the property.
    NeverLookedAt {
        /// The name of the property.
        name: String,
        /// The number of runs.
        runs: u64,
    },
    /// A property of `sometimes!` was false in every evaluation.
    NeverTrue {
        /// The name of the property.
        name: String,
        /// How many times the property was evaluated.
        checks: u64,
        /// The number of runs.
        runs: u64,
    },
    /// No client did anything: none acquired a lock, called a resource, or stated a property.
    Idle {
        /// The number of runs.
        runs: u64,
    },
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shortfall::NeverLookedAt { name, runs } => write!(
                f,
                "the property {name:?} was never checked: no client reached it in {runs} runs; give the clients more \
                 time or seeds, or find out what keeps them from it"
            ),
            Shortfall::NeverTrue { name, checks, runs } => write!(
                f,
                "the property {name:?} (sometimes!) was never true: it was checked {checks} times in {runs} runs; give the \
                 clients more time or seeds, or find out what prevents it"
            ),
            Shortfall::Idle { runs } => write!(
                f,
                "no client did anything in {runs} runs: none acquired a lock, called a resource or stated a property"
            ),
        }
    }
}

/// A run that broke a property, shrunk as far as possible.
#[derive(Debug)]
pub struct Violated {
    pub(super) site: CodeLocation,
    pub(super) seed: u64,
    pub(super) violation: Violation,
    pub(super) run: Run,
    pub(super) sizes: Option<Sizes>,
    /// The paths of the failure and its page, or why they could not be written.
    pub(super) files: Result<(std::path::PathBuf, std::path::PathBuf), String>,
    pub(super) notes: Vec<String>,
}

impl Violated {
    /// Returns the first seed that failed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the violation in the smallest run that was found.
    #[must_use]
    pub fn violation(&self) -> &Violation {
        &self.violation
    }

    /// Returns the smallest run that was found.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the size of the failure before and after shrinking; `None` if it was not shrunk.
    #[must_use]
    pub fn sizes(&self) -> Option<(Size, Size)> {
        self.sizes.map(|(before, after, _)| (before, after))
    }

    /// Returns the file that reproduces the failure, if it could be written.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.files.as_ref().ok().map(|(file, _)| &**file)
    }

    /// Returns the page that shows the failure, if it could be written.
    #[must_use]
    pub fn page(&self) -> Option<&Path> {
        self.files.as_ref().ok().map(|(_, page)| &**page)
    }
}

/// Reports on long work. The lines are written past the test harness, which shows what a test prints only after its end.
pub(super) fn tell_progress(settings: &Settings, seed: u64, runs: u32, size: &Size) {
    if runs == 100 || runs.is_multiple_of(1_000) {
        let (test, most) = (settings.site.stem(), settings.most_runs);
        let now = in_words(size);
        let line = format!(
            "{test}: seed {seed} fails; shrunk to {now} so far, after {runs} of at most {most} runs"
        );
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Describes the size of a failure.
fn in_words(size: &Size) -> String {
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let faults = count(size.faults, "fault");
    let clients = count(usize::from(size.clients), "client");
    format!("{faults}, {clients}, {}", count(size.operations, "step"))
}

/// The largest number of lines of the story that a message shows.
const LINES: usize = 24;

impl fmt::Display for Violated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violated {
            site,
            seed,
            violation,
            run,
            ..
        } = self;
        let name = violation.name.as_deref().unwrap_or("the run ends");
        let kind = violation.property;
        writeln!(
            f,
            "the property {name:?} ({kind}) is broken, first at seed {seed}"
        )?;
        writeln!(f)?;
        if let Some((before, after, runs)) = &self.sizes {
            writeln!(
                f,
                "shrunk from {} to {} ({runs} runs):",
                in_words(before),
                in_words(after)
            )?;
        }
        let told = own_lines(run);
        let skipped = told.len().saturating_sub(LINES);
        if 0 < skipped {
            writeln!(f, "  ... {skipped} lines before")?;
        }
        for line in told.iter().skip(skipped) {
            writeln!(f, "  {line}")?;
        }
        writeln!(f)?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        match &self.files {
            Ok((file, page)) => {
                let replay = format!("QUORLOCK_REPLAY={}", file.display());
                writeln!(f, "repeat it:     {}", site.command(&replay))?;
                writeln!(f, "look at it:    {}", page.display())?;
            }
            Err(error) => writeln!(f, "it could not be written: {error}")?,
        }
        let seed = format!("QUORLOCK_SEED={seed}");
        write!(f, "the whole run: {}", site.command(&seed))
    }
}

/// Returns the lines of the story up to the violation: what the clients did, and the faults.
fn own_lines(run: &Run) -> Vec<String> {
    let end = match &run.verdict {
        Verdict::Violated(violation) => violation.at.as_nanos(),
        _ => u64::MAX,
    };
    let lines = story::lines(run, None).into_iter();
    let lines = lines.filter(|line| line.at <= end);
    lines.map(|line| line.in_text()).collect()
}
