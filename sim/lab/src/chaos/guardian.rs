//! Guardians: processes that end when the command ends, in whatever way the command ends.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::clock;

/// The script of the shell. `$1` is the folder of the process, and the rest is the command line. Only the command has
/// the other end of the pipe at the standard input, so the input ends with the command, even if the command is killed.
/// SIGKILL also ends a stopped process.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
dir=$1
shift
"$@" </dev/null >>"$dir/output" 2>&1 &
process=$!
echo "$process"
last=
while read -r word; do last=$word; done
kill -9 "$process" 2>/dev/null
wait "$process" 2>/dev/null
[ "$last" = keep ] || rm -rf "$dir"
"#;

/// A shell that has started a process, and kills that process when the shell's standard input ends.
///
/// The shell is in its own process group, so that a Ctrl-C at the terminal ends the command first. The shell reaps the
/// process only after it has killed it. Otherwise the process id could refer to another process while the guardian
/// lives.
#[derive(Debug)]
pub(super) struct Guardian {
    shell: Child,
    leash: Option<ChildStdin>,
    pid: u32,
}

/// Whether the folder of an ended process is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Folder {
    Kept,
    Removed,
}

impl Guardian {
    /// Starts a command with these environment variables.
    pub(super) fn start(
        dir: &Path,
        command: &[String],
        variables: &[(String, String)],
    ) -> io::Result<Guardian> {
        let mut words: Vec<String> = Vec::new();
        if !variables.is_empty() {
            // Only the started program gets the variables, not the shell.
            words.push("env".to_owned());
            let set = variables
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            words.extend(set);
        }
        words.extend(command.iter().cloned());
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "guardian"])
            .arg(dir)
            .args(words)
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let leash = shell.stdin.take();
        let mut line = String::new();
        if let Some(stdout) = shell.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let pid = line.trim().parse();
        let pid = pid.map_err(|_| io::Error::other("the shell did not start the process"))?;
        Ok(Guardian { shell, leash, pid })
    }

    /// Returns whether the process exists and is not a zombie.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(state_of(self.pid), None | Some('Z'))
    }

    /// Returns the id of the process.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops the process at an arbitrary instruction (SIGSTOP).
    pub(super) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes the process (SIGCONT).
    pub(super) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the process (SIGKILL). The guardian keeps its folder until [`Guardian::end`].
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // A zombie ignores signals.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills the process, and waits until its guardian has ended as well.
    pub(super) async fn end(mut self, folder: Folder) {
        if let Some(mut leash) = self.leash.take()
            && folder == Folder::Kept
        {
            let _ = leash.write_all(b"keep\n");
        }
        let bound = Duration::from_secs(10);
        clock::wait_for(bound, async || self.shell.try_wait().ok().flatten()).await;
    }
}

impl Drop for Guardian {
    /// Closes the pipe, which makes the shell end the process. Reaps the shell unless that takes too long.
    fn drop(&mut self) {
        self.leash = None;
        let _ = self.shell.try_wait();
    }
}

/// Returns the state of a process as the letter that `ps` prints, or `None` if the process does not exist.
pub(super) fn state_of(pid: u32) -> Option<char> {
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
