//! Entry points of the fuzz targets: arbitrary bytes as replies, addresses and names.
//!
//! Each function takes arbitrary bytes, and panics if a promise is broken. The targets in `fuzz/` call them, and a test
//! calls them with every input of the corpora there.

mod addresses;
mod names;
mod replies;

pub use self::addresses::addresses;
pub use self::names::names;
pub use self::replies::replies;

/// Returns the bytes as text, if they are valid UTF-8.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

#[cfg(test)]
mod tests;
