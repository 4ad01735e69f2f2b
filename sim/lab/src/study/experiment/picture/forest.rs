//! The share of each cell with its bounds, one below the other.

use plotters::prelude::*;

use super::frame::{Axes, chart, colour, on_paper, text, top};
use super::{lines, short};
use crate::study::experiment::file::Experiment;
use crate::study::experiment::outcome::Outcome;

pub(super) fn draw(study: &Experiment, outcomes: &[Outcome]) -> Result<String, String> {
    let rows = lines(study, outcomes, 0);
    let last = rows.len() as f64;
    let most = top(outcomes.iter().map(|outcome| outcome.bounds(study).most));
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max();
    let title = format!("runs that break {}, %", study.property);
    // From top to bottom, in the middle of a unit each.
    let height = |index: usize| last - index as f64 - 0.5;
    let label = |y: &f64| {
        let row = rows
            .iter()
            .enumerate()
            .find(|(index, _)| (height(*index) - y).abs() < 1e-6);
        row.map_or(String::new(), |(_, (name, _))| name.clone())
    };
    let axes = Axes {
        caption: &study.title,
        x: (0.0, most),
        y: (0.0, last),
        x_title: &title,
        y_title: "",
        x_label: &|x| short(*x),
        y_label: &label,
        // A label at each half.
        labels: (9, 2 * rows.len() + 1),
        left: 24 + 7 * u32::try_from(longest.unwrap_or(0)).unwrap_or(0),
    };
    let pixels = 110 + 34 * u32::try_from(rows.len()).unwrap_or(0);
    on_paper((760, pixels), |area| {
        let mut chart = chart(area, &axes)?;
        for (index, (_, row)) in rows.iter().enumerate() {
            for outcome in row {
                let bounds = outcome.bounds(study);
                let (y, colour) = (height(index), colour(index));
                let ends = [bounds.least, bounds.most].map(|share| (100.0 * share, y));
                let bar = PathElement::new(ends, colour.stroke_width(2));
                chart.draw_series([bar]).map_err(text)?;
                let dot = Circle::new((100.0 * bounds.share, y), 4, colour.filled());
                chart.draw_series([dot]).map_err(text)?;
            }
        }
        Ok(())
    })
}
