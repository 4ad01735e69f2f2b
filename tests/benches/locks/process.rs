//! Measurements in separate processes. This program starts itself for them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use crate::{greedy, herd, keeping};

/// The first argument of a child.
const CHILD: &str = "--as-child";

/// Runs the child's part, if this process is one.
pub(crate) fn run_as_child(arguments: &[String]) -> Option<ExitCode> {
    let [first, part, rest @ ..] = arguments else {
        return None;
    };
    if first != CHILD {
        return None;
    }
    match part.as_str() {
        "greedy" => greedy::child(rest),
        "waiter" => herd::child(rest),
        "keeper" => keeping::child(rest),
        other => panic!("no part {other}"),
    }
    Some(ExitCode::SUCCESS)
}

/// A process that runs a part. It is killed when this value is dropped.
pub(crate) struct Part {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Part {
    pub(crate) fn start(part: &str, arguments: &[String]) -> Part {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args([CHILD, part])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let input = child.stdin.take().expect("it is piped");
        let output = child.stdout.take().expect("it is piped");
        Part {
            child,
            input,
            output: BufReader::new(output),
        }
    }

    /// Lets the process continue.
    pub(crate) fn go(&mut self) {
        self.input.write_all(b"go\n").expect("it listens");
    }

    /// Returns the next line of the child.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it speaks");
        assert!(!line.is_empty(), "the part has ended before its time");
        line.trim_end().to_owned()
    }

    /// Returns the numbers in the next line of the child.
    pub(crate) fn hear_numbers(&mut self) -> Vec<f64> {
        let line = self.hear();
        let words = line.split_whitespace();
        words.map(|word| word.parse().expect("a number")).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a line to the parent.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Waits until the parent lets this process continue.
pub(crate) fn wait_for_go() {
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .expect("the parent is there");
    assert_eq!(line, "go\n", "the parent is there");
}
