//! The history of a run on real processes, built from the messages of its clients.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorlock_core::owner::{ClientId, OwnerId};

use super::message::{ClientReport, ConductorReply, HoldKind, WonHold, WonName};
use super::queue_log::QueueLog;
use super::violation::Break;
use super::waits::{WaitCounts, Waits};
use quorlock_sim_world::history::{
    Accepted, Began, Grant, History, HoldId, Leftover, NameId, Process, Reign, Section, Written,
};

/// The store of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    /// The largest token that the store has seen.
    largest: u64,
    /// How often the unfenced counter was written.
    written: u64,
    /// The value of the unfenced counter. Each write replaces it.
    count: u64,
}

/// The entries of a hold in the history: one for each name.
#[derive(Clone, Debug, Default)]
struct OpenHold {
    /// The indices of the sections.
    sections: Vec<usize>,
    /// The indices of the terms of leaders.
    reigns: Vec<usize>,
}

/// The history so far, and the store that the clients use.
#[derive(Debug, Default)]
pub(super) struct Records {
    history: History,
    /// When the clients were started, which is time 0 of the history.
    began: u64,
    /// When the run began, after the clients had connected, on the clock of the history.
    run_began: u64,
    /// The holds that processes have not left, each with its entries in the history.
    open: BTreeMap<(Process, u32), OpenHold>,
    stores: Vec<Stored>,
    waits: Waits,
    /// The first bystander that was lost.
    bereft: Option<Break>,
    queues: QueueLog,
    /// The errors of operations, with the number of occurrences of each.
    failures: BTreeMap<String, u64>,
    /// The last error of each client.
    last_failures: BTreeMap<u16, String>,
    /// The clients that were connected to the lock at least once.
    ready: BTreeSet<u16>,
}

impl Records {
    pub(super) fn new(began: u64, names: Vec<String>) -> Self {
        let stores = vec![Stored::default(); names.len()];
        let history = History {
            names,
            ..History::default()
        };
        Records {
            history,
            began,
            stores,
            ..Records::default()
        }
    }

    /// Begins the run. Waits, and grants of fair locks, are counted from now on.
    pub(super) fn begin_run(&mut self, now: u64) {
        self.run_began = self.moment(now);
        self.waits = Waits::default();
        self.queues.begin_run();
    }

    /// Returns when the run began, on the clock of the history.
    pub(super) fn run_began(&self) -> u64 {
        self.run_began
    }

    fn moment(&self, at: u64) -> u64 {
        at.saturating_sub(self.began)
    }

    /// Records that a client has lost a bystander. The first one counts.
    fn lost_bystander(&mut self, client: u16, name: &str, at: u64) {
        self.bereft.get_or_insert_with(|| Break {
            after: Duration::from_nanos(at).as_secs_f64(),
            story: format!("client {client} has lost {name}, which no fault concerns"),
        });
    }

    /// Handles a message of a process that arrived at `now`. Returns the answer, if the message has one.
    pub(super) fn hear(
        &mut self,
        process: Process,
        said: ClientReport,
        now: u64,
    ) -> Option<ConductorReply> {
        let asked = now;
        let now = self.moment(now);
        match said {
            ClientReport::Hello(_) => {}
            ClientReport::Ready => {
                self.ready.insert(process.client);
            }
            ClientReport::Won(hold) => self.won(process, &hold),
            ClientReport::Believed { hold, at } => self.believed(process, hold, self.moment(at)),
            ClientReport::Left { hold, at } => {
                let at = self.moment(at);
                self.left((process, hold), |_| at);
            }
            ClientReport::Read { name, token, .. } => return Some(self.read(name, token, now)),
            ClientReport::Write {
                hold,
                name,
                token,
                read_at,
                count,
            } => {
                let accepted = self.write(name, token, count);
                let is_known = token != 0;
                self.history.writes.push(Written {
                    process,
                    hold: self.hold_of(process, hold),
                    name: NameId(name),
                    at: now,
                    token: is_known.then_some(token),
                    read_at: is_known.then_some(read_at),
                    accepted,
                });
                return Some(match accepted {
                    Accepted::Yes => ConductorReply::Taken,
                    Accepted::No => ConductorReply::Refused,
                });
            }
            ClientReport::Waited(wait) => self.waits.add(process, wait),
            ClientReport::Bereft(name) => self.lost_bystander(process.client, &name, now),
            ClientReport::Now => return Some(ConductorReply::Now { at: asked }),
            ClientReport::Failed(what) => {
                self.last_failures.insert(process.client, what.clone());
                *self.failures.entry(what).or_default() += 1;
            }
        }
        None
    }

