//! What the command says: to stderr alone, for stdout belongs to the child.

use std::io::{self, Write as _};

use clap::ValueEnum;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// How the command speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Voice {
    /// What a person has to know: that something is wrong.
    Text,
    /// Every event, as one line of JSON each.
    Json,
    /// Not at all.
    Quiet,
}

impl Voice {
    /// As the command line asks for it.
    pub(crate) fn of(is_quiet: bool, is_json: bool) -> Self {
        match (is_quiet, is_json) {
            (true, _) => Voice::Quiet,
            (_, true) => Voice::Json,
            _ => Voice::Text,
        }
    }

    /// As other processes of this command are told it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Voice::Text => "text",
            Voice::Json => "json",
            Voice::Quiet => "quiet",
        }
    }

    /// Something that a program may want to know, and a person does not.
    pub(crate) fn event(self, event: &str, fields: &[(&str, Value)]) {
        if self == Voice::Json {
            line(&json(event, fields));
        }
    }

    /// Something that a person has to know.
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

    /// Why the command ends.
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

/// One write: lines of several processes do not run into one another. A closed stderr is no reason to fail.
pub(crate) fn line(text: &str) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
