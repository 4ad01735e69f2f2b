//! The location of a test in the source, and the command that runs it again.

/// The location of a test: its package and its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeLocation {
    package: Option<String>,
    test: String,
}

impl CodeLocation {
    /// Creates the location of a test with this name in an unknown package.
    pub(super) fn named(name: &str) -> Self {
        CodeLocation {
            package: None,
            test: name.to_owned(),
        }
    }

    /// Creates the location of a function. `module` is its module as [`module_path!`] prints it.
    #[must_use]
    pub fn new(package: &str, module: &str, function: &str) -> Self {
        let path = module.split_once("::").map(|(_, path)| path);
        CodeLocation {
            package: Some(package.to_owned()),
            test: match path {
                Some(path) => format!("{path}::{function}"),
                None => function.to_owned(),
            },
        }
    }

    /// Returns the name of the test, as `cargo test` lists it.
    #[must_use]
    pub fn test(&self) -> &str {
        &self.test
    }

    /// Returns the prefix of the names of the files that this test writes.
    pub(super) fn stem(&self) -> String {
        self.test.replace("::", "-")
    }

    /// Returns the command that runs this test alone, with an environment variable set.
    pub(super) fn command(&self, environment: &str) -> String {
        let test = &self.test;
        match &self.package {
            Some(package) => format!("{environment} cargo test -p {package} -- --exact {test}"),
            None => format!("{environment} cargo test {test}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_named_as_cargo_lists_it() {
        let in_file = CodeLocation::new("shop", "orders", "ships");
        assert_eq!(in_file.test(), "ships");
        let in_module = CodeLocation::new("shop", "shop::orders::tests", "ships");
        assert_eq!(in_module.test(), "orders::tests::ships");
        assert_eq!(in_module.stem(), "orders-tests-ships");
        assert_eq!(
            in_module.command("QUORLOCK_SEED=3"),
            "QUORLOCK_SEED=3 cargo test -p shop -- --exact orders::tests::ships"
        );
    }
}
