//! The product's seam to the resource that a lock protects. The resource rejects writes with stale tokens.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::engine::clients::writes;
use crate::engine::stop::using;
use crate::history::{Accepted, HoldId, NameId};
use crate::world::id::ProcessId;
use crate::world::slab::Key;
use crate::world::store::{StoreRequest, Write};
use crate::world::with;

/// A read or a write of a client. Resolves to whether the store accepted it, and when.
#[derive(Debug)]
pub struct Writing(Key<Write>);

impl Writing {
    /// Begins a read or a write within a hold, with the fencing token that the store checks.
    pub fn begin(
        who: ProcessId,
        hold: HoldId,
        name: NameId,
        asked: StoreRequest,
        token: Option<u64>,
    ) -> Self {
        Writing(using(who, |world| {
            writes::start(world, who, hold, name, asked, token)
        }))
    }
}

impl Future for Writing {
    type Output = (Accepted, u64);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        with(|world| {
            let write = world.writes.get_mut(self.0);
            write.map_or(Poll::Pending, |write| write.poll(cx))
        })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        with(|world| writes::abandon(world, self.0));
    }
}
