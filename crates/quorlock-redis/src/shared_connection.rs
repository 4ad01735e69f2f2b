//! A transport over a connection that the caller has made, and also uses for other work.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::{Channel, ReleaseReply, Reply, Request};
use quorlock_core::name::Name;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{
    Call, Cause, Execution, Listener, Subscription, Transport, TransportError, Witness,
};
use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value};

use crate::config::DEFAULT_CALL_TIMEOUT;
use crate::script::{self, By, Home};
use crate::timer::{self, Instant};
use crate::{error, failure, keyslot, unfit_names};

/// Carries requests over a connection of the `redis` crate that the caller has made: a `MultiplexedConnection`, a
/// `ConnectionManager`, a `ClusterConnection`, or anything else that is [`ConnectionLike`] and can be cloned. Cheap to clone.
///
/// A connection that sends each command at most once, as the first two do, changes nothing in what a lock promises. A
/// `ClusterConnection` sends a command again after a connection has failed, so with [`SharedConnection::to_cluster`] no error of a server
/// counts as a refusal, and a release by force is not carried: its second copy could free the name of the next owner. Do not let it read
/// from replicas.
///
/// This is what is lost in comparison with [`RedisTransport`](crate::RedisTransport):
///
/// | lost | because | so |
/// |---|---|---|
/// | waking | nothing is subscribed | waiters ask again after pauses of up to `RetryPolicy::poll_cap` |
/// | letting others pass | the servers know of no waiter | a client that acquires again at once may keep the others waiting: use a fair lock, or a smaller `poll_cap` |
/// | early probes | the connection does not tell when a server can be reached again | waiters learn it by asking |
/// | batches | each request is one command | a server executes more script calls under load |
/// | replacement of a silent connection | the connection decides about itself | calls fail until it notices |
/// | checks and warnings at connect | nothing is connected here | a wrong server or missing rights show at the first lock |
/// | shards of a cluster as members of a majority | they need one tag for each shard | a cluster is one node |
///
/// The transport needs a tokio runtime. Commands that block the connection, such as `BLPOP`, delay renewals. A connection for pub/sub or in a transaction cannot be
/// shared.
///
/// The call time-out is that of the transport. A shorter one of the connection also ends calls. A call that ended in either way
/// may still be executed later, as with every transport.
#[derive(Clone)]
pub struct SharedConnection<C> {
    connection: C,
    shown: Arc<str>,
    is_cluster: bool,
    namespace: Arc<[u8]>,
    call_timeout: Duration,
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> SharedConnection<C> {
    /// Makes a transport over a connection to one server, or to the primary of a group.
    ///
    /// The address is the name of the node in errors and logs. The nodes of a majority are ordered by their addresses, so all
    /// clients have to use the same ones. It must not contain a password.
    pub fn new(connection: C, address: impl Into<String>) -> Self {
        SharedConnection {
            connection,
            shown: address.into().into(),
            is_cluster: false,
            namespace: Arc::default(),
            call_timeout: DEFAULT_CALL_TIMEOUT,
        }
    }

    /// Makes a transport over a connection to a whole Redis Cluster, which is one node: it cannot be a member of a majority.
    pub fn to_cluster(connection: C, address: impl Into<String>) -> Self {
        SharedConnection {
            is_cluster: true,
            ..Self::new(connection, address)
        }
    }

    /// Sets the bound on one call. Default: 2 s, as for [`RedisConfig::call_timeout`](crate::RedisConfig::call_timeout).
    #[must_use]
    pub fn call_timeout(mut self, bound: Duration) -> Self {
        self.call_timeout = bound.min(timer::LONGEST_SPAN);
        self
    }

    /// Sets the namespace of all names, as [`RedisConfig::namespace`](crate::RedisConfig::namespace) does. Default: empty.
    #[must_use]
    pub fn namespace(mut self, namespace: impl AsRef<[u8]>) -> Self {
        self.namespace = namespace.as_ref().into();
        self
    }

    fn home(&self) -> Home {
        let home = match self.is_cluster {
            true => Home::CLUSTER,
            false => Home::PLAIN,
        };
        home.within(&self.namespace)
    }

    async fn exchange(mut self, request: Request) -> Result<Reply, TransportError> {
        self.slot_of(&request)?;
        if self.is_cluster && matches!(request, Request::ForceRelease(_)) {
            return Err(failure::definite(
                Cause::Unsupported,
                "a connection to a cluster may send a release by force twice, and free the name of the next owner: give the address of the cluster",
            ));
        }
        let deadline = timer::now() + self.call_timeout;
        let home = self.home();
        let short = script::encode(&request, &home, By::Digest);
        let mut answer = self.send(&short, deadline).await?;
        if is_script_missing(&answer) {
            // The server has executed nothing, so it is sent the text.
            let whole = script::encode(&request, &home, By::Text);
            answer = self.send(&whole, deadline).await?;
        }
        let reply = match answer {
            Ok(Value::ServerError(refusal)) => Err(error::server(&refusal)),
            Ok(answer) => script::decode(&request, &answer),
            Err(error) => Err(judged(&request, &error)),
        };
        match (self.is_cluster, reply) {
            (true, reply) => after_another_copy(reply),
            (false, reply) => reply,
        }
    }

    /// Sends a command. Whether an error reply is a value or an error is up to the connection.
    async fn send(
        &mut self,
        cmd: &Cmd,
        deadline: Instant,
    ) -> Result<Result<Value, RedisError>, TransportError> {
        let answered = timer::by(deadline, self.connection.req_packed_command(cmd)).await;
        answered.ok_or_else(error::unanswered)
    }

    /// Checks that the server can store the names of a request.
    fn slot_of(&self, request: &Request) -> Result<(), TransportError> {
        let names: Vec<&Name> = match request {
            Request::Acquire(ask) => vec![&ask.name],
            Request::Renew(ask) => ask.claims.iter().map(|claim| &claim.name).collect(),
            Request::Release(ask) => vec![&ask.name],
            Request::Inspect(ask) => vec![&ask.name],
            Request::ForceRelease(ask) => vec![&ask.name],
            Request::Probe(_) => Vec::new(),
        };
        let mut slots = names.into_iter().map(|name| self.slot(name));
        slots.try_for_each(|slot| slot.map(drop).map_err(|unfit| error::unfit(&unfit)))
    }
}

/// What is known of a reply to the second copy of a request: A's acquire is executed, its reply is lost with the connection, and the
/// second copy is refused by a server that is loading. The claim is there. Or A's release is executed, and its second copy finds no
/// claim: A had not lost its lock.
fn after_another_copy(reply: Result<Reply, TransportError>) -> Result<Reply, TransportError> {
    match reply {
        Ok(Reply::Release(ReleaseReply::NotYours)) => Err(failure::indeterminate(
            Cause::Closed,
            "the claim is gone: it was lost, or an earlier copy of this release has ended it",
        )),
        Ok(reply) => Ok(reply),
        Err(error) => Err(error.with_execution(Execution::Indeterminate)),
    }
}

fn is_script_missing(answer: &Result<Value, RedisError>) -> bool {
    match answer {
        Ok(Value::ServerError(refusal)) => refusal.kind() == Some(ServerErrorKind::NoScript),
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::Server(ServerErrorKind::NoScript),
    }
}

/// Classifies an error of the connection.
fn judged(request: &Request, error: &RedisError) -> TransportError {
    match error::of_client(error) {
        // It may be the error of the message alone: the connection has dropped the rest of the reply, by which the name is free.
        Some(refusal) if matches!(request, Request::Release(_) | Request::ForceRelease(_)) => {
            refusal.with_execution(Execution::Indeterminate)
        }
        Some(refusal) => refusal,
        // Some connections send again what they could not send, so no error shows that nothing was executed.
        None => error::closed(error),
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Transport for SharedConnection<C> {
    fn call(&self, request: Request) -> Call {
        Box::pin(self.clone().exchange(request))
    }

    fn subscribe(&self, _: &Channel, _: Arc<dyn Listener>) -> Subscription {
        Subscription::new(())
    }

    fn attend(&self, _: Arc<dyn Witness>) -> Subscription {
        Subscription::new(())
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        unfit_names::check(name, &self.namespace)?;
        match self.is_cluster {
            true => keyslot::of_name(name),
            false => Ok(Slot::WHOLE),
        }
    }

    fn server(&self, _: Slot) -> ServerNumber {
        ServerNumber::WHOLE
    }

    fn address(&self) -> &str {
        &self.shown
    }
}

impl<C> fmt::Debug for SharedConnection<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedConnection")
            .field(&self.shown)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use quorlock_core::fencing::Token;
    use quorlock_core::message::{AcquireReply, Freshness};

    use super::*;

    #[test]
    fn what_may_be_the_answer_to_another_copy_is_no_refusal() {
        let loading = failure::definite(Cause::Loading, "LOADING");
        let refused = after_another_copy(Err(loading)).unwrap_err();
        assert_eq!(refused.execution, Execution::Indeterminate);
        assert_eq!(refused.cause, Cause::Loading);
        let gone = after_another_copy(Ok(Reply::Release(ReleaseReply::NotYours)));
        assert_eq!(gone.unwrap_err().execution, Execution::Indeterminate);
        for reply in [
            Reply::Release(ReleaseReply::FREED),
            Reply::Acquire(AcquireReply::Granted {
                freshness: Freshness::AlreadyYours,
                token: Token(7),
            }),
        ] {
            assert_eq!(after_another_copy(Ok(reply.clone())), Ok(reply));
        }
    }
}
