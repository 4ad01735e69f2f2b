//! Starts `quorlock`, and observes its processes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use quorlock_testbed::server::Server;
use quorlock_testbed::wait::{wait_for, wait_until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};
use serde_json::Value;

/// Returns the command, with nothing in its environment that a test has not set.
pub(crate) fn quorlock() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorlock"));
    for name in [
        "NODES",
        "CONFIG",
        "PASSWORD_FILE",
        "TLS_CA",
        "TLS_CERT",
        "TLS_KEY",
    ] {
        command.env_remove(format!("QUORLOCK_{name}"));
    }
    command.env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
    command
}

/// Returns the command for the locks of this server.
pub(crate) fn quorlock_on(server: &Server) -> Command {
    let mut command = quorlock();
    command.env("QUORLOCK_NODES", server.address());
    command
}

/// Returns `quorlock run` with these words before the `--`, and this script for a shell after it.
pub(crate) fn run(server: &Server, words: &[&str], script: &str) -> Command {
    let mut command = quorlock_on(server);
    command
        .arg("run")
        .args(words)
        .args(["--", "sh", "-c", script]);
    command
}

/// Runs a command under a lock many times at once, in one folder, which is returned. Each of them ends with 0.
pub(crate) fn all_end_well(many: usize, server: &Server, words: &[&str], script: &str) -> Folder {
    let folder = Folder::new();
    let start = |_| {
        let mut command = run(server, words, script);
        let command = command.current_dir(folder.path()).stderr(Stdio::piped());
        command.spawn().expect("quorlock starts")
    };
    let wrappers: Vec<Child> = (0..many).map(start).collect();
    for wrapper in wrappers {
        let output = wrapper.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    folder
}

/// Runs the command to its end. Returns the exit code, stdout and stderr.
pub(crate) fn end_of(command: &mut Command) -> (i32, String, String) {
    let output: Output = command.output().expect("quorlock runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("it was not killed");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Returns the names and owners that `list` prints for these servers.
pub(crate) fn listed(on_servers: &mut Command, words: &[&str]) -> Vec<(String, Value)> {
    let (code, printed, said) = end_of(on_servers.args(["list", "--json"]).args(words));
    assert_eq!(code, 0, "{said}");
    rows(&printed)
}

/// Returns the names and owners in the output of `list --json`.
pub(crate) fn rows(printed: &str) -> Vec<(String, Value)> {
    let rows = printed.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect(line);
        (
            row["name"].as_str().expect("a name").to_owned(),
            row["owner"].clone(),
        )
    });
    rows.collect()
}

/// Checks that `watch` sees how a name is held and released by force, and that its holder ends.
pub(crate) fn watch_sees_a_release_by_force(on_servers: impl Fn() -> Command, name: &str) {
    let mut command = on_servers();
    command.args(["watch", "--json", "--interval", "50ms", name]);
    let mut watch = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect(&line)
    };
    assert_eq!(next()["state"], "free");
    let mut holder = on_servers();
    holder.args(["run", "--lease", "3s", name, "--", "sleep", "60"]);
    let mut holder = holder.spawn().expect("it starts");
    assert_eq!(next()["state"], "held");
    let (code, _, said) = end_of(on_servers().args(["force-release", name]));
    assert_eq!(code, 0, "{said}");
    assert_eq!(next()["state"], "free");
    assert_eq!(holder.wait().expect("it ends").code(), Some(76));
    watch.kill().expect("it runs");
    watch.wait().expect("it ends");
}

/// Holds the lock `name` by another `quorlock run`, until it is dropped.
pub(crate) struct HeldElsewhere {
    child: Child,
}

impl HeldElsewhere {
    pub(crate) fn new(server: &Server, name: &str) -> Self {
        let mut command = run(server, &[name], "read -r line");
        let child = command.stdin(Stdio::piped()).spawn().expect("it starts");
        wait_until("the lock is held", || {
            server.command::<i64>(&["EXISTS", name]) == 1
        });
        HeldElsewhere { child }
    }
}

impl Drop for HeldElsewhere {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A folder in which scripts leave files for a test.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("quorlock-").tempdir();
        Folder {
            dir: dir.expect("a temporary folder"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the contents of the file; empty if there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// Waits for the first complete line of a file.
    pub(crate) fn line(&self, name: &str) -> String {
        wait_for(name, || {
            let text = self.read(name);
            let (line, _) = text.split_once('\n')?;
            Some(line.to_owned())
        })
    }

    /// Waits for the process id in a file.
    pub(crate) fn pid(&self, name: &str) -> Pid {
        let line = self.line(name);
        Pid::from_raw(line.trim().parse().expect("a number")).expect("not zero")
    }
}

/// Returns the process id of a child.
pub(crate) fn pid_of(child: &Child) -> Pid {
    let pid = i32::try_from(child.id()).expect("process ids are small");
    Pid::from_raw(pid).expect("process ids are not zero")
}

/// Sends a signal to a process that exists.
pub(crate) fn send(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("the process is there");
}

/// Returns whether a process of this group exists that is not a zombie.
pub(crate) fn lives(group: Pid) -> bool {
    if test_kill_process_group(group) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    processes().any(|process| process.group == group && process.state != 'Z')
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: Pid) -> bool {
    stat(pid.as_raw_nonzero().get()).is_some_and(|process| process.state != 'Z')
}

/// The state of a process, from `/proc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) group: Pid,
}

/// Returns all processes.
pub(crate) fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").expect("there is /proc");
    entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        stat(name.to_str()?.parse().ok()?)
    })
}

/// Returns the state of this process, if it exists.
pub(crate) fn stat(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    process(pid, &stat)
}

/// Returns the state that Linux writes of a process, unless the process has been reaped meanwhile: its group is -1.
pub(crate) fn process(pid: i32, stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let group: i32 = fields.next()?.parse().ok()?;
    Some(Process {
        pid: Pid::from_raw(pid)?,
        state,
        parent,
        group: Pid::from_raw(group.max(0))?,
    })
}

/// Returns the guardian of this wrapper.
pub(crate) fn guardian_of(wrapper: &Child) -> Pid {
    wait_for("the guardian", || {
        let mut helpers = helpers_of(wrapper).into_iter();
        helpers.find(|pid| {
            let comm = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
            comm.is_ok_and(|comm| comm.trim_end() == "lock-guardian")
        })
    })
}

/// Returns the processes that this wrapper has started, which are its children: the first of them first.
pub(crate) fn helpers_of(wrapper: &Child) -> Vec<Pid> {
    let wrapper = pid_of(wrapper).as_raw_nonzero().get();
    let children = processes().filter(|process| process.parent == wrapper);
    let mut children: Vec<Pid> = children.map(|process| process.pid).collect();
    children.sort_by_key(|pid| pid.as_raw_nonzero());
    children
}
