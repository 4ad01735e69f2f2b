//! The page "Where is it?": each item of Quorlock in its tables is public in the sources.

use std::collections::BTreeSet;
use std::path::Path;

use quorlock_testbed::files::below;

const PAGE: &str = include_str!("../../../docs/src/where.md");

/// Returns the words of a declaration that are not about its kind.
fn words(line: &str) -> Vec<&str> {
    let kinds = "pub const async fn struct enum trait impl";
    let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let is_kind = |word: &str| word.is_empty() || kinds.split(' ').any(|kind| kind == word);
    words.filter(|word| !is_kind(word)).collect()
}

/// Returns the public types of the libraries, and the public items of each, such as `Lock::wait`.
fn items() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let libraries = ["", "-core", "-redis", "-store"];
    let sources = libraries.map(|it| below(crates.join(format!("quorlock{it}/src")), "rs"));
    let mut items = BTreeSet::new();
    for path in sources.into_iter().flatten() {
        let is_blocking = path.to_string_lossy().contains("quorlock/src/blocking");
        let module = if is_blocking { "blocking::" } else { "" };
        let mut of = String::new();
        for line in std::fs::read_to_string(&path).expect("UTF-8").lines() {
            let words = words(line);
            if line.starts_with(char::is_alphabetic) {
                let trait_of = words.iter().position(|word| *word == "for");
                let name = words.get(trait_of.map_or(0, |at| at + 1)).unwrap_or(&"");
                of = format!("{module}{name}");
                items.extend(line.starts_with("pub ").then(|| of.clone()));
            } else if let (Some(item), Some(name)) = (line.strip_prefix("    "), words.first())
                && (item.starts_with("pub ") || item.starts_with(char::is_uppercase))
            {
                items.insert(format!("{of}::{name}"));
            }
        }
    }
    items
}

#[test]
fn each_item_exists_and_a_wrong_one_is_noticed() {
    let items = items();
    let wrong = ["Lock::unlock", "AcquireError::NotHeld", "CountDownLatch"];
    let page = format!("{PAGE}| `x` | `{}` |\n", wrong.join("`, `"));
    let rows = page.lines().filter_map(|line| line.strip_suffix(" |"));
    let cells = rows.filter_map(|row| row.rsplit(" | ").next());
    let named = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let is_ours = |it: &&str| it.starts_with("blocking::") || it.starts_with(char::is_uppercase);
    let missing = named.filter(is_ours).filter(|it| !items.contains(*it));
    assert_eq!(missing.collect::<Vec<_>>(), wrong);
}
