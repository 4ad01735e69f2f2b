//! A request as a script call, and the script's reply as a reply.
//!
//! The scripts are files of their own, `lua/*.lua`, whose headers say what goes in and out.

use std::sync::LazyLock;

use quorlock_core::beat::Beat;
use quorlock_core::fencing::{Fence, Token};
use quorlock_core::marker::{Act, Nonce, Process, Ripeness, Shown, ShownMarker};
use quorlock_core::message::{
    Access, Acquire, AcquireReply, Check, ForceRelease, ForceReleaseReply, Found, Freshness,
    Inspect, InspectReply, Mode, Release, ReleaseReply, Renew, RenewReply, Reply, Request,
    Retention, Ttl,
};
use quorlock_core::owner::OwnerId;
use quorlock_core::transport::TransportError;
use redis::{Cmd, Value};

use crate::{error, key};

/// A script that wants to know more about the server, or to do more, than the one inside it, which it calls `execute()`.
macro_rules! around {
    ($outer:literal, $($inner:tt)*) => {
        concat!(
            "local function execute()\n",
            $($inner)*,
            "\nend\n",
            include_str!($outer)
        )
    };
}

mod fair;
mod read_write;

/// A script and the digest by which a server that has seen it knows it.
struct Script {
    text: &'static str,
    digest: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        let digest = redis::Script::new(text).get_hash().to_owned();
        Script { text, digest }
    }
}

static ACQUIRE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/acquire.lua")));
static CHECKED_ACQUIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(around!(
        "../lua/check.lua",
        include_str!("../lua/acquire.lua")
    ))
});
static PROBE: LazyLock<Script> =
    LazyLock::new(|| Script::new(around!("../lua/check.lua", "return false")));
static RENEW: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../lua/renew.lua")));
static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/release.lua")));
static INSPECT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/inspect.lua")));
static FORCE_RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/force_release.lua")));

/// How a call names its script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// By its digest: short, but the server may not know it.
    Digest,
    /// By its text, which the server keeps.
    Text,
}

/// Milliseconds on the wire stay below 2^53: Lua compares them as doubles, and Redis refuses an expiry that leaves
/// 64 bits when the time of day is added, which would be an error after the first write.
const MOST_MILLIS: u64 = (1 << 53) - 1;

fn wire(millis: u64) -> u64 {
    millis.min(MOST_MILLIS)
}

fn kept(retention: Retention) -> u64 {
    match retention {
        // Zero says "for ever" on the wire.
        Retention::Millis(millis) => wire(millis).max(1),
        Retention::Forever => 0,
    }
}

/// The command that carries a request.
pub(crate) fn encode(request: &Request, by: By) -> Cmd {
    match request {
        Request::Acquire(ask) => match ask.access {
            Access::Plain => encode_acquire(ask, by),
            Access::Fair(place) => fair::encode_acquire(ask, place, by),
            Access::Read { under } => read_write::encode_read(ask, under, by),
            Access::Write => read_write::encode_write(ask, by),
        },
        Request::Renew(ask) => match ask.mode {
            Mode::Plain | Mode::Fair => encode_renew(ask, by),
            Mode::Read => read_write::encode_read_renew(ask, by),
            Mode::Write => read_write::encode_write_renew(ask, by),
        },
        Request::Release(ask) => match ask.mode {
            Mode::Plain => encode_release(ask, by),
            Mode::Fair => fair::encode_release(ask, by),
            Mode::Read => read_write::encode_read_release(ask, by),
            Mode::Write => read_write::encode_write_release(ask, by),
        },
        Request::Inspect(inspect) => encode_inspect(inspect, by),
        Request::ForceRelease(force) => encode_force_release(force, by),
        Request::Probe(check) => encode_probe(*check, by),
    }
}

/// `EVALSHA digest keys` or `EVAL text keys`; `args` and `bytes` are what follows, so that it is allocated once.
fn command(script: &Script, by: By, keys: usize, args: usize, bytes: usize) -> Cmd {
    let (verb, script) = match by {
        By::Digest => ("EVALSHA", script.digest.as_str()),
        By::Text => ("EVAL", script.text),
    };
    let mut cmd = Cmd::with_capacity(3 + keys + args, 32 + script.len() + bytes);
    cmd.arg(verb).arg(script).arg(keys);
    cmd
}

