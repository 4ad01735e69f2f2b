//! The numbers in a table. Databases have no unsigned ones.

use crate::store::{Draft, Version};

/// Returns the number of a write as it is stored.
pub(crate) fn stored_number(number: u64) -> i64 {
    (number >> 1).cast_signed()
}

/// Returns until when a record is useful, as it is stored.
pub(crate) fn stored_until(draft: &Draft) -> Option<i64> {
    let until = draft.useful_until?;
    Some(i64::try_from(until.0).unwrap_or(i64::MAX))
}

/// Returns the stored number of a version. A version that is no number is none of such a store.
pub(crate) fn number_of(version: &Version) -> i64 {
    let number = version.to_number().and_then(|it| i64::try_from(it).ok());
    number.unwrap_or(-1)
}