    fn won(&mut self, process: Process, said: &WonHold) {
        let (invoked, won) = (self.moment(said.invoked), self.moment(said.won));
        let believed = said.believed.map(|at| self.moment(at));
        let access = said.access;
        let number = HoldId(self.history.holds);
        self.history.holds += 1;
        let mut entries = OpenHold::default();
        for WonName { name, token } in said.names.iter().copied() {
            let name = NameId(name);
            // A lock without tokens has no terms, so its leaders are judged as holders of a lock.
            if said.kind == HoldKind::Leadership && token != 0 {
                entries.reigns.push(self.history.reigns.len());
                self.history.reigns.push(Reign {
                    hold: number,
                    process,
                    name,
                    term: token,
                    elected: won,
                    believed,
                    ended: u64::MAX,
                });
                continue;
            }
            entries.sections.push(self.history.sections.len());
            self.history.sections.push(Section {
                process,
                hold: number,
                name,
                won,
                entered: won,
                believed,
                left: u64::MAX,
                access,
                under: HoldId::NONE,
            });
            // A lock without tokens makes no promise about them.
            if let Ok(owner) = said.owner.parse()
                && token != 0
            {
                self.history.grants.push(Grant {
                    hold: number,
                    process,
                    owner,
                    name,
                    invoked,
                    won,
                    token,
                    access,
                });
            }
        }
        self.open.insert((process, said.hold), entries);
    }

    /// Records a check that found a hold held.
    fn believed(&mut self, process: Process, hold: u32, at: u64) {
        let Some(entries) = self.open.get(&(process, hold)) else {
            return;
        };
        for index in &entries.sections {
            if let Some(section) = self.history.sections.get_mut(*index) {
                section.believed = section.believed.max(Some(at));
            }
        }
        for index in &entries.reigns {
            if let Some(reign) = self.history.reigns.get_mut(*index) {
                reign.believed = reign.believed.max(Some(at));
            }
        }
    }

    /// Ends a hold. `at` returns the time of its end, given when it was last believed.
    fn left(&mut self, hold: (Process, u32), at: impl Fn(Option<u64>) -> u64) {
        let Some(entries) = self.open.remove(&hold) else {
            return;
        };
        for index in entries.sections {
            if let Some(section) = self.history.sections.get_mut(index) {
                section.left = at(section.believed);
            }
        }
        for index in entries.reigns {
            if let Some(reign) = self.history.reigns.get_mut(index) {
                reign.ended = at(reign.believed);
            }
        }
    }

