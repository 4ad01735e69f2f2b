//! What runs in the processes of the contestants that this program is itself.

mod bare;
mod client;
pub(crate) mod program;
mod rows;
mod table;

use std::process::ExitCode;

use self::client::Library;

/// The first argument of such a process. The job follows.
pub(crate) const DRIVER: &str = "--driver";

/// Does the job, if this process was started for one.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    arguments.next().filter(|first| first == DRIVER)?;
    let job = arguments.next().unwrap_or_default();
    Some(match program::run::<Library>(&job) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}
