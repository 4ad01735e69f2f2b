//! The share over two axes, a panel for each lock.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::frame::{Area, Axes, FONT, chart, on_paper, text};
use super::{Ruler, place, short};
use crate::study::experiment::file::Experiment;
use crate::study::experiment::outcome::Outcome;
use crate::study::experiment::print::name;

/// How many panels are beside each other, at most.
const ACROSS: usize = 2;

/// The width and the height of a panel in pixels.
const PANEL: (u32, u32) = (440, 360);

pub(super) fn draw(study: &Experiment, outcomes: &[Outcome]) -> Result<String, String> {
    let both = Ruler::of(study, 0).zip(Ruler::of(study, 1));
    let (x, y) = both.ok_or("a heat map needs two axes")?;
    if 2 < study.axes.len() {
        return Err("a heat map has two axes, and this study has more".to_owned());
    }
    let columns = study.locks.len().min(ACROSS);
    let rows = study.locks.len().div_ceil(ACROSS);
    let [wide, high] = [columns, rows].map(|panels| u32::try_from(panels).unwrap_or(1));
    let largest = outcomes.iter().map(|outcome| outcome.bounds(study).share);
    let largest = largest.fold(0.0, f64::max).max(1e-9);
    let is_grid = study.points.len() == x.places.len() * y.places.len();
    on_paper((wide * PANEL.0, high * PANEL.1 + 30), |area| {
        let area = area.titled(&study.title, (FONT, 16)).map_err(text)?;
        let panels = area.split_evenly((rows, columns));
        for (lock, panel) in panels.iter().enumerate() {
            let own = outcomes.iter().filter(|outcome| outcome.lock == lock);
            let shown: Vec<(f64, f64, f64)> = own
                .filter_map(|outcome| {
                    let at = (place(study, &x, 0, outcome)?, place(study, &y, 1, outcome)?);
                    Some((at.0, at.1, outcome.bounds(study).share))
                })
                .collect();
            let caption = name(study, lock);
            match is_grid {
                true => rectangles(panel, caption, (&x, &y), &shown, largest)?,
                false => dots(panel, caption, (&x, &y), &shown, largest)?,
            }
        }
        Ok(())
    })
}

/// Draws a rectangle for each combination of settings.
fn rectangles(
    panel: &Area<'_>,
    caption: &str,
    (x, y): (&Ruler, &Ruler),
    shown: &[(f64, f64, f64)],
    largest: f64,
) -> Result<(), String> {
    let index = |ruler: &Ruler, place: f64| ruler.places.iter().position(|known| *known == place);
    let at_half = |ruler: &Ruler, middle: f64| {
        let index = (middle - 0.5).round();
        let is_middle = (middle - 0.5 - index).abs() < 1e-6;
        let known = ruler
            .places
            .get(index as usize)
            .filter(|_| is_middle && 0.0 <= index);
        known.map_or(String::new(), |place| ruler.label(*place))
    };
    let (across, up) = (x.places.len(), y.places.len());
    let axes = Axes {
        caption,
        x: (0.0, across as f64),
        y: (0.0, up as f64),
        x_title: &x.title,
        y_title: &y.title,
        x_label: &|middle| at_half(x, *middle),
        y_label: &|middle| at_half(y, *middle),
        labels: (2 * across + 1, 2 * up + 1),
        left: 62,
    };
    let mut chart = chart(panel, &axes)?;
    for (px, py, share) in shown {
        let Some((column, row)) = index(x, *px).zip(index(y, *py)) else {
            continue;
        };
        let (left, low) = (column as f64, row as f64);
        let corners = [(left, low), (left + 1.0, low + 1.0)];
        let colour = heat(share / largest);
        chart
            .draw_series([Rectangle::new(corners, colour.filled())])
            .map_err(text)?;
        let ink = if share / largest < 0.55 { BLACK } else { WHITE };
        let style = TextStyle::from((FONT, 11)).color(&ink);
        let style = style.pos(Pos::new(HPos::Center, VPos::Center));
        let number = Text::new(short(round(100.0 * *share)), (left + 0.5, low + 0.5), style);
        chart.draw_series([number]).map_err(text)?;
    }
    Ok(())
}

/// Draws a dot for each point, where points are no combinations of settings.
fn dots(
    panel: &Area<'_>,
    caption: &str,
    (x, y): (&Ruler, &Ruler),
    shown: &[(f64, f64, f64)],
    largest: f64,
) -> Result<(), String> {
    let axes = Axes {
        caption,
        x: x.ends(),
        y: y.ends(),
        x_title: &x.title,
        y_title: &y.title,
        x_label: &|place| x.label(*place),
        y_label: &|place| y.label(*place),
        labels: (7, 7),
        left: 62,
    };
    let mut chart = chart(panel, &axes)?;
    let circles = shown.iter().flat_map(|(px, py, share)| {
        let colour = heat(share / largest);
        let inside = Circle::new((*px, *py), 7, colour.filled());
        [
            inside,
            Circle::new((*px, *py), 7, BLACK.mix(0.6).stroke_width(1)),
        ]
    });
    chart.draw_series(circles).map_err(text)?;
    Ok(())
}

/// Rounds a number to a tenth.
fn round(percent: f64) -> f64 {
    (10.0 * percent).round() / 10.0
}

/// Returns the colour of a share of the largest share: from white over orange to dark red.
fn heat(share: f64) -> RGBColor {
    const STOPS: [(f64, f64, f64); 4] = [
        (255.0, 255.0, 255.0),
        (253.0, 204.0, 138.0),
        (227.0, 74.0, 51.0),
        (127.0, 0.0, 0.0),
    ];
    let place = 3.0 * share.clamp(0.0, 1.0);
    let below = place.floor().min(2.0);
    let part = place - below;
    let pair = STOPS.get(below as usize).zip(STOPS.get(below as usize + 1));
    let (one, other) = pair.unwrap_or((&STOPS[0], &STOPS[0]));
    let mix = |one: f64, other: f64| (one + part * (other - one)).round() as u8;
    RGBColor(
        mix(one.0, other.0),
        mix(one.1, other.1),
        mix(one.2, other.2),
    )
}