/// The commands that make the scripts known to a server: those that every client needs. The operators' become known
/// when they are first used.
pub(crate) fn load() -> impl Iterator<Item = Cmd> {
    [&ACQUIRE, &RENEW, &RELEASE].into_iter().map(|script| {
        let mut cmd = redis::cmd("SCRIPT");
        cmd.arg("LOAD").arg(script.text);
        cmd
    })
}

/// Room for an owner and the numbers of one claim.
const CLAIM_BYTES: usize = 160;

fn encode_acquire(ask: &Acquire, by: By) -> Cmd {
    let name = ask.name.as_str();
    let (script, keys) = match ask.check {
        None => (&ACQUIRE, 3),
        Some(_) => (&CHECKED_ACQUIRE, 4),
    };
    let bytes = 3 * name.len() + 3 * CLAIM_BYTES + CHECK_BYTES;
    let mut cmd = command(script, by, keys, 13, bytes);
    cmd.arg(name).arg(key::token(name)).arg(key::queue(name));
    if ask.check.is_some() {
        cmd.arg(key::MARKER);
    }
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count)
        .arg(wire(ask.kept_millis()))
        .arg(kept(ask.retention));
    fence(&mut cmd, ask.fence);
    if let Some(keep) = ask.keep {
        cmd.arg(beat_text(keep.beat(ask.owner, ask.lease)));
        cmd.arg(ask.replaces.map(beat_text).unwrap_or_default());
    }
    if let Some(check) = ask.check {
        if ask.keep.is_none() {
            cmd.arg("").arg("");
        }
        encode_check(&mut cmd, check, ask.lease.millis());
    }
    cmd
}

fn fence(cmd: &mut Cmd, fence: Fence) {
    match fence {
        Fence::Mint {
            floor,
            slack_millis,
        } => cmd.arg(wire(floor.0)).arg(wire(slack_millis)),
        Fence::Carry(token) => cmd.arg(token.0).arg(""),
    };
}

/// A beat as it is stored.
fn beat_text(beat: Beat) -> String {
    let lease_millis = wire(beat.lease_millis);
    format!("{} {} {lease_millis}", beat.owner, beat.number)
}

/// What `check.lua` takes from the end of the arguments.
fn encode_check(cmd: &mut Cmd, check: Check, lease_millis: u64) {
    let (act, nonce) = match check.act {
        Act::Look => ("look", 0),
        Act::Mark(nonce) => ("mark", nonce.get()),
        Act::MarkFresh(nonce) => ("fresh", nonce.get()),
        Act::Ripen(nonce) => ("ripen", nonce.get()),
    };
    let longest_millis = wire(check.longest_millis);
    match check.trusted {
        Some((process, nonce)) => cmd.arg(ripe_marker(process, nonce, longest_millis)),
        None => cmd.arg(""),
    };
    cmd.arg(act).arg(nonce);
    cmd.arg(wire(lease_millis)).arg(longest_millis);
}

/// The marker of a process that was watched for long enough, as it is stored.
fn ripe_marker(process: Process, nonce: Nonce, longest_millis: u64) -> String {
    format!("{:013x}:{}:{longest_millis}:ripe", process.0, nonce.get())
}

fn encode_probe(check: Check, by: By) -> Cmd {
    let mut cmd = command(&PROBE, by, 1, 5, CHECK_BYTES);
    cmd.arg(key::MARKER);
    encode_check(&mut cmd, check, 0);
    cmd
}

fn encode_renew(ask: &Renew, by: By) -> Cmd {
    let claims = ask.claims.len();
    let bytes: usize = ask
        .claims
        .iter()
        .map(|claim| 2 * claim.name.as_str().len() + 2 * CLAIM_BYTES)
        .sum();
    let mut cmd = command(&RENEW, by, 2 * claims, 1 + 5 * claims, bytes);
    for claim in &ask.claims {
        let name = claim.name.as_str();
        cmd.arg(name).arg(key::token(name));
    }
    cmd.arg(kept(ask.retention));
    for claim in &ask.claims {
        owner(&mut cmd, claim.owner);
        cmd.arg(claim.count)
            .arg(wire(claim.kept_millis()))
            .arg(claim.token.0);
        let beat = claim.keep.map(|keep| keep.beat(claim.owner, claim.lease));
        cmd.arg(beat.map(beat_text).unwrap_or_default());
    }
    cmd
}

