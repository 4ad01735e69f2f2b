//! Commands for sentinels.

use crate::call::{Answer, Call, Flag};
use crate::definition::{Command, on_data};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::watch::{Place, Watch};

pub(crate) const COMMANDS: &[Command] = &[on_data("sentinel", -2, &[Flag::NotInScripts], sentinel)];

fn sentinel(call: &mut Call<'_>) -> Answer {
    let Some(watch) = &call.data.watch else {
        return Err(Refusal::unknown_command(call.words));
    };
    let verb = String::from_utf8_lossy(call.word(1)).to_ascii_lowercase();
    match (verb.as_str(), call.words) {
        ("get-master-addr-by-name", [_, _, name]) => {
            Ok(found(watch, name).map_or(Reply::NilArray, |watch| place(&watch.primary)))
        }
        ("master", [_, _, name]) => found(watch, name)
            .map(primary)
            .ok_or(Refusal::of("ERR No such master with that name")),
        ("masters", [_, _]) => Ok(Reply::Array(vec![primary(watch)])),
        ("sentinels", [_, _, name]) => {
            let watch = found(watch, name);
            let watch = watch.ok_or(Refusal::of("ERR No such master with that name"))?;
            Ok(Reply::Array(watch.sentinels.iter().map(other).collect()))
        }
        ("get-master-addr-by-name" | "master" | "masters" | "sentinels", _) => {
            let words = format!("ERR wrong number of arguments for 'sentinel|{verb}' command");
            Err(Refusal(words.into()))
        }
        _ => {
            let verb = String::from_utf8_lossy(call.word(1));
            let words = format!("ERR unknown subcommand '{verb}'. Try SENTINEL HELP.");
            Err(Refusal(words.into()))
        }
    }
}

/// Returns the group, if it has this name.
fn found<'a>(watch: &'a Watch, name: &[u8]) -> Option<&'a Watch> {
    (watch.name.as_bytes() == name).then_some(watch)
}

fn place((host, port): &Place) -> Reply {
    Reply::Array(vec![Reply::bulk(host), Reply::bulk(port.to_string())])
}

/// Returns the fields that clients read, in the order of Redis.
fn primary(watch: &Watch) -> Reply {
    fields(&[
        ("name", watch.name.clone()),
        ("ip", watch.primary.0.clone()),
        ("port", watch.primary.1.to_string()),
        ("flags", "master".into()),
        ("config-epoch", watch.epoch.to_string()),
        ("num-other-sentinels", watch.sentinels.len().to_string()),
    ])
}

fn other((host, port): &Place) -> Reply {
    fields(&[
        ("name", format!("{host}:{port}")),
        ("ip", host.clone()),
        ("port", port.to_string()),
        ("flags", "sentinel".into()),
    ])
}

fn fields(fields: &[(&str, String)]) -> Reply {
    let flat = fields.iter();
    let flat = flat.flat_map(|(name, value)| [Reply::bulk(name), Reply::bulk(value)]);
    Reply::Array(flat.collect())
}
