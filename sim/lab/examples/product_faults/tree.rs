//! The worktree in which faults are planted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;
use crate::list::Fault;
use crate::splice::{Change, splice};

/// The source and the build of the commit that is checked out, side by side in a folder.
pub(crate) struct Tree {
    source: PathBuf,
    build: PathBuf,
    results: PathBuf,
    /// Copies of the files with faults, as they were last written.
    planted: PathBuf,
}

/// A source with all faults, each enabled by its number, and its build.
pub(crate) struct Planted<'a> {
    pub(crate) tree: &'a Tree,
    /// The simulator with the faults.
    pub(crate) simulator: PathBuf,
}

/// The environment variable with the number of the enabled fault.
pub(crate) const CHOSEN: &str = "QUORLOCK_FAULT";

/// The module that selects the bodies of functions.
const CHOICE: &str = r#"//! Which of the planted faults is on.

use std::sync::OnceLock;

static FAULT: OnceLock<usize> = OnceLock::new();

/// Its number; none is as large as the one without.
pub fn fault() -> usize {
    *FAULT.get_or_init(|| {
        let text = std::env::var("QUORLOCK_FAULT").ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(usize::MAX)
    })
}
"#;

const BUILD: [&str; 6] = [
    "build",
    "--quiet",
    "--profile",
    "test",
    "--package",
    "quorlock-sim-lab",
];

impl Tree {
    pub(crate) fn new(folder: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let source = folder.join("source");
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
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
        let head = output(
            Command::new("git")
                .current_dir(&source)
                .args(["rev-parse", "HEAD"]),
        )?;
        if head != revision {
            let reset = ["reset", "--hard", "--quiet", revision.trim()];
            output(Command::new("git").current_dir(&source).args(reset))?;
        }
        Ok(Tree {
            source,
            build: folder.join("build"),
            results: folder.join("results"),
            planted: folder.join("planted"),
        })
    }

    /// Plants all faults, each enabled by its number, and builds the simulator.
    pub(crate) fn plant(&self, faults: &[Fault]) -> Result<Planted<'_>, Failure> {
        let mut files: BTreeMap<&str, Vec<Change<'_>>> = BTreeMap::new();
        for (number, fault) in faults.iter().enumerate() {
            files.entry(&fault.file).or_default().push(Change {
                number,
                find: &fault.find,
                replace: &fault.replace,
            });
        }
        for (file, changes) in files {
            let is_core = file.starts_with("crates/quorlock-core/");
            let chosen = format!(
                "{}::planted::fault()",
                if is_core { "crate" } else { "quorlock_core" }
            );
            let spliced = splice(&self.original(file)?, &changes, &chosen)
                .map_err(|wrong| format!("{file}: {wrong}"))?;
            self.write(file, &spliced)?;
        }
        let core = "crates/quorlock-core/src/lib.rs";
        let map = format!(
            "{}\n#[doc(hidden)]\npub mod planted;\n",
            self.original(core)?
        );
        self.write(core, &map)?;
        self.write("crates/quorlock-core/src/planted.rs", CHOICE)?;
        output(self.cargo().args(BUILD))?;
        Ok(Planted {
            tree: self,
            simulator: self.build.join("debug/quorlock-sim"),
        })
    }

    /// Returns a file of the commit.
    fn original(&self, file: &str) -> Result<String, Failure> {
        let mut git = Command::new("git");
        git.current_dir(&self.source);
        output(git.arg("show").arg(format!("HEAD:{file}")))
    }

    /// Writes a file. A file with the same text as at the last run keeps its time, so that nothing is compiled again.
    fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        let copy = self.planted.join(file);
        if !std::fs::read_to_string(&copy).is_ok_and(|before| before == text) {
            std::fs::create_dir_all(copy.parent().ok_or("a file without a folder")?)?;
            std::fs::write(&copy, text)?;
        }
        let modified = std::fs::metadata(&copy)?.modified()?;
        let file = self.source.join(file);
        std::fs::write(&file, text)?;
        Ok(std::fs::File::options()
            .write(true)
            .open(file)?
            .set_modified(modified)?)
    }

    /// Returns the command `cargo` in the source. Warnings that planted faults cause are suppressed.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.source)
            .env("CARGO_TARGET_DIR", &self.build);
        cargo
    }

    /// Returns the folder of the build.
    pub(crate) fn build(&self) -> &Path {
        &self.build
    }

    /// Returns the folder of the rows of all runs.
    pub(crate) fn results(&self) -> &Path {
        &self.results
    }

    /// Returns the folder of the source.
    pub(crate) fn source(&self) -> &Path {
        &self.source
    }
}

/// Returns the output of a command, if it succeeds.
fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed:\n{error}").into())
}
