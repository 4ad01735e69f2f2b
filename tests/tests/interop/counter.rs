//! Both sides increment one number under one lock.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use quorlock_testbed::wait::BOUND;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection as Connection;

use super::mode::Mode;
use super::party::{Party, Released};
use super::stage::{LONG, Side, Stage, Version, locks_at, servers};
use super::table::case;

/// The number at which both sides stop.
const LIMIT: u64 = 2_000;

/// The number of threads of the JVM, and of our tasks.
const EACH: usize = 4;

/// How long a party pauses after an increment. Without the pause, four fast parties of one side keep the lock all the
/// time, and the four others hardly ever get it: the plain layout is not fair, and the side whose wake-up is slower
/// under load loses.
const BETWEEN_WRITES: Duration = Duration::from_millis(10);
const BETWEEN_WRITES_PER_HOLD: u32 = 4;

/// How long readers pause, to let writers in. Redisson's layout prefers no party, so readers can keep writers out.
const BETWEEN_READS: Duration = Duration::from_millis(50);

/// Returns the tests of this file. Both sides begin at the same time.
pub(crate) fn trials(version: &'static Version) -> Vec<Trial> {
    let stages = Mode::ALL
        .into_iter()
        .map(|mode| Stage::new(version, mode, Side::Jvm));
    let trials = stages.map(|stage| case("no_increment_is_lost", stage, no_increment_is_lost));
    trials.collect()
}

/// Prints the JVM's share of the increments.
async fn no_increment_is_lost(stage: Stage) -> String {
    let server = &servers()[0];
    let number = format!("{}number", stage.name);
    for key in [number.clone(), copy_of(&number)] {
        server.command::<()>(&["SET", &key, "0"]);
    }
    let locks = locks_at(stage.mode.addresses()).await;
    let patient = AsyncConnectionConfig::new().set_response_timeout(Some(BOUND));
    let connection = redis::Client::open(server.address()).unwrap();
    let connection = connection.get_multiplexed_async_connection_with_config(&patient);
    let connection = connection.await.unwrap();
    let mut parties = Vec::new();
    for part in parts(stage.mode) {
        let theirs = Party::jvm(stage.version.jvm(), part.mode(), &stage.name).await;
        parties.push((part, theirs));
        parties.push((part, Party::rust(&locks, part.mode(), &stage.name)));
    }
    let mut counting = Vec::new();
    for (part, party) in parties {
        let (number, connection) = (number.clone(), connection.clone());
        counting.push(tokio::spawn(async move {
            let is_theirs = matches!(party, Party::Jvm(_));
            let own = match (part, is_theirs) {
                (_, true) => party.count_up(part.verb(), &number, LIMIT).await,
                (Part::Writes(_), false) => increment(party, connection, number).await,
                (Part::Reads, false) => compare(party, connection, number).await,
            };
            (part, is_theirs, own)
        }));
    }
    let (mut theirs, mut ours) = (0, 0);
    for done in counting {
        match done.await.unwrap() {
            (Part::Writes(_), true, own) => theirs += own,
            (Part::Writes(_), false, own) => ours += own,
            (Part::Reads, _, own) => assert!(0 < own),
        }
    }
    let counted: u64 = server.command(&["GET", &number]);
    assert_eq!(counted, LIMIT);
    assert_eq!(theirs + ours, LIMIT, "{theirs} and {ours}");
    let fair = LIMIT / 10;
    assert!(fair <= theirs && fair <= ours, "{theirs} and {ours}");
    format!("{} % JVM", theirs * 100 / LIMIT)
}

/// What a party does repeatedly.
#[derive(Clone, Copy)]
enum Part {
    /// Adds one under a lock of this mode.
    Writes(Mode),
    /// Checks under the read lock whether a writer is inside.
    Reads,
}

impl Part {
    fn mode(self) -> Mode {
        match self {
            Part::Writes(mode) => mode,
            Part::Reads => Mode::Read,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Part::Writes(_) => "increment",
            Part::Reads => "compare",
        }
    }
}

/// Returns what the parties of one side do. For a read lock, there must also be writers to exclude.
fn parts(mode: Mode) -> [Part; EACH] {
    let write = Part::Writes(Mode::Write);
    match mode {
        Mode::Read => [write, Part::Reads, write, Part::Reads],
        mode => [Part::Writes(mode); EACH],
    }
}

/// Adds one to the number, as the driver does.
async fn increment(mut party: Party, mut connection: Connection, number: String) -> u64 {
    for own in 0.. {
        party.acquire(LONG).await;
        let since = Instant::now();
        let value = get(&mut connection, &number).await;
        if value < LIMIT {
            for key in [&number, &copy_of(&number)] {
                let mut set = redis::cmd("SET");
                set.arg(key).arg(value + 1);
                set.query_async::<()>(&mut connection).await.unwrap();
            }
        }
        assert_eq!(party.release().await, Released::Yes);
        if LIMIT <= value {
            return own;
        }
        let held = since.elapsed();
        tokio::time::sleep(BETWEEN_WRITES.max(BETWEEN_WRITES_PER_HOLD * held)).await;
    }
    unreachable!("the number is reached before that")
}

/// Compares the number with its copy, as the driver does.
async fn compare(mut party: Party, mut connection: Connection, number: String) -> u64 {
    for own in 1.. {
        party.acquire(LONG).await;
        let value = get(&mut connection, &number).await;
        let copy = get(&mut connection, &copy_of(&number)).await;
        assert_eq!(value, copy, "a writer is inside");
        party.release().await;
        if LIMIT <= value {
            return own;
        }
        tokio::time::sleep(BETWEEN_READS).await;
    }
    unreachable!("the number is reached before that")
}

async fn get(connection: &mut Connection, key: &str) -> u64 {
    let value = redis::cmd("GET").arg(key).query_async(connection).await;
    value.unwrap()
}

fn copy_of(number: &str) -> String {
    format!("{number}:copy")
}
