//! Claims on inbound email addresses.

use serde::{Deserialize, Serialize};

use crate::channel::named;

named! {
    /// Why mail for an address may come to a connection.
    #[cfg_attr(feature = "openapi", schema(as = InboundAddressProof))]
    Proof {
        /// The operator set the connection up, or vouched for it.
        Operator = 1 "operator",
        /// The operator gave the domain to the project.
        Domain = 2 "domain",
        /// A code that was mailed to the address was entered.
        Code = 3 "code",
    }
}

named! {
    /// Whether mail for an address comes in.
    #[cfg_attr(feature = "openapi", schema(as = InboundAddressStatus))]
    Status {
        /// Not before the address is verified.
        Pending = 1 "pending",
        /// It does.
        Verified = 2 "verified",
    }
}
