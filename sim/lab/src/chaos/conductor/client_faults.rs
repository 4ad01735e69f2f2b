//! The faults of clients: signals to their processes, and their clocks.

use std::time::Duration;

use super::Testbed;
use crate::chaos::clients::ClientSlot;
use crate::chaos::clock;
use crate::chaos::message::ConductorReply;
use crate::chaos::outcome::{Struck, done};
use quorlock_sim_plan::fault::ClientFault;

impl Testbed {
    pub(super) async fn strike_client(
        &self,
        index: usize,
        client: u16,
        fault: ClientFault,
        lasts: Duration,
    ) -> Struck {
        if let ClientFault::Cancel { .. } = fault {
            if !self.reports.tell(client, ConductorReply::Cancel) {
                return Struck::PassedOver;
            }
            self.began(index, Some(client));
            return Struck::Yes;
        }
        let seat = self.seats.get(usize::from(client));
        let Some(mut seat) = seat.and_then(|seat| seat.try_lock().ok()) else {
            return Struck::PassedOver;
        };
        // A fault without an effect may neither count as a fault during a hold nor excuse a wait.
        if let Some(why) = seat.lacks(fault) {
            return Struck::Lacks(why.to_owned());
        }
        self.began(index, Some(client));
        if fault == ClientFault::Crash {
            seat.kill().await;
            clock::sleep(lasts).await;
            return done(seat.restart().await);
        }
        let from = clock::now();
        let struck = self.disturb(&mut seat, fault, lasts).await;
        let until = match fault {
            // The rate stays as it is, and so the client measures its waits by it from now on.
            ClientFault::Rate { .. } => u64::MAX,
            _ => clock::now(),
        };
        self.reports.records().disturbed(client, from, until);
        struck
    }

    /// Stops the process of a client for a while, or sets its clock.
    async fn disturb(&self, seat: &mut ClientSlot, fault: ClientFault, lasts: Duration) -> Struck {
        let lacks = seat.lacks_clocks();
        match fault {
            ClientFault::Suspend { clock } => return set(seat.suspend(lasts, clock).await, lacks),
            ClientFault::Rate { rate_ppm } => {
                let clocks = seat.clocks();
                return set(clocks.map(|clocks| clocks.run_at(rate_ppm)), lacks);
            }
            ClientFault::Step { by } => {
                let by = by.as_nanos().saturating_mul(i64::from(self.scale));
                return set(seat.clocks().map(|clocks| clocks.step(by)), lacks);
            }
            ClientFault::Pause
            | ClientFault::PauseInside { .. }
            | ClientFault::StopInside { .. }
            | ClientFault::Crash
            | ClientFault::Cancel { .. } => {}
        }
        seat.pause();
        clock::sleep(lasts).await;
        seat.resume();
        Struck::Yes
    }
}

/// Returns whether a clock was set, or why the clock cannot be set.
fn set(set: Option<std::io::Result<()>>, lacks: &str) -> Struck {
    match set {
        Some(result) => done(result),
        None => Struck::Lacks(lacks.to_owned()),
    }
}
