//! Real PostgreSQL servers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::guardian::{Guardian, is_alive};
use crate::port::free_port;
use crate::run::{self, is_root, run, status_of};
use crate::wait::{BOUND, within};

/// The longest time that a server may take until it answers, on a loaded machine.
const UP: Duration = Duration::from_secs(60);

/// Returns the folder of the newest installed server's programs, if there is one.
#[must_use]
pub fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    folders
        .filter(|folder| folder.join("initdb").exists())
        .max()
}

/// Returns why tests that need a server are ignored; `None` if one is installed or required.
#[must_use]
pub fn missing() -> Option<&'static str> {
    let reason = "needs PostgreSQL: run tests/stores.sh";
    run::missing("QUORLOCK_REQUIRE_POSTGRES", installed().is_some(), reason)
}

/// What a test needs of a disk: what a process wrote is there when the process is killed, and no machine is. Clients that want
/// more have to say so.
const HASTY: [&str; 2] = ["synchronous_commit=off", "fsync=off"];

/// A PostgreSQL server that only its owner uses, on a free port of the loopback interface. When this value is dropped, or when this process is killed, the server ends and its folder is removed.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    port: u16,
    settings: Vec<String>,
    running: Option<Guardian>,
    folder: TempDir,
}

impl Postgres {
    /// The password of the user `locks`.
    pub const PASSWORD: &str = "right";

    /// Makes a cluster of databases and starts its server, which commits in memory alone.
    ///
    /// # Panics
    /// Panics if PostgreSQL is not installed, or the server does not come up.
    #[must_use]
    pub fn start() -> Postgres {
        Postgres::start_with(&HASTY)
    }

    /// The same with these settings, and otherwise those that every server has.
    ///
    /// # Panics
    /// Panics if PostgreSQL is not installed, or the server does not come up.
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Postgres {
        let mut server = Postgres::new(settings);
        let password = server.path("password");
        fs::write(server.folder.path().join("password"), Self::PASSWORD).expect("a file");
        let data = server.path("data");
        let words = [
            "--username",
            "locks",
            "--auth",
            "scram-sha-256",
            "--no-sync",
        ];
        let paths = ["--pgdata", &data, "--pwfile", &password];
        server.as_user("initdb", &[&words[..], &paths[..]].concat());
        server.launch();
        server
    }

    /// Makes a server that takes connections over TCP under TLS alone, with a certificate and its key in PEM.
    ///
    /// # Panics
    /// Panics if PostgreSQL is not installed, or the server does not come up.
    #[must_use]
    pub fn encrypted(certificate: &str, key: &str) -> Postgres {
        let mut server = Postgres::start();
        for (name, pem) in [("server.crt", certificate), ("server.key", key)] {
            let file = server.path(&format!("data/{name}"));
            fs::write(&file, pem).expect("a file");
            server.make_private(&file);
        }
        let rules = server.path("data/pg_hba.conf");
        fs::write(&rules, "hostssl all all 127.0.0.1/32 scram-sha-256\n").expect("a file");
        server.settings.push("ssl=on".to_owned());
        server.kill();
        server.launch();
        server
    }

    /// Makes a replica of this server and starts it.
    ///
    /// # Panics
    /// Panics if the replica does not come up.
    #[must_use]
    pub fn replica(&self) -> Postgres {
        let mut replica = Postgres::new(&HASTY);
        let data = replica.path("data");
        let primary = self.address().replace("/postgres", "/");
        let words = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
        let places = ["--pgdata", &data, "--dbname", &primary];
        replica.as_user("pg_basebackup", &[&words[..], &places[..]].concat());
        replica.launch();
        replica
    }

    fn new(settings: &[&str]) -> Postgres {
        let folder = tempfile::Builder::new().prefix("quorlock-").tempdir();
        let server = Postgres {
            programs: installed().expect("PostgreSQL is installed (tests/stores.sh)"),
            port: free_port().expect("a free port"),
            settings: settings.iter().map(ToString::to_string).collect(),
            running: None,
            folder: folder.expect("a temporary folder"),
        };
        server.make_private(&server.path(""));
        server
    }

    /// Gives a file or a folder to the user of the server alone.
    fn make_private(&self, path: &str) {
        run(&["chmod", "u+rwX,go=", path].map(String::from));
        if is_root() {
            run(&["chown", "postgres", path].map(String::from));
        }
    }