fn encode_release(ask: &Release, by: By) -> Cmd {
    let name = ask.name.as_str();
    let mut cmd = command(&RELEASE, by, 1, 3, 2 * name.len() + CLAIM_BYTES);
    cmd.arg(name);
    owner(&mut cmd, ask.owner);
    cmd.arg(ask.count).arg(key::channel(name));
    cmd
}

fn encode_inspect(ask: &Inspect, by: By) -> Cmd {
    let name = ask.name.as_str();
    let mut cmd = command(&INSPECT, by, 3, 1, 4 * name.len() + CLAIM_BYTES);
    cmd.arg(name)
        .arg(key::token(name))
        .arg(key::queue(name))
        .arg(key::leases(name));
    cmd
}

fn encode_force_release(ask: &ForceRelease, by: By) -> Cmd {
    let name = ask.name.as_str();
    let mut cmd = command(&FORCE_RELEASE, by, 4, 3, 7 * name.len() + 2 * CLAIM_BYTES);
    cmd.arg(name)
        .arg(key::queue(name))
        .arg(key::timeouts(name))
        .arg(key::alive(name))
        .arg(key::channel(name))
        .arg(key::read_write_channel(name))
        .arg(key::leases(name));
    cmd
}

fn owner(cmd: &mut Cmd, owner: OwnerId) {
    let mut text = [0; OwnerId::MOST_BYTES];
    cmd.arg(owner.write_to(&mut text));
}

/// Room for the marker's key and what is asked of it.
const CHECK_BYTES: usize = 192;

/// The reply that a script's answer to `request` stands for.
///
/// # Errors
/// A protocol error when the answer is none of those the script gives: the request may have been executed all the
/// same.
pub(crate) fn decode(request: &Request, answer: &Value) -> Result<Reply, TransportError> {
    match request {
        Request::Acquire(Acquire { check: None, .. }) => {
            decode_acquire(answer).map(|reply| reply.map(Reply::Acquire))
        }
        Request::Acquire(Acquire {
            check: Some(check), ..
        }) => decode_checked(*check, answer),
        Request::Probe(check) => {
            Ok(decode_shown(*check, answer).map(|(_, shown)| Reply::Probe(shown)))
        }
        Request::Renew(ask) => Ok(decode_renew(answer, ask.claims.len()).map(Reply::Renew)),
        Request::Release(_) => Ok(decode_release(answer).map(Reply::Release)),
        Request::Inspect(_) => Ok(decode_inspect(answer).map(Reply::Inspect)),
        Request::ForceRelease(_) => Ok(decode_force_release(answer).map(Reply::ForceRelease)),
    }?
    .ok_or_else(|| error::nonsense(answer))
}

fn decode_acquire(answer: &Value) -> Result<Option<AcquireReply>, TransportError> {
    Ok(match answer {
        Value::Int(token) => granted(Freshness::Anew, *token),
        Value::BulkString(text) => match mode(text) {
            Some(mode) => Some(AcquireReply::OtherMode(mode)),
            None => return Err(error::strange_mode(text)),
        },
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(2), Value::Int(token)] => granted(Freshness::AlreadyYours, *token),
            [Value::Int(3), Value::Int(left)] => ttl(*left).map(|ttl| AcquireReply::Queued { ttl }),
            [Value::Int(0), Value::Int(left)] | [Value::Int(0), Value::Int(left), Value::Nil] => {
                refused(*left, None)
            }
            // What somebody else wrote there is no beat.
            [Value::Int(0), Value::Int(left), Value::BulkString(text)] => {
                refused(*left, beat(text))
            }
            _ => None,
        },
        _ => None,
    })
}

fn granted(freshness: Freshness, value: i64) -> Option<AcquireReply> {
    token(value).map(|token| AcquireReply::Granted { freshness, token })
}

