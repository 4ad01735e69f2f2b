//! The stage of a test: servers, a JVM, and a name.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use quorlock::redis::RedisConfig;
use quorlock::{Locks, LocksBuilder};
use quorlock_testbed::server::Server;
use quorlock_testbed::wait::{BOUND, until};

use super::jvm::Jvm;
use super::mode::Mode;
use super::party::{Party, Watch};

/// The lease of holds without an explicit one, on both sides. Both sides renew it every third of its length.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(2);

/// A lease that ends long after its test.
pub(crate) const LONG: Option<Duration> = Some(Duration::from_secs(30));

/// The longest time for which our waiters sleep without asking, which is the default `poll_cap`.
pub(crate) const POLL_CAP: Duration = Duration::from_secs(5);

/// The versions of Redisson that `tests/interop/run.sh` fetches, one per line.
const LIST: &str = include_str!("../../interop/redisson/versions");

/// The versions of Redisson that are tested.
pub(crate) static VERSIONS: std::sync::LazyLock<Vec<Version>> =
    std::sync::LazyLock::new(|| LIST.split_whitespace().map(Version::new).collect());

/// A version of Redisson, and the JVM that most of its tests share.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) number: &'static str,
    jvm: OnceLock<Jvm>,
}

impl Version {
    fn new(number: &'static str) -> Version {
        Version {
            number,
            jvm: OnceLock::new(),
        }
    }

    pub(crate) fn jvm(&self) -> &Jvm {
        self.jvm.get_or_init(|| Jvm::start(self.number))
    }
}

/// Returns the servers that all tests share: three, for RedLock.
pub(crate) fn servers() -> &'static [Server; 3] {
    static SERVERS: OnceLock<[Server; 3]> = OnceLock::new();
    SERVERS.get_or_init(|| std::array::from_fn(|_| Server::start()))
}

/// One of the two sides that share the locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Side {
    Jvm,
    Rust,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Jvm, Side::Rust];

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Jvm => Side::Rust,
            Side::Rust => Side::Jvm,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Side::Jvm => "jvm",
            Side::Rust => "rust",
        }
    }
}

/// The stage of one test, and the side that begins.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) version: &'static Version,
    pub(crate) mode: Mode,
    /// The side whose lock of this mode is tested; the other side comes second.
    pub(crate) first: Side,
    /// The name to lock. No other test uses it.
    pub(crate) name: String,
}

impl Stage {
    /// Returns a stage with a name that is not in use.
    pub(crate) fn new(version: &'static Version, mode: Mode, first: Side) -> Stage {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Stage {
            version,
            mode,
            first,
            name: format!("interop/{}/{next}/", version.number),
        }
    }

    /// Returns whether Redisson is older than this version, major and minor.
    pub(crate) fn is_before(&self, version: (u32, u32)) -> bool {
        let mut numbers = self.version.number.split('.').map(|n| n.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap()) < version
    }

    /// Returns the same stage with another name.
    pub(crate) fn afresh(&self) -> Stage {
        Stage::new(self.version, self.mode, self.first)
    }

    /// Returns the same stage with this name.
    pub(crate) fn named(&self, name: &str) -> Stage {
        Stage {
            name: name.to_owned(),
            ..self.clone()
        }
    }

    /// Returns stages with other names, one for each lock of the other side that this lock excludes.
    pub(crate) fn with_rivals(&self) -> impl Iterator<Item = (Stage, Mode)> {
        let rivals = self.mode.rivals().iter();
        rivals.map(|rival| (self.afresh(), *rival))
    }

    /// Returns the party that comes first.
    pub(crate) async fn holder(&self) -> Party {
        self.party(self.first, self.mode).await
    }

    /// Returns a party of the other side.
    pub(crate) async fn rival(&self, mode: Mode) -> Party {
        self.party(self.first.other(), mode).await
    }

    async fn party(&self, side: Side, mode: Mode) -> Party {
        match side {
            Side::Jvm => Party::jvm(self.version.jvm(), mode, &self.name).await,
            Side::Rust => Party::rust(&locks_at(mode.addresses()).await, mode, &self.name),
        }
    }

    /// Waits until the party sleeps, so that only the release of the name can wake it.
    pub(crate) async fn until_asleep(&self, party: &Watch) {
        let somebody_listens = |server: &Server| !self.channels(server).is_empty();
        until("there is a listener", || {
            servers().iter().any(somebody_listens)
        })
        .await;
        let begun = Instant::now();
        while !party.sees_it_sleep().await {
            assert!(begun.elapsed() < BOUND, "it does not sleep");
        }
    }

    /// Publishes a release without releasing anything.
    pub(crate) fn wake_whoever_waits(&self) {
        let server = &servers()[0];
        for channel in self.channels(server) {
            server.command::<()>(&["PUBLISH", &channel, "0"]);
        }
    }

    /// Returns the channels on which a party listens for a release of the name.
    fn channels(&self, server: &Server) -> Vec<String> {
        let pattern = format!("*{}*", self.name);
        server.command(&["PUBSUB", "CHANNELS", &pattern])
    }

    /// Waits until there is no key under the names.
    pub(crate) async fn until_free(&self) {
        let is_free = |server: &Server| {
            let mut words = vec!["EXISTS".to_owned()];
            words.extend(self.mode.names(&self.name));
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            server.command::<u32>(&words) == 0
        };
        until("it is free", || servers().iter().all(is_free)).await;
    }

    /// Returns the number of waiters of a fair lock.
    pub(crate) fn waiters(&self) -> usize {
        let queue = format!("redisson_lock_queue:{{{}}}", self.name);
        servers()[0].command(&["LLEN", &queue])
    }

    /// Returns how long the claim stays: the smallest TTL among the claims that keep other parties out.
    pub(crate) fn left(&self) -> Duration {
        let mut left: Vec<u64> = self
            .mode
            .servers()
            .iter()
            .map(|server| {
                let ttl: i64 = server.command(&["PTTL", &self.name]);
                u64::try_from(ttl).unwrap_or(0)
            })
            .collect();
        left.sort_unstable();
        Duration::from_millis(left[left.len() / 2])
    }
}

/// Returns a client of these servers, configured to share names with Redisson.
pub(crate) async fn locks_at<A: AsRef<str>>(addresses: impl IntoIterator<Item = A>) -> Locks {
    let connected = settings().quorum(addresses).await;
    connected.expect("the servers can be used")
}

/// Returns the settings that every client of ours needs to share names with Redisson. Because the machine may be busy,
/// a call may take a long time.
///
/// There is no clock margin. With one, a claim of ours would stay longer by the margin, and a JVM that waits for a
/// dead holder would wait longer, too.
pub(crate) fn settings() -> LocksBuilder {
    let settings = quorlock_tests::clients::settings();
    let redis = RedisConfig::default()
        .call_timeout(BOUND)
        .connect_timeout(BOUND);
    let settings = settings.redis(redis).clock_margin(Duration::ZERO);
    settings.watchdog_lease(WATCHDOG).token_retention(None)
}
