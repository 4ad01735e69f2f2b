//! The help of the commands.

use clap::CommandFactory as _;

use super::Cli;

/// What the exit codes of commands that run locks mean.
const CODES_OF_RUNS: &str = "Exit codes: 0 as expected, 1 wrong arguments or files, 2 safety violated, 3 no progress, 4 nothing shown, 5 not deterministic.";

/// What the exit codes of the other commands mean.
const CODES_OF_OTHERS: &str = "Exit codes: 0 done, 1 wrong arguments or files.";

/// Returns the command line. The help of each command ends with its exit codes.
pub(super) fn command() -> clap::Command {
    const OTHERS: [&str; 7] = [
        "serve",
        "shrink",
        "report",
        "why",
        "bench",
        "completions",
        "man",
    ];
    Cli::command().mut_subcommands(|sub| {
        let codes = match OTHERS.contains(&sub.get_name()) {
            true => CODES_OF_OTHERS,
            false => CODES_OF_RUNS,
        };
        let with_codes = |help: Option<&clap::builder::StyledStr>| {
            let help = help.map(ToString::to_string).unwrap_or_default();
            match help.contains("xit code") {
                true => help,
                false => format!("{help}\n\n{codes}").trim_start().to_owned(),
            }
        };
        let short = with_codes(sub.get_after_help());
        let long = sub.get_after_long_help().cloned();
        let sub = sub.after_help(short);
        match long {
            Some(long) => sub.after_long_help(with_codes(Some(&long))),
            None => sub,
        }
    })
}
