//! Every figure and every list on the pages of the simulator, against the commands that print them.

mod breaks_page;
mod diagrams;
mod figures;
mod own_algorithm;
mod plan_docs;
