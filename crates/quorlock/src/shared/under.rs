//! Reading beside one's own writing.

use std::sync::Arc;

use quorlock_core::owner::OwnerId;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// How many of an owner's readers, or of its acquisitions to read, there are beside its claim to write.
///
/// All of them are one hash to a node, with one TTL: the renewals of a reader keep the writer's claim alive as well. So
/// a writer's release that failed is tried again for as long as one of them may renew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers(Arc<AtomicUsize>);

/// One of them; dropping it says that it renews no more.
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
