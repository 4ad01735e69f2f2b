//! The picture as SVG. Each element with a time has it in `data-a` and `data-b`, so that a page can move the element.

use std::fmt::Write;

use super::bars::moment;
use super::notes::extent;
use super::scene::{AXIS, Item, Scene, Shape, Swimlane};
use quorlock_sim_world::history::recording::ProcessPlace;

/// Where the figure is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// In a file of its own, with the style sheet and only the elements in the view.
    Alone,
    /// In a page, which has the style sheet and can move all elements.
    Page,
}

pub(super) const STYLE: &str = include_str!("figure.css");

/// The colours for readers who prefer dark pages. The page of a report is always light.
const DARK_STYLE: &str = include_str!("figure-dark.css");

/// Fill patterns, so that the clients are distinguishable in greyscale, too.
const PATTERNS: &str = include_str!("patterns.svg");

/// Writes to a string. This cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = write!($out, $($arguments)*); };
}

pub(super) fn write(scene: &Scene, used: Use) -> String {
    let height = scene.height + 8.0;
    let (width, gutter) = (scene.width, scene.gutter);
    let sort = if scene.picture.is_some() {
        " noted"
    } else {
        ""
    };
    let mut out = String::new();
    put!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"figure\" class=\"figure{sort}\" role=\"img\" \
         aria-labelledby=\"figure-title figure-text\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\">\n<title id=\"figure-title\">Clients and nodes \
         over time</title>\n<desc id=\"figure-text\">{}</desc>\n",
        escaped(&scene.summary)
    );
    if used == Use::Alone {
        put!(out, "<style>\n{STYLE}{DARK_STYLE}</style>\n");
    }
    let inner = width - gutter;
    put!(
        out,
        "<defs>{PATTERNS}<clipPath id=\"plot\"><rect id=\"plot-area\" x=\"{gutter}\" y=\"0\" \
         width=\"{inner}\" height=\"{height}\"/></clipPath></defs>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
    );
    for lane in &scene.lanes {
        lane_ground(&mut out, scene, lane);
    }
    axis(&mut out, scene);
    out.push_str("<g id=\"plot-items\" clip-path=\"url(#plot)\">\n");
    let canvas = Canvas { scene, used };
    // Messages are drawn below everything else, and violations above everything else.
    let mut labels = String::new();
    for layer in [Layer::State, Layer::Messages, Layer::Rest, Layer::Wrong] {
        for item in scene.items.iter().filter(|item| layer_of(item) == layer) {
            canvas.item(&mut out, &mut labels, item);
        }
    }
    out.push_str(&labels);
    out.push_str("</g>\n</svg>\n");
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layer {
    State,
    Messages,
    Rest,
    Wrong,
}

fn layer_of(item: &Item) -> Layer {
    match item.class.split(' ').next() {
        Some("state") => Layer::State,
        Some("message") => Layer::Messages,
        Some("wrong") => Layer::Wrong,
        _ => Layer::Rest,
    }
}

fn lane_ground(out: &mut String, scene: &Scene, lane: &Swimlane) {
    let kind = match lane.who {
        super::scene::Owner::Place(ProcessPlace::Client(_)) => "clients",
        super::scene::Owner::Place(ProcessPlace::Node(_)) => "nodes",
        _ => "others",
    };
    let (top, height) = (lane.top, lane.height);
    put!(
        out,
        "<rect class=\"lane {kind}\" x=\"0\" y=\"{top}\" width=\"100%\" height=\"{}\"/>\n",
        height - 1.0
    );
    let is_single = lane.rows.len() <= 1;
    let middle = match lane.rows.first() {
        // The label is beside the bars, and the notes are below them.
        Some(row) if scene.picture.is_some() => row.top - top + row.height / 2.0 + 4.0,
        _ if is_single => height / 2.0 + 4.0,
        _ => 17.0,
    };
    put!(
        out,
        "<text class=\"label\" x=\"12\" y=\"{}\">{}</text>\n",
        top + middle,
        escaped(&lane.label)
    );
    // The notes say which lock it is.
    let named = !is_single && scene.picture.is_none();
    for row in lane.rows.iter().filter(|_| named) {
        let y = row.top + row.height / 2.0 + 4.0;
        let x = scene.gutter - 10.0;
        let label = escaped(&shortened(&row.label));
        put!(
            out,
            "<text class=\"row\" x=\"{x}\" y=\"{y}\">{label}</text>\n"
        );
    }
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= 10 {
        return label.to_owned();
    }
    let start: String = label.chars().take(9).collect();
    format!("{start}…")
}

/// Returns round times at readable distances.
fn ticks((from, until): (u64, u64)) -> Vec<u64> {
    let span = until.saturating_sub(from).max(1);
    let mut step = 1u64;
    'found: loop {
        for factor in [1, 2, 5] {
            if span / (step * factor) <= 10 {
                step *= factor;
                break 'found;
            }
        }
        step = step.saturating_mul(10);
    }
    let first = from.div_ceil(step);
    (first..)
        .map(|n| n * step)
        .take_while(|at| *at <= until)
        .collect()
}

fn axis(out: &mut String, scene: &Scene) {
    let canvas = Canvas {
        scene,
        used: Use::Alone,
    };
    let bottom = scene.height;
    out.push_str("<g id=\"axis\">\n");
    for at in ticks(scene.view) {
        let x = canvas.x(at);
        let label = at as f64 / 1e6;
        put!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{AXIS}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"19\">{label} ms</text>\n"
        );
    }
    out.push_str("</g>\n");
}

