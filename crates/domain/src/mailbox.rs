//! Claims on inbound email addresses.

use crate::channel::named;

named! {
    /// Why a connection is allowed to receive email for an address.
    #[cfg_attr(feature = "openapi", schema(as = InboundAddressProof))]
    Proof {
        /// The operator set up or vouched for the connection.
        Operator = 1 "operator",
        /// The operator assigned the domain to the project.
        Domain = 2 "domain",
        /// A code emailed to the address was entered.
        Code = 3 "code",
    }
}

named! {
    /// Whether email for an address is accepted.
    #[cfg_attr(feature = "openapi", schema(as = InboundAddressStatus))]
    Status {
        /// Not until the address is verified.
        Pending = 1 "pending",
        /// Accepted.
        Verified = 2 "verified",
    }
}
