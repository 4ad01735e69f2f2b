//! Exit codes, files and errors of the command.

mod asking;
mod exploring;
mod machines;
mod results;
mod showing;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorlock-sim"))
        .args(arguments)
        .output()
        .expect("it starts")
}

pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
