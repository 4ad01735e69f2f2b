//! What a server says about itself.

use ::mongodb::bson::Document;

use super::error::Failure;

/// Returns an error if locks cannot be on a server, by its answers to `isMaster`, which every version knows, and `buildInfo`.
pub(super) fn check(role: &Document, build: &Document) -> Result<(), Failure> {
    if is_ferret(build) {
        return Err(Failure::Ferret);
    }
    // The driver reads from a replica where an address names it alone.
    match role.get_bool("ismaster") {
        Ok(true) => Ok(()),
        _ => Err(Failure::NoPrimary),
    }
}

/// Returns the name and the version of a server, by its answer to `buildInfo`.
pub(super) fn name(build: &Document) -> String {
    let version = build.get_str("version").unwrap_or("of an unknown version");
    match is_ferret(build) {
        true => format!("FerretDB, as MongoDB {version}"),
        false => format!("MongoDB {version}"),
    }
}

fn is_ferret(build: &Document) -> bool {
    build.contains_key("ferretdb") || build.contains_key("ferretdbVersion")
}

#[cfg(test)]
mod tests {
    use ::mongodb::bson::doc;
    use quorlock_core::transport::Cause;

    use super::*;
    use crate::database::Phase;

    #[test]
    fn a_replica_and_ferretdb_are_refused() {
        let mongodb = doc! { "version": "7.0.1" };
        assert!(check(&doc! { "ismaster": true }, &mongodb).is_ok());
        let primary = doc! { "ismaster": true };
        let replica = doc! { "ismaster": false, "secondary": true };
        let old = doc! { "version": "7.0.42", "ferretdbVersion": "v1.24.0" };
        let new = doc! { "version": "7.0.77", "ferretdb": { "version": "v2.1.0" } };
        for (role, build, cause, words) in [
            (&replica, &mongodb, Cause::ReadOnly, "name all members"),
            (&primary, &old, Cause::Unsupported, "FerretDB"),
            (&primary, &new, Cause::Unsupported, "FerretDB"),
        ] {
            let error = check(role, build).unwrap_err().into_error(Phase::Connect);
            assert_eq!(error.cause, cause, "{error:?}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn the_version_is_told() {
        assert_eq!(name(&doc! { "version": "7.0.1" }), "MongoDB 7.0.1");
        let ferret = doc! { "version": "7.0.42", "ferretdbVersion": "v1.24.0" };
        assert_eq!(name(&ferret), "FerretDB, as MongoDB 7.0.42");
    }
}
