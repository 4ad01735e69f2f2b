//! The messages of the command. They go to stderr only, because stdout belongs to the child.

use std::io::{self, Write as _};

use clap::ValueEnum;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// The format of the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Voice {
    /// Warnings and errors, for people.
    Text,
    /// Every event, as one line of JSON each.
    Json,
    /// No messages.
    Quiet,
}

impl Voice {
    /// Returns the format that the command line selects.
    pub(crate) fn of(is_quiet: bool, is_json: bool) -> Self {
        match (is_quiet, is_json) {
            (true, _) => Voice::Quiet,
            (_, true) => Voice::Json,
            _ => Voice::Text,
        }
    }

    /// Returns the name of the format, as it is passed to other processes of this command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Voice::Text => "text",
            Voice::Json => "json",
            Voice::Quiet => "quiet",
        }
    }

    /// Reports an event that is of interest to programs but not to people.
    pub(crate) fn event(self, event: &str, fields: &[(&str, Value)]) {
        if self == Voice::Json {
            line(&json(event, fields));
        }
    }

    /// Reports something that people need to know.
    pub(crate) fn warn(self, event: &str, text: &str, fields: &[(&str, Value)]) {
        match self {
            Voice::Text => line(&format!("quorlock: {text}")),
            Voice::Json => {
                let mut fields = fields.to_vec();
                fields.push(("message", text.into()));
                line(&json(event, &fields));
            }
            Voice::Quiet => {}
        }
    }

    /// Reports why the command ends.
    pub(crate) fn failure(self, failure: &Failure) {
        let code = ("code", Value::from(failure.code.0));
        self.warn("failed", &failure.text, &[code]);
    }
}

fn json(event: &str, fields: &[(&str, Value)]) -> String {
    let mut object = Map::new();
    object.insert("event".into(), event.into());
    for (name, value) in fields {
        object.insert((*name).into(), value.clone());
    }
    Value::Object(object).to_string()
}

/// Writes a line in one call, so that the lines of several processes do not mix. A closed stderr is not an error.
pub(crate) fn line(text: &str) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
