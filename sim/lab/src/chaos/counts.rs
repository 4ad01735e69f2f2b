//! Counts over the history of a run.

use quorlock_sim_world::history::{Access, History, Section};

/// Returns whether a name passed from one stay to the next one, of another process. Readers beside each other pass
/// nothing.
pub(super) fn is_hand_over(from: &Section, to: &Section) -> bool {
    let readers = from.access == Access::Read && to.access == Access::Read;
    from.name == to.name && from.process != to.process && !readers
}

/// Returns how often a name passed from one process to another.
pub(super) fn hand_overs(history: &History) -> u64 {
    let mut stays: Vec<Section> = history.stays().collect();
    stays.sort_by_key(|section| (section.name, section.won));
    let pairs = stays.iter().zip(stays.iter().skip(1));
    pairs.filter(|(a, b)| is_hand_over(a, b)).count() as u64
}

/// Returns how many faults began while a lock was held.
pub(super) fn during_holds(history: &History) -> u64 {
    let stays: Vec<Section> = history.stays().collect();
    let is_inside = |at: u64| {
        let mut stays = stays.iter();
        stays.any(|section| section.won <= at && at <= section.left)
    };
    let began = history.began.iter();
    began.filter(|began| is_inside(began.at)).count() as u64
}

/// Returns how often two processes were inside a section at the same time, whatever they believed. A process that is
/// stopped inside stays there until it resumes.
pub(super) fn beside_each_other(history: &History) -> u64 {
    let mut stays: Vec<Section> = history.stays().collect();
    stays.sort_by_key(|section| (section.name, section.entered));
    let mut longest: Option<&Section> = None;
    let mut met = 0;
    for stay in &stays {
        let other = longest.filter(|other| other.name == stay.name);
        let readers = |other: &Section| other.access == Access::Read && stay.access == Access::Read;
        met += u64::from(other.is_some_and(|other| stay.entered < other.left && !readers(other)));
        if other.is_none_or(|other| other.left < stay.left) {
            longest = Some(stay);
        }
    }
    met
}
