//! `quorlock inspect`.

use clap::Args;
use quorlock::operate::Summary;

use super::{json, print, with_locks};
use crate::failure::Code;
use crate::settings::Reach;

/// Show who holds a name on each server, without changing anything.
///
/// The output may be out of date as soon as it is printed, so do not use it to decide whether to start work. Exits with
/// 69 if too few servers answered.
#[derive(Clone, Debug, Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    reach: Reach,
    /// Print one line of JSON for each name.
    #[arg(long)]
    json: bool,
    /// Names to inspect.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

impl Inspect {
    pub(crate) fn run(&self) -> Code {
        with_locks(&self.reach, |locks, _| async move {
            let mut code = Code::SUCCESS;
            for name in &self.names {
                let inspection = locks.inspect(name).await?;
                if inspection.summary() == Summary::Unknown {
                    code = Code::UNAVAILABLE;
                }
                match self.json {
                    true => print(&json::inspection(&inspection).to_string())?,
                    false => print(&inspection.to_string())?,
                }
            }
            Ok(code)
        })
    }
}
