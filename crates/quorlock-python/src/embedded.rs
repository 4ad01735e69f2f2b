//! A node inside the process, for tests.

use pyo3::prelude::*;

use crate::own::Own;

/// A node inside the process, which can be killed, paused and restarted.
#[pyclass(frozen, module = "quorlock")]
pub(crate) struct EmbeddedNode(Own<quorlock::EmbeddedNode>);

impl EmbeddedNode {
    pub(crate) fn node(&self) -> PyResult<&quorlock::EmbeddedNode> {
        self.0.get()
    }
}

#[pymethods]
impl EmbeddedNode {
    /// Makes an empty node that runs.
    #[new]
    fn new() -> Self {
        EmbeddedNode(Own::new(quorlock::EmbeddedNode::new()))
    }

    /// Kills the node: it forgets everything, and refuses connections until it is restarted.
    fn kill(&self) -> PyResult<()> {
        self.node()?.kill();
        Ok(())
    }

    /// Stops the node without ending it: it does not answer until it is resumed.
    fn pause(&self) -> PyResult<()> {
        self.node()?.pause();
        Ok(())
    }

    /// Lets a paused node go on.
    fn resume(&self) -> PyResult<()> {
        self.node()?.resume();
        Ok(())
    }

    /// Starts a killed node again, without its data.
    fn restart(&self) -> PyResult<()> {
        self.node()?.restart();
        Ok(())
    }
}
