//! `quorlock completions` and `quorlock man`.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Code, Failure};
use crate::messages::Voice;

/// Print a completion script for a shell.
#[derive(Clone, Debug, Args)]
pub(crate) struct Completions {
    /// Shell that runs the script.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, command: &Command) -> Code {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut shown(command), "quorlock", &mut script);
        ended(io::stdout().write_all(&script))
    }
}

/// Print the man page, or write one for each subcommand to a folder.
#[derive(Clone, Debug, Args)]
pub(crate) struct Man {
    /// Write quorlock.1 and a page for each subcommand to this folder, instead of printing.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, command: &Command) -> Code {
        ended(match &self.out {
            None => clap_mangen::Man::new(shown(command)).render(&mut io::stdout()),
            Some(folder) => fs::create_dir_all(folder)
                .and_then(|()| clap_mangen::generate_to(shown(command), folder)),
        })
    }
}

/// Returns the command without its hidden subcommands.
fn shown(full: &Command) -> Command {
    let mut shown = Command::new("quorlock").version(env!("CARGO_PKG_VERSION"));
    if let Some(about) = full.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(about) = full.get_long_about() {
        shown = shown.long_about(about.clone());
    }
    if let Some(help) = full.get_after_help() {
        shown = shown.after_help(help.clone());
    }
    let parts = full.get_subcommands().filter(|part| !part.is_hide_set());
    shown.subcommands(parts.cloned().collect::<Vec<_>>())
}

fn ended(result: io::Result<()>) -> Code {
    match result {
        Ok(()) => Code::SUCCESS,
        Err(error) => {
            let failure = Failure::system("the output cannot be written", error);
            Voice::Text.failure(&failure);
            failure.code
        }
    }
}
