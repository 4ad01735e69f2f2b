//! Conversions between values of Lua and replies.

use mlua::{Lua, Table, Value};

use crate::number;
use crate::reply::Reply;

/// How deeply the result of a script may be nested.
const DEEPEST: u32 = 200;

/// Returns the words of a command; `None` if one of them is neither text nor a number.
pub(super) fn words(values: &[Value]) -> Option<Vec<Vec<u8>>> {
    let word = |value: &Value| {
        Some(match value {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Integer(number) => whole(*number),
            Value::Number(number) => number::double(*number).into_bytes(),
            _ => return None,
        })
    };
    values.iter().map(word).collect()
}

/// Formats an integer as Lua 5.1 does, which has only doubles.
#[expect(clippy::cast_precision_loss, reason = "it came from a double")]
fn whole(number: i64) -> Vec<u8> {
    number::double(number as f64).into_bytes()
}

/// Converts a reply to the value that a script receives.
pub(super) fn value(lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
    let text = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
    let with_field = |name: &str, bytes: &[u8]| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, lua.create_string(bytes)?)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Status(status) => with_field("ok", status),
        Reply::Error(error) => with_field("err", error),
        Reply::Int(number) => Ok(from_int(*number)),
        Reply::Double(number) => text(number::double(*number).as_bytes()),
        Reply::Bulk(bytes) => text(bytes),
        Reply::Text(string) => text(string.as_bytes()),
        Reply::Nil | Reply::NilArray => Ok(Value::Boolean(false)),
        Reply::Array(replies) | Reply::Push(replies) => array(lua, replies.iter(), replies.len()),
        Reply::Map(pairs) => {
            let flat = pairs.iter().flat_map(|(key, value)| [key, value]);
            array(lua, flat, 2 * pairs.len())
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "Lua 5.1 has doubles only")]
fn from_int(number: i64) -> Value {
    Value::Number(number as f64)
}

fn array<'a>(
    lua: &Lua,
    replies: impl Iterator<Item = &'a Reply>,
    len: usize,
) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(len, 0)?;
    for (at, reply) in replies.enumerate() {
        table.raw_set(at + 1, value(lua, reply)?)?;
    }
    Ok(Value::Table(table))
}

/// Converts the result of a script to the reply that the client receives.
pub(super) fn reply(value: &Value) -> Reply {
    nested(value, DEEPEST)
}

fn nested(value: &Value, depth: u32) -> Reply {
    match value {
        Value::String(text) => Reply::bulk(text.as_bytes()),
        Value::Integer(number) => Reply::Int(*number),
        Value::Number(number) => Reply::Int(number::truncated(*number)),
        Value::Boolean(true) => Reply::Int(1),
        Value::Table(table) => match depth.checked_sub(1) {
            Some(depth) => of_table(table, depth),
            None => Reply::error("ERR reached lua stack limit"),
        },
        _ => Reply::Nil,
    }
}

fn of_table(table: &Table, depth: u32) -> Reply {
    let field = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
    if let Value::String(text) = field("err") {
        return Reply::Error(text.as_bytes().to_vec());
    }
    if let Value::String(text) = field("ok") {
        return Reply::Status(text.as_bytes().to_vec().into());
    }
    if let Some(number) = field("double").as_number() {
        return Reply::Double(number);
    }
    if let Value::Table(map) = field("map") {
        let pairs = map.pairs::<Value, Value>().flatten();
        let pairs = pairs.map(|(key, value)| (nested(&key, depth), nested(&value, depth)));
        return Reply::Map(pairs.collect());
    }
    let mut replies = Vec::new();
    // The array ends at the first nil.
    for at in 1.. {
        match table.raw_get(at).unwrap_or(Value::Nil) {
            Value::Nil => break,
            value => replies.push(nested(&value, depth)),
        }
    }
    Reply::Array(replies)
}
