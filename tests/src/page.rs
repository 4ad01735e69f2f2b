//! Reads code from pages of the documentation, for tests that run it.

/// Returns the block of a page that has this first line. For "sql write", the block begins with `` ```sql write ``.
///
/// # Panics
/// Panics if the page has no such block, or more than one.
#[must_use]
pub fn block<'a>(page: &'a str, says: &str) -> &'a str {
    let begin = format!("```{says}\n");
    let mut found = page.split(begin.as_str()).skip(1);
    let rest = found.next().unwrap_or_else(|| panic!("no block {says:?}"));
    assert!(found.next().is_none(), "two blocks {says:?}");
    let (block, _) = rest.split_once("```").expect("a block ends");
    block
}

/// Removes the numbers from a text, so that the output of a program can be compared with a page.
#[must_use]
pub fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '0'..='9' if masked.ends_with('#') => {}
            '0'..='9' => masked.push('#'),
            other => masked.push(other),
        }
    }
    masked
}
