//! Errors for names that a server or a cluster cannot store.

use quorlock_core::name::Name;
use quorlock_core::slot::UnfitName;

use crate::reserved;

/// Checks that a name is in this namespace, and that its key is not that of something else.
///
/// # Errors
/// [`UnfitName`] if the name is a key that stores something else, or is in another namespace.
pub(crate) fn check(name: &Name, namespace: &[u8]) -> Result<(), UnfitName> {
    if name.split().0 != namespace {
        return Err(other_namespace(name, namespace));
    }
    // The key of a claim is its name: the counter of one name would be the claim of the other.
    match reserved::kept_under(name) {
        Some(kept) => Err(reserved(name, kept)),
        None => Ok(()),
    }
}

/// The transport was made for names in another namespace.
fn other_namespace(name: &Name, namespace: &[u8]) -> UnfitName {
    let why = format!(
        "it is in the namespace \"{}\", and the transport was made for names in \"{}\": set the same namespace for both",
        name.split().0.escape_ascii(),
        namespace.escape_ascii()
    );
    UnfitName::new(name.clone(), why)
}

/// The keys of the name would be in different slots of a cluster. `instead` keeps them together.
pub(crate) fn scattered(name: &Name, instead: String) -> UnfitName {
    let why = match instead.contains('{') {
        true => "whose tag (the text between the first braces) keeps them together",
        false => "which has none",
    };
    let why = format!(
        "its braces would put its keys into different slots of the cluster, and no script can use two of those: lock {instead} instead, \
         {why}"
    );
    UnfitName::new(name.clone(), why).with_instead(instead)
}

/// The shard stores all names under its own tag, so the tag in the name would have no effect.
pub(crate) fn tagged(name: &Name, instead: String) -> UnfitName {
    let why = format!(
        "it has a tag (the text between the first braces), and a cluster in a majority stores all names under tags of the client: lock \
         {instead} instead"
    );
    UnfitName::new(name.clone(), why).with_instead(instead)
}

/// With the tag of the shard the name is longer than the longest name. `most` is the largest number of bytes.
pub(crate) fn too_long(name: &Name, most: usize) -> UnfitName {
    let why = format!(
        "a cluster in a majority stores names behind a tag, so at most {most} bytes are allowed: name a hash of it instead"
    );
    UnfitName::new(name.clone(), why)
}

/// With the tag of the shard the name is a key that stores something else.
pub(crate) fn reserved_behind_tag(name: &Name, kept: &str) -> UnfitName {
    let why = format!(
        "behind the tag of a cluster in a majority it is a key that stores {kept}: take another name"
    );
    UnfitName::new(name.clone(), why)
}

/// The name is a key that stores something else.
fn reserved(name: &Name, kept: &str) -> UnfitName {
    let why =
        format!("the name is a key that stores {kept}: take another, for example with a prefix");
    UnfitName::new(name.clone(), why)
}
