//! Commands for scripts.

use crate::call::Flag;
use crate::definition::{Command, Next, on_connection};
use crate::node::Node;
use crate::number;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::session::SessionId;

pub(crate) const COMMANDS: &[Command] = &[
    on_connection("eval", -3, &[Flag::NotInScripts], eval),
    on_connection("evalsha", -3, &[Flag::NotInScripts], eval_known),
    on_connection("script", -2, &[Flag::NotInScripts], script),
];

fn eval(node: &mut Node, session: SessionId, words: &[Vec<u8>]) -> Result<Next, Refusal> {
    let keys = count(words)?;
    let text = words.get(1).map_or(b"".as_slice(), Vec::as_slice);
    let digest = node.scripts.load(text)?;
    run(node, session, &digest, keys, words)
}

fn eval_known(node: &mut Node, session: SessionId, words: &[Vec<u8>]) -> Result<Next, Refusal> {
    let keys = count(words)?;
    let digest = digest_of(words.get(1));
    run(node, session, &digest, keys, words)
}

fn digest_of(word: Option<&Vec<u8>>) -> String {
    let word = word.map_or(b"".as_slice(), Vec::as_slice);
    String::from_utf8_lossy(word).to_ascii_lowercase()
}

/// Returns the number of keys among the arguments.
fn count(words: &[Vec<u8>]) -> Result<usize, Refusal> {
    let said = words.get(2).and_then(|word| number::parse_int(word));
    let said = said.ok_or(Refusal::NOT_AN_INTEGER)?;
    let negative = Refusal::of("ERR Number of keys can't be negative");
    let keys = usize::try_from(said).map_err(|_| negative)?;
    if words.len().saturating_sub(3) < keys {
        return Err(Refusal::of(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    Ok(keys)
}

fn run(
    node: &mut Node,
    session: SessionId,
    digest: &str,
    keys: usize,
    words: &[Vec<u8>],
) -> Result<Next, Refusal> {
    let db = node.session(session).db;
    let words = words.get(3..).unwrap_or_default();
    let (keys, args) = words.split_at(keys.min(words.len()));
    node.scripts.run(digest, db, keys, args).map(Next::Reply)
}

fn script(node: &mut Node, _: SessionId, words: &[Vec<u8>]) -> Result<Next, Refusal> {
    let word = words
        .get(1)
        .map(|word| word.to_ascii_lowercase())
        .unwrap_or_default();
    let reply = match (word.as_slice(), words.get(2..).unwrap_or_default()) {
        (b"load", [text]) => Reply::bulk(node.scripts.load(text)?),
        (b"exists", digests @ [_, ..]) => {
            let is_known = |digest| i64::from(node.scripts.knows(&digest_of(Some(digest))));
            Reply::Array(
                digests
                    .iter()
                    .map(|digest| Reply::Int(is_known(digest)))
                    .collect(),
            )
        }
        (b"flush", []) => {
            node.scripts.forget();
            Reply::OK
        }
        (b"flush", [mode]) => {
            if !mode.eq_ignore_ascii_case(b"sync") && !mode.eq_ignore_ascii_case(b"async") {
                return Err(Refusal::of(
                    "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
                ));
            }
            node.scripts.forget();
            Reply::OK
        }
        (b"kill", []) => {
            return Err(Refusal::of("NOTBUSY No scripts in execution right now."));
        }
        (b"load" | b"exists" | b"flush" | b"kill", _) => {
            let name = String::from_utf8_lossy(&word);
            return Err(Refusal::arity(&format!("script|{name}")));
        }
        _ => return Err(Refusal::unknown_subcommand(words)),
    };
    Ok(Next::Reply(reply))
}