    /// Returns the address of the server, with its password.
    #[must_use]
    pub fn address(&self) -> String {
        let (password, port) = (Self::PASSWORD, self.port);
        format!("postgres://locks:{password}@127.0.0.1:{port}/postgres")
    }

    /// Starts the server, and waits until it takes connections.
    ///
    /// # Panics
    /// Panics if it does not come up. The message has its output.
    pub fn launch(&mut self) {
        let (data, port) = (self.path("data"), self.port.to_string());
        let mut words = vec!["-D", &data, "-p", &port, "-h", "127.0.0.1"];
        words.extend(["-c", "unix_socket_directories="]);
        words.extend(self.settings.iter().flat_map(|setting| ["-c", setting]));
        let command = self.command("postgres", &words);
        self.running = Some(Guardian::start(self.folder.path(), &command, &[]).expect("it starts"));
        let ready = self.command("pg_isready", &["-q", "-h", "127.0.0.1", "-p", &port]);
        let is_up = within(UP, || status_of(&ready).ok().filter(|is_up| *is_up));
        let output = || fs::read_to_string(self.folder.path().join("output")).unwrap_or_default();
        assert!(is_up.is_some(), "the server does not start: {}", output());
    }

    /// Returns the processor time of the server and its workers so far, in seconds.
    ///
    /// # Panics
    /// Panics if it does not run.
    #[must_use]
    pub fn processor_seconds(&self) -> f64 {
        let pid = self.running.as_ref().expect("it runs").pid();
        let workers = children_of(pid)
            .into_iter()
            .map(|it| it.as_raw_nonzero().get());
        let all = workers.chain([i32::try_from(pid).expect("a small number")]);
        // User and system time, also of workers that have ended.
        let ticks = all.filter_map(stat_of).map(|fields| -> u64 {
            let times = fields.split(' ').skip(11).take(4);
            times.filter_map(|time| time.parse::<u64>().ok()).sum()
        });
        ticks.sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    /// Makes this replica a primary.
    ///
    /// # Panics
    /// Panics if it is none.
    pub fn promote(&self) {
        self.as_user(
            "pg_ctl",
            &["promote", "--wait", "--pgdata", &self.path("data")],
        );
    }

    /// Executes statements.
    ///
    /// # Panics
    /// Panics if one fails.
    pub fn execute(&self, sql: &str) {
        let address = self.address();
        let words = ["--quiet", "--dbname", &address, "--command", sql];
        self.as_user("psql", &words);
    }

    /// Ends the server and its workers at once, without a checkpoint, as a crash does.
    ///
    /// # Panics
    /// Panics if it does not end.
    pub fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            // Of a stopped server no worker would end.
            self.signal_all(&running, Signal::CONT);
            running.signal(Signal::QUIT);
            let ended = within(BOUND, || (!is_alive(running.pid())).then_some(()));
            assert!(ended.is_some(), "the server does not end");
            running.kill();
        }
    }

    /// Stops the server and all its workers, until [`Postgres::go_on`].
    pub fn stop(&self) {
        let running = self.running.as_ref().expect("it runs");
        self.signal_all(running, Signal::STOP);
    }

    /// Lets a stopped server go on.
    pub fn go_on(&self) {
        let running = self.running.as_ref().expect("it runs");
        self.signal_all(running, Signal::CONT);
    }

    fn signal_all(&self, running: &Guardian, signal: Signal) {
        for worker in children_of(running.pid()) {
            let _ = kill_process(worker, signal);
        }
        running.signal(signal);
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    /// Returns a command line that is not run as root, which the server refuses.
    fn command(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let program = self.programs.join(program);
        let program = program.to_str().expect("UTF-8");
        let user = [
            "setpriv",
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
        ];
        let user = if is_root() { &user[..] } else { &[] };
        let words = user.iter().chain([&program]).chain(arguments);
        words.map(|word| (*word).to_owned()).collect()
    }

    fn as_user(&self, program: &str, arguments: &[&str]) {
        run(&self.command(program, arguments));
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its workers end by themselves when it does.
        self.running = None;
    }
}

/// Returns the children of a process.
fn children_of(parent: u32) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("there is /proc");
    let children = entries.filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let of: u32 = stat_of(pid)?.split(' ').nth(1)?.parse().ok()?;
        (of == parent).then(|| Pid::from_raw(pid))?
    });
    children.collect()
}

/// Returns the fields of `/proc/PID/stat` after the name, beginning with the state.
fn stat_of(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    Some(after_name.to_owned())
}
