//! The code of the page "Your own algorithm in the matrix".
#![cfg_attr(rustfmt, rustfmt_skip)]
use std::{cell::Cell, process::ExitCode, rc::Rc, time::Duration};

use quorlock_sim_lab::algorithm::{
    AlgorithmHold, AlgorithmLock, AlgorithmNodes, Attempt, Claimed, LockAlgorithm, LockClient,
    Name, OwnerId, Released, ServerName, Step, Time,
};

#[derive(Debug)]
pub(crate) struct InTurns;

impl LockAlgorithm for InTurns {
    fn name(&self) -> &'static str { "in-turns" }
    fn title(&self) -> &'static str { "a majority of servers, asked one after the other" }
    fn nodes(&self) -> AlgorithmNodes { AlgorithmNodes::Majority }
    fn lock(&self, client: Rc<LockClient>, name: Name) -> Rc<dyn AlgorithmLock> {
        let servers = 0..client.node_count();
        let servers = servers.map(|server| ServerName::new(&client, server, &name));
        Rc::new(Members { servers: servers.collect(), client })
    }
}

#[derive(Clone, Debug)]
struct Members { client: Rc<LockClient>, servers: Vec<ServerName> }

impl AlgorithmLock for Members {
    fn attempt(&self, lease: Duration) -> Step<'_, Attempt> {
        Box::pin(async move {
            let (owner, until) = (self.client.fresh_owner_id(), self.client.now() + lease * 9 / 10);
            let (mut granted, mut refused, mut token) = (0, 0, 0);
            for server in &self.servers {
                match self.client.within(lease / 10, server.claim(owner, lease)).await {
                    Some(Claimed::Granted(number)) => (granted, token) = (granted + 1, token.max(number)),
                    Some(Claimed::Refused(_)) => refused += 1,
                    Some(Claimed::Silent) | None => {}
                }
            }
            let held = Held { members: self.clone(), owner, lease, token, until: Cell::new(until) };
            if self.servers.len() < 2 * granted && self.client.now() < until {
                return Attempt::Won(Rc::new(held));
            }
            held.release().await;
            if 0 < refused { Attempt::Refused(None) } else { Attempt::Failed }
        })
    }
}

#[derive(Debug)]
struct Held { members: Members, owner: OwnerId, lease: Duration, token: u64, until: Cell<Time> }

impl AlgorithmHold for Held {
    fn valid_until(&self) -> Time { self.until.get() }
    fn token(&self) -> u64 { self.token }
    fn renew(&self) -> Step<'_, ()> {
        Box::pin(async move {
            let (client, mut kept) = (&self.members.client, 0);
            let until = client.now() + self.lease * 9 / 10;
            for server in &self.members.servers {
                let renewal = server.renew(self.owner, self.lease, self.token);
                kept += usize::from(client.within(self.lease / 10, renewal).await == Some(Some(true)));
            }
            if self.members.servers.len() < 2 * kept { self.until.set(until) }
        })
    }
    fn release(&self) -> Step<'_, Released> {
        Box::pin(async move {
            let mut freed = 0;
            for server in &self.members.servers {
                freed += usize::from(server.release(self.owner).await == Some(true));
            }
            if self.members.servers.len() < 2 * freed { Released::Free } else { Released::Unconfirmed }
        })
    }
}

fn main() -> ExitCode {
    quorlock_sim_lab::cli::main_with(&[&InTurns])
}
