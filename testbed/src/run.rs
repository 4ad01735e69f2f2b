//! Programs of servers.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command to its end. Returns whether it succeeded.
pub(crate) fn status_of(command: &[String]) -> io::Result<bool> {
    let (program, arguments) = command.split_first().expect("a program");
    let mut command = Command::new(program);
    // The current folder may be one that the user of the server may not enter.
    command.args(arguments).current_dir(Path::new("/"));
    let output = command.output()?;
    if !output.status.success() && !output.stderr.is_empty() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(text));
    }
    Ok(output.status.success())
}

/// Runs a command, which must succeed.
pub(crate) fn run(command: &[String]) {
    let ended = status_of(command);
    assert!(
        ended.as_ref().is_ok_and(|ended| *ended),
        "{command:?}: {ended:?}"
    );
}

/// Returns the path of a program, if it is installed.
#[must_use]
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut paths = std::env::split_paths(&path).map(|folder| folder.join(program));
    paths.find(|path| path.is_file())
}

/// Returns why tests that need a server are ignored; `None` if it is installed, or required by this variable.
pub(crate) fn missing(
    required: &str,
    is_installed: bool,
    reason: &'static str,
) -> Option<&'static str> {
    let is_required = std::env::var_os(required).is_some_and(|value| !value.is_empty());
    (!is_required && !is_installed).then_some(reason)
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
