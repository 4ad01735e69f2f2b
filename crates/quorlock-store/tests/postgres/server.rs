//! A PostgreSQL server of the test's own, in a temporary folder.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the folder of the server's programs, if it is installed.
pub(crate) fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    folders
        .filter(|folder| folder.join("initdb").exists())
        .max()
}

/// A server on a free port of the loopback interface, which is ended when this value is dropped.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    programs: PathBuf,
    pub(crate) port: u16,
    process: Option<Child>,
}

/// The password of the user `locks`.
pub(crate) const PASSWORD: &str = "right";

impl Server {
    /// Makes a cluster and starts its server.
    pub(crate) fn start() -> Server {
        let programs = installed().expect("PostgreSQL is installed");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Server {
            folder,
            programs,
            port: free_port(),
            process: None,
        };
        server.run(
            "chown",
            &["postgres", server.path(".").to_str().expect("UTF-8")],
        );
        fs::write(server.path("password"), PASSWORD).expect("a file");
        let (data, password) = (server.data(), server.path("password"));
        server.as_user(
            "initdb",
            &[
                "--pgdata",
                data.to_str().expect("UTF-8"),
                "--username",
                "locks",
                "--auth",
                "scram-sha-256",
                "--pwfile",
                password.to_str().expect("UTF-8"),
                "--no-sync",
            ],
        );
        server.launch();
        server
    }

    /// Makes a replica of this server and starts it.
    pub(crate) fn replica(&self) -> Server {
        let mut replica = Server {
            folder: tempfile::tempdir().expect("a temporary folder"),
            programs: self.programs.clone(),
            port: free_port(),
            process: None,
        };
        replica.run(
            "chown",
            &["postgres", replica.path(".").to_str().expect("UTF-8")],
        );
        let data = replica.data();
        replica.as_user(
            "pg_basebackup",
            &[
                "--pgdata",
                data.to_str().expect("UTF-8"),
                "--dbname",
                &self.address().replace("/postgres", "/"),
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--no-sync",
            ],
        );
        replica.launch();
        replica
    }

    /// Makes this replica a primary.
    pub(crate) fn promote(&self) {
        let data = self.data();
        self.as_user(
            "pg_ctl",
            &[
                "promote",
                "--wait",
                "--pgdata",
                data.to_str().expect("UTF-8"),
            ],
        );
    }

    /// Executes statements.
    pub(crate) fn execute(&self, sql: &str) {
        self.as_user(
            "psql",
            &["--quiet", "--dbname", &self.address(), "--command", sql],
        );
    }

    pub(crate) fn address(&self) -> String {
        format!(
            "postgres://locks:{PASSWORD}@127.0.0.1:{}/postgres",
            self.port
        )
    }

    /// Starts the server, and waits until it takes connections.
    pub(crate) fn launch(&mut self) {
        let (data, port) = (self.data(), self.port.to_string());
        let settings = [
            "-D",
            data.to_str().expect("UTF-8"),
            "-p",
            &port,
            "-h",
            "127.0.0.1",
            "-c",
            "unix_socket_directories=",
            "-c",
            "synchronous_commit=off",
        ];
        let mut command = self.command("postgres", &settings);
        let log = fs::File::create(self.path("log")).expect("a file");
        let log = command.stdout(Stdio::null()).stderr(log);
        self.process = Some(log.spawn().expect("it starts"));
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let ready = self
                .command("pg_isready", &["-q", "-h", "127.0.0.1", "-p", &port])
                .status();
            if ready.is_ok_and(|status| status.success()) {
                return;
            }
            let log = fs::read_to_string(self.path("log")).unwrap_or_default();
            assert!(Instant::now() < until, "the server does not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the server at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // SIGQUIT ends it and its workers without a checkpoint.
            self.run("kill", &["-QUIT", &process.id().to_string()]);
            let _ = process.wait();
        }
    }

    /// Sends a signal to the server and all its workers.
    pub(crate) fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("it runs").id().to_string();
        let workers = Command::new("ps")
            .args(["-o", "pid=", "--ppid", &process])
            .output();
        let workers = String::from_utf8(workers.expect("ps runs").stdout).expect("numbers");
        for pid in workers.split_whitespace().chain([process.as_str()]) {
            let _ = Command::new("kill").args([signal, pid]).status();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Returns a command that is not run as root, which the server refuses.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args(arguments).current_dir(Path::new("/"));
        command
    }

    fn as_user(&self, program: &str, arguments: &[&str]) {
        let output = self.command(program, arguments).output().expect("it runs");
        assert!(output.status.success(), "{program}: {output:?}");
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        if program == "chown" && !is_root() {
            return;
        }
        let status = Command::new(program)
            .args(arguments)
            .status()
            .expect("it runs");
        assert!(status.success(), "{program}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id runs");
    output.stdout == b"0\n"
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
