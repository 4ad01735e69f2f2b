//! What of a run can have led to its violation.

/// The part of a run that can have led to its violation, and the run that passes with the smallest change.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Slice {
    /// When the part begins, in nanoseconds of true time.
    pub since: u64,
    /// When the property was violated, in nanoseconds of true time.
    pub until: u64,
    /// The indices of the messages of the recording that can have led to it.
    pub messages: Vec<usize>,
    /// The indices of the faults of the plan that can have led to it.
    pub faults: Vec<usize>,
    /// Without each of these alone, the property would have held.
    pub necessary: Vec<Necessary>,
    /// How likely the violation was, in the order of time; empty if that was not tried.
    pub curve: Vec<Chance>,
    /// The page of the run that passes, and how it differs, in words.
    pub twin: Option<Twin>,
}

/// How likely the violation was at an instant.
#[derive(Clone, PartialEq, Debug)]
pub struct Chance {
    /// The instant, in nanoseconds of true time.
    pub at: u64,
    /// The share of runs that are violated although only what follows the instant differs.
    pub share: f64,
    /// The same in words.
    pub text: String,
}

/// A fault or a message without which the property would have held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Necessary {
    /// When it began or was sent, in nanoseconds of true time.
    pub at: u64,
    /// What it was, in words.
    pub text: String,
}

/// The run that passes with the smallest change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Twin {
    /// The address of its page, relative to the page of the violation.
    pub page: String,
    /// How it differs, in words.
    pub text: String,
}

impl Slice {
    /// Returns the class of a message in the style sheet.
    pub(super) fn of_message(&self, index: usize) -> &'static str {
        class(self.messages.contains(&index))
    }

    /// Returns the class of a fault in the style sheet.
    pub(super) fn of_fault(&self, index: usize) -> &'static str {
        class(self.faults.contains(&index))
    }

    /// Returns the period that is shown: from shortly before the part to shortly after the violation.
    pub(super) fn view(&self) -> (u64, u64) {
        let margin = (self.until.saturating_sub(self.since) / 12).max(1_000_000);
        (self.since.saturating_sub(margin), self.until + margin)
    }
}

fn class(is_inside: bool) -> &'static str {
    match is_inside {
        true => "",
        false => " outside",
    }
}
