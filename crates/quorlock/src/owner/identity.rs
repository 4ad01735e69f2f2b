//! What the locks of one owner share: what it holds, and whose turn it is.

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

/// The identity behind an owner, which its locks carry.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    pub(super) slots: Mutex<Slots>,
    turns: Arc<Turns>,
}

impl Identity {
    /// Enters the hold that the owner has, or wins a new one by `anew`, which is told the writer of what the reader reads.
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
        // What the owner holds it enters without a turn: nothing is asked for that another acquisition could be granted.
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
                // What the owner holds is known only now: an acquisition that began before has ended.
                if let Some(guard) = slot.reenter_within(client, waits).await? {
                    return Ok(guard);
                }
                let under = self.under(layout, client.now())?;
                Ok(slot.remember(anew(under).await?))
            });
            // One that was passed over begins again at the end of the line.
            if let Some(result) = poll_fn(|cx| turn.poll(cx, acquiring.as_mut())).await {
                return result;
            }
        }
    }

    /// The same without waiting.
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
        // Two tasks enter at once what the owner holds: the one without the turn is not to hear that others hold it.
        if let Some(guard) = slot.reenter(client, Time::NEVER).await? {
            return Ok(guard);
        }
        let Some(turn) = self.turns.try_begin(layout, client) else {
            return Err(contended(client, layout, Waits::UNBOUNDED));
        };
        let mut acquiring = pin!(async {
            // Another task may have won it since.
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

    /// As whom the owner writes what it is going to read, by a new hold of this lock.
    ///
    /// To be asked when the owner is known not to hold the lock itself: A writes, and has lost what it read beside
    /// that. Should it read anew as any other would, it would wait for its own claim to write.
    fn under(&self, layout: &Layout, now: Time) -> Result<Option<Under>, AcquireError> {
        let mut under = None;
        for hold in self.slots.lock().sharing_names(layout) {
            // A lost hold, whose guard is still out, is nothing that the owner has.
            if hold.is_valid(now) {
                under = under.or(beside(&hold, layout)?);
            }
        }
        Ok(under)
    }
}

/// Another acquisition of the owner has its turn.
fn contended(client: &Client, layout: &Layout, waits: Waits) -> AcquireError {
    let now = client.now();
    AcquireError::Contended {
        names: layout.title(),
        tried: now.since(waits.since.unwrap_or(now)),
        holder: Holder::ThisClient,
    }
}

/// Whether an owner that has this hold can acquire the layout as well; if it is to read what the hold writes, as whom.
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
