//! `chaos`.

mod table;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use self::table::{Line, table};
use super::{Form, InLane, Trouble, chosen, complain, say, say_json};
use crate::chaos::cell::{self, Observed};
use crate::chaos::control::control_of;
use crate::chaos::{had, worker};
use crate::history::Process;
use crate::plan::fault::Kind;
use crate::plan::time::Span;
use crate::plan::{Plan, file};
use crate::study::matrix::{ALL_AT_ONCE, CLASSES, CONTENDERS, Class, Contender, Storm};
use crate::study::progress::{self, Counting};

/// Run a plan on real servers.
#[derive(Debug, Args)]
pub(super) struct Chaos {
    /// A plan or scenario in TOML, or the id of a scenario.
    #[arg(
        value_name = "FILE|ID",
        required_unless_present = "class",
        conflicts_with = "class"
    )]
    file: Option<PathBuf>,
    /// Which case of a scenario; the first without.
    #[arg(long, requires = "file")]
    case: Option<String>,
    /// Storms of this class of faults instead of a plan; may be given several times.
    #[arg(long, value_parser = PossibleValuesParser::new(classes().map(|class| class.id)))]
    class: Vec<String>,
    /// Only this lock; may be given several times. Without, RedLock of this crate and the control of the class: a lock that must
    /// break in the same time.
    #[arg(long, requires = "class", value_parser = PossibleValuesParser::new(CONTENDERS.iter().map(|lock| lock.id)))]
    lock: Vec<String>,
    /// How long each storm lasts, in minutes.
    #[arg(long, default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// By how much times are longer than in the plan: a lease of 150 ms is one of 1.5 s.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    scale: u32,
    /// The seed: which faults strike, and what clients draw.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the plans in TOML instead of running them. The simulator runs them, too: quorlock-sim run plan.toml
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    form: Form,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no number of minutes"))?;
    match (0.1..=600.0).contains(&minutes) {
        true => Ok(minutes),
        false => Err("a storm lasts between 0.1 and 600 minutes".to_owned()),
    }
}

/// One lock and what strikes it.
#[derive(Clone, Debug)]
struct Asked {
    lock: String,
    class: String,
    plan: Plan,
    expected: Expected,
}

/// What must come of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Expected {
    /// Exclusion holds, and so does the order of tokens, if that is claimed as well.
    Holds { order: bool },
    /// Exclusion breaks: the control.
    Breaks,
    /// Nothing is claimed.
    Anything,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Told<'a> {
    lock: &'a str,
    class: &'a str,
    seed: u64,
    scale: u32,
    expected: Expected,
    wrong: Option<String>,
    observed: &'a Observed,
}

impl Chaos {
    pub(super) fn run(self) -> Result<u8, Trouble> {
        let asked = self.asked()?;
        if self.plan {
            for asked in &asked {
                say(&file::write(&asked.plan)?);
            }
            return Ok(0);
        }
        let mut lines = Vec::new();
        // The locks of a class side by side, and one class after another.
        for cells in asked.chunk_by(|a, b| a.class == b.class) {
            for (asked, observed) in cells.iter().zip(self.side_by_side(cells)?) {
                let wrong = asked.wrong(&observed);
                if self.form.json {
                    say_json(&Told {
                        lock: &asked.lock,
                        class: &asked.class,
                        seed: asked.plan.seed,
                        scale: self.scale,
                        expected: asked.expected,
                        wrong: wrong.as_ref().map(|(_, what)| what.clone()),
                        observed: &observed,
                    })?;
                }
                lines.push((asked, observed, wrong));
            }
        }
        if !self.form.json {
            let line = |(asked, observed, _): &(&Asked, Observed, _)| Line {
                class: asked.class.clone(),
                lock: asked.lock.clone(),
                observed: observed.clone(),
            };
            say(&table(&lines.iter().map(line).collect::<Vec<_>>()));
        }
        let mut code = 0;
        for (asked, _, wrong) in &lines {
            if let Some((of_it, what)) = wrong {
                complain(&format!(
                    "{}, {}, seed {}: {what}",
                    asked.lock, asked.class, asked.plan.seed
                ));
                code = if code == 2 { 2 } else { *of_it };
            }
        }
        Ok(code)
    }

