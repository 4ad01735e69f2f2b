//! The page: the figure, the story next to it, and everything that is needed to repeat the run.

use std::fmt::Write;

use super::bars::moment;
use super::expiry::{self, Change};
use super::figure::{self, Use, caption, escaped};
use super::scene::{AXIS, EDGE, Scene};
use super::slice::Slice;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_check::story::{self, StoryKind, StoryLine};
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;
use quorlock_sim_world::history::recording::Recording;

const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const LEGEND: &str = include_str!("legend.html");

/// Writes to a string. This cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = write!($out, $($arguments)*); };
}

/// Returns, as HTML, how to repeat a run from its plan.
pub(super) fn by_plan(plan: &str) -> String {
    format!(
        "<p>Save this plan as <code>plan.toml</code> and run <code>quorlock-sim run plan.toml</code> (version {}).</p>\n\
         <pre>{}</pre>",
        env!("CARGO_PKG_VERSION"),
        escaped(plan)
    )
}

/// Returns, as HTML, how to repeat a run of a test.
pub(super) fn by_command(command: &str) -> String {
    format!("<pre>{}</pre>", escaped(command))
}

/// Writes the page. `seed` is the one by which the user knows the run: shrinking may have changed that of the plan.
/// `repeat` explains, as HTML, how to repeat the run.
pub(super) fn write(
    run: &Run,
    recording: &Recording,
    (title, seed): (&str, u64),
    repeat: &str,
    slice: Option<&Slice>,
) -> String {
    let scene = Scene::of(run, recording, None, slice);
    let mut out = String::new();
    put!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{}{PAGE_STYLE}</style>\n</head>\n<body>\n",
        escaped(title),
        figure::STYLE
    );
    head(&mut out, run, title, seed);
    out.push_str("<main>\n<section id=\"chart\" aria-label=\"Timeline\">\n");
    toolbar(&mut out, &scene);
    overview(&mut out, &scene, recording);
    put!(
        out,
        "<div id=\"frame\" tabindex=\"0\" role=\"group\" aria-label=\"Timeline. Arrow keys move, \
         plus and minus zoom, 0 shows all of it.\">\n{}</div>\n\
         <p id=\"caption\" aria-live=\"polite\">{}</p>\n{LEGEND}</section>\n",
        figure::write(&scene, Use::Page),
        caption(&scene)
    );
    story(&mut out, run, recording, slice.map(|_| scene.end));
    out.push_str("</main>\n");
    if let Some(slice) = slice {
        causes(&mut out, slice);
        claims(&mut out, &expiry::changes(run, recording, slice));
    }
    details(&mut out, run, repeat);
    let ((from, until), gutter) = (scene.view, scene.gutter);
    let violated = scene
        .violated
        .map_or("null".to_owned(), |at| at.to_string());
    put!(
        out,
        "<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>\nconst RUN = {{ end: {}, \
         from: {from}, until: {until}, violated: {violated}, gutter: {gutter}, edge: {EDGE}, \
         axis: {AXIS}, height: {} }};\n{SCRIPT}</script>\n</body>\n</html>\n",
        scene.end,
        scene.height
    );
    out
}

/// Returns what the run shows, in plain words.
fn headline(verdict: &Verdict) -> String {
    let violation = match verdict {
        Verdict::Holds => return "Every property holds".to_owned(),
        Verdict::Vacuous => return "No client acquired anything".to_owned(),
        Verdict::Violated(violation) => violation,
    };
    let name = violation.name.as_deref().unwrap_or("a lock");
    match violation.property {
        Property::Exclusion => format!("Two clients believe to hold {name}"),
        Property::Usage => format!("Writes of two holders of {name} interleave"),
        Property::Fencing => format!("The fencing tokens of {name} are out of order"),
        Property::Ownership => format!("A claim on {name} is changed by another client"),
        Property::HoldCount => format!("A hold of {name} counts wrongly"),
        Property::Progress => "No client gets the lock any more".to_owned(),
        Property::Orphans => format!("A claim on {name} stays behind"),
        Property::Expiry => format!("A claim on {name} outlives its owner"),
        Property::Fairness => format!("A waiter for {name} is overtaken"),
        Property::ReadWrite if violation.story.starts_with("node") => {
            format!("A client is refused {name}, which no other client holds")
        }
        Property::ReadWrite => format!("A client writes {name} while others hold it"),
        Property::Statements => format!("A lease on {name} shrinks"),
        Property::Validity => format!("A statement about a hold of {name} is wrong"),
        Property::Leadership => format!("Two leaders believe to lead {name}"),
        Property::Termination => "The run does not end".to_owned(),
        Property::Terms => format!("The terms of leaders of {name} are out of order"),
        Property::Always => format!("The property \"{name}\" is broken"),
        Property::Eventually => format!("The property \"{name}\" never becomes true"),
    }
}

