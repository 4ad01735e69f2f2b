//! Reads while others read, writes alone, reads during its own write hold, and requests to write while it reads.

use std::cell::Cell;

use quorlock::{AcquireError, Owner};

use super::{exclusion, hold_span, is_renewed, names_of, think, two};
use crate::client::context::{Context, Fencing, HeldLock, SectionHandle};
use crate::client::subject::Subject;
use quorlock_sim_plan::LockKind;
use quorlock_sim_plan::variant::Flaw;
use quorlock_sim_world::history::{Access, HoldId, NameId};

pub(super) async fn client(ctx: Context) {
    two(work(&ctx), work(&ctx)).await;
}

/// Acquires both sides as one owner at the same time, while others read and write.
pub(super) async fn both_sides(ctx: Context) {
    let all = names_of(&ctx);
    let sides = async {
        loop {
            think(&ctx).await;
            let Some(texts) = super::any(&ctx, &all) else {
                return;
            };
            Share::new(&ctx, texts).both().await;
        }
    };
    two(sides, work(&ctx)).await;
}

async fn work(ctx: &Context) {
    let all = names_of(ctx);
    loop {
        think(ctx).await;
        let Some(texts) = super::any(ctx, &all) else {
            return;
        };
        let share = Share::new(ctx, texts);
        // Both sides require an owner, and an owner belongs to one client: a client of one node, or of a quorum.
        let has_owner = ctx.plan().lock != LockKind::Multi;
        match ctx.random(0, 9) {
            0 if has_owner => share.downgrade().await,
            1 if has_owner => share.upgrade().await,
            2..=4 => share.write().await,
            _ => share.read().await,
        }
    }
}

/// One or more names, for reading and for writing.
struct Share<'a> {
    ctx: &'a Context,
    texts: &'a [String],
    names: Vec<NameId>,
}

impl<'a> Share<'a> {
    fn new(ctx: &'a Context, texts: &'a [String]) -> Self {
        let names = texts.iter().map(|text| ctx.name(text)).collect();
        Share { ctx, texts, names }
    }

    fn of(&self, access: Access, owner: Option<&Owner>) -> Subject {
        let name = self.texts.first().map_or("", String::as_str);
        let lock = match (owner, access) {
            (Some(owner), Access::Read) => owner.read(name),
            (Some(owner), _) => owner.write(name),
            (None, Access::Read) => self.ctx.read(self.texts),
            (None, _) => self.ctx.write_lock(self.texts),
        };
        let lock = Subject::ReadWrite(lock, access);
        if is_renewed(self.ctx) {
            return lock;
        }
        let lease = self.ctx.plan().workload.lease.as_duration();
        // The leases of readers may differ.
        let quarters = match access {
            Access::Read => u32::try_from(self.ctx.random(2, 4)).unwrap_or(4),
            _ => 4,
        };
        lock.lease(lease * quarters / 4)
    }

    async fn acquire(&self, lock: &Subject) -> Option<HeldLock> {
        self.ctx.acquire(lock, &self.names).await.ok()
    }

    async fn read(&self) {
        let lock = self.of(Access::Read, None);
        if let Some(held) = self.acquire(&lock).await {
            exclusion::stay(self.ctx, &held).await;
            let _ = self.ctx.release(held).await;
        }
    }

    async fn write(&self) {
        let lock = self.of(Access::Write, None);
        if let Some(held) = self.acquire(&lock).await {
            drop(self.written(&held).await);
            let _ = self.ctx.release(held).await;
        }
    }

    /// Stays in the section for a while, then writes.
    async fn written(&self, held: &HeldLock) -> SectionHandle {
        let section = self.ctx.section(held);
        let stay = self.ctx.sleep(hold_span(self.ctx));
        if self.ctx.cancellable(stay).await.is_ok() && section.look(&held.guard) {
            for name in &self.names {
                self.ctx.write(held, *name, Fencing::On).await;
            }
        }
        section
    }

    /// Writes, then keeps reading. No other client writes between the two.
    async fn downgrade(&self) {
        let owner = self.ctx.locks().owner();
        let (writer, reader) = (Access::Write, Access::Read);
        let Some(writing) = self.acquire(&self.of(writer, Some(&owner))).await else {
            return;
        };
        let section = self.written(&writing).await;
        let reading = self.acquire(&self.of(reader, Some(&owner))).await;
        let reading = reading.map(|held| held.under(&writing));
        let inside = reading.as_ref().map(|held| self.ctx.section(held));
        drop(section);
        let _ = self.ctx.release(writing).await;
        if let Some((held, section)) = reading.zip(inside) {
            exclusion::linger(self.ctx, &section, Some(&held)).await;
            drop(section);
            let _ = self.ctx.release(held).await;
        }
    }

    /// Acquires both sides at the same time. A writer may read during its own hold; a reader that requests to write
    /// gets an error, because it would wait for itself.
    async fn both(&self) {
        let owner = self.ctx.locks().owner();
        let (writing, lock) = (
            Cell::new(HoldId::NONE),
            self.of(Access::Write, Some(&owner)),
        );
        let write = async {
            let Some(held) = self.acquire(&lock).await else {
                return;
            };
            writing.set(held.hold);
            drop(self.written(&held).await);
            let _ = self.ctx.release(held).await;
            writing.set(HoldId::NONE);
        };
        let lock = self.of(Access::Read, Some(&owner));
        let read = async {
            let Some(mut held) = self.acquire(&lock).await else {
                return;
            };
            held.under = writing.get();
            exclusion::stay(self.ctx, &held).await;
            let _ = self.ctx.release(held).await;
        };
        // The future that is polled first sends its requests first.
        match self.ctx.random(0, 1) {
            0 => two(write, read).await,
            _ => two(read, write).await,
        }
    }

    /// Reads, then requests to write. It gets an error, because it would wait for itself; then it releases and starts
    /// over.
    async fn upgrade(&self) {
        let owner = self.ctx.locks().owner();
        let Some(reading) = self.acquire(&self.of(Access::Read, Some(&owner))).await else {
            return;
        };
        let section = self.ctx.section(&reading);
        exclusion::linger(self.ctx, &section, Some(&reading)).await;
        let waits = self.ctx.plan().variant.has(Flaw::UpgradeWaits);
        let owner = (!waits).then_some(&owner);
        let lock = self.of(Access::Write, owner);
        match self.ctx.acquire(&lock, &self.names).await {
            Err(Some(AcquireError::Upgrade { .. })) => {
                drop(section);
                let _ = self.ctx.release(reading).await;
                self.write().await;
            }
            Err(_) => {
                drop(section);
                let _ = self.ctx.release(reading).await;
            }
            // The lease of the reader had already expired.
            Ok(writing) => {
                drop(section);
                drop(self.written(&writing).await);
                let _ = self.ctx.release(writing).await;
                let _ = self.ctx.release(reading).await;
            }
        }
    }
}
