//! Runs the work of the runner with a Rust library, and prints the result as a line of JSON.

mod bare;
mod job;
mod peer;
mod work;

use std::io::BufRead as _;

use crate::job::{Job, Work};
use crate::peer::Peer;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let job = std::env::args().nth(1).ok_or("the job is missing")?;
    let job: Job = serde_json::from_str(&job)?;
    let peer = Peer::connect(&job).await?;
    work::warm_up(&peer).await?;
    println!("ready");
    hear().await?;
    let result = match job.work {
        Work::Pairs => work::pairs(&peer, &job).await?,
        Work::Acquire => work::acquire(&peer, &job).await?,
        Work::Holds => work::holds(&peer, &job).await?,
        Work::Keep => work::keep(&peer, &job).await?,
    };
    println!("{result}");
    Ok(())
}

/// Waits for the runner's next line.
async fn hear() -> Result<(), Failure> {
    let heard = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next());
    match heard.await? {
        Some(line) => line.map(drop).map_err(Into::into),
        None => Err("the runner has gone".into()),
    }
}