fn head(out: &mut String, run: &Run, title: &str, seed: u64) {
    let (class, verdict) = match &run.verdict {
        Verdict::Violated(violation) if violation.property.is_stated() => {
            ("bad", "fails".to_owned())
        }
        Verdict::Violated(violation) => ("bad", format!("{} violated", violation.property)),
        Verdict::Holds => ("good", "holds".to_owned()),
        Verdict::Vacuous => ("bad", "vacuous".to_owned()),
    };
    put!(
        out,
        "<header>\n<p class=\"title\">{}</p>\n<h1><span class=\"verdict {class}\">{verdict}</span> \
         {}</h1>\n",
        escaped(title),
        escaped(&headline(&run.verdict))
    );
    let (lock, whose) = (story::lock(&run.plan), story::whose(&run.plan));
    put!(
        out,
        "<p class=\"lead\">{}: {}.</p>\n",
        escaped(&lock),
        escaped(&whose)
    );
    if let Verdict::Violated(violation) = &run.verdict {
        let at = moment(violation.at.as_nanos());
        put!(
            out,
            "<p class=\"lead\">At {at}: {}.</p>\n",
            escaped(&violation.story)
        );
    }
    out.push_str("<dl class=\"facts\">");
    for (what, value) in facts(run, seed) {
        put!(
            out,
            "<div><dt>{what}</dt><dd>{}</dd></div>",
            escaped(&value)
        );
    }
    out.push_str("</dl>\n</header>\n");
}

fn facts(run: &Run, seed: u64) -> Vec<(&'static str, String)> {
    let plan: &Plan = &run.plan;
    if plan.not_demanded.contains(&Property::Exclusion) && !run.history.stated.is_empty() {
        return own_facts(run, seed);
    }
    vec![
        ("variant", plan.variant.to_string()),
        ("clients", plan.clients.to_string()),
        ("lease", plan.workload.lease.to_string()),
        ("work", plan.workload.kind.name().to_owned()),
        ("faults", plan.faults.len().to_string()),
        ("holds", run.history.holds.to_string()),
        ("commands", run.counters.commands.to_string()),
        ("seed", seed.to_string()),
        ("trace", format!("{:016x}", run.trace)),
    ]
}

/// Returns the facts about a user's test, whose work is not the workload of the plan.
fn own_facts(run: &Run, seed: u64) -> Vec<(&'static str, String)> {
    let plan: &Plan = &run.plan;
    vec![
        ("clients", plan.clients.to_string()),
        ("lease", plan.workload.lease.to_string()),
        ("faults", plan.faults.len().to_string()),
        ("outages", plan.outages.len().to_string()),
        ("commands", run.counters.commands.to_string()),
        ("seed", seed.to_string()),
        ("trace", format!("{:016x}", run.trace)),
    ]
}

fn toolbar(out: &mut String, scene: &Scene) {
    out.push_str(
        "<div class=\"bar\" role=\"toolbar\" aria-label=\"View\">\
         <button id=\"in\" type=\"button\">+ zoom in</button>\
         <button id=\"out\" type=\"button\">− zoom out</button>\
         <button id=\"all\" type=\"button\">whole run</button>",
    );
    if scene.violated.is_some() {
        out.push_str("<button id=\"bad\" type=\"button\">to the violation</button>");
    }
    out.push_str(
        "<label><input id=\"messages\" type=\"checkbox\" checked> messages</label>\
         <label>with <input id=\"name\" type=\"search\" size=\"12\" placeholder=\"a name\"></label>\
         <span class=\"hint\">wheel: zoom, drag: move</span></div>\n",
    );
}

/// Draws an overview of the whole run as a strip. A window marks the part that is shown.
fn overview(out: &mut String, scene: &Scene, recording: &Recording) {
    const PARTS: usize = 240;
    let mut sent = [0u32; PARTS];
    for message in &recording.messages {
        let part = u128::from(message.sent) * PARTS as u128 / (u128::from(scene.end) + 1);
        if let Some(count) = usize::try_from(part)
            .ok()
            .and_then(|part| sent.get_mut(part))
        {
            *count += 1;
        }
    }
    let max = f64::from(sent.iter().copied().max().unwrap_or(1).max(1));
    out.push_str(
        "<svg id=\"overview\" viewBox=\"0 0 240 30\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\"><path class=\"density\" d=\"M0,30",
    );
    for (count, part) in sent.iter().zip(0..) {
        let y = 30.0 - f64::from(*count) / max * 24.0;
        put!(out, " L{part},{y:.1} L{},{y:.1}", part + 1);
    }
    out.push_str(" L240,30 z\"/>");
    if let Some(at) = scene.violated {
        let x = at as f64 / scene.end as f64 * 240.0;
        put!(
            out,
            "<rect class=\"bad\" x=\"{x:.2}\" y=\"0\" width=\".8\" height=\"30\"/>"
        );
    }
    out.push_str("<rect id=\"window\" y=\"0\" height=\"30\"/></svg>\n");
}

