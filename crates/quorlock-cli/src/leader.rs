//! `quorlock leader`: runs a command whenever this process leads.
//!
//! The command runs under the term of a leader as it does under a lock in [`run`](crate::run), with the same guardian.
//! The candidacy is not polled while the command runs: the term is renewed in the background, and the guardian receives
//! the time until which it lasts.

use std::time::Duration;

use clap::Args;
use quorlock::{Candidacy, LeaderEvent, Leadership, Locks, ReleaseError};
use rustix::process::{Signal, getpid, kill_process};

use crate::connect::{Patience, connect};
use crate::failure::{Code, Failure};
use crate::messages::Voice;
use crate::run::guarded::{self, Guarded};
use crate::run::held::{self, GroupThen, Work};
use crate::run::holding::HoldThen;
use crate::run::notify::Notify;
use crate::run::signals::{ENDING, Signals};
use crate::run::stranger::refuse_strangers;
use crate::run::tenure::Tenure as _;
use crate::run::timing::Timing;
use crate::run::{close, now, unless_told};
use crate::settings::{Reach, Settings};
use crate::span::Span;

/// Run a command whenever this process leads, until this process is ended.
///
/// One of the candidates for a name leads: it holds the lock of that name. The command is started when this process is
/// elected, and has ended before a server may let another candidate win. After a loss this process becomes a candidate
/// again.
///
/// When the command ends by itself, with any code, this process gives up the leadership so that others can win, and
/// becomes a candidate again after --rest. With --once it exits instead, with the command's code. It also exits if the
/// command cannot be executed (codes 126 and 127).
///
/// INT, TERM and QUIT are forwarded to the command. When the command has ended, this process exits with the command's
/// code; while no command runs, it exits with 128 plus the number of the signal. HUP is forwarded as well, but this
/// process exits only if the command dies of it. Servers that do not answer are waited for.
///
/// The command gets these environment variables: QUORLOCK_TERM (a number that is larger in every term than in all
/// earlier terms of any process: pass it to the store that the command writes to) and, as with run, QUORLOCK_NAME,
/// QUORLOCK_FENCING_TOKEN (the same number), QUORLOCK_OWNER, QUORLOCK_DEADLINE and QUORLOCK_FD.
#[derive(Clone, Debug, Args)]
pub(crate) struct Leader {
    #[command(flatten)]
    reach: Reach,
    /// Lease of the leader, which is renewed every third of it. If this machine fails, another candidate can win after
    /// this time [default: 30s].
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    /// How long to wait after the command has ended before this process becomes a candidate again.
    #[arg(long, value_name = "SPAN", default_value = "1s")]
    rest: Span,
    /// Exit with the command's code when the command ends by itself. After a loss the command runs again.
    #[arg(long)]
    once: bool,
    /// Name of the leadership.
    name: String,
    #[command(flatten)]
    guarded: Guarded,
}

/// Time without an answer from the servers after which a warning is printed.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(30);

/// The next step after a term.
enum Then {
    /// The process is a candidate again.
    Again,
    End(Code),
    /// Processes of the command cannot be ended, so no other candidate may lead before the lease is over.
    Keep,
}

impl Leader {
    pub(crate) fn run(&self) -> Code {
        let voice = self.guarded.voice();
        let ended = guarded::block_on(self.stand(voice));
        ended.unwrap_or_else(|failure| {
            voice.failure(&failure);
            failure.code
        })
    }

