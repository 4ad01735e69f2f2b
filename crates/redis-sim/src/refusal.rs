//! The errors with which requests are refused.

use std::borrow::Cow;

use crate::reply::Reply;

/// An error reply to a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal(pub(crate) Cow<'static, str>);

impl Refusal {
    pub(crate) const WRONG_TYPE: Refusal =
        Refusal::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(crate) const NOT_AN_INTEGER: Refusal =
        Refusal::of("ERR value is not an integer or out of range");
    pub(crate) const NOT_A_FLOAT: Refusal = Refusal::of("ERR value is not a valid float");
    pub(crate) const READ_ONLY: Refusal =
        Refusal::of("READONLY You can't write against a read only replica.");
    pub(crate) const OUT_OF_MEMORY: Refusal =
        Refusal::of("OOM command not allowed when used memory > 'maxmemory'.");
    pub(crate) const FEW_REPLICAS: Refusal =
        Refusal::of("NOREPLICAS Not enough good replicas to write.");
    pub(crate) const UNBLOCKED: Refusal = Refusal::of(
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    );
    pub(crate) const CROSS_SLOT: Refusal =
        Refusal::of("CROSSSLOT Keys in request don't hash to the same slot");
    pub(crate) const CLUSTER_DOWN: Refusal = Refusal::of("CLUSTERDOWN The cluster is down");
    pub(crate) const NOT_SERVED: Refusal = Refusal::of("CLUSTERDOWN Hash slot not served");
    pub(crate) const TRY_AGAIN: Refusal =
        Refusal::of("TRYAGAIN Multiple keys request during rehashing of slot");
    pub(crate) const NO_CLUSTER: Refusal =
        Refusal::of("ERR This instance has cluster support disabled");
    pub(crate) const NOT_LOCAL: Refusal =
        Refusal::of("ERR Script attempted to access a non local key in a cluster node");
    pub(crate) const SYNTAX: Refusal = Refusal::of("ERR syntax error");

    pub(crate) const fn of(text: &'static str) -> Self {
        Refusal(Cow::Borrowed(text))
    }

    /// Returns the redirection to the node that owns the slot.
    pub(crate) fn moved(slot: u16, host: &str, port: u16) -> Self {
        Refusal(format!("MOVED {slot} {host}:{port}").into())
    }

    /// Returns the redirection to the node that the keys were moved to.
    pub(crate) fn ask(slot: u16, host: &str, port: u16) -> Self {
        Refusal(format!("ASK {slot} {host}:{port}").into())
    }

    pub(crate) fn arity(name: &str) -> Self {
        Refusal(format!("ERR wrong number of arguments for '{name}' command").into())
    }

    pub(crate) fn unknown_subcommand(words: &[Vec<u8>]) -> Self {
        let word = |at: usize| String::from_utf8_lossy(words.get(at).map_or(b"", Vec::as_slice));
        let family = word(0).to_uppercase();
        Refusal(format!("ERR unknown subcommand '{}'. Try {family} HELP.", word(1)).into())
    }

    /// Returns the error for an unknown command, which repeats the first words.
    pub(crate) fn unknown_command(words: &[Vec<u8>]) -> Self {
        const MOST: usize = 128;
        let cut = |word: &[u8], most: usize| {
            String::from_utf8_lossy(word.get(..most.min(word.len())).unwrap_or_default())
                .into_owned()
        };
        let mut words = words.iter();
        let name = cut(words.next().map_or(b"", Vec::as_slice), MOST);
        let mut said = String::new();
        for word in words {
            if MOST <= said.len() {
                break;
            }
            said += &format!("'{}' ", cut(word, MOST - said.len()));
        }
        Refusal(format!("ERR unknown command '{name}', with args beginning with: {said}").into())
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        Reply::error(refusal.0)
    }
}
