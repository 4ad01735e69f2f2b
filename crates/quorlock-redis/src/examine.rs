//! Examines the servers of a transport for an operator: their own report, their clocks, their round trips, and the rights
//! of the user. Nothing is written.

mod clock;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{join_all, join3};
use quorlock_core::name::Name;
use quorlock_core::transport::{Cause, TransportError};
use redis::{Cmd, Value};

pub use self::clock::ClockFacts;
use self::clock::ClockSample;
use crate::check::may_not_subscribe;
use crate::doubtful_settings::{self, Doubt};
use crate::error;
use crate::failure;
use crate::info::Info;
use crate::link::Connection;
use crate::rights::{RightsFacts, Subject, survey};
use crate::server::Server;
use crate::source::SentinelFacts;
use crate::target::Target;
use crate::timer;
use crate::transport::RedisTransport;

/// How many round trips are measured.
const ROUND_TRIPS: usize = 20;

/// How long the round trips of a slow server are measured.
const MEASURED_FOR: Duration = Duration::from_millis(500);

/// The time between the two readings of a clock whose rate is measured.
const BETWEEN_READINGS: Duration = Duration::from_millis(100);

/// How many times a clock is read at once, of which the quickest counts.
const READINGS: usize = 3;

/// How many entries of the slow log are read: as many as a server keeps by default.
const SLOW_ENTRIES: usize = 128;

/// What is known about one server.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct ExaminedServer {
    /// The server's address, without credentials.
    pub address: String,
    /// What it has said, or why it could not be asked.
    pub facts: Result<ServerFacts, TransportError>,
}

/// What a server has said.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerFacts {
    /// The user of the login; `default` without one.
    pub user: String,
    /// How long it took to connect and to log in.
    pub connected_in: Duration,
    /// The fields of `INFO`; empty if they cannot be read.
    pub info: BTreeMap<String, String>,
    /// The settings that were asked for by `CONFIG GET`, as far as they can be read.
    pub settings: BTreeMap<String, String>,
    /// What could not be read, and the reply of the server.
    pub unread: Vec<(&'static str, String)>,
    /// Its clock, beside that of this machine.
    pub clock: Option<ClockFacts>,
    /// The measured round trips, the shortest first.
    pub round_trips: Vec<Duration>,
    /// The longest command of its slow log.
    pub slowest: Option<SlowCommand>,
    /// What the user lacks.
    pub rights: RightsFacts,
    /// Settings that are legal but doubtful.
    pub doubts: Vec<Doubt>,
}

/// A command in the slow log. Its arguments are not kept, as they may be secret.
#[doc(hidden)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowCommand {
    /// The name of the command.
    pub verb: String,
    /// How long the server executed it.
    pub took: Duration,
}

impl RedisTransport {
    /// Examines each server that requests go to, for locks on this name (with the key prefix).
    ///
    /// # Errors
    /// If the servers cannot be found.
    #[doc(hidden)]
    pub async fn examine(
        &self,
        name: &Name,
        is_watched: bool,
    ) -> Result<Vec<ExaminedServer>, TransportError> {
        let deadline = timer::now() + self.config().connect_timeout;
        let servers = timer::by(deadline, self.routes().all()).await;
        let servers = servers.unwrap_or_else(|| Err(error::no_handshake()))?;
        let (namespace, name) = name.split();
        let name = [self.routes().name_prefix().as_bytes(), name].concat();
        let name = &Name::within(namespace, name)
            .map_err(|error| failure::definite(Cause::Unsupported, format!("the name: {error}")))?;
        let examined = servers.iter().map(|server| async move {
            ExaminedServer {
                address: server.target.shown().to_owned(),
                facts: self.examine_server(server, name, is_watched).await,
            }
        });
        Ok(join_all(examined).await)
    }