fn story(out: &mut String, run: &Run, recording: &Recording, end: Option<u64>) {
    let mut lines = story::lines(run, Some(recording));
    lines.retain(|line| end.is_none_or(|end| line.at <= end));
    put!(
        out,
        "<section id=\"story\" aria-label=\"The story\"><h2>The story</h2>\
         <p class=\"bar\"><label><input id=\"follow\" type=\"checkbox\" checked> only what the \
         picture shows</label> <span id=\"count\">{} lines</span></p>\n<ol>\n",
        lines.len()
    );
    for line in &lines {
        story_line(out, line);
    }
    out.push_str("</ol>\n</section>\n");
}

fn story_line(out: &mut String, line: &StoryLine) {
    let class = match line.sort {
        StoryKind::Fault => "fault",
        StoryKind::Client => "client",
        StoryKind::Node => "node",
        StoryKind::Store => "store",
        StoryKind::Violation => "violation",
    };
    let who = line
        .process
        .map_or(String::new(), |process| format!(" w{}", process.client % 8));
    put!(
        out,
        "<li class=\"{class}{who}\" data-t=\"{}\"><time>{}</time> {}</li>\n",
        line.at,
        moment(line.at),
        escaped(&line.text)
    );
}

/// Lists without what the property would have held, and links the run that passes.
fn causes(out: &mut String, slice: &Slice) {
    out.push_str(
        "<section id=\"causes\" class=\"events\"><h2>Without one of these, it would have held</h2>\n<ol>\n",
    );
    for necessary in &slice.necessary {
        event(out, necessary.at, &necessary.text);
    }
    out.push_str("</ol>\n");
    if slice.necessary.is_empty() {
        out.push_str("<p>No single fault or message was necessary.</p>\n");
    }
    if let Some((first, last)) = slice.curve.first().zip(slice.curve.last()) {
        put!(
            out,
            "<p>How likely it was is drawn above the clients, from 0 to 100 %: at each point, everything before it is as in this run, and what follows \
             by chance is drawn anew. At first, {}; at the end, {}.</p>\n",
            escaped(&first.text),
            escaped(&last.text)
        );
    }
    if let Some(twin) = &slice.twin {
        put!(
            out,
            "<p>The nearest run that passes: <a href=\"{}\">{}</a>.</p>\n",
            escaped(&twin.page),
            escaped(&twin.text)
        );
    }
    out.push_str(
        "<p><label><input id=\"slice\" type=\"checkbox\" checked> grey what cannot have led to the violation</label></p>\n</section>\n",
    );
}

/// Lists when each claim would expire, and what changed that.
fn claims(out: &mut String, changes: &[Change]) {
    out.push_str(
        "<section id=\"claims\" class=\"events\"><h2>When each claim would expire, and what changed that</h2>\n<ol>\n",
    );
    for change in changes {
        event(out, change.at, &change.text);
    }
    out.push_str("</ol>\n");
    if changes.is_empty() {
        out.push_str("<p>No claim changed.</p>\n");
    }
    out.push_str("</section>\n");
}

fn event(out: &mut String, at: u64, text: &str) {
    put!(
        out,
        "<li data-t=\"{at}\"><time>{}</time> {}</li>\n",
        moment(at),
        escaped(text)
    );
}

fn details(out: &mut String, run: &Run, repeat: &str) {
    out.push_str("<footer>\n");
    if !run.plan.faults.is_empty() {
        out.push_str(
            "<details open><summary>Faults</summary>\n<table><thead><tr><th>at</th>\
             <th>what</th><th>effects</th></tr></thead><tbody>\n",
        );
        let faults = run.plan.faults.iter().zip(&run.effects).enumerate();
        for (index, (planned, effects)) in faults {
            let (at, what) = match run.happened(index) {
                Some(fault) => (
                    moment(fault.begins().as_nanos()).to_string(),
                    fault.to_string(),
                ),
                None => (format!("never: {}", planned.when), planned.to_string()),
            };
            put!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{effects}</td></tr>\n",
                escaped(&at),
                escaped(&what)
            );
        }
        out.push_str("</tbody></table></details>\n");
    }
    put!(
        out,
        "<details><summary>Repeat it</summary>\n{repeat}</details>\n</footer>\n"
    );
}
