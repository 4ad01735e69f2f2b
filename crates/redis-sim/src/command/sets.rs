//! Commands for sets.

use crate::definition::{Command, grow, read, write};
use crate::reply::Reply;
use crate::value::Set;

pub(crate) const COMMANDS: &[Command] = &[
    grow("sadd", -3, |call| {
        let members = call.words_from(2).iter();
        let added = call.edit(call.word(1), |set: &mut Set| {
            members.filter(|member| set.add(member)).count()
        })?;
        Ok(Reply::count(added))
    }),
    read("scard", 2, |call| {
        let set = call.collection::<Set>(call.word(1))?;
        Ok(Reply::count(set.map_or(0, Set::len)))
    }),
    read("sismember", 3, |call| {
        let set = call.collection::<Set>(call.word(1))?;
        let is_in = set.is_some_and(|set| set.contains(call.word(2)));
        Ok(Reply::Int(i64::from(is_in)))
    }),
    read("smembers", 2, |call| {
        let set = call.collection::<Set>(call.word(1))?;
        let members = set.into_iter().flat_map(Set::iter);
        Ok(Reply::Array(members.map(Reply::bulk).collect()))
    }),
    write("srem", -3, |call| {
        if call.collection::<Set>(call.word(1))?.is_none() {
            return Ok(Reply::Int(0));
        }
        let members = call.words_from(2).iter();
        let removed = call.edit(call.word(1), |set: &mut Set| {
            members.filter(|member| set.remove(member)).count()
        })?;
        Ok(Reply::count(removed))
    }),
];
