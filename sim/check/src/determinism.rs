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
    /// The first event that differs. `None` if only the story differs.
    pub event: Option<DifferentEvent>,
    /// The first line of the story that differs, in both runs. `None` for a run that has no such line.
    pub story: Option<(Option<String>, Option<String>)>,
}

/// The first event in which two runs differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DifferentEvent {
    /// The number of the event, from 1.
    pub number: usize,
    /// When it happened, and its kind, in both runs. `None` for a run that was over.
    pub both: (Option<(SimTime, String)>, Option<(SimTime, String)>),
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

fn different_lines(first: &Run, second: &Run) -> Option<(Option<String>, Option<String>)> {
    let lines = |run| story::lines(run, None).into_iter();
    let (mut first, mut second) = (lines(first), lines(second));
    loop {
        let both = (first.next(), second.next());
        match both {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some((a.map(|line| line.in_text()), b.map(|line| line.in_text()))),
        }
    }
}

fn different_events(first: &[PastEvent], second: &[PastEvent]) -> Option<DifferentEvent> {
    let traces = |trail: &[PastEvent], at: usize| trail.get(at).map(|event| event.trace);
    let place = (0..first.len().max(second.len()))
        .find(|place| traces(first, *place) != traces(second, *place))?;
    let shown = |trail: &[PastEvent]| {
        let event = trail.get(place)?;
        Some((SimTime::nanos(event.at), event.name()))
    };
    Some(DifferentEvent {
        number: place + 1,
        both: (shown(first), shown(second)),
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "two runs of seed {} differ", self.seed)?;
        if let Some(DifferentEvent { number, both }) = &self.event {
            write!(f, ", first in event {number}: ")?;
            match both {
                (Some(first), Some(second)) if first == second => {
                    write!(f, "{} at {}, with another outcome", first.1, first.0)?;
                }
                (first, second) => {
                    let shown = |event: &Option<(SimTime, String)>| match event {
                        Some((at, name)) => format!("{name} at {at}"),
                        None => "the end".to_owned(),
                    };
                    write!(f, "{}, then {}", shown(first), shown(second))?;
                }
            }
        }
        if let Some((first, second)) = &self.story {
            let shown = |line: &Option<String>| match line {
                Some(line) => line.trim_start().to_owned(),
                None => "nothing more".to_owned(),
            };
            write!(
                f,
                "\n  the story of the first run:  {}\n  the story of the second run: {}",
                shown(first),
                shown(second)
            )?;
        }
        write!(
            f,
            "\nthe code uses a clock, threads or randomness that is not simulated, iterates over a HashMap, or keeps something from one \
             run to the next"
        )
    }
}

impl std::error::Error for Difference {}