fn refused(left: i64, beat: Option<Beat>) -> Option<AcquireReply> {
    ttl(left).map(|ttl| AcquireReply::Refused { ttl, beat })
}

fn beat(text: &[u8]) -> Option<Beat> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ');
    let beat = Beat {
        owner: words.next()?.parse().ok()?,
        number: words.next()?.parse().ok()?,
        lease_millis: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(beat)
}

fn decode_checked(check: Check, answer: &Value) -> Result<Option<Reply>, TransportError> {
    let Some((answer, shown)) = decode_shown(check, answer) else {
        return Ok(None);
    };
    let reply = decode_acquire(answer)?;
    Ok(reply.map(|reply| Reply::Checked(reply, shown)))
}

/// What `check.lua` answers: the reply of the script before it, and what the server shows of itself. Whoever is what the
/// client trusts answers with that reply alone.
fn decode_shown(check: Check, answer: &Value) -> Option<(&Value, Shown)> {
    let parts = match answer {
        Value::Array(parts) => parts.as_slice(),
        _ => &[],
    };
    let [
        answer,
        Value::Int(process),
        Value::Int(state),
        Value::Int(nonce),
    ] = parts
    else {
        let (process, nonce) = check.trusted?;
        let marker = ShownMarker::Own(nonce, Ripeness::Ripe);
        return Some((answer, Shown { process, marker }));
    };
    let nonce = Nonce::new(u64::try_from(*nonce).ok()?);
    let marker = match state {
        0 => ShownMarker::Missing,
        1 => ShownMarker::Anothers,
        2 => ShownMarker::Own(nonce, Ripeness::Unripe),
        3 => ShownMarker::Own(nonce, Ripeness::Ripe),
        _ => return None,
    };
    let process = Process(u64::try_from(*process).ok()?);
    Some((answer, Shown { process, marker }))
}

fn decode_renew(answer: &Value, claims: usize) -> Option<Vec<RenewReply>> {
    let Value::Array(answers) = answer else {
        return None;
    };
    if answers.len() != claims {
        return None;
    }
    answers
        .iter()
        .map(|answer| match answer {
            Value::Int(-1) => Some(RenewReply::NotYours),
            Value::Int(value) => token(*value).map(|token| RenewReply::AlreadyYours { token }),
            _ => None,
        })
        .collect()
}

fn decode_release(answer: &Value) -> Option<ReleaseReply> {
    match answer {
        Value::Int(0) => Some(ReleaseReply::NotYours),
        Value::Int(1) => Some(ReleaseReply::Freed),
        Value::Int(2) => Some(ReleaseReply::Kept),
        Value::Int(3) => Some(ReleaseReply::Left),
        _ => None,
    }
}

