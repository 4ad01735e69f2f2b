//! The command `serve`.

use clap::Args;
use serde::Serialize;

use super::{CliError, Form, say, say_json};
use crate::serve::{FaultWords, Host, Offer};
use quorlock_sim_plan::Persistence;

/// Serve simulated Redis servers on ports of the loopback interface, until Ctrl-C.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The port of the first node; the other nodes get the ports after it. By default, free ports.
    #[arg(long)]
    port: Option<u16>,
    /// The number of nodes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=15))]
    nodes: u16,
    /// The password that every connection must send.
    #[arg(long)]
    password: Option<String>,
    /// What a node keeps when it crashes: memory (nothing) or every-write (everything).
    #[arg(long, value_enum, default_value_t = Kept::Memory)]
    persistence: Kept,
    /// A fault with the fields that it has in a plan, of all nodes if it names none; may be given several times. Times
    /// count from the start. Example: "kind = 'pause-node', at = '5s', lasts = '3s', node = 0". The kinds are
    /// pause-node, crash-node, reset, flush, forget-scripts, backup, server-error, delay, node-step and node-rate.
    #[arg(long = "fault", value_name = "FIELDS")]
    faults: Vec<FaultWords>,
    #[command(flatten)]
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Kept {
    Memory,
    EveryWrite,
}

/// The addresses of the nodes.
#[derive(Serialize)]
struct Served<'a> {
    ports: &'a [u16],
}

impl Serve {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let offer = self.offer()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let wrong = |error: std::io::Error| CliError::Other(error.to_string());
        runtime.map_err(wrong)?.block_on(async {
            let host = Host::bind(offer).await.map_err(|error| {
                CliError::Other(format!(
                    "a port cannot be bound: {error}: choose another --port"
                ))
            })?;
            if self.form.json {
                say_json(&Served {
                    ports: host.ports(),
                })?;
            } else {
                for (node, port) in host.ports().iter().enumerate() {
                    say(&format!("node {node}: redis://127.0.0.1:{port}/"));
                }
            }
            let told = |fault: &quorlock_sim_plan::fault::Fault| {
                if !self.form.json {
                    say(&format!("{}: {fault}", fault.when));
                }
            };
            let interrupted = async {
                // If the signal cannot be received, the servers run until the process is killed.
                if tokio::signal::ctrl_c().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            host.run(told, interrupted).await.map_err(wrong)
        })?;
        Ok(0)
    }

    fn offer(&self) -> Result<Offer, CliError> {
        let ports = match self.port {
            None => vec![0; usize::from(self.nodes)],
            Some(first) => {
                let last = first.checked_add(self.nodes - 1).ok_or_else(|| {
                    CliError::Other(format!(
                        "{} nodes need {0} ports from {first}, but the last port is 65535: choose another --port",
                        self.nodes
                    ))
                })?;
                (first..=last).collect()
            }
        };
        let mut faults = Vec::new();
        for words in &self.faults {
            faults.extend(words.of(self.nodes).map_err(CliError::Other)?);
        }
        Ok(Offer {
            ports,
            password: self.password.clone(),
            persistence: match self.persistence {
                Kept::Memory => Persistence::Memory,
                Kept::EveryWrite => Persistence::EveryWrite,
            },
            faults,
        })
    }
}
