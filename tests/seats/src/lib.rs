//! A box office, as its authors would write it. Tills sell seats over HTTP, a lock for each seat; a ledger keeps in SQL what was sold.
//!
//! A till locks the seat, looks into the ledger, charges the buyer at the bank, and writes the sale. The bank may be slow: the till's
//! lock can be lost before the write. The fencing token in the SQL refuses such a write.
//!
//! Nothing here knows of a simulation. What opens connections is a parameter ([`http::Dial`]), and so are the listeners.

pub mod http;
pub mod ledger;
pub mod till;