fn title(item: &Item) -> String {
    match item.title.as_str() {
        "" => String::new(),
        text => format!("<title>{}</title>", escaped(text)),
    }
}

struct Canvas<'a> {
    scene: &'a Scene,
    used: Use,
}

impl Canvas<'_> {
    fn x(&self, at: u64) -> f64 {
        self.scene.x(at)
    }

    fn is_left_out(&self, from: u64, until: u64) -> bool {
        let (first, last) = self.scene.view;
        self.used == Use::Alone && (until < first || last < from)
    }

    fn item(&self, out: &mut String, labels: &mut String, item: &Item) {
        let (class, title) = (&item.class, title(item));
        match &item.shape {
            Shape::Bar {
                from,
                until,
                top,
                height,
                label,
            } if !self.is_left_out(*from, *until) => {
                let x = self.x(*from);
                let width = (self.x(*until) - x).max(1.5);
                put!(
                    out,
                    "<rect class=\"{class}\" data-a=\"{from}\" data-b=\"{until}\" x=\"{x:.1}\" \
                     y=\"{top}\" width=\"{width:.1}\" height=\"{height}\">{title}</rect>\n"
                );
                if !label.is_empty() {
                    let y = top + height / 2.0 + 4.0;
                    self.label(labels, class, (*from, *until), y, label);
                }
            }
            Shape::Arrow {
                from,
                until,
                top,
                bottom,
                is_lost,
            } if !self.is_left_out(*from, *until) => {
                let (lost, bottom) = match is_lost {
                    true => (" lost", (top + bottom) / 2.0),
                    false => ("", *bottom),
                };
                let class = format!("{class}{lost}");
                self.line(out, &class, (*from, *until), (*top, bottom), &title);
            }
            Shape::Moment { at, top, bottom } => {
                let class = format!("{class} moment");
                self.line(out, &class, (*at, *at), (*top, *bottom), &title);
            }
            Shape::Mark { at, y, glyph } if !self.is_left_out(*at, *at) => {
                let (x, y) = (self.x(*at), y + 4.0);
                put!(
                    out,
                    "<text class=\"mark {class}\" data-a=\"{at}\" x=\"{x:.1}\" y=\"{y}\">{glyph}\
                     {title}</text>\n"
                );
            }
            Shape::Steps { points } => self.steps(out, class, points, &title),
            // Outside of the view.
            Shape::Bar { .. } | Shape::Arrow { .. } | Shape::Mark { .. } => {}
        }
    }

    fn line(
        &self,
        out: &mut String,
        class: &str,
        (from, until): (u64, u64),
        (top, bottom): (f64, f64),
        title: &str,
    ) {
        let (x1, x2) = (self.x(from), self.x(until));
        put!(
            out,
            "<line class=\"{class}\" data-a=\"{from}\" data-b=\"{until}\" \
             x1=\"{x1:.1}\" y1=\"{top}\" x2=\"{x2:.1}\" y2=\"{bottom}\">{title}</line>\n"
        );
    }

    /// Writes the label of a bar, if there is room for it.
    fn label(&self, out: &mut String, class: &str, (from, until): (u64, u64), y: f64, text: &str) {
        // The name of a fault is written next to its start even if the fault is short. So are the marks of a client.
        let is_free = class.starts_with("fault") || class.starts_with("note");
        let left = self.x(from).max(self.scene.gutter);
        let room = self.x(until).min(self.scene.width) - left;
        let is_shown = is_free || 7.0 * text.len() as f64 <= room;
        if self.used == Use::Alone && !is_shown {
            return;
        }
        let is_left = self.scene.picture.is_some() && extent(self.scene, left, text).0 < left;
        let (free, x) = match is_free {
            true if is_left => (" free ends", left - 5.0),
            true => (" free", left + 4.0),
            false => ("", left + 4.0),
        };
        let hidden = if is_shown {
            ""
        } else {
            " style=\"display:none\""
        };
        put!(
            out,
            "<text class=\"on{free}\" data-a=\"{from}\" data-b=\"{until}\" x=\"{x:.1}\" \
             y=\"{y}\"{hidden}>{}</text>\n",
            escaped(text)
        );
    }

    fn steps(&self, out: &mut String, class: &str, points: &[(u64, f64)], title: &str) {
        let mut times = String::new();
        let mut places = String::new();
        let mut before = None;
        for (at, y) in points {
            let x = self.x(*at);
            if let Some(before) = before {
                put!(places, "{x:.1},{before:.1} ");
            }
            put!(places, "{x:.1},{y:.1} ");
            put!(times, "{at},{y:.1} ");
            before = Some(*y);
        }
        put!(
            out,
            "<polyline class=\"{class}\" data-steps=\"{}\" points=\"{}\">{title}</polyline>\n",
            times.trim_end(),
            places.trim_end()
        );
    }
}

/// Escapes a text for HTML and SVG.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Describes the view in a sentence, for screen readers.
pub(super) fn caption(scene: &Scene) -> String {
    let (from, until) = scene.view;
    format!("Shown from {} to {}.", moment(from), moment(until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            ticks((0, 100)),
            [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
        );
        let some = ticks((1_234_567, 987_654_321));
        assert_eq!(some.first(), Some(&100_000_000));
        assert!((4..=11).contains(&some.len()));
        assert_eq!(ticks((7, 7)), [7]);
    }
}
