//! A worktree in which faults are planted.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;
use crate::list::Fault;

/// Source and build of the commit that is checked out, beside each other in a folder.
pub(crate) struct Tree {
    source: PathBuf,
    build: PathBuf,
}

/// A fault that is in the source, until this is dropped.
pub(crate) struct Planted<'a> {
    pub(crate) tree: &'a Tree,
    /// The simulator with the fault.
    pub(crate) simulator: PathBuf,
    file: PathBuf,
    original: String,
}

impl Tree {
    pub(crate) fn new(folder: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let source = folder.join("source");
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let revision = output(
            Command::new("git")
                .current_dir(&top)
                .args(["rev-parse", "HEAD"]),
        )?;
        if !source.join(".git").exists() {
            let add = ["worktree", "add", "--detach", "--quiet"];
            let mut git = Command::new("git");
            output(git.current_dir(&top).args(add).arg(&source))?;
        }
        let reset = ["reset", "--hard", "--quiet", revision.trim()];
        output(Command::new("git").current_dir(&source).args(reset))?;
        Ok(Tree {
            source,
            build: folder.join("build"),
        })
    }

    /// Plants a fault, and builds the simulator with it.
    pub(crate) fn plant(&self, fault: &Fault) -> Result<Planted<'_>, Failure> {
        let file = self.source.join(&fault.file);
        let original = std::fs::read_to_string(&file)?;
        if original.matches(&fault.find).count() != 1 {
            return Err(format!(
                "{}: what is replaced stands not once in {}",
                fault.name, fault.file
            )
            .into());
        }
        std::fs::write(&file, original.replace(&fault.find, &fault.replace))?;
        let planted = Planted {
            tree: self,
            simulator: self.build.join("debug/quorlock-sim"),
            file,
            original,
        };
        let build = [
            "build",
            "--quiet",
            "--profile",
            "test",
            "--package",
            "quorlock-sim",
        ];
        output(self.cargo().args(build))?;
        Ok(planted)
    }

    /// Cargo in the source, without the warnings that a planted fault may cause.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.source)
            .env("CARGO_TARGET_DIR", &self.build)
            .env("RUSTFLAGS", "-Awarnings");
        cargo
    }
}

impl Drop for Planted<'_> {
    fn drop(&mut self) {
        let _ = std::fs::write(&self.file, &self.original);
    }
}

/// What a command prints, if it succeeds.
fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed:\n{error}").into())
}