    /// Returns the process, the name and the beginning of every hold that is not left.
    fn inside(&self) -> impl Iterator<Item = (Process, NameId, u64)> + '_ {
        self.open.values().flat_map(|entries| {
            let sections = entries.sections.iter();
            let sections = sections.filter_map(|index| self.history.sections.get(*index));
            let reigns = entries.reigns.iter();
            let reigns = reigns.filter_map(|index| self.history.reigns.get(*index));
            sections
                .map(|section| (section.process, section.name, section.won))
                .chain(reigns.map(|reign| (reign.process, reign.name, reign.elected)))
        })
    }

    fn hold_of(&self, process: Process, hold: u32) -> HoldId {
        let entries = self.open.get(&(process, hold));
        let of_section = |entries: &OpenHold| {
            let section = self.history.sections.get(*entries.sections.first()?)?;
            Some(section.hold)
        };
        let of_reign = |entries: &OpenHold| {
            let reign = self.history.reigns.get(*entries.reigns.first()?)?;
            Some(reign.hold)
        };
        let hold = entries.and_then(|entries| of_section(entries).or_else(|| of_reign(entries)));
        hold.unwrap_or(HoldId::NONE)
    }

    /// Reads from the store. A read with a token raises the largest token, like a write.
    fn read(&mut self, name: u16, token: u64, now: u64) -> ConductorReply {
        let Some(stored) = self.stores.get_mut(usize::from(name)) else {
            return ConductorReply::Refused;
        };
        if token != 0 && token < stored.largest {
            return ConductorReply::Refused;
        }
        stored.largest = stored.largest.max(token);
        ConductorReply::Stands {
            at: now,
            count: stored.count,
        }
    }

    fn write(&mut self, name: u16, token: u64, count: u64) -> Accepted {
        let Some(stored) = self.stores.get_mut(usize::from(name)) else {
            return Accepted::No;
        };
        stored.count = count;
        stored.written += 1;
        if token < stored.largest {
            return Accepted::No;
        }
        stored.largest = token;
        Accepted::Yes
    }

    /// Ends the sections of a process that has ended.
    pub(super) fn gone(&mut self, process: Process, now: u64) {
        let now = self.moment(now);
        let holds: Vec<(Process, u32)> = self.open.keys().copied().collect();
        for hold in holds.into_iter().filter(|(whose, _)| *whose == process) {
            self.left(hold, |believed| now.max(believed.unwrap_or(0)));
        }
    }

    /// Records the beginning of a fault.
    pub(super) fn began(&mut self, fault: usize, client: Option<u16>, now: u64) {
        let at = self.moment(now);
        self.history.began.push(Began { fault, at, client });
    }

    /// Records a claim that is left on a node although no client holds it.
    pub(super) fn left_over(&mut self, node: u16, name: u16) {
        let name = NameId(name);
        self.history.leftovers.push(Leftover { node, name });
    }

    /// Returns the client that entered the section of a name, or of any name, last and is still inside.
    pub(super) fn holder(&self, name: Option<u16>) -> Option<u16> {
        let inside = self.inside();
        inside
            .filter(|(_, of, _)| name.is_none_or(|name| of.0 == name))
            .max_by_key(|(_, _, won)| *won)
            .map(|(process, ..)| process.client)
    }

    /// Returns how many holds were won so far.
    pub(super) fn holds(&self) -> u32 {
        self.history.holds
    }

    /// Records that the process of a client was stopped, or its clock set, within this time.
    pub(super) fn disturbed(&mut self, client: u16, from: u64, until: u64) {
        self.waits.disturbed(client, from, until);
    }

    /// Returns the numbers of waits with a bound, or `None` if there were none.
    pub(super) fn wait_counts(&self) -> Option<WaitCounts> {
        self.waits.counts()
    }

    /// Returns the first wait from which a client returned too late.
    pub(super) fn delayed(&self, within: Duration) -> Option<Break> {
        let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        self.waits.delayed(self.began, within)
    }

    pub(super) fn overrun(&self) -> Option<Break> {
        self.waits.overrun(self.began)
    }

    /// Returns the loss of the first bystander, if one was lost.
    pub(super) fn bereft(&self) -> Option<&Break> {
        self.bereft.as_ref()
    }

    /// Handles a line of a server's report of its commands, which arrived at `now`.
    pub(super) fn reported(&mut self, node: u16, now: u64, line: &str) {
        let at = self.moment(now);
        self.queues.hear(node, at, line);
    }

    /// Returns the queues of fair locks, as servers have reported them.
    pub(super) fn queues(&mut self) -> &mut QueueLog {
        &mut self.queues
    }

    /// Returns the clients below `clients` that were never connected to the lock.
    pub(super) fn absent(&self, clients: u16) -> Vec<u16> {
        let clients = 0..clients;
        clients
            .filter(|client| !self.ready.contains(client))
            .collect()
    }

    /// Returns the last error that a client reported.
    pub(super) fn last_failure(&self, client: u16) -> Option<&str> {
        self.last_failures.get(&client).map(String::as_str)
    }

    /// Returns whether a client with one of these numbers has won a hold so far.
    pub(super) fn has_won(&self, is_one: impl Fn(u16) -> bool) -> bool {
        let mut stays = self.history.stays();
        stays.any(|stay| is_one(stay.process.client))
    }

    /// Returns how many writes of the unfenced counter were overwritten without having been read.
    pub(super) fn lost_updates(&self) -> u64 {
        let stores = self.stores.iter();
        stores
            .map(|stored| stored.written.saturating_sub(stored.count))
            .sum()
    }

    /// Returns the errors of operations, with the number of occurrences of each.
    pub(super) fn failures(&self) -> &BTreeMap<String, u64> {
        &self.failures
    }

    /// Returns the history of a run that ended at this time.
    pub(super) fn end(&mut self, now: u64) -> History {
        self.history.progress_due = self.moment(now);
        let grants = self.history.grants.iter();
        // A client has one identity for all of its owners.
        let processes: BTreeMap<ClientId, Process> = grants
            .map(|grant| (grant.owner.client, grant.process))
            .collect();
        let process_of = |owner: OwnerId| processes.get(&owner.client).copied();
        self.history.turns = self.queues.answers(process_of);
        std::mem::take(&mut self.history)
    }
}

#[cfg(test)]
mod tests;