    fn asked(&self) -> Result<Vec<Asked>, Trouble> {
        if let Some(path) = &self.file {
            let source = chosen::read(
                path,
                self.case.as_deref(),
                Some(self.seed),
                InLane { lane: None },
            )?;
            let plan = source.plan().clone();
            file::check(&plan)?;
            return Ok(vec![Asked {
                lock: plan.variant.name().to_owned(),
                class: path.display().to_string(),
                plan,
                expected: Expected::Anything,
            }]);
        }
        let classes = CLASSES
            .iter()
            .filter(|class| self.class.iter().any(|id| id == class.id));
        let mut asked = Vec::new();
        for class in classes {
            if !class.is_had(has) {
                let why = class.kinds().first().and_then(|kind| had::lacks(*kind));
                let why = format!("{}: {}", class.id, why.unwrap_or_default());
                return Err(Trouble::Other(why));
            }
            asked.extend(locks(class, &self.lock).map(|lock| self.of(lock, class)));
        }
        Ok(asked)
    }

    fn of(&self, lock: &Contender, class: &Class) -> Asked {
        let seconds = self.minutes * 60.0 / f64::from(self.scale);
        let storm = Storm {
            seed: self.seed,
            lasts: Span::from(std::time::Duration::from_secs_f64(seconds)),
            has,
        };
        Asked {
            lock: lock.id.to_owned(),
            class: class.id.to_owned(),
            plan: lock.storm(class, storm),
            expected: match control_of(class.id) == Some(lock.id) {
                true => Expected::Breaks,
                false if lock.keeps_exclusion(class) => Expected::Holds {
                    order: lock.keeps_order(class),
                },
                false => Expected::Anything,
            },
        }
    }

    fn side_by_side(&self, cells: &[Asked]) -> Result<Vec<Observed>, Trouble> {
        let seconds =
            |asked: &Asked| asked.plan.duration.as_duration().as_secs_f64() * f64::from(self.scale);
        let most = cells.iter().map(|asked| seconds(asked).ceil() as u64).max();
        let bar = Arc::new(progress::bar(most.unwrap_or(0), Counting::Seconds));
        if let Some(first) = cells.first() {
            bar.set_message(first.class.clone());
        }
        let observed = std::thread::scope(|scope| {
            let run = |asked: &Asked| {
                let (plan, scale, bar) = (asked.plan.clone(), self.scale, Arc::clone(&bar));
                scope.spawn(move || cell::run(&plan, scale, move |second| bar.set_position(second)))
            };
            let running: Vec<_> = cells.iter().map(run).collect();
            let ended = running.into_iter().map(|cell| {
                let ended = cell.join();
                ended.unwrap_or_else(|_| Err("BUG: a cell panicked".to_owned()))
            });
            ended.collect::<Result<Vec<Observed>, String>>()
        });
        bar.finish_and_clear();
        observed.map_err(Trouble::Other)
    }
}

/// Those of the matrix, and all at once.
fn classes() -> impl Iterator<Item = &'static Class> {
    CLASSES.iter().chain([&ALL_AT_ONCE])
}

/// Whether a kind of fault can be had on real machines.
fn has(kind: Kind) -> bool {
    had::lacks(kind).is_none()
}

/// Those that are named, or RedLock of this crate and the control.
fn locks<'a>(
    class: &'a Class,
    named: &'a [String],
) -> impl Iterator<Item = &'static Contender> + 'a {
    CONTENDERS.iter().filter(|lock| match named.is_empty() {
        true => lock.id == "ours" || Some(lock.id) == control_of(class.id),
        false => named.iter().any(|id| id == lock.id),
    })
}

impl Asked {
    /// What is not as expected, with the exit code for it.
    fn wrong(&self, observed: &Observed) -> Option<(u8, String)> {
        let broke = |order: bool| {
            let fencing = observed.fencing.as_ref().filter(|_| order);
            observed
                .exclusion
                .as_ref()
                .or(fencing)
                .map(|broke| broke.story.clone())
        };
        match self.expected {
            Expected::Holds { order } if broke(order).is_some() => {
                broke(order).map(|story| (2, story))
            }
            Expected::Breaks if observed.exclusion.is_none() => Some((
                4,
                "the control did not break, so nothing was shown".to_owned(),
            )),
            _ => {
                let vacuous = observed.vacuous(self.plan.faults.len())?;
                Some((4, format!("{}, so nothing was shown", vacuous.what())))
            }
        }
    }
}

/// A client process of `chaos`, which starts it.
#[derive(Debug, Args)]
pub(super) struct ChaosClient {
    desk: u16,
    client: u16,
    restarts: u16,
}

impl ChaosClient {
    pub(super) fn run(self) -> Result<u8, Trouble> {
        let process = Process {
            client: self.client,
            restarts: self.restarts,
        };
        // A client whose command is gone has nobody to tell that.
        let _ = worker::run(self.desk, process);
        Ok(0)
    }
}
