//! The label for the names of a lock, from a function of the user.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use quorlock_core::name::Name;

use crate::mutex::Mutex;

/// The label of names that are not counted by themselves, because there are more of them than
/// [`metrics_by_name`](crate::LocksBuilder::metrics_by_name) allows.
pub const OTHER: &str = "other";

/// The largest number of different labels that are joined for a lock of several names.
const MOST_JOINED: usize = 3;

/// Makes the labels of one client's locks.
pub(crate) struct NameLabels {
    normalize: Box<dyn Fn(&str) -> String + Send + Sync>,
    most: usize,
    known: Mutex<BTreeSet<Arc<str>>>,
}

impl NameLabels {
    pub(crate) fn new(
        most: usize,
        normalize: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        NameLabels {
            normalize: Box::new(normalize),
            most,
            known: Mutex::default(),
        }
    }

    /// Returns the label of a lock of these names, or [`OTHER`] if it would be one too many.
    pub(crate) fn of<'a>(&self, names: impl Iterator<Item = &'a Name>) -> Arc<str> {
        let names = names.map(|name| (self.normalize)(&name.text()));
        let names: BTreeSet<String> = names.collect();
        let mut joined: Vec<&str> = names.iter().map(String::as_str).collect();
        if MOST_JOINED < joined.len() {
            joined.truncate(MOST_JOINED);
            joined.push("...");
        }
        self.bounded(joined.join(" + "))
    }

    fn bounded(&self, label: String) -> Arc<str> {
        let mut known = self.known.lock();
        if let Some(label) = known.get(label.as_str()) {
            return label.clone();
        }
        if known.len() == self.most {
            return OTHER.into();
        }
        let label: Arc<str> = label.into();
        known.insert(label.clone());
        label
    }
}

impl fmt::Debug for NameLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameLabels").finish_non_exhaustive()
    }
}

/// Returns the name with `{id}` in place of each part that contains a digit: `orders/42` becomes `orders/{id}`.
///
/// Parts are separated by `/`, `:`, `.`, `|` and spaces. A UUID is one part.
///
/// ```
/// use quorlock::metrics::without_ids;
///
/// assert_eq!(without_ids("orders/42:items"), "orders/{id}:items");
/// assert_eq!(without_ids("user.0b7a4c3e-5d21-4e0f-9a55-1f2b3c4d5e6f"), "user.{id}");
/// assert_eq!(without_ids("nightly-report"), "nightly-report");
/// ```
#[must_use]
pub fn without_ids(name: &str) -> String {
    let mut label = String::with_capacity(name.len());
    for piece in name.split_inclusive(['/', ':', '.', '|', ' ']) {
        let end = piece.find(['/', ':', '.', '|', ' ']).unwrap_or(piece.len());
        let (part, separator) = piece.split_at(end);
        let has_digit = part.contains(|letter: char| letter.is_numeric());
        label.push_str(if has_digit { "{id}" } else { part });
        label.push_str(separator);
    }
    label
}