fn decode_inspect(answer: &Value) -> Option<InspectReply> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [stored, Value::Int(waiting), found @ ..] = parts.as_slice() else {
        return None;
    };
    let token = match stored {
        Value::Nil => None,
        Value::Int(value) => Some(token(*value)?),
        _ => return None,
    };
    let found = match found {
        [] => Found::Nothing,
        [Value::Int(left)] => ttl(*left).map(|_| Found::NotALock)?,
        [
            Value::Int(left),
            writer,
            Value::Int(count),
            Value::Int(readers),
        ] => Found::ReadWrite {
            writer: match writer {
                Value::Nil => None,
                Value::BulkString(owner) => Some((text(owner), u64::try_from(*count).ok()?)),
                _ => return None,
            },
            readers: u64::try_from(*readers).ok()?,
            ttl: ttl(*left)?,
        },
        [
            Value::Int(left),
            Value::BulkString(owner),
            Value::Int(count),
        ] => Found::Plain {
            owner: text(owner),
            count: u64::try_from(*count).ok()?,
            ttl: ttl(*left)?,
        },
        _ => return None,
    };
    Some(InspectReply {
        found,
        waiting: u64::try_from(*waiting).ok()?,
        token,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn decode_force_release(answer: &Value) -> Option<ForceReleaseReply> {
    match answer {
        Value::Int(0) => Some(ForceReleaseReply::WasFree),
        Value::Int(1) => Some(ForceReleaseReply::Freed),
        _ => None,
    }
}

fn ttl(left: i64) -> Option<Ttl> {
    match left {
        -1 => Some(Ttl::Unbounded),
        left => u64::try_from(left).ok().map(Ttl::Millis),
    }
}

fn mode(text: &[u8]) -> Option<Mode> {
    match text {
        b"plain" => Some(Mode::Plain),
        b"fair" => Some(Mode::Fair),
        b"read" => Some(Mode::Read),
        b"write" => Some(Mode::Write),
        _ => None,
    }
}

fn token(value: i64) -> Option<Token> {
    u64::try_from(value).ok().map(Token)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quorlock_core::lease::Lease;
    use quorlock_core::message::Claim;
    use quorlock_core::name::Name;
    use quorlock_core::owner::{ClientId, OwnerId};
    use quorlock_core::time::WallMillis;
    use quorlock_core::transport::{Cause, Execution};

    use super::*;

    const OWNER: &str = "00000000-0000-4000-8000-000000000000:7";

    fn owner() -> OwnerId {
        OwnerId {
            client: ClientId::from_random(0),
            number: 7,
        }
    }

    fn lease() -> Lease {
        Lease::new(Duration::from_secs(30)).unwrap()
    }

    fn acquire(fence: Fence, retention: Retention) -> Request {
        Request::Acquire(Acquire {
            name: Name::new("n").unwrap(),
            access: Access::Plain,
            owner: owner(),
            count: 2,
            lease: lease(),
            fence,
            retention,
            keep: None,
            replaces: None,
            check: None,
        })
    }

    fn renew(names: &[&str]) -> Request {
        let claim = |name: &&str| Claim {
            name: Name::new(name).unwrap(),
            owner: owner(),
            count: 1,
            lease: lease(),
            token: Token(9),
            keep: None,
        };
        Request::Renew(Renew {
            mode: Mode::Plain,
            claims: names.iter().map(claim).collect(),
            retention: Retention::Forever,
        })
    }

    fn release() -> Request {
        Request::Release(Release {
            name: Name::new("{n").unwrap(),
            mode: Mode::Plain,
            owner: owner(),
            count: 0,
        })
    }

    /// The arguments after the script.
    fn words(request: &Request) -> Vec<String> {
        let cmd = encode(request, By::Digest);
        let packed = String::from_utf8(cmd.get_packed_command()).unwrap();
        let words = packed.split("\r\n").skip(2).step_by(2);
        words.skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn an_acquire_is_written_as_the_script_reads_it() {
        let fence = Fence::Mint {
            floor: WallMillis(u64::MAX),
            slack_millis: 15,
        };
        let most = "9007199254740991";
        assert_eq!(
            words(&acquire(fence, Retention::Millis(0))),
            [
                "3",
                "n",
                "redisson_lock_token:{n}",
                "redisson_lock_queue:{n}",
                OWNER,
                "2",
                "30000",
                "1",
                most,
                "15"
            ]
        );
        assert_eq!(
            words(&acquire(Fence::Carry(Token(5)), Retention::Forever)),
            [
                "3",
                "n",
                "redisson_lock_token:{n}",
                "redisson_lock_queue:{n}",
                OWNER,
                "2",
                "30000",
                "0",
                "5",
                ""
            ]
        );
    }

    #[test]
    fn a_renewal_names_all_keys_before_all_arguments() {
        assert_eq!(
            words(&renew(&["a", "b"])),
            [
                "4",
                "a",
                "redisson_lock_token:{a}",
                "b",
                "redisson_lock_token:{b}",
                "0",
                OWNER,
                "1",
                "30000",
                "9",
                "",
                OWNER,
                "1",
                "30000",
                "9",
                ""
            ]
        );
    }

    #[test]
    fn a_release_names_the_channel() {
        assert_eq!(
            words(&release()),
            ["1", "{n", OWNER, "0", "redisson_lock__channel:{n"]
        );
    }

    #[test]
    fn a_script_is_called_by_its_digest_or_by_its_text() {
        let digest = encode(&release(), By::Digest).get_packed_command();
        let text = encode(&release(), By::Text).get_packed_command();
        assert!(digest.starts_with(b"*7\r\n$7\r\nEVALSHA\r\n$40\r\n"));
        assert!(text.starts_with(b"*7\r\n$4\r\nEVAL\r\n"));
        assert!(String::from_utf8(text).unwrap().contains("PUBLISH"));
    }

    fn ints(values: &[i64]) -> Value {
        Value::Array(values.iter().copied().map(Value::Int).collect())
    }

    #[test]
    fn every_answer_of_acquire_is_understood() {
        let request = acquire(Fence::Carry(Token(1)), Retention::Forever);
        let reply = |answer| match decode(&request, &answer) {
            Ok(Reply::Acquire(reply)) => reply,
            other => panic!("{other:?}"),
        };
        let granted = |freshness| AcquireReply::Granted {
            freshness,
            token: Token(1_700_000_000_000),
        };
        assert_eq!(
            reply(Value::Int(1_700_000_000_000)),
            granted(Freshness::Anew)
        );
        assert_eq!(
            reply(ints(&[2, 1_700_000_000_000])),
            granted(Freshness::AlreadyYours)
        );
        let refused = |ttl| AcquireReply::Refused { ttl, beat: None };
        assert_eq!(reply(ints(&[0, 0])), refused(Ttl::Millis(0)));
        assert_eq!(reply(ints(&[0, -1])), refused(Ttl::Unbounded));
        let queued = AcquireReply::Queued {
            ttl: Ttl::Millis(5),
        };
        assert_eq!(reply(ints(&[3, 5])), queued);
        let mode = |mode: &str| reply(Value::BulkString(mode.into()));
        assert_eq!(mode("read"), AcquireReply::OtherMode(Mode::Read));
        assert_eq!(mode("write"), AcquireReply::OtherMode(Mode::Write));
        let error = decode(&request, &Value::BulkString(b"else".to_vec())).unwrap_err();
        assert_eq!(
            (error.cause, error.execution),
            (Cause::WrongType, Execution::Definite)
        );
    }

    #[test]
    fn a_server_that_is_still_the_one_that_is_trusted_says_nothing_of_itself() {
        let asking = |trusted| {
            let Request::Acquire(ask) = acquire(Fence::Carry(Token(1)), Retention::Forever) else {
                unreachable!()
            };
            let check = Check {
                longest_millis: 60_000,
                act: Act::Look,
                trusted,
            };
            Request::Acquire(Acquire {
                check: Some(check),
                ..ask
            })
        };
        let shown = |process, marker| Shown {
            process: Process(process),
            marker,
        };
        let granted = AcquireReply::Granted {
            freshness: Freshness::Anew,
            token: Token(9),
        };
        let trusted = asking(Some((Process(0xabc), Nonce::new(7))));
        let said = words(&trusted);
        let check = ["0000000000abc:7:60000:ripe", "look", "0", "30000", "60000"];
        assert!(said.ends_with(&check.map(str::to_owned)), "{said:?}");
        let ripe = ShownMarker::Own(Nonce::new(7), Ripeness::Ripe);
        assert_eq!(
            decode(&trusted, &Value::Int(9)),
            Ok(Reply::Checked(granted, shown(0xabc, ripe)))
        );

        let long = [Value::Int(9), Value::Int(5), Value::Int(1), Value::Int(0)];
        let other = Reply::Checked(granted, shown(5, ShownMarker::Anothers));
        for request in [trusted, asking(None)] {
            let answer = Value::Array(long.to_vec());
            assert_eq!(decode(&request, &answer), Ok(other.clone()));
        }
        assert!(decode(&asking(None), &Value::Int(9)).is_err());
    }

    #[test]
    fn every_answer_of_renew_and_release_is_understood() {
        let replies = vec![
            RenewReply::NotYours,
            RenewReply::AlreadyYours { token: Token(0) },
        ];
        assert_eq!(
            decode(&renew(&["a", "b"]), &ints(&[-1, 0])),
            Ok(Reply::Renew(replies))
        );
        for (answer, reply) in [
            (0, ReleaseReply::NotYours),
            (1, ReleaseReply::Freed),
            (2, ReleaseReply::Kept),
        ] {
            assert_eq!(
                decode(&release(), &Value::Int(answer)),
                Ok(Reply::Release(reply))
            );
        }
    }

    fn inspect() -> Request {
        let name = Name::new("n").unwrap();
        Request::Inspect(Inspect { name })
    }

    fn force_release() -> Request {
        let name = Name::new("n").unwrap();
        Request::ForceRelease(ForceRelease { name })
    }

    #[test]
    fn what_operators_ask_is_written_as_the_scripts_read_it() {
        let queue = "redisson_lock_queue:{n}";
        assert_eq!(
            words(&inspect()),
            ["3", "n", "redisson_lock_token:{n}", queue, "{n}:"]
        );
        assert_eq!(
            words(&force_release()),
            [
                "4",
                "n",
                queue,
                "redisson_lock_timeout:{n}",
                "quorlock_lock_alive:{n}",
                "redisson_lock__channel:{n}",
                "redisson_rwlock:{n}",
                "{n}:"
            ]
        );
    }

    #[test]
    fn every_answer_of_inspect_is_understood() {
        let text = |text: &str| Value::BulkString(text.into());
        let plain = |owner: &str, count, ttl| Found::Plain {
            owner: owner.into(),
            count,
            ttl,
        };
        let shared = |writer, readers| Found::ReadWrite {
            writer,
            readers,
            ttl: Ttl::Unbounded,
        };
        let (end, two, none) = (Value::Int(-1), Value::Int(2), Value::Int(0));
        for (parts, found) in [
            (vec![], Found::Nothing),
            (vec![Value::Int(9)], Found::NotALock),
            (
                vec![end.clone(), Value::Nil, none.clone(), two.clone()],
                shared(None, 2),
            ),
            (
                vec![end, text("somebody"), two, none],
                shared(Some(("somebody".into(), 2)), 0),
            ),
            (
                vec![Value::Int(9), text("somebody"), Value::Int(2)],
                plain("somebody", 2, Ttl::Millis(9)),
            ),
        ] {
            for (stored, token) in [(Value::Nil, None), (Value::Int(7), Some(Token(7)))] {
                let mut answer = vec![stored, Value::Int(3)];
                answer.extend(parts.clone());
                let reply = InspectReply {
                    found: found.clone(),
                    waiting: 3,
                    token,
                };
                assert_eq!(
                    decode(&inspect(), &Value::Array(answer)),
                    Ok(Reply::Inspect(reply))
                );
            }
        }
    }

    #[test]
    fn every_answer_of_force_release_is_understood() {
        for (answer, reply) in [
            (Value::Int(0), ForceReleaseReply::WasFree),
            (Value::Int(1), ForceReleaseReply::Freed),
        ] {
            assert_eq!(
                decode(&force_release(), &answer),
                Ok(Reply::ForceRelease(reply))
            );
        }
    }

    #[test]
    fn nonsense_is_an_indeterminate_protocol_error() {
        let carry = acquire(Fence::Carry(Token(1)), Retention::Forever);
        let answers = [
            Value::Nil,
            Value::Okay,
            Value::Int(-2),
            ints(&[4, 1]),
            ints(&[1, -1]),
            ints(&[1]),
            ints(&[-2, 1, 1]),
        ];
        for answer in &answers {
            for request in [
                &carry,
                &renew(&["a", "b", "c"]),
                &release(),
                &force_release(),
            ] {
                let Err(error) = decode(request, answer) else {
                    panic!("{request:?} takes {answer:?}");
                };
                assert_eq!(
                    (error.cause, error.execution),
                    (Cause::Protocol, Execution::Indeterminate)
                );
            }
        }
        let text = || Value::BulkString(b"strange".to_vec());
        for answer in [
            Value::Nil,
            Value::Int(0),
            ints(&[]),
            ints(&[-1]),
            ints(&[1, -2]),
            ints(&[1, 2, -3]),
            Value::Array(vec![Value::Nil, Value::Int(0), Value::Int(1), text()]),
            Value::Array(vec![
                Value::Nil,
                Value::Int(0),
                Value::Int(1),
                text(),
                Value::Int(-1),
            ]),
        ] {
            assert!(decode(&inspect(), &answer).is_err(), "{answer:?}");
        }
    }
}
