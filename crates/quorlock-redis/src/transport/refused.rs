//! Finds out what a user lacks when a server refuses a request, or the wake-up of a release.

use std::sync::Arc;

use quorlock_core::message::{Access, AcquireReply, Mode, Reply, Request};
use quorlock_core::transport::{Cause, TransportError};
use redis::{ServerError, Value};

use crate::doubtful_settings::Doubt;
use crate::error;
use crate::link::Connection;
use crate::rights::Rights;
use crate::script::{self, Home};
use crate::server::Server;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::timer::{self, Instant};

/// A request, and where it was sent.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) request: &'a Request,
    pub(super) home: &'a Home,
    pub(super) server: &'a Server,
    pub(super) link: &'a Arc<Connection>,
}

impl Sent<'_> {
    /// The rights that the request needs. The user is the one of the login.
    async fn rights(&self) -> Rights {
        let target = &self.server.target;
        let login = target.login().await.ok().flatten();
        let user = login.as_ref().and_then(|login| login.user_name());
        let user = user.unwrap_or("default").to_owned();
        Rights::of(self.request, self.home, user, &target.config().prefix)
    }

    /// Explains a refusal: asks the server which rights are missing, and names them with the rule that grants them.
    pub(super) async fn explained(
        self,
        refusal: &ServerError,
        deadline: Instant,
    ) -> TransportError {
        let error = error::server(refusal);
        let is_explained = match error.cause {
            Cause::NoPermission => true,
            Cause::Unsupported => error::is_in_script(refusal),
            _ => false,
        };
        if !is_explained {
            return error;
        }
        let rights = self.rights().await;
        let answer = ask(self.server, self.link, &rights, deadline).await;
        rights.explained(refusal, answer.as_ref())
    }
}

/// Returns the server's answer to the question for rights, if one comes in time.
async fn ask(
    server: &Server,
    link: &Arc<Connection>,
    rights: &Rights,
    deadline: Instant,
) -> Option<Value> {
    let patience = server.target.config().call_bound();
    let answer = link.send(timer::now(), &rights.question(), deadline, patience);
    timer::by(deadline, answer.ok()?).await?.ok()
}

/// What was found out about wake-ups: a doubt is told once for each kind of channel.
#[derive(Debug, Default)]
pub(super) struct WakeUpDoubts {
    asked: AtomicU8,
    told: Arc<AtomicU8>,
}

impl WakeUpDoubts {
    /// Tells, at the first grant of a lock of each kind of channel, if the user may not publish its release; and tells it
    /// at a release whose message the server has refused.
    ///
    /// The question goes out beside the request, which does not wait for its answer. A client that logs in as no user is
    /// not asked about: it has every right unless the server was told otherwise.
    pub(super) async fn look(&self, sent: Sent<'_>, address: &str, answer: &Value, reply: &Reply) {
        let config = sent.server.target.config();
        let Some(hear) = &config.doubts else {
            return;
        };
        let channel = channel_of(sent.request);
        if let Some(refusal) = script::unpublished(sent.request, answer) {
            if is_first(&self.told, channel) {
                let rights = sent.rights().await.only_to_publish();
                // Of a command that it does not have, the server tells no name.
                let is_unknown = error::is_in_script(refusal);
                let unknown = is_unknown.then(|| Value::Array(vec![Value::Int(1)]));
                let error = rights.explained(refusal, unknown.as_ref());
                hear.tell(address, &Doubt::MayNotPublish { why: error.detail });
            }
            return;
        }
        if !is_granted(reply) || !sent.server.target.logs_in() || !is_first(&self.asked, channel) {
            return;
        }
        let rights = sent.rights().await.only_to_publish();
        let (told, link) = (Arc::clone(&self.told), Arc::clone(sent.link));
        let (hear, address) = (hear.clone(), address.to_owned());
        let patience = config.call_bound();
        timer::spawn(async move {
            let deadline = timer::now() + patience;
            let answer = link.send(timer::now(), &rights.question(), deadline, patience);
            let Ok(answer) = answer else { return };
            let Ok(answer) = answer.await else { return };
            if let Some((_, why)) = rights.lack(&answer)
                && is_first(&told, channel)
            {
                hear.tell(&address, &Doubt::MayNotPublish { why });
            }
        });
    }
}

/// The bit of the kind of channel on which the release of this lock is published.
fn channel_of(request: &Request) -> u8 {
    let is_shared = match request {
        Request::Acquire(ask) => matches!(ask.access, Access::Read { .. } | Access::Write),
        Request::Release(ask) => matches!(ask.mode, Mode::Read | Mode::Write),
        _ => false,
    };
    if is_shared { 2 } else { 1 }
}

fn is_first(seen: &AtomicU8, bit: u8) -> bool {
    seen.load(Ordering::Relaxed) & bit == 0 && seen.fetch_or(bit, Ordering::Relaxed) & bit == 0
}

fn is_granted(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::Acquire(AcquireReply::Granted { .. })
            | Reply::Checked(AcquireReply::Granted { .. }, _)
    )
}
