//! What all pictures have in common: their size, their colours, and the axes around what they show.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// A chart on a string of SVG.
pub(super) type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The part of a picture that a chart fills.
pub(super) type Area<'b> = DrawingArea<SVGBackend<'b>, plotters::coord::Shift>;

/// Points of a line.
type Points = Vec<(f64, f64)>;

/// The axes of a picture.
pub(super) struct Axes<'a> {
    pub(super) caption: &'a str,
    pub(super) x: (f64, f64),
    pub(super) y: (f64, f64),
    pub(super) x_title: &'a str,
    pub(super) y_title: &'a str,
    pub(super) x_label: &'a dyn Fn(&f64) -> String,
    pub(super) y_label: &'a dyn Fn(&f64) -> String,
    /// How many numbers are written at each axis, at most.
    pub(super) labels: (usize, usize),
    /// The width of what is written at the left, in pixels.
    pub(super) left: u32,
}

/// The colours of Okabe and Ito, which people with any colour vision can tell apart.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(70, 70, 70),
];

pub(super) const FONT: &str = "sans-serif";

/// Returns the colour of a line.
pub(super) fn colour(line: usize) -> RGBColor {
    let colour = COLOURS.get(line % COLOURS.len());
    colour.copied().unwrap_or(BLACK)
}

/// Draws a picture of a size in pixels.
pub(super) fn on_paper(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Result<(), String>,
) -> Result<String, String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE).map_err(text)?;
        draw(&area)?;
        area.present().map_err(text)?;
    }
    Ok(svg)
}

/// Draws axes.
pub(super) fn chart<'a, 'b>(area: &'a Area<'b>, axes: &Axes<'_>) -> Result<Chart<'a, 'b>, String> {
    let mut chart = ChartBuilder::on(area)
        .caption(axes.caption, (FONT, 16))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(axes.left)
        .build_cartesian_2d(axes.x.0..axes.x.1, axes.y.0..axes.y.1)
        .map_err(text)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_desc(axes.x_title)
        .y_desc(axes.y_title)
        .x_labels(axes.labels.0)
        .y_labels(axes.labels.1)
        .x_label_formatter(&|x| (axes.x_label)(x))
        .y_label_formatter(&|y| (axes.y_label)(y))
        .label_style((FONT, 12))
        .axis_desc_style((FONT, 13))
        .draw()
        .map_err(text)?;
    Ok(chart)
}

/// Draws a line with its bounds and its name: `upper` from the left to the right, `lower` back from the right.
pub(super) fn curve<'a, 'b: 'a>(
    chart: &mut Chart<'a, 'b>,
    (index, name): (usize, String),
    (mut upper, lower): (Points, Points),
    line: Points,
) -> Result<(), String> {
    let colour = colour(index);
    upper.extend(lower);
    let band = Polygon::new(upper, colour.mix(0.18));
    chart.draw_series([band]).map_err(text)?;
    let line = LineSeries::new(line, colour.stroke_width(2));
    let line = chart.draw_series(line).map_err(text)?;
    line.label(name)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    Ok(())
}

/// Writes which line is which.
pub(super) fn legend<'a, 'b: 'a>(
    chart: &mut Chart<'a, 'b>,
    place: SeriesLabelPosition,
) -> Result<(), String> {
    chart
        .configure_series_labels()
        .position(place)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(190, 190, 190))
        .label_font((FONT, 12))
        .margin(8)
        .draw()
        .map_err(text)
}

/// Returns the upper end of an axis of shares, in percent.
pub(super) fn top(shares: impl Iterator<Item = f64>) -> f64 {
    let most = shares.fold(0.0, f64::max);
    (108.0 * most).clamp(0.01, 104.0)
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
