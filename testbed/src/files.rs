//! Finds the files of a folder, for tests that read the sources and the pages of the project.

use std::path::{Path, PathBuf};

/// Returns the files below a folder whose names have this extension, such as `rs`, in the order of their paths. Folders
/// that are called `target` are left out, because a build writes to them.
///
/// # Panics
/// Panics if a folder cannot be read.
#[must_use]
pub fn below(folder: impl AsRef<Path>, extension: &str) -> Vec<PathBuf> {
    let mut folders = vec![folder.as_ref().to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder);
        let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|its| its == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Returns the pages of the book, and the README before them.
///
/// # Panics
/// Panics if the folder of the book cannot be read.
#[must_use]
pub fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the root of the project");
    let book = below(root.join("docs/src"), "md");
    std::iter::once(root.join("README.md"))
        .chain(book)
        .collect()
}