    async fn stand(&self, voice: Voice) -> Result<Code, Failure> {
        let mut settings = self.reach.settings()?;
        let timing = self.guarded.timing(self.lease, &mut settings)?;
        let mut signals = Signals::catch(&ENDING)
            .map_err(|error| Failure::system("signals cannot be caught", error))?;
        let notify = Notify::of_environment();
        notify.tell("STATUS=connecting");
        let locks = match unless_told(&mut signals, reach(&settings, voice)).await {
            Ok(locks) => locks?,
            Err(signal) => return Ok(Code::of_signal(signal.as_raw())),
        };
        let names = [&self.name].into_iter();
        match unless_told(&mut signals, refuse_strangers(&locks, names)).await {
            Ok(refused) => refused?,
            Err(signal) => return Ok(Code::of_signal(signal.as_raw())),
        }
        notify.tell("READY=1");
        let mut term = Terms {
            leader: self,
            timing,
            voice,
            notify,
            candidacy: locks.leader(&self.name).rest(self.rest.0).campaign(),
        };
        let then = term.go_on(&mut signals).await;
        let Terms {
            candidacy, notify, ..
        } = term;
        notify.tell("STOPPING=1");
        if let Ok(Then::Keep) = then {
            // This process ends without a release, so the servers keep the claim until its lease is over.
            std::mem::forget((candidacy, locks));
            return Ok(Code::LOST);
        }
        let given_back = give_back(candidacy, voice).await;
        close(&locks).await;
        match then? {
            Then::End(code) => Ok(match given_back {
                GivenBack::Yes => code,
                GivenBack::Unconfirmed => code.of_unreleased(),
            }),
            Then::Again | Then::Keep => Ok(Code::LOST),
        }
    }

    /// Returns the variables in the environment of the command.
    fn variables(&self, leadership: &Leadership) -> Vec<(String, String)> {
        let term = leadership.term().0.to_string();
        vec![
            ("QUORLOCK_NAME".into(), self.name.clone()),
            ("QUORLOCK_TERM".into(), term.clone()),
            ("QUORLOCK_FENCING_TOKEN".into(), term),
            ("QUORLOCK_OWNER".into(), leadership.owner_id().to_string()),
            (
                "QUORLOCK_DEADLINE".into(),
                leadership.deadline().to_string(),
            ),
        ]
    }
}

/// A candidate, and what it needs for each of its terms.
struct Terms<'a> {
    leader: &'a Leader,
    timing: Timing,
    voice: Voice,
    notify: Notify,
    candidacy: Candidacy,
}

