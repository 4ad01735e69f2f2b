//! The history of a run on real processes, built from the messages of its clients.

use std::collections::BTreeMap;

use super::message::{ClientReport, ConductorReply};
use crate::history::{
    Accepted, Access, Began, Grant, History, HoldId, Leftover, NameId, Process, Section, Written,
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

/// The history so far, and the store that the clients use.
#[derive(Debug, Default)]
pub(super) struct Records {
    history: History,
    /// When the run began, which is time 0 of the history.
    began: u64,
    /// The holds that processes have not left, each with its index among the sections.
    open: BTreeMap<(Process, u32), usize>,
    stores: Vec<Stored>,
    /// The errors of operations, with the number of occurrences of each.
    failures: BTreeMap<String, u64>,
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

    fn moment(&self, at: u64) -> u64 {
        at.saturating_sub(self.began)
    }

    /// Handles a message of a process that arrived at `now`. Returns the answer, if the message has one.
    pub(super) fn hear(
        &mut self,
        process: Process,
        said: ClientReport,
        now: u64,
    ) -> Option<ConductorReply> {
        let now = self.moment(now);
        match said {
            ClientReport::Hello(_) => None,
            ClientReport::Won { .. } => {
                self.won(process, &said);
                None
            }
            ClientReport::Believed { hold, at } => {
                let at = self.moment(at);
                if let Some(section) = self.section(process, hold) {
                    section.believed = section.believed.max(Some(at));
                }
                None
            }
            ClientReport::Left { hold, at } => {
                let at = self.moment(at);
                if let Some(section) = self.section(process, hold) {
                    section.left = at;
                }
                self.open.remove(&(process, hold));
                None
            }
            ClientReport::Read { name, token, .. } => Some(self.read(name, token, now)),
            ClientReport::Write {
                hold,
                name,
                token,
                read_at,
                count,
            } => {
                let hold = self.hold_of(process, hold);
                let accepted = self.write(name, token, count);
                self.history.writes.push(Written {
                    process,
                    hold,
                    name: NameId(name),
                    at: now,
                    token: (token != 0).then_some(token),
                    read_at: (token != 0).then_some(read_at),
                    accepted,
                });
                Some(match accepted {
                    Accepted::Yes => ConductorReply::Taken,
                    Accepted::No => ConductorReply::Refused,
                })
            }
            ClientReport::Failed(what) => {
                *self.failures.entry(what).or_default() += 1;
                None
            }
        }
    }

    fn won(&mut self, process: Process, said: &ClientReport) {
        let ClientReport::Won {
            hold,
            name,
            owner,
            invoked,
            won,
            token,
            access,
            believed,
        } = said
        else {
            return;
        };
        let (invoked, won) = (self.moment(*invoked), self.moment(*won));
        let believed = believed.map(|at| self.moment(at));
        let number = HoldId(self.history.holds);
        self.history.holds += 1;
        let place = self.history.sections.len();
        self.history.sections.push(Section {
            process,
            hold: number,
            name: NameId(*name),
            won,
            entered: won,
            believed,
            left: u64::MAX,
            access: *access,
            under: HoldId::NONE,
        });
        self.open.insert((process, *hold), place);
        // A lock without tokens makes no promise about them.
        if let Ok(owner) = owner.parse()
            && *token != 0
        {
            self.history.grants.push(Grant {
                hold: number,
                process,
                owner,
                name: NameId(*name),
                invoked,
                won,
                token: *token,
                access: *access,
            });
        }
    }

    fn section(&mut self, process: Process, hold: u32) -> Option<&mut Section> {
        let place = self.open.get(&(process, hold))?;
        self.history.sections.get_mut(*place)
    }

    fn hold_of(&self, process: Process, hold: u32) -> HoldId {
        let place = self.open.get(&(process, hold));
        let section = place.and_then(|place| self.history.sections.get(*place));
        section.map_or(HoldId::NONE, |section| section.hold)
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
        for key in holds.into_iter().filter(|(whose, _)| *whose == process) {
            if let Some(place) = self.open.remove(&key)
                && let Some(section) = self.history.sections.get_mut(place)
            {
                section.left = now.max(section.believed.unwrap_or(0));
            }
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
        let open = self.open.values();
        let sections = open.filter_map(|place| self.history.sections.get(*place));
        let inside = sections.filter(|section| name.is_none_or(|name| section.name.0 == name));
        inside
            .max_by_key(|section| section.won)
            .map(|section| section.process.client)
    }

    /// Returns how many holds were won so far.
    pub(super) fn holds(&self) -> u32 {
        self.history.holds
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
        std::mem::take(&mut self.history)
    }
}

/// Returns how often a name passed from one process to another.
pub(super) fn hand_overs(history: &History) -> u64 {
    let mut stays: Vec<&Section> = history.sections.iter().collect();
    stays.sort_by_key(|section| (section.name, section.won));
    let pairs = stays.iter().zip(stays.iter().skip(1));
    let passes = pairs.filter(|(a, b)| a.name == b.name && a.process != b.process);
    passes.count() as u64
}

/// Returns how many faults began while a lock was held.
pub(super) fn during_holds(history: &History) -> u64 {
    let is_inside = |at: u64| {
        let mut stays = history.sections.iter();
        stays.any(|section| section.won <= at && at <= section.left)
    };
    let began = history.began.iter();
    began.filter(|began| is_inside(began.at)).count() as u64
}

/// Returns how often two processes were inside a section at the same time, whatever they believed. A process that is
/// stopped inside stays there until it resumes.
pub(super) fn beside_each_other(history: &History) -> u64 {
    let mut stays: Vec<&Section> = history.sections.iter().collect();
    stays.sort_by_key(|section| (section.name, section.entered));
    let mut longest: Option<&Section> = None;
    let mut met = 0;
    for stay in stays {
        let other = longest.filter(|other| other.name == stay.name);
        let readers = |other: &Section| other.access == Access::Read && stay.access == Access::Read;
        met += u64::from(other.is_some_and(|other| stay.entered < other.left && !readers(other)));
        if other.is_none_or(|other| other.left < stay.left) {
            longest = Some(stay);
        }
    }
    met
}

#[cfg(test)]
mod tests;
