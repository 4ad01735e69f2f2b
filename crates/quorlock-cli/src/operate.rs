//! Commands for operators: inspecting locks, releasing them by force, and making the tables of stores.

pub(crate) mod force;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod watch;

mod json;
mod pattern;

use std::future::Future;
use std::io::{self, Write as _};

use quorlock::Locks;

use crate::connect::{Patience, connect};
use crate::failure::{Code, Failure};
use crate::messages::Voice;
use crate::settings::{Reach, Settings};

/// Runs an operation with a client of the servers, and reports the reason if it fails.
fn with_locks<F: Future<Output = Result<Code, Failure>>>(
    reach: &Reach,
    operation: impl FnOnce(Locks, Settings) -> F,
) -> Code {
    done(async {
        let mut settings = reach.settings()?;
        settings.builder = settings.builder.for_operators();
        let locks = connect(&settings, Patience::None, Voice::Text).await?;
        operation(locks, settings).await
    })
}

/// Runs an operation, and reports the reason if it fails.
pub(crate) fn done(operation: impl Future<Output = Result<Code, Failure>>) -> Code {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(operation),
        Err(error) => Err(Failure::system(
            "the async runtime cannot be started",
            error,
        )),
    };
    done.unwrap_or_else(|failure| {
        Voice::Text.failure(&failure);
        failure.code
    })
}

/// Prints a line. The reader may have closed the pipe, and then this command has nothing left to do.
pub(crate) fn print(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let printed = out
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush());
    printed.map_err(|error| Failure::system("stdout cannot be written", error))
}
