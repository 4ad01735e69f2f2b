//! The reply to `INFO`.

use redis::Value;

/// The lines of a reply to `INFO`.
#[derive(Default)]
pub(crate) struct Info(String);

impl Info {
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Info(text.to_owned())
    }

    /// Adds a section. Returns `false` if the reply is not text.
    pub(crate) fn add(&mut self, section: &Value) -> bool {
        match section {
            Value::BulkString(text) => self.0.push_str(&String::from_utf8_lossy(text)),
            Value::SimpleString(text) | Value::VerbatimString { text, .. } => self.0.push_str(text),
            _ => return false,
        }
        true
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.0.lines();
        let mut fields = lines.filter_map(|line| line.trim_end().split_once(':'));
        fields.find_map(|(key, value)| (key == name).then_some(value))
    }
}