impl Terms<'_> {
    /// Runs term after term, until the end.
    async fn go_on(&mut self, signals: &mut Signals) -> Result<Then, Failure> {
        let name = self.leader.name.as_str();
        loop {
            let waits = format!("STATUS=candidate for {name}");
            self.notify.tell(&waits);
            self.voice.event("candidate", &[("name", name.into())]);
            let event = match self.next(signals).await {
                Ok(event) => event,
                Err(signal) => return Ok(Then::End(Code::of_signal(signal.as_raw()))),
            };
            match event {
                Some(LeaderEvent::Elected { leadership, .. }) => {
                    match self.work(&leadership, signals).await? {
                        Then::Again => {}
                        then => return Ok(then),
                    }
                }
                Some(LeaderEvent::Failed { error, .. }) => {
                    let failure = Failure::from(error);
                    if failure.code != Code::UNAVAILABLE {
                        return Err(failure);
                    }
                    let text = format!("{}; it is tried again", failure.text);
                    self.voice.warn("not-elected", &text, &[]);
                }
                Some(LeaderEvent::Lost { .. }) => self.voice.event("term-over", &[]),
                Some(_) => {}
                None => return Err(Failure::new(Code::UNAVAILABLE, "the client was closed")),
            }
        }
    }

    /// Returns the next event of the candidacy, or the signal that ends this process.
    async fn next(&mut self, signals: &mut Signals) -> Result<Option<LeaderEvent>, Signal> {
        loop {
            match unless_told(signals, self.candidacy.next()).await {
                Ok(event) => return Ok(event),
                Err(signal) if ENDING.contains(&signal) => return Err(signal),
                // TSTP was caught for an earlier command, so this process has to stop itself.
                Err(Signal::TSTP) => {
                    let _ = kill_process(getpid(), Signal::STOP);
                }
                Err(_) => {}
            }
        }
    }

    /// Runs the command for one term.
    async fn work(&self, leadership: &Leadership, signals: &mut Signals) -> Result<Then, Failure> {
        let (leader, voice) = (self.leader, self.voice);
        let name = leader.name.as_str();
        let needed = self.timing.needed();
        let validity = leadership.validity();
        if validity < needed {
            let text = format!(
                "elected, but only {validity:?} of a lease of {:?} are left, and the command needs {needed:?} to start (--min-validity plus --grace): stepping down; set a longer --lease",
                self.timing.lease
            );
            return Ok(self.step_down(leadership, &text));
        }
        let fields = [
            ("name", name.into()),
            ("term", leadership.term().0.into()),
            ("owner", leadership.owner_id().to_string().into()),
        ];
        voice.event("elected", &fields);
        self.notify.tell(&format!("STATUS=leads {name}"));
        let work = Work {
            command: &leader.guarded.command,
            variables: leader.variables(leadership),
            timing: self.timing,
            on_loss: leader.guarded.on_loss,
            voice,
        };
        let end = match held::run(&work, leadership, signals).await {
            Ok(end) => end,
            Err(failure) if failure.code == Code::UNAVAILABLE => {
                return Ok(self.step_down(leadership, &failure.text));
            }
            Err(failure) => return Err(failure),
        };
        Ok(self.after(&end, leadership, signals))
    }

    /// Returns what to do when the command has ended.
    fn after(&self, end: &held::End, leadership: &Leadership, signals: &Signals) -> Then {
        if end.group == GroupThen::Survives {
            return Then::Keep;
        }
        // HUP may mean that the command should reload its settings. It ends this process only if the command was ended
        // by it.
        let died_of_hup = end.code == Code::of_signal(Signal::HUP.as_raw());
        let is_told = match signals.ending() {
            Some(Signal::HUP) => died_of_hup,
            ending => ending.is_some(),
        };
        if end.hold == HoldThen::Lost {
            // The guardian has ended the command. If this process was stopped, and renews the term before it is over,
            // it would lead without a command.
            leadership.step_down();
        }
        match end.hold {
            HoldThen::Lost if is_told => return Then::End(Code::LOST),
            HoldThen::Lost => return Then::Again,
            HoldThen::Held => {}
        }
        let is_hopeless = matches!(end.code, Code::CANNOT_EXECUTE | Code::NOT_FOUND);
        if is_told || self.leader.once || is_hopeless {
            return Then::End(end.code);
        }
        let text = format!(
            "the command ended with {}: stepping down, a candidate again after {}",
            end.code.0, self.leader.rest
        );
        self.step_down(leadership, &text)
    }

    fn step_down(&self, leadership: &Leadership, why: &str) -> Then {
        self.voice.warn("steps-down", why, &[]);
        leadership.step_down();
        Then::Again
    }
}

/// Returns a client. Waits for servers that do not answer, and warns about them.
async fn reach(settings: &Settings, voice: Voice) -> Result<Locks, Failure> {
    loop {
        let patience = match now().checked_add(BETWEEN_COMPLAINTS) {
            Some(until) => Patience::Until(until),
            None => Patience::None,
        };
        match connect(settings, patience, voice).await {
            Err(failure) if failure.code == Code::UNAVAILABLE => {
                let text = format!("{}; it is tried again", failure.text);
                voice.warn("unreachable", &text, &[]);
            }
            connected => return connected,
        }
    }
}

/// Whether the servers confirmed that another candidate may win.
enum GivenBack {
    Yes,
    Unconfirmed,
}

/// Gives up the candidacy, and the leadership with it.
async fn give_back(candidacy: Candidacy, voice: Voice) -> GivenBack {
    let was_leading = candidacy.leadership().is_some();
    match candidacy.resign().await {
        Ok(()) if was_leading => voice.event("released", &[]),
        // A loss was reported when it happened.
        Ok(()) | Err(ReleaseError::NotHeld { .. }) => {}
        Err(error) => {
            let text = format!("{error}; the lease ends it at the latest");
            voice.warn("unconfirmed", &text, &[]);
            return GivenBack::Unconfirmed;
        }
    }
    GivenBack::Yes
}
