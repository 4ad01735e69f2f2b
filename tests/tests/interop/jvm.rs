//! A JVM that executes commands for Redisson's locks, line by line: see `tests/interop/redisson`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quorlock_testbed::server::wait_until_gone;
use tokio::sync::oneshot;

use super::stage::WATCHDOG;

/// If this variable is set, a missing JVM is a failure instead of a reason to ignore the tests.
const WANTED: &str = "QUORLOCK_REQUIRE_REDISSON";

pub(crate) fn is_wanted() -> bool {
    std::env::var_os(WANTED).is_some_and(|value| !value.is_empty())
}

/// A JVM with clients of one version of Redisson. It ends with the test process, and releases nothing.
#[derive(Debug)]
pub(crate) struct Jvm {
    process: Mutex<Child>,
    input: Mutex<ChildStdin>,
    unanswered: Arc<Unanswered>,
    asked: AtomicU64,
    errors: File,
}

type Unanswered = Mutex<BTreeMap<u64, oneshot::Sender<Answer>>>;

/// The answer to a command: a value, or an error.
pub(crate) type Answer = Result<String, Exception>;

/// The exception that a call of Redisson threw.
#[derive(Debug)]
pub(crate) struct Exception {
    pub(crate) class: String,
    pub(crate) message: String,
}

impl Jvm {
    /// Starts a JVM.
    pub(crate) fn start(version: &str) -> Jvm {
        let folder = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/interop/redisson/target"
        ));
        let folder = folder.join(version);
        let libraries = std::fs::read_to_string(folder.join("classpath"))
            .expect("run tests/interop/run.sh, which downloads Redisson");
        let errors = tempfile::tempfile().expect("a temporary file");
        let mut process = Command::new("java")
            // The JVM runs only for seconds, so a fast start matters more than later speed.
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"])
            .arg("-cp")
            .arg(format!(
                "{}:{}",
                folder.join("classes").display(),
                libraries.trim()
            ))
            .args(["Driver", &WATCHDOG.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().expect("the file is open"))
            .spawn()
            .expect("there is a JVM: run tests/interop/run.sh, which reports what is missing");
        let input = process.stdin.take().expect("it is piped");
        let output = process.stdout.take().expect("it is piped");
        let unanswered = Arc::<Unanswered>::default();
        let listening = unanswered.clone();
        std::thread::spawn(move || listen(output, &listening));
        Jvm {
            process: Mutex::new(process),
            input: Mutex::new(input),
            unanswered,
            asked: AtomicU64::new(0),
            errors,
        }
    }

    /// Makes a thread do something. A thread is created when it is first named.
    pub(crate) async fn ask(&self, thread: &str, words: impl AsRef<str>) -> Answer {
        let id = self.asked.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.unanswered.lock().unwrap().insert(id, sender);
        let line = format!("{id} {thread} {}\n", words.as_ref());
        let sent = self.input.lock().unwrap().write_all(line.as_bytes());
        match (sent, answer.await) {
            (Ok(()), Ok(answer)) => answer,
            (sent, _) => panic!("the JVM has ended ({sent:?}): {}", self.errors()),
        }
    }

    /// Ends the JVM as a power cut does (SIGKILL), and waits until it is gone.
    pub(crate) fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill().expect("it is there");
        wait_until_gone(process.id());
        process.wait().expect("it is gone");
    }

    /// Returns the beginning of the JVM's error output.
    fn errors(&self) -> String {
        let mut text = vec![0; 16 * 1024];
        let length = self.errors.read_at(&mut text, 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..length]).into_owned()
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        if let Ok(process) = self.process.get_mut() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Passes answers on until there are no more. A caller that still waits then notices that its sender is gone.
fn listen(output: ChildStdout, unanswered: &Unanswered) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let (id, answer) = parse(&line).unwrap_or_else(|| panic!("not an answer: {line}"));
        if let Some(sender) = unanswered.lock().unwrap().remove(&id) {
            // A caller that no longer waits does not need the answer.
            let _ = sender.send(answer);
        }
    }
    unanswered.lock().unwrap().clear();
}

fn parse(line: &str) -> Option<(u64, Answer)> {
    let (id, rest) = line.split_once(' ')?;
    let (how, rest) = rest.split_once(' ')?;
    let answer = match how {
        "ok" => Ok(rest.to_owned()),
        "failed" => {
            let (class, message) = rest.split_once(' ')?;
            Err(Exception {
                class: class.to_owned(),
                message: message.to_owned(),
            })
        }
        _ => return None,
    };
    Some((id.parse().ok()?, answer))
}
