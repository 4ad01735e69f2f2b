//! The memory and the file descriptors of clients over time.

use std::collections::BTreeMap;

/// The number of readings before the first one that counts: a process that has just started still grows.
const WARM_UP: u64 = 10;

/// By how many descriptors a process may grow. Its connections may be replaced at the time of a reading.
const MORE_DESCRIPTORS: u64 = 64;

/// By how much memory a process may grow, in KiB.
const MORE_MEMORY: u64 = 64 * 1024;

/// What a process uses at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Footprint {
    /// The resident memory, in KiB.
    pub(super) memory: u64,
    /// The number of open file descriptors.
    pub(super) descriptors: u64,
}

impl Footprint {
    /// Returns what a process uses now, or `None` if it has ended or the system has no `/proc`.
    pub(super) fn of(pid: u32) -> Option<Footprint> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let mut lines = status.lines();
        let resident = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
        let memory = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
        Some(Footprint {
            memory,
            descriptors: u64::try_from(descriptors).ok()?,
        })
    }

    fn max(self, other: Footprint) -> Footprint {
        Footprint {
            memory: self.memory.max(other.memory),
            descriptors: self.descriptors.max(other.descriptors),
        }
    }
}

/// The footprints of all clients of a run.
#[derive(Debug, Default)]
pub(super) struct Footprints {
    /// The footprints of the processes of each client, by the process id.
    processes: BTreeMap<(u16, u32), Growth>,
}

/// How much a process has grown.
#[derive(Clone, Copy, Debug)]
struct Growth {
    readings: u64,
    first: Footprint,
    last: Footprint,
    most: Footprint,
}

impl Footprints {
    /// Adds a reading. Readings come at regular intervals.
    pub(super) fn add(&mut self, client: u16, pid: u32, now: Footprint) {
        let growth = self.processes.entry((client, pid)).or_insert(Growth {
            readings: 0,
            first: now,
            last: now,
            most: now,
        });
        growth.readings += 1;
        if growth.readings <= WARM_UP {
            growth.first = now;
        }
        growth.last = now;
        growth.most = growth.most.max(now);
    }

    /// Returns the most memory and the most descriptors that a process had.
    pub(super) fn most(&self) -> Footprint {
        let all = self.processes.values().map(|growth| growth.most);
        all.fold(Footprint::default(), Footprint::max)
    }

    /// Returns a sentence for each process that has grown by more than the bounds.
    pub(super) fn grown(&self) -> Vec<String> {
        let mut grown = Vec::new();
        for ((client, _), growth) in &self.processes {
            let Growth { first, last, .. } = growth;
            if first.descriptors + MORE_DESCRIPTORS < last.descriptors {
                let (from, to) = (first.descriptors, last.descriptors);
                grown.push(format!(
                    "client {client} went from {from} to {to} descriptors"
                ));
            }
            if first.memory + MORE_MEMORY < last.memory {
                let (from, to) = (first.memory, last.memory);
                grown.push(format!(
                    "client {client} went from {from} to {to} KiB of memory"
                ));
            }
        }
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprints(readings: impl Iterator<Item = Footprint>) -> Footprints {
        let mut footprints = Footprints::default();
        readings.for_each(|reading| footprints.add(3, 77, reading));
        footprints
    }

    #[test]
    fn a_process_that_grows_second_by_second_is_named() {
        let leaks = |seconds: u64| Footprint {
            memory: 10_000 + seconds * 4_000,
            descriptors: 20 + seconds * 3,
        };
        let grown = footprints((0..60).map(leaks)).grown();
        assert_eq!(grown.len(), 2, "{grown:?}");
        assert!(
            grown
                .iter()
                .all(|said| said.starts_with("client 3 went from "))
        );
    }

    #[test]
    fn a_process_that_grows_at_its_start_or_comes_back_down_is_not_named() {
        let starts = |seconds: u64| Footprint {
            memory: 10_000 + 100_000 * seconds.min(5),
            descriptors: if seconds == 30 { 500 } else { 20 },
        };
        let footprints = footprints((0..60).map(starts));
        assert!(footprints.grown().is_empty());
        let most = footprints.most();
        assert_eq!((most.memory, most.descriptors), (510_000, 500));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_open_file_counts() {
        let before = Footprint::of(std::process::id()).unwrap();
        let files: Vec<_> = (0..200)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
            .collect();
        let now = Footprint::of(std::process::id()).unwrap();
        assert!(before.descriptors + 100 < now.descriptors && 0 < now.memory);
        drop(files);
    }
}
