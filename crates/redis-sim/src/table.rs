//! The table of all commands, by name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::call::ScriptCommand;
use crate::command::{
    admin, client, cluster, hashes, keys, lists, pubsub, scripting, sentinel, sets, sorted_sets,
    strings, transactions, wait,
};
use crate::definition::{Command, Run};

static TABLE: LazyLock<BTreeMap<&'static str, &'static Command>> = LazyLock::new(|| {
    let all = [
        admin::COMMANDS,
        client::COMMANDS,
        cluster::COMMANDS,
        hashes::COMMANDS,
        keys::COMMANDS,
        lists::COMMANDS,
        pubsub::COMMANDS,
        scripting::COMMANDS,
        sentinel::COMMANDS,
        sets::COMMANDS,
        sorted_sets::COMMANDS,
        strings::COMMANDS,
        transactions::COMMANDS,
        wait::COMMANDS,
    ];
    let all = all.into_iter().flatten();
    all.map(|command| (command.shape.name, command)).collect()
});

/// Returns the command with this name, in upper or lower case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; 32];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    TABLE.get(std::str::from_utf8(lower).ok()?).copied()
}

/// Returns the command with this name for a script.
pub(crate) fn find_for_script(name: &[u8]) -> Option<ScriptCommand> {
    let command = find(name)?;
    let run = match command.run {
        Run::OnData(run) => Some(run),
        Run::OnConnection(_) => None,
    };
    Some(ScriptCommand {
        shape: &command.shape,
        run,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_in_any_case() {
        assert_eq!(find(b"pExpire").map(|c| c.shape.name), Some("pexpire"));
        assert!(find(b"pexpir").is_none());
        assert!(find(&[b'a'; 100]).is_none());
    }
}
