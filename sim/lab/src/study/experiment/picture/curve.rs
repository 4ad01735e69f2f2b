//! The share over the first axis, with its bounds.

use plotters::prelude::*;

use super::frame::{Axes, chart, colour, curve, legend, on_paper, text, top};
use super::{Ruler, lines, place, short};
use crate::study::experiment::file::Experiment;
use crate::study::experiment::outcome::Outcome;

pub(super) fn draw(study: &Experiment, outcomes: &[Outcome]) -> Result<String, String> {
    let ruler = Ruler::of(study, 0).ok_or("a curve needs an axis")?;
    let most = top(outcomes.iter().map(|outcome| outcome.bounds(study).most));
    let title = format!("runs that break {}, %", study.property);
    let axes = Axes {
        caption: &study.title,
        x: ruler.ends(),
        y: (0.0, most),
        x_title: &ruler.title,
        y_title: &title,
        x_label: &|x| ruler.label(*x),
        y_label: &|y| short(*y),
        labels: (ruler.words.as_ref().map_or(9, |words| 2 * words.len()), 8),
        left: 58,
    };
    on_paper((760, 440), |area| {
        let mut chart = chart(area, &axes)?;
        for (index, (name, line)) in lines(study, outcomes, 1).into_iter().enumerate() {
            let at = |outcome: &&Outcome| {
                let x = place(study, &ruler, 0, outcome)?;
                Some((x, outcome.bounds(study)))
            };
            let mut points: Vec<_> = line.iter().filter_map(at).collect();
            points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let upper = points.iter().map(|(x, share)| (*x, 100.0 * share.most));
            let lower = points
                .iter()
                .rev()
                .map(|(x, share)| (*x, 100.0 * share.least));
            let bounds = (upper.collect(), lower.collect());
            let middle: Vec<_> = points.iter().map(|(x, b)| (*x, 100.0 * b.share)).collect();
            curve(&mut chart, (index, name), bounds, middle.clone())?;
            let dot = |point| Circle::new(point, 3, colour(index).filled());
            let dots = middle.into_iter().map(dot);
            chart.draw_series(dots).map_err(text)?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}
