//! Read holds beside an owner's write hold.

use std::sync::Arc;

use quorlock_core::owner::OwnerId;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// The number of an owner's read holds, and acquisitions of such holds, beside its write hold.
///
/// To a node all of them are one hash with one TTL, so the reader's renewals keep the writer's claim alive, too. If
/// the release of the write hold fails, it must be retried while any read hold may be renewed. Otherwise B could
/// not read until the reader is done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers(Arc<AtomicUsize>);

/// A read hold, or its acquisition, beside a write hold. While it exists, it may be renewed.
#[derive(Debug)]
pub(crate) struct Under {
    pub(crate) writer: OwnerId,
    readers: Readers,
}

impl Readers {
    pub(crate) fn are_there(&self) -> bool {
        0 < self.0.load(Ordering::Acquire)
    }
}

impl Under {
    pub(crate) fn new(writer: OwnerId, readers: &Readers) -> Self {
        readers.0.fetch_add(1, Ordering::AcqRel);
        Under {
            writer,
            readers: readers.clone(),
        }
    }
}

impl Clone for Under {
    fn clone(&self) -> Self {
        Under::new(self.writer, &self.readers)
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.readers.0.fetch_sub(1, Ordering::AcqRel);
    }
}
