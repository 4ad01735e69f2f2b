//! Arguments that Python passes: names and spans of time.

use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use quorlock::Name;

use crate::failure;

/// A name: text, which is stored in UTF-8, or bytes.
pub(crate) struct NameArgument(pub(crate) Vec<u8>);

impl<'py> FromPyObject<'_, 'py> for NameArgument {
    type Error = PyErr;

    fn extract(name: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = name.cast::<PyString>() {
            return Ok(NameArgument(text.encode_utf8()?.as_bytes().to_vec()));
        }
        match name.cast::<PyBytes>() {
            Ok(bytes) => Ok(NameArgument(bytes.as_bytes().to_vec())),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a name is str or bytes, not {}",
                name.get_type().name()?
            ))),
        }
    }
}

/// Returns a name as Python's text. Bytes that are not UTF-8 are replaced by surrogates, as in names of files.
pub(crate) fn text<'py>(py: Python<'py>, name: &Name) -> PyResult<Bound<'py, PyString>> {
    let bytes = PyBytes::new(py, name.as_bytes());
    let encoding = (c"utf-8", c"surrogateescape");
    PyString::from_encoded_object(&bytes, Some(encoding.0), Some(encoding.1))
}

/// A span of time: a number of seconds, or a `timedelta`.
#[derive(Clone, Copy)]
pub(crate) struct Span(pub(crate) Duration);

impl<'py> FromPyObject<'_, 'py> for Span {
    type Error = PyErr;

    fn extract(span: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let seconds: f64 = match span.extract() {
            Ok(seconds) => seconds,
            Err(_) => match span.call_method0(pyo3::intern!(span.py(), "total_seconds")) {
                Ok(seconds) => seconds.extract()?,
                Err(_) => {
                    return Err(PyTypeError::new_err(format!(
                        "a span of time is a number of seconds or a timedelta, not {}",
                        span.get_type().name()?
                    )));
                }
            },
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(span) => Ok(Span(span)),
            Err(_) => Err(failure::span(span.py(), seconds)),
        }
    }
}
