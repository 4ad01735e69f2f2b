//! A process that ends when this process ends, in whatever way that happens.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use std::os::unix::process::CommandExt;

use crate::wait::wait_until;

/// The script of the shell. `$1` is the folder of the server, and the rest is its command line. The standard input is
/// a pipe whose other end only the test process has. The pipe is closed when that process ends, even if it is killed.
/// SIGKILL also ends a server that is stopped.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
dir=$1
shift
"$@" </dev/null >>"$dir/output" 2>&1 &
server=$!
echo "$server"
last=
while read -r word; do last=$word; done
kill -9 "$server" 2>/dev/null
wait "$server" 2>/dev/null
[ "$last" = keep ] || rm -rf "$dir"
"#;

/// A shell that has started a server, and kills it when its standard input ends.
///
/// The shell is in a separate process group, so a Ctrl-C at the terminal ends the test process first. It reaps the
/// server only after it has killed it, so the process id stays the server's as long as this value exists.
#[derive(Debug)]
pub(crate) struct Guardian {
    shell: Child,
    leash: Option<ChildStdin>,
    pid: u32,
}

impl Guardian {
    /// Starts a command, which works in this folder.
    pub(crate) fn start(dir: &Path, program: &str, arguments: &[String]) -> Guardian {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "guardian"])
            .arg(dir)
            .arg(program)
            .args(arguments)
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        let leash = shell.stdin.take();
        let mut line = String::new();
        let stdout = shell.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the guardian prints the id of its process");
        let pid = line.trim().parse().expect("a process id");
        Guardian { shell, leash, pid }
    }

    /// Returns the id of the guarded process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills the process with SIGKILL, waits until it is gone, and keeps its folder.
    pub(crate) fn kill(mut self) {
        if let Some(leash) = &mut self.leash {
            leash.write_all(b"keep\n").expect("the guardian listens");
        }
        self.let_go();
    }

    fn let_go(&mut self) {
        self.leash = None;
        wait_until("the guardian ends", || {
            !matches!(self.shell.try_wait(), Ok(None))
        });
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if self.leash.is_some() {
            self.let_go();
        }
    }
}

/// Returns the state of a process as the letter that `ps` prints, or `None` if the process is gone.
pub(crate) fn state_of(pid: u32) -> Option<char> {
    if let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        let (_, after_name) = stat.rsplit_once(')')?;
        return after_name.trim_start().chars().next();
    }
    if Path::new("/proc/self/stat").exists() {
        return None;
    }
    let ps = Command::new("ps")
        .args(["-o", "state=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    String::from_utf8_lossy(&ps.stdout).trim().chars().next()
}
