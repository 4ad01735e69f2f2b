//! Checks without servers: conformance in the process, properties, pages, examples and the directions of dependencies.

mod dependency_directions;
mod embedded_conformance;
mod examples;
mod face;
mod fencing_page;
mod glossary;
mod links;
mod pages;
mod properties;
mod protocol;
mod runbooks;
mod simulated;
mod stories_complete;
mod transfers;
mod where_page;
