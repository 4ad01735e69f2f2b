//! `run` and `leader` on systems other than Unix.

use std::ffi::OsString;

use clap::Args;

use crate::failure::{Code, Failure};
use crate::messages::Voice;

/// The words after `run` or `leader`. All of them are accepted, because the error is the system and not an option.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Elsewhere {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<OsString>,
}

impl Elsewhere {
    pub(crate) fn run(&self) -> Code {
        let failure = Self::failure();
        Voice::Text.failure(&failure);
        failure.code
    }

    fn failure() -> Failure {
        Failure::new(
            Code::SYSTEM,
            "run and leader need process groups and signals, which only Unix has: hold the lock in the program itself \
             with the library; doctor, inspect, list, watch and force-release work here",
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Parsed {
        #[command(flatten)]
        elsewhere: Elsewhere,
    }

    #[test]
    fn whatever_is_asked_for_the_answer_says_what_to_do_instead() {
        for words in [
            &["run"][..],
            &["run", "--help"],
            &["run", "-n", "--lease", "1s", "a", "--", "make", "-j"],
        ] {
            let cli = Parsed::try_parse_from(words);
            let cli = cli.unwrap_or_else(|error| panic!("{words:?}: {error}"));
            assert_eq!(cli.elsewhere.run(), Code::SYSTEM);
        }
        assert!(Elsewhere::failure().text.contains("only Unix"));
    }
}
