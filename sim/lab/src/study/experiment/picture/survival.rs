//! The share of runs that have not broken yet, over time.

use plotters::prelude::*;

use super::frame::{Axes, chart, curve, legend, on_paper};
use super::{lines, short};
use crate::study::experiment::file::Experiment;
use crate::study::experiment::outcome::Outcome;
use crate::study::interval::clopper_pearson;

/// A time in seconds, the share that has not broken until then, and its bounds, in percent.
type Step = (f64, f64, f64, f64);

pub(super) fn draw(study: &Experiment, outcomes: &[Outcome]) -> Result<String, String> {
    let times = outcomes.iter().flat_map(|outcome| &outcome.broken);
    let last = times.map(|(_, at)| *at).max();
    let last = last.ok_or("no run broke, so there is nothing to see")? as f64 / 1e9;
    let all: Vec<(String, Vec<Step>)> = lines(study, outcomes, 0)
        .into_iter()
        .map(|(name, line)| {
            (
                name,
                line.first()
                    .map_or(Vec::new(), |outcome| steps(outcome, last)),
            )
        })
        .collect();
    let lows = all
        .iter()
        .flat_map(|(_, steps)| steps.iter().map(|step| step.2));
    let least = lows.fold(100.0, f64::min);
    let title = format!("runs without a violation of {} yet, %", study.property);
    let axes = Axes {
        caption: &study.title,
        x: (0.0, 1.02 * last),
        y: ((least - 3.0).max(0.0), 101.0),
        x_title: "time since the beginning of the run, s",
        y_title: &title,
        x_label: &|x| short(*x),
        y_label: &|y| short(*y),
        labels: (9, 8),
        left: 58,
    };
    on_paper((760, 440), |area| {
        let mut chart = chart(area, &axes)?;
        for (index, (name, steps)) in all.into_iter().enumerate() {
            let upper = stairs(&steps, |step| step.3);
            let mut lower = stairs(&steps, |step| step.2);
            lower.reverse();
            let line = stairs(&steps, |step| step.1);
            curve(&mut chart, (index, name), (upper, lower), line)?;
        }
        legend(&mut chart, SeriesLabelPosition::LowerLeft)
    })
}

/// Returns the steps of a curve. All runs are watched to their end, so the share at a time is that of independent trials.
fn steps(outcome: &Outcome, last: f64) -> Vec<Step> {
    let runs = outcome.tally.runs;
    let mut times: Vec<f64> = outcome
        .broken
        .iter()
        .map(|(_, at)| *at as f64 / 1e9)
        .collect();
    times.sort_by(f64::total_cmp);
    // More steps than pixels would only make the file larger.
    let stride = times.len().div_ceil(200).max(1);
    let counts = (0..times.len())
        .step_by(stride)
        .chain(times.len().checked_sub(1));
    let mut counts: Vec<usize> = counts.collect();
    counts.dedup();
    let at = |broken: usize, time: f64| {
        let (least, most) = clopper_pearson(broken as u64, runs, 0.05);
        let share = broken as f64 / runs.max(1) as f64;
        (
            time,
            100.0 * (1.0 - share),
            100.0 * (1.0 - most),
            100.0 * (1.0 - least),
        )
    };
    let mut steps = vec![at(0, 0.0)];
    for index in counts {
        steps.extend(times.get(index).map(|time| at(index + 1, *time)));
    }
    steps.push(at(times.len(), last));
    steps
}

/// Returns the corners of a line that stays where it is until the next step.
fn stairs(steps: &[Step], of: fn(&Step) -> f64) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for step in steps {
        corners.extend(corners.last().map(|(_, before)| (step.0, *before)));
        corners.push((step.0, of(step)));
    }
    corners
}