    /// Returns what each sentinel says of the group; empty if the transport does not lead to one.
    #[doc(hidden)]
    pub async fn sentinels(&self) -> Vec<SentinelFacts> {
        match self.routes().all().await {
            Ok(servers) if !self.is_of_cluster() => match servers.first() {
                Some(server) => server.target.source().survey().await,
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    async fn examine_server(
        &self,
        server: &Server,
        name: &Name,
        is_watched: bool,
    ) -> Result<ServerFacts, TransportError> {
        let target = &*server.target;
        let began = timer::now();
        let deadline = began + self.config().connect_timeout;
        let opened = timer::by(deadline, Connection::trial(target, deadline)).await;
        let link = opened.unwrap_or_else(|| Err(error::no_handshake()))?;
        let connected_in = began.elapsed();
        let asker = Asker {
            link: &link,
            target,
        };
        let login = target.login().await?;
        let user = login.as_ref().and_then(|login| login.user_name());
        let user = user.unwrap_or("default");
        let subject = Subject {
            name,
            is_watched,
            user,
            home: self.routes().home(),
            prefix: &target.config().prefix,
        };
        let rights = survey(subject, |question| async move {
            asker.link.ask(asker.target, &question).await.ok()
        });
        let ((info, mut facts), slowest, rights) =
            join3(asker.report(), asker.slowest(), rights).await;
        facts.unread.extend(slowest.as_ref().err().cloned());
        facts.slowest = slowest.ok().flatten();
        (facts.user, facts.connected_in) = (user.to_owned(), connected_in);
        facts.doubts = doubtful_settings::of_info(&info);
        let coverage = facts.settings.get(COVERAGE).map(String::as_str);
        facts.doubts.extend(doubtful_settings::of_need(coverage));
        (facts.round_trips, facts.clock) = asker.measured().await;
        // The last question, because a connection that is subscribed is for nothing else on an old server.
        if !matches!(rights, RightsFacts::Told(_)) && may_not_subscribe(&link, target, name).await?
        {
            facts.doubts.push(Doubt::MayNotSubscribe);
        }
        facts.rights = rights;
        Ok(facts)
    }
}

/// Whether a cluster serves nothing while one slot has no owner.
const COVERAGE: &str = "cluster-require-full-coverage";

/// The settings that `INFO` does not report.
const SETTINGS: [&str; 3] = ["appendfsync", COVERAGE, "repl-backlog-ttl"];

/// A connection for questions.
#[derive(Clone, Copy)]
struct Asker<'a> {
    link: &'a Connection,
    target: &'a Target,
}

impl Asker<'_> {
    /// Sends a command. Returns the reply, or why there is none.
    async fn ask(self, cmd: &Cmd) -> Result<Value, String> {
        match self.link.ask(self.target, cmd).await {
            Ok(Value::ServerError(refusal)) => Err(error::server(&refusal).detail),
            Ok(value) => Ok(value),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Reads what the server reports about itself.
    async fn report(self) -> (Info, ServerFacts) {
        let mut info = Info::default();
        let mut unread = Vec::new();
        match self.ask(&redis::cmd("INFO")).await {
            Ok(text) if info.add(&text) => {}
            Ok(_) => unread.push(("INFO", "the reply is not text".to_owned())),
            Err(why) => unread.push(("INFO", why)),
        }
        let mut settings = BTreeMap::new();
        for setting in SETTINGS {
            let mut get = redis::cmd("CONFIG");
            match self.ask(get.arg("GET").arg(setting)).await {
                Ok(answer) => settings.extend(pair(&answer)),
                Err(why) => {
                    unread.push(("CONFIG GET", why));
                    break;
                }
            }
        }
        let facts = ServerFacts {
            user: String::new(),
            connected_in: Duration::ZERO,
            info: info.fields().collect(),
            settings,
            unread,
            clock: None,
            round_trips: Vec::new(),
            slowest: None,
            rights: RightsFacts::NotTold,
            doubts: Vec::new(),
        };
        (info, facts)
    }

    /// Returns the longest command of the slow log.
    async fn slowest(self) -> Result<Option<SlowCommand>, (&'static str, String)> {
        let mut get = redis::cmd("SLOWLOG");
        let answer = self.ask(get.arg("GET").arg(SLOW_ENTRIES)).await;
        let answer = answer.map_err(|why| ("SLOWLOG GET", why))?;
        let entries = match &answer {
            Value::Array(entries) => entries.as_slice(),
            _ => &[],
        };
        Ok(entries.iter().filter_map(slow).max_by_key(|slow| slow.took))
    }

    /// Measures round trips, and the clock at the begin and at the end.
    async fn measured(self) -> (Vec<Duration>, Option<ClockFacts>) {
        let began = timer::now();
        let first = self.clock().await;
        let mut round_trips = Vec::new();
        for _ in 0..ROUND_TRIPS {
            let sent = timer::now();
            if MEASURED_FOR <= sent - began || self.ask(&redis::cmd("PING")).await.is_err() {
                break;
            }
            round_trips.push(sent.elapsed());
        }
        round_trips.sort();
        timer::sleep_until(began + BETWEEN_READINGS).await;
        let second = self.clock().await;
        (
            round_trips,
            first.map(|first| ClockFacts::of(first, second)),
        )
    }

    /// Reads the clock a few times. Returns the reading that took the shortest.
    async fn clock(self) -> Option<ClockSample> {
        let mut best: Option<ClockSample> = None;
        for _ in 0..READINGS {
            let sent = timer::Reading::now();
            let answer = self.ask(&redis::cmd("TIME")).await.ok()?;
            let sample = ClockSample::of(sent, timer::Reading::now(), time(&answer)?);
            best = best
                .filter(|best| best.half <= sample.half)
                .or(Some(sample));
        }
        best
    }
}

/// Parses the reply to `TIME`. Returns microseconds since 1970.
fn time(answer: &Value) -> Option<i64> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let number = |at: usize| text(parts.get(at)?)?.parse::<i64>().ok();
    Some(number(0)? * 1_000_000 + number(1)?)
}

/// Parses an entry of the slow log: its number, its time, how long it took, and its words.
fn slow(entry: &Value) -> Option<SlowCommand> {
    let Value::Array(parts) = entry else {
        return None;
    };
    let (Value::Int(micros), Value::Array(words)) = (parts.get(2)?, parts.get(3)?) else {
        return None;
    };
    Some(SlowCommand {
        verb: text(words.first()?)?.to_uppercase(),
        took: Duration::from_micros(u64::try_from(*micros).ok()?),
    })
}

/// Parses the reply to `CONFIG GET` for one setting.
fn pair(answer: &Value) -> Option<(String, String)> {
    match answer {
        Value::Array(words) => match words.as_slice() {
            [name, value] => Some((text(name)?, text(value)?)),
            _ => None,
        },
        Value::Map(pairs) => pairs
            .first()
            .and_then(|(name, value)| Some((text(name)?, text(value)?))),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(wire: &str) -> Value {
        redis::parse_redis_value(wire.as_bytes()).unwrap()
    }

    #[test]
    fn of_a_slow_command_only_the_name_is_kept() {
        let entry = "*4\r\n:7\r\n:1700000000\r\n:25000\r\n*2\r\n$4\r\nauth\r\n$6\r\ns3cret\r\n";
        let found = slow(&parsed(entry)).unwrap();
        assert_eq!((found.verb.as_str(), found.took.as_millis()), ("AUTH", 25));
        assert_eq!(slow(&parsed("*1\r\n:7\r\n")), None);
    }

    #[test]
    fn a_time_is_two_numbers() {
        let answer = parsed("*2\r\n$10\r\n1700000000\r\n$2\r\n17\r\n");
        assert_eq!(time(&answer), Some(1_700_000_000_000_017));
        assert_eq!(time(&parsed("*1\r\n$1\r\n1\r\n")), None);
    }
}
