//! What is in which object.

use object_store::path::Path;

use super::error::Failure;
use crate::numbered;
use crate::store::Key;

/// How long a part of a name is at most. Services that keep objects as files take no longer ones than file systems do, and one
/// that keeps them as folders adds to it.
const PART: usize = 200;

/// What ends a part that another one follows. No name has it, so that no object has the name of a folder of others.
const MORE: &str = "+/";

/// The names of the objects of a store.
pub(super) struct Folder {
    path: Path,
}

impl Folder {
    /// Returns the folder of an address.
    pub(super) fn new(folder: &str) -> Result<Self, &'static str> {
        let path = Path::parse(folder);
        let path = path.map_err(|_| "has a prefix that cannot be that of an object")?;
        Ok(Folder { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the object of a record.
    pub(super) fn object(&self, key: &Key) -> Result<Path, Failure> {
        let name = numbered::name(key);
        let mut path = self.path.to_string();
        let mut joint = "/";
        let mut rest = &*name;
        while !rest.is_empty() {
            // The name is ASCII.
            let (part, more) = rest.split_at(rest.len().min(PART));
            path.push_str(joint);
            path.push_str(part);
            (joint, rest) = (MORE, more);
        }
        Path::parse(path).map_err(|error| Failure::Driver(error.into()))
    }

    /// Returns the key of a record whose object has this name; `None` if no key has it.
    pub(super) fn key(&self, object: &Path) -> Option<Key> {
        let name = object.as_ref().strip_prefix(self.path.as_ref())?;
        let name = name.strip_prefix('/')?.replace(MORE, "");
        let key = numbered::key(&name)?;
        let is_key = self.object(&key).is_ok_and(|its| its == *object);
        is_key.then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_an_object_of_its_own() {
        let folder = Folder::new("a/b").unwrap();
        let long = "x".repeat(450);
        let parts = format!("a/b/{}+/{}+/{}", &long[..200], &long[..200], &long[..50]);
        for (key, object) in [("orders/42", "a/b/orders%2F42"), (&*long, &*parts)] {
            let key = Key::new(key);
            let path = folder.object(&key).unwrap_or_else(|_| panic!("{key:?}"));
            assert_eq!(path.as_ref(), object);
            assert_eq!(folder.key(&path), Some(key));
        }
        for strange in ["a/b/c/d", "a/b/c+/d", "a/bc", "a/b/a.b"] {
            assert_eq!(
                folder.key(&Path::parse(strange).unwrap()),
                None,
                "{strange}"
            );
        }
    }
}
