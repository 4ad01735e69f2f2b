//! The story of a run: what happened, in words, in the order of true time.

use quorlock::NodeTrust;

use crate::run::{Run, Verdict};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Plan};
use quorlock_sim_world::history::recording::{Claim, ProcessPlace, Recording, Status};
use quorlock_sim_world::history::{Accepted, Action, Operation, Outcome, Process, Written};

/// One line of a story.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoryLine {
    /// When it happened, in nanoseconds of true time.
    pub at: u64,
    /// The kind of event.
    pub sort: StoryKind,
    /// The process that did it, if a process did.
    pub process: Option<Process>,
    /// What happened, without its time.
    pub text: String,
}

/// The kind of event that a line describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of the variants describe them")]
pub enum StoryKind {
    Fault,
    Client,
    Node,
    Store,
    Violation,
}

impl StoryLine {
    fn new(at: u64, sort: StoryKind, process: Option<Process>, text: String) -> Self {
        StoryLine {
            at,
            sort,
            process,
            text,
        }
    }

    /// Returns the line as text, with its time.
    #[must_use]
    pub fn in_text(&self) -> String {
        let mark = match self.sort {
            StoryKind::Fault => "!! ",
            StoryKind::Violation => ">> ",
            _ => "",
        };
        let at = moment(self.at).to_string();
        format!("{at:>12} {mark}{}", self.text)
    }
}

/// Returns the story of a run as text.
#[must_use]
pub fn tell(run: &Run) -> Vec<String> {
    let mut told = vec![format!("{}: {}", lock(&run.plan), whose(&run.plan))];
    told.extend(lines(run, None).iter().map(StoryLine::in_text));
    let counters = run.counters;
    told.push(format!(
        "{} holds, {} commands, {} refusals in {}; trace {:016x}",
        run.history.holds, counters.commands, counters.refused, run.lasted, run.trace
    ));
    told.push(summary(run));
    told
}

/// Returns the verdict of a run as a sentence. If a variant other than the product violates a property, the sentence
/// names the variant, because a page or story may be shown without its plan.
#[must_use]
pub fn summary(run: &Run) -> String {
    match &run.verdict {
        Verdict::Holds => "every property holds".to_owned(),
        Verdict::Vacuous => "vacuous: no client acquired anything".to_owned(),
        Verdict::Violated(violation) => {
            let by = match run.plan.variant {
                Variant::Product => String::new(),
                variant => format!(" (variant {variant}, not the product)"),
            };
            let (property, at) = (violation.property, moment(violation.at.as_nanos()));
            format!("{property} violated{by} at {at}: {}", violation.story)
        }
    }
}

/// Returns the lock of a plan: its kind, and the number of its nodes.
#[must_use]
pub fn lock(plan: &Plan) -> String {
    let nodes = match plan.nodes.count {
        1 => "one node".to_owned(),
        count => format!("{count} nodes"),
    };
    match plan.lock {
        LockKind::Single => format!("a lock on {nodes}"),
        LockKind::Multi => format!("MultiLock on {nodes}"),
        LockKind::Redlock => format!("RedLock on {nodes}"),
    }
}

/// Returns the implementation of a plan's lock, and the remedies of the product that are turned off.
#[must_use]
pub fn whose(plan: &Plan) -> String {
    let variant = plan.variant;
    if !variant.has_product_clients() {
        return format!("the simulator's own, variant {variant}: not the product's");
    }
    let mut whose = match variant {
        Variant::Product => "the product's".to_owned(),
        _ => format!("the product's clients, variant {variant}: wrong on purpose"),
    };
    if plan.has_remedies() {
        if plan.node_trust() == NodeTrust::Unwatched {
            whose += ", without trust in nodes";
        }
        if plan.clock_margin() == SimTime::ZERO {
            whose += ", without a clock margin";
        }
    }
    whose
}

/// Returns what happened in a run, in order. With a recording, this includes the claims on nodes.
#[must_use]
pub fn lines(run: &Run, recording: Option<&Recording>) -> Vec<StoryLine> {
    let mut lines: Vec<StoryLine> = Vec::new();
    for (index, effects) in run.effects.iter().enumerate() {
        let Some(fault) = run.happened(index) else {
            continue;
        };
        let effect = match effects {
            0 => " (without effect)",
            _ => "",
        };
        let text = format!("{fault}{effect}");
        let at = fault.begins().as_nanos();
        lines.push(StoryLine::new(at, StoryKind::Fault, None, text));
    }
    let ended = run.history.operations.iter();
    lines.extend(
        ended
            .filter(|op| op.completed != u64::MAX)
            .map(|op| operation(run, op)),
    );
    own(run, &mut lines);
    sections(run, &mut lines);
    reigns(run, &mut lines);
    lines.extend(run.history.writes.iter().map(|write| written(run, write)));
    if let Some(recording) = recording {
        // A replica has what its primary had, so the claims on replicas are left out.
        let is_replica = |claim: &&Claim| {
            let place = ProcessPlace::Node(claim.node);
            let mut states = recording.states.iter();
            states.any(|s| {
                s.place == place
                    && s.status == Status::Replica
                    && s.from <= claim.from
                    && claim.from < s.until
            })
        };
        for claim in recording.claims.iter().filter(|c| !is_replica(c)) {
            claimed(run, claim, &mut lines);
        }
    }
    if let Verdict::Violated(violation) = &run.verdict {
        let text = match &violation.name {
            Some(name) if violation.property.is_stated() => {
                format!("{} {name:?}: {}", violation.property, violation.story)
            }
            _ => format!("{} violated: {}", violation.property, violation.story),
        };
        let at = violation.at.as_nanos();
        lines.push(StoryLine::new(at, StoryKind::Violation, None, text));
    }
    lines.sort_by_key(|line| line.at);
    lines
}

