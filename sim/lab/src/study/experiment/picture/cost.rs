//! The share over what a hold costs.

use plotters::prelude::*;

use super::frame::{Axes, chart, colour, legend, on_paper, text, top};
use super::{lines, short};
use crate::study::experiment::file::Experiment;
use crate::study::experiment::outcome::{Bounds, Outcome};

/// A line of the picture: its name, and the cost and the risk of each of its points.
type Line = (String, Vec<(f64, Bounds)>);

pub(super) fn draw(study: &Experiment, outcomes: &[Outcome]) -> Result<String, String> {
    let all = lines(study, outcomes, 1).into_iter().map(|(name, line)| {
        let costs = line.into_iter().filter_map(|outcome| {
            let cost = outcome.requests_per_hold()?;
            Some((cost, outcome.bounds(study)))
        });
        (name, costs.collect())
    });
    let all: Vec<Line> = all.collect();
    let spots = || all.iter().flat_map(|(_, spots)| spots);
    if spots().next().is_none() {
        return Err("no client acquired anything, so a hold has no cost".to_owned());
    }
    let dearest = spots().map(|(cost, _)| *cost).fold(0.0, f64::max);
    let most = top(spots().map(|(_, bounds)| bounds.most));
    let title = format!("runs that break {}, %", study.property);
    let axes = Axes {
        caption: &study.title,
        // The names are at the right.
        x: (0.0, 1.5 * dearest),
        y: (0.0, most),
        x_title: "requests that nodes executed for each hold",
        y_title: &title,
        x_label: &|x| short(*x),
        y_label: &|y| short(*y),
        labels: (9, 8),
        left: 58,
    };
    on_paper((760, 440), |area| {
        let mut chart = chart(area, &axes)?;
        for (index, (name, spots)) in all.iter().enumerate() {
            let colour = colour(index);
            let bars = spots.iter().map(|(cost, bounds)| {
                let ends = [bounds.least, bounds.most].map(|share| (*cost, 100.0 * share));
                PathElement::new(ends, colour.stroke_width(2))
            });
            chart.draw_series(bars).map_err(text)?;
            let dots = spots.iter().map(|(cost, bounds)| {
                Circle::new((*cost, 100.0 * bounds.share), 4, colour.filled())
            });
            let dots = chart.draw_series(dots).map_err(text)?;
            dots.label(name)
                .legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
        }
        legend(&mut chart, SeriesLabelPosition::UpperRight)
    })
}
