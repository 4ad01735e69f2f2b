//! Processes that end when this process ends, in whatever way that happens.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{BOUND, within};

/// The script of the shell. `$1` is the folder of the process, and the rest is its command line. The standard input is
/// a pipe whose other end only this process has. The pipe is closed when this process ends, even if it is killed.
/// SIGKILL also ends a process that is stopped.
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

/// A shell that has started a process, and kills it when the shell's standard input ends. Dropping this value ends the
/// process, and removes its folder.
///
/// The shell is in a separate process group, so a Ctrl-C at the terminal ends this process first. It reaps the guarded
/// process only after it has killed it, so the process id stays that process's as long as this value exists.
#[derive(Debug)]
pub struct Guardian {
    shell: Child,
    leash: Option<ChildStdin>,
    pid: u32,
}

impl Guardian {
    /// Starts a command that works in this folder, and writes what it says to the file `output` there. The first word
    /// is the program. Only the command gets these environment variables, not the shell.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub fn start(
        dir: &Path,
        command: &[String],
        variables: &[(String, String)],
    ) -> io::Result<Guardian> {
        let set = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let env = (!variables.is_empty()).then(|| "env".to_owned());
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "guardian"])
            .arg(dir)
            .args(env.into_iter().chain(set))
            .args(command)
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

    /// Returns the id of the guarded process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the guarded process runs or is stopped. It may have ended by itself.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        is_alive(self.pid)
    }

    /// Sends a signal to the guarded process. A process that has ended by itself ignores it.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills the process with SIGKILL, waits until it is gone, and keeps its folder.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        if let Some(leash) = &mut self.leash {
            let _ = leash.write_all(b"keep\n");
        }
    }
}

impl Drop for Guardian {
    /// Closes the pipe, which makes the shell end the process, and reaps the shell. On a machine that takes longer than
    /// [`BOUND`] for that, the shell goes on alone.
    fn drop(&mut self) {
        self.leash = None;
        let _ = within(BOUND, || self.shell.try_wait().ok().flatten());
    }
}

/// Returns whether a process exists and is not a zombie.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    !matches!(state_of(pid), None | Some('Z'))
}

/// Returns the state of a process as the letter that `ps` prints, or `None` if the process is gone.
#[must_use]
pub fn state_of(pid: u32) -> Option<char> {
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