/// Rounds a time to microseconds.
fn moment(at: u64) -> SimTime {
    SimTime::nanos(at / 1_000 * 1_000)
}

/// Adds what a user's own clients record and send to resources, and the outages of these resources.
fn own(run: &Run, lines: &mut Vec<StoryLine>) {
    for mark in &run.history.marks {
        let who = mark.process.map_or(String::new(), |who| format!("{who}: "));
        let text = format!("{who}{}", mark.text);
        lines.push(StoryLine::new(
            mark.at,
            StoryKind::Client,
            mark.process,
            text,
        ));
    }
    for asked in &run.history.asked {
        let resources = &run.history.resources;
        let name = resources.get(usize::from(asked.resource));
        let name = name.map_or("?", String::as_str);
        let (who, question) = (asked.process, &asked.question);
        let (at, text) = match &asked.done {
            Some((at, answer)) => (*at, format!("{name}: {who} {question} -> {answer}")),
            None => (
                asked.sent,
                format!("{name}: {who} {question}, which is not done"),
            ),
        };
        lines.push(StoryLine::new(at, StoryKind::Store, Some(who), text));
    }
    if !run.history.resources.is_empty() {
        lines.extend(run.plan.outages.iter().map(|outage| {
            let at = outage.at.as_nanos();
            StoryLine::new(at, StoryKind::Fault, None, outage.to_string())
        }));
    }
}

fn sections(run: &Run, lines: &mut Vec<StoryLine>) {
    for section in &run.history.sections {
        let name = run.history.text(section.name);
        let who = section.process;
        let believed = match section.believed {
            Some(at) => format!("finds its lock held, last at {}", moment(at)),
            None => "finds its lock not held any more".to_owned(),
        };
        let text = format!("{who} goes into {name}; it {believed}");
        lines.push(StoryLine::new(
            section.entered,
            StoryKind::Client,
            Some(who),
            text,
        ));
        if section.left != u64::MAX {
            let text = format!("{who} leaves {name}");
            lines.push(StoryLine::new(
                section.left,
                StoryKind::Client,
                Some(who),
                text,
            ));
        }
    }
}

fn reigns(run: &Run, lines: &mut Vec<StoryLine>) {
    for reign in &run.history.reigns {
        let name = run.history.text(reign.name);
        let (who, term) = (reign.process, reign.term);
        let believed = match reign.believed {
            Some(at) => format!("finds that it leads, last at {}", moment(at)),
            None => "finds that its term is over".to_owned(),
        };
        let text = format!("{who} leads {name} in term {term}; it {believed}");
        lines.push(StoryLine::new(
            reign.elected,
            StoryKind::Client,
            Some(who),
            text,
        ));
        if reign.ended != u64::MAX {
            let text = format!("{who} ends its work as leader of {name}");
            lines.push(StoryLine::new(
                reign.ended,
                StoryKind::Client,
                Some(who),
                text,
            ));
        }
    }
}

fn written(run: &Run, write: &Written) -> StoryLine {
    let token = write
        .token
        .map_or(String::new(), |t| format!(" with token {t}"));
    let name = run.history.text(write.name);
    let took = match write.accepted {
        Accepted::Yes => "takes",
        Accepted::No => "rejects",
    };
    let who = write.process;
    let read = write.read_at.map_or(String::new(), |at| {
        format!(", which had read at {}", moment(at))
    });
    let text = format!("the store {took} a write of {who}{read} to {name}{token}");
    StoryLine::new(write.at, StoryKind::Store, Some(who), text)
}

fn claimed(run: &Run, claim: &Claim, lines: &mut Vec<StoryLine>) {
    let name = run.history.text(claim.name);
    let node = run.plan.node_name(claim.node);
    let whose = claim
        .owner
        .map_or("an unknown client".to_owned(), |owner| owner.to_string());
    let text = format!("{node}: {name} is locked by {whose}");
    lines.push(StoryLine::new(
        claim.from,
        StoryKind::Node,
        claim.owner,
        text,
    ));
    if claim.until != u64::MAX {
        let text = format!("{node}: {name} is no longer locked by {whose}");
        lines.push(StoryLine::new(
            claim.until,
            StoryKind::Node,
            claim.owner,
            text,
        ));
    }
}

fn operation(run: &Run, operation: &Operation) -> StoryLine {
    let names: Vec<&str> = run
        .history
        .names
        .iter()
        .enumerate()
        .filter(|(bit, _)| operation.names & (1 << bit) != 0)
        .map(|(_, name)| name.as_str())
        .collect();
    let names = names.join("+");
    let who = operation.process;
    let did = |does: &str, fails: &str, perhaps: &str| match operation.outcome {
        Outcome::Ok => format!("{does} {names} (token {})", operation.token),
        Outcome::Fail => format!("{fails} {names}"),
        Outcome::Indeterminate => format!("{perhaps} {names}"),
    };
    let text = match operation.action {
        Action::Acquire => did(
            "acquires",
            "gives up acquiring",
            "is cancelled while it acquires",
        ),
        Action::Try => did("acquires", "tries in vain", "is cancelled while it tries"),
        Action::Reenter => did(
            "enters again",
            "cannot enter again",
            "has perhaps entered again",
        ),
        Action::Extend => did(
            "extends its lease of",
            "cannot extend",
            "has perhaps extended",
        ),
        Action::Release => did(
            "has released",
            "has lost and cannot release",
            "has perhaps released",
        ),
        Action::Write => did(
            "has written to",
            "was not allowed to write to",
            "has perhaps written to",
        ),
    };
    let asked = moment(operation.invoked);
    let text = format!("{who} {text}, asked at {asked}");
    StoryLine::new(operation.completed, StoryKind::Client, Some(who), text)
}
