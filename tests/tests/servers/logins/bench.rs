//! A user of a server, whose password changes.

use std::path::PathBuf;
use std::time::Duration;

use quorlock::redis::{Credentials, PasswordFile, RedisConfig};
use quorlock::{Locks, LocksBuilder};
use quorlock_testbed::server::Server;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::settings;

/// A server with a user whose password is in a file.
pub(super) struct Bench {
    pub(super) server: Server,
    pub(super) path: PathBuf,
}

impl Bench {
    pub(super) fn start(password: &str) -> Bench {
        let server = Server::start();
        let path = server.dir().join("password");
        let bench = Bench { server, path };
        bench.acl(&["on", "~*", "&*", "+@all", &format!(">{password}")]);
        bench.write(password);
        bench
    }

    pub(super) fn acl(&self, rules: &[&str]) {
        let user = ["ACL", "SETUSER", "jobs"];
        self.server.command::<()>(&[&user[..], rules].concat());
    }

    /// Replaces the file atomically, because it may be read during the write.
    pub(super) fn write(&self, password: &str) {
        let beside = self.path.with_extension("new");
        std::fs::write(&beside, format!("{password}\n")).unwrap();
        std::fs::rename(&beside, &self.path).unwrap();
    }

    pub(super) fn file(&self) -> PasswordFile {
        PasswordFile::new(&self.path).look_every(Duration::from_millis(20))
    }

    pub(super) fn address(&self) -> String {
        format!("redis://jobs@127.0.0.1:{}/", self.server.port())
    }

    pub(super) fn settings(&self, credentials: impl Credentials) -> LocksBuilder {
        let builder = settings().watchdog_lease(Duration::from_secs(3));
        builder.redis(redis().credentials(credentials))
    }

    pub(super) async fn locks(&self, credentials: impl Credentials) -> Locks {
        let connected = self.settings(credentials).connect(self.address()).await;
        connected.expect("the server lets it in")
    }

    /// Returns how many logins were accepted since the last [`Bench::forget_logins`].
    pub(super) fn logins(&self) -> usize {
        let stats: String = self.server.command(&["INFO", "commandstats"]);
        let auth = stats
            .lines()
            .find_map(|line| line.strip_prefix("cmdstat_auth:"));
        let count = |name: &str| {
            let field = auth?
                .split(',')
                .find_map(|field| field.strip_prefix(name))?;
            field.trim().parse::<usize>().ok()
        };
        count("calls=").unwrap_or(0) - count("failed_calls=").unwrap_or(0)
    }

    pub(super) fn refusals(&self) -> usize {
        let stats: String = self.server.command(&["INFO", "errorstats"]);
        let count = stats
            .lines()
            .find_map(|line| line.strip_prefix("errorstat_WRONGPASS:count="));
        count.map_or(0, |count| count.trim().parse().unwrap())
    }

    pub(super) fn forget_logins(&self) {
        self.server.command::<()>(&["CONFIG", "RESETSTAT"]);
    }

    /// Ends the connections of the user.
    pub(super) fn cut(&self) {
        self.server
            .command::<u32>(&["CLIENT", "KILL", "USER", "jobs"]);
    }

    /// Waits until one of the user's connections carries requests, and returns its id. The server takes a wake-up connection
    /// for another one until it listens, or tracks what this client holds.
    pub(super) async fn connection(&self) -> String {
        let mut ids = Vec::new();
        until("one connection carries requests", || {
            let list: String = self.server.command(&["CLIENT", "LIST", "TYPE", "normal"]);
            let users = |line: &&str| line.contains(" user=jobs ") && !line.contains(" flags=t ");
            let lines = list.lines().filter(users);
            ids = lines
                .filter_map(|line| line.split(' ').next().map(String::from))
                .collect();
            ids.len() == 1
        })
        .await;
        ids.remove(0)
    }
}

pub(super) fn redis() -> RedisConfig {
    RedisConfig::default()
        .connect_timeout(Duration::from_secs(1))
        .call_timeout(Duration::from_secs(1))
        .ping_interval(Duration::from_millis(200))
}
