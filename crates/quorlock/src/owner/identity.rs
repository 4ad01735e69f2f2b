//! What the locks of one owner share: its holds, and the order of its acquisitions.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use quorlock_core::message::Mode;
use quorlock_core::time::Time;

use super::slots::{HoldSlot, Slots};
use super::turns::{NoTurn, Turns};
use crate::error::{AcquireError, Holder};
use crate::guard::Guard;
use crate::mutex::Mutex;
use crate::operation::attempt::Waits;
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::shared::layout::Layout;
use crate::shared::under::Under;

/// The identity of an owner. Each of its locks has a reference.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    pub(super) slots: Mutex<Slots>,
    turns: Arc<Turns>,
}

impl Identity {
    /// Enters the owner's hold, or wins a new one through `anew`. If the owner reads beside a write hold, `anew`
    /// receives that write hold.
    pub(crate) async fn acquire<F>(
        &self,
        client: &Arc<Client>,
        layout: &Layout,
        waits: Waits,
        anew: impl Fn(Option<Under>) -> F,
    ) -> Result<Guard, AcquireError>
    where
        F: Future<Output = Result<Guard, AcquireError>>,
    {
        let slot = self.slot(layout);
        // A re-entry needs no turn, because it cannot compete with another acquisition of the owner.
        if let Some(guard) = slot.reenter_within(client, waits).await? {
            return Ok(guard);
        }
        let give_up_at = waits.until.unwrap_or(Time::NEVER);
        loop {
            let turn = self.turns.wait(layout, client, give_up_at).await;
            let turn = turn.map_err(|no_turn| match no_turn {
                NoTurn::Late => contended(client, layout, waits),
                NoTurn::Closed => AcquireError::Closed,
            })?;
            let mut acquiring = pin!(async {
                // Check again now that the turn has come: an acquisition that began earlier may have won the
                // hold since.
                if let Some(guard) = slot.reenter_within(client, waits).await? {
                    return Ok(guard);
                }
                let under = self.under(layout, client.now())?;
                Ok(slot.remember(anew(under).await?))
            });
            // An acquisition that was passed over starts again at the end of the line.
            if let Some(result) = poll_fn(|cx| turn.poll(cx, acquiring.as_mut())).await {
                return result;
            }
        }
    }

    /// Like [`Identity::acquire`], without waiting.
    pub(crate) async fn try_acquire<F>(
        &self,
        client: &Arc<Client>,
        layout: &Layout,
        anew: impl FnOnce(Option<Under>) -> F,
    ) -> Result<Guard, AcquireError>
    where
        F: Future<Output = Result<Guard, AcquireError>>,
    {
        let slot = self.slot(layout);
        // Without this, of two tasks that enter a hold at once, the one without the turn would report that others
        // hold it.
        if let Some(guard) = slot.reenter(client, Time::NEVER).await? {
            return Ok(guard);
        }
        let Some(turn) = self.turns.try_begin(layout, client) else {
            return Err(contended(client, layout, Waits::UNBOUNDED));
        };
        let mut acquiring = pin!(async {
            // Check again now that the turn has come: another task may have won the hold since.
            if let Some(guard) = slot.reenter(client, Time::NEVER).await? {
                return Ok(guard);
            }
            let under = self.under(layout, client.now())?;
            Ok(slot.remember(anew(under).await?))
        });
        let result = poll_fn(|cx| turn.poll(cx, acquiring.as_mut())).await;
        result.unwrap_or_else(|| Err(contended(client, layout, Waits::UNBOUNDED)))
    }

    fn slot(&self, layout: &Layout) -> Arc<HoldSlot> {
        self.slots.lock().slot(layout)
    }

    /// Returns the owner's write hold that a new read hold of this lock belongs to, if there is one.
    ///
    /// Call it when the owner is known not to hold the lock itself. A holds the write lock, and has lost its read
    /// hold beside it. If A's new read request did not name its write hold, it would be refused by A's own claim, and
    /// A would wait for itself.
    fn under(&self, layout: &Layout, now: Time) -> Result<Option<Under>, AcquireError> {
        let mut under = None;
        for hold in self.slots.lock().sharing_names(layout) {
            // A lost hold may still have a guard, but the owner no longer holds it.
            if !hold.is_valid(now) {
                continue;
            }
            let its = beside(&hold, layout)?;
            // Look again: another thread may have handed the write hold over before it could see that a read hold begins. After
            // that it cannot.
            if hold.is_valid(now) {
                under = under.or(its);
            }
        }
        Ok(under)
    }
}

/// The error when another acquisition of the owner has the turn.
fn contended(client: &Client, layout: &Layout, waits: Waits) -> AcquireError {
    let now = client.now();
    AcquireError::Contended {
        names: layout.title(),
        tried: now.since(waits.since.unwrap_or(now)),
        holder: Holder::ThisClient,
        clients: Vec::new(),
    }
}

/// Checks that an owner with this hold can also acquire the layout. Returns the write hold if the layout is a read
/// lock beside it.
fn beside(hold: &Hold, layout: &Layout) -> Result<Option<Under>, AcquireError> {
    let names = || layout.title();
    let (held, wanted) = (&hold.layout.parts, &layout.parts);
    if let ([held], [wanted]) = (&**held, &**wanted)
        && held.is_same_place(wanted)
    {
        match (held.mode, wanted.mode) {
            (Mode::Write, Mode::Read) => return Ok(Some(Under::new(hold.owner, hold.readers()))),
            (Mode::Read, Mode::Write) => return Err(AcquireError::Upgrade { names: names() }),
            _ => {}
        }
    }
    match hold.layout.common_name(layout) {
        None => Ok(None),
        Some(name) => {
            let held = name.to_string();
            Err(AcquireError::Overlap {
                names: names(),
                held,
            })
        }
    }
}
