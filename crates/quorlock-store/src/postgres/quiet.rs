//! Whether a client listens to a record, as the server knows it.
//!
//! A message costs all writers of the server, because it commits transactions with messages one after another. So a
//! write is told only if a client listens. Keys are spread over buckets. A client that listens to a bucket holds a shared
//! advisory lock of the class 577215665, and a write looks whether it could have that lock for itself.
//!
//! B begins to listen while A, which has looked, has not committed: B would read the record as it was before A, and A would
//! not tell it. Hence A holds a shared lock of the class 577215666 from its look to its commit. B, when it has its lock of the
//! first class, waits for that one, and then reads the record.

use crate::store::Key;

/// Each client may lock all of them, and the server has room for a few thousand locks.
const BUCKETS: u32 = 64;

/// Returns the bucket of a key: FNV-1a, 32 bits, modulo 64. All clients must agree on it.
pub(super) fn bucket(key: &Key) -> i32 {
    let bytes = key.as_bytes().iter();
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    (hash % BUCKETS).cast_signed()
}

/// Returns the statements that begin to listen to buckets, and return when no write is under way that has not seen it.
pub(super) fn begin(buckets: &[i32]) -> String {
    let buckets = list(buckets);
    format!(
        "SELECT pg_advisory_lock_shared(577215665, b) FROM unnest(ARRAY[{buckets}]) AS b; \
         SELECT pg_advisory_xact_lock(577215666, b) FROM unnest(ARRAY[{buckets}]) AS b"
    )
}

/// Returns the statement that ends it.
pub(super) fn end(buckets: &[i32]) -> String {
    let buckets = list(buckets);
    format!("SELECT pg_advisory_unlock_shared(577215665, b) FROM unnest(ARRAY[{buckets}]) AS b")
}

fn list(buckets: &[i32]) -> String {
    let words: Vec<String> = buckets.iter().map(ToString::to_string).collect();
    words.join(", ")
}
