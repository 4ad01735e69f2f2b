//! Completions and man pages.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use super::{CliError, help};

/// Print a completion script for a shell.
#[derive(Clone, Debug, Args)]
pub(super) struct Completions {
    /// The shell that runs the script.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<u8, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut shown(), "quorlock-sim", &mut script);
        ended(io::stdout().write_all(&script))
    }
}

/// Print the man page, or write one for each subcommand to a folder.
#[derive(Clone, Debug, Args)]
pub(super) struct Man {
    /// The folder for quorlock-sim.1 and a page for each subcommand, instead of printing.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self) -> Result<u8, CliError> {
        ended(match &self.out {
            None => clap_mangen::Man::new(shown()).render(&mut io::stdout()),
            Some(folder) => {
                fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(shown(), folder))
            }
        })
    }
}

/// Returns the command without its hidden subcommands, which a completion script would otherwise offer.
fn shown() -> Command {
    let full = help::command();
    let parts = full.get_subcommands().filter(|part| !part.is_hide_set());
    Command::new("quorlock-sim")
        .version(env!("CARGO_PKG_VERSION"))
        .about(full.get_about().cloned().unwrap_or_default())
        .long_about(full.get_long_about().cloned().unwrap_or_default())
        .subcommands(parts.cloned().collect::<Vec<_>>())
}

fn ended(result: io::Result<()>) -> Result<u8, CliError> {
    match result {
        Ok(()) => Ok(0),
        Err(error) => Err(CliError::Other(format!(
            "the output cannot be written: {error}"
        ))),
    }
}
