//! Whether a run is the same when it is made again.

use std::fmt;

use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::world::trail::PastEvent;

use crate::run::{Run, trailed};
use crate::story;

/// Two runs of one plan that differ. The code that was run uses something that is not simulated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The seed of the plan.
    pub seed: u64,
    /// The number of the first event that differs, from 1, and that event. `None` if only the story differs.
    pub event: Option<(usize, InBoth<ShownEvent>)>,
    /// The first line of the story that differs. `None` if only events differ.
    pub story: Option<InBoth<String>>,
}

/// What stands at one place of two runs. A run that was over by then has `None`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InBoth<T> {
    /// In the first run.
    pub first: Option<T>,
    /// In the second run.
    pub second: Option<T>,
}

/// An event of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownEvent {
    /// When it happened, in true time.
    pub at: SimTime,
    /// Its kind, such as `Request`.
    pub kind: String,
}

/// Makes a run again and compares the two, event for event.
///
/// # Errors
/// Returns the first [`Difference`].
pub fn check(run: &Run, again: impl Fn() -> Run) -> Result<(), Box<Difference>> {
    let second = again();
    let story = different_lines(run, &second);
    if run.trace == second.trace && run.verdict == second.verdict && story.is_none() {
        return Ok(());
    }
    // Only a run that is asked to keeps its events. These two are likely to differ as the others did.
    let (_, first_trail) = trailed(&again);
    let (_, second_trail) = trailed(&again);
    Err(Box::new(Difference {
        seed: run.plan.seed,
        event: different_events(&first_trail, &second_trail),
        story,
    }))
}

fn different_lines(first: &Run, second: &Run) -> Option<InBoth<String>> {
    let lines = |run| story::lines(run, None).into_iter();
    let (mut first, mut second) = (lines(first), lines(second));
    loop {
        match (first.next(), second.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => {
                return Some(InBoth {
                    first: a.map(|line| line.in_text()),
                    second: b.map(|line| line.in_text()),
                });
            }
        }
    }
}

fn different_events(
    first: &[PastEvent],
    second: &[PastEvent],
) -> Option<(usize, InBoth<ShownEvent>)> {
    let trace = |trail: &[PastEvent], at: usize| trail.get(at).map(|event| event.trace);
    let place = (0..first.len().max(second.len()))
        .find(|place| trace(first, *place) != trace(second, *place))?;
    let shown = |trail: &[PastEvent]| {
        let event = trail.get(place)?;
        Some(ShownEvent {
            at: SimTime::nanos(event.at),
            kind: event.name(),
        })
    };
    let both = InBoth {
        first: shown(first),
        second: shown(second),
    };
    Some((place + 1, both))
}

impl fmt::Display for ShownEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.kind, self.at)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "two runs of seed {} differ", self.seed)?;
        match &self.event {
            None => {}
            Some((number, both)) if both.first == both.second => {
                let event = shown(both.first.as_ref());
                write!(
                    f,
                    ", first in event {number}: {event}, with another outcome"
                )?;
            }
            Some((number, both)) => {
                let (first, second) = (shown(both.first.as_ref()), shown(both.second.as_ref()));
                write!(f, ", first in event {number}: {first}, then {second}")?;
            }
        }
        if let Some(InBoth { first, second }) = &self.story {
            let told = |line: &Option<String>| shown(line.as_ref().map(|line| line.trim_start()));
            let (first, second) = (told(first), told(second));
            write!(f, "\n  the story of the first run:  {first}")?;
            write!(f, "\n  the story of the second run: {second}")?;
        }
        write!(
            f,
            "\nthe code uses a clock, threads or randomness that is not simulated, iterates over a HashMap, or keeps something from one \
             run to the next"
        )
    }
}

/// Shows what stands at one place of a run.
fn shown(what: Option<impl fmt::Display>) -> String {
    what.map_or_else(|| "the end".to_owned(), |what| what.to_string())
}

impl std::error::Error for Difference {}
