//! Revocations of the right to the keys of one name.

use std::io;
use std::time::Duration;

use super::clock;
use super::lock_under_test;
use super::server_command::ask;

/// The user of the clients, who does not log in.
const USER: &str = "default";

/// Takes the right to the keys of a name from the clients' user for a while. `many` is the number of names.
pub(super) async fn revoke(port: u16, name: u16, many: u16, lasts: Duration) -> io::Result<()> {
    let rest = rest(name, many);
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    set(port, &[&["resetkeys"], rest.as_slice()].concat()).await?;
    clock::sleep(lasts).await;
    set(port, &["allkeys"]).await
}

/// Returns the patterns of all other keys. Users have no rule that excludes keys.
fn rest(name: u16, many: u16) -> Vec<String> {
    let others = (0..many).filter(|other| *other != name);
    let others = others.map(lock_under_test::name);
    // A name is a key, and stands in braces in the names of its other keys. Bystanders have names with a colon.
    let patterns = others.flat_map(|name| [format!("~{name}"), format!("~*{{{name}}}*")]);
    let bystanders = ["~*:beside:*", "~quorlock_marker*"].map(str::to_owned);
    patterns.chain(bystanders).collect()
}

async fn set(port: u16, rules: &[&str]) -> io::Result<()> {
    let words = [&["ACL", "SETUSER", USER], rules].concat();
    let done: Option<redis::Value> = ask(port, &words).await;
    let why = || io::Error::other("a server did not change the rights of a user");
    done.map(|_| ()).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_are_the_other_names_and_what_no_client_competes_for() {
        assert_eq!(
            rest(1, 3),
            [
                "~lock-0",
                "~*{lock-0}*",
                "~lock-2",
                "~*{lock-2}*",
                "~*:beside:*",
                "~quorlock_marker*"
            ]
        );
    }
}
