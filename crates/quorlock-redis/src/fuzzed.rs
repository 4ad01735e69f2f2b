//! What any bytes may be taken for: replies, addresses, names.
//!
//! Each function takes any bytes, and panics where one of its promises is broken. The targets in `fuzz/` call them, and the test
//! calls them with every input of the corpora there.

mod addresses;
mod names;
mod replies;

pub use self::addresses::addresses;
pub use self::names::names;
pub use self::replies::replies;

/// The text that the bytes are, if they are one.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

#[cfg(test)]
mod tests;
