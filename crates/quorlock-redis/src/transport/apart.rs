//! Renews claims that are in several slots.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use quorlock_core::message::{Renew, Reply, Request};
use quorlock_core::slot::Slot;
use quorlock_core::transport::{Execution, TransportError};

use super::Inner;
use crate::error;

impl Inner {
    /// Renews claims whose names are in different slots, with one request for each slot. If one of them fails, the
    /// whole request fails as indeterminate, because it is not known which claims were renewed. The locks never
    /// send such a request.
    pub(super) async fn renew_apart(
        &self,
        parts: Vec<SlotRenewal>,
    ) -> Result<Reply, TransportError> {
        let (places, calls): (Vec<_>, Vec<_>) = parts
            .into_iter()
            .map(|part| (part.places, self.renew(part.renew)))
            .unzip();
        let mut replies = Vec::new();
        for (places, reply) in places.into_iter().zip(join_all(calls).await) {
            match reply.map_err(|error| error.with_execution(Execution::Indeterminate))? {
                Reply::Renew(renewed) => replies.extend(places.into_iter().zip(renewed)),
                _ => {
                    return Err(error::no_reply("the reply to a renewal is of another kind"));
                }
            }
        }
        replies.sort_by_key(|(place, _)| *place);
        Ok(Reply::Renew(
            replies.into_iter().map(|(_, reply)| reply).collect(),
        ))
    }

    async fn renew(&self, ask: Renew) -> Result<Reply, TransportError> {
        let replied = self.exchange(self.address(Request::Renew(ask))?).await;
        replied.map_err(|error| self.timed(error))
    }

    /// The parts of a renewal whose names are in several slots; `None` if all names are in one slot.
    pub(super) fn parts(
        &self,
        request: &Request,
    ) -> Result<Option<Vec<SlotRenewal>>, TransportError> {
        let Request::Renew(ask) = request else {
            return Ok(None);
        };
        let slots = ask.claims.iter().map(|claim| self.slot(&claim.name));
        let slots = slots.collect::<Result<Vec<_>, _>>();
        let slots = slots.map_err(|unfit| error::unfit(&unfit))?;
        if slots.windows(2).all(|pair| pair.first() == pair.last()) {
            return Ok(None);
        }
        let mut parts: BTreeMap<Slot, SlotRenewal> = BTreeMap::new();
        for (place, (claim, slot)) in ask.claims.iter().zip(slots).enumerate() {
            let part = parts.entry(slot).or_insert_with(|| SlotRenewal {
                places: Vec::new(),
                renew: Renew {
                    claims: Vec::new(),
                    ..*ask
                },
            });
            part.places.push(place);
            part.renew.claims.push(claim.clone());
        }
        Ok(Some(parts.into_values().collect()))
    }
}

/// A renewal of claims whose names are in one slot, with their positions in the whole request.
pub(super) struct SlotRenewal {
    places: Vec<usize>,
    renew: Renew,
}
